//! Where EM starts: several places, the same every time.

use super::cells::Cell;
use super::random::Random;
use toclip::noise::Component;

/// Starts that are drawn, besides the two that are not.
const DRAWN: u64 = 4;

/// Starts with `k` components for sorted data in units of their spread.
pub(super) fn starts(data: &[Cell], k: usize, floor: f64) -> Vec<Vec<Component>> {
    if k == 1 {
        return vec![clusters(data, &[0.0], floor)];
    }
    let mut starts = vec![in_location(data, k, floor), in_scale(data, k, floor)];
    for seed in 0..DRAWN {
        // Half of them seek what is far off, half do not let outliers take all centres.
        let power = if seed % 2 == 0 { 2 } else { 1 };
        let centres = centres(data, k, power, &mut Random::new(seed));
        starts.push(clusters(data, &centres, floor));
    }
    starts
}

/// The data cut by size into `k` parts of equal count.
fn in_location(data: &[Cell], k: usize, floor: f64) -> Vec<Component> {
    let n: f64 = data.iter().map(|c| c.count).sum();
    let mut parts = vec![Vec::new(); k];
    let mut seen = 0.0;
    for cell in data {
        let part = ((seen + 0.5 * cell.count) / n * k as f64) as usize;
        parts[part.min(k - 1)].push(*cell);
        seen += cell.count;
    }
    parts.iter().filter_map(|part| moments(part, n, floor)).collect()
}

/// All at the middle, each with the root mean square of a part of the data by distance: a bell
/// with tails.
fn in_scale(data: &[Cell], k: usize, floor: f64) -> Vec<Component> {
    let mut near: Vec<Cell> = data.to_vec();
    near.sort_by(|a, b| a.at.abs().total_cmp(&b.at.abs()));
    let n: f64 = data.iter().map(|c| c.count).sum();
    let (mut seen, mut sums) = (0.0, vec![(0.0, 0.0); k]);
    for cell in &near {
        let part = (((seen + 0.5 * cell.count) / n * k as f64) as usize).min(k - 1);
        sums[part].0 += cell.count;
        sums[part].1 += cell.count * cell.at * cell.at;
        seen += cell.count;
    }
    sums.iter()
        .filter(|sum| sum.0 > 0.0)
        .map(|sum| Component {
            weight: sum.0 / n,
            mean: 0.0,
            std: (sum.1 / sum.0).sqrt().max(floor),
        })
        .collect()
}

/// Centres drawn one by one, with probability in proportion to the distance from those before, to
/// a power (Arthur and Vassilvitskii 2007 for the second).
fn centres(data: &[Cell], k: usize, power: i32, random: &mut Random) -> Vec<f64> {
    let mut centres: Vec<f64> = Vec::new();
    let mut weights: Vec<f64> = data.iter().map(|c| c.count).collect();
    while centres.len() < k {
        let mut left = random.unit() * weights.iter().sum::<f64>();
        let chosen = weights.iter().position(|w| {
            left -= w;
            left < 0.0
        });
        // With fewer different values than centres, no weight is left.
        let Some(chosen) = chosen else { break };
        centres.push(data[chosen].at);
        for (weight, cell) in weights.iter_mut().zip(data) {
            let far = centres.iter().map(|m| (cell.at - m).abs()).fold(f64::INFINITY, f64::min);
            *weight = cell.count * far.powi(power);
        }
    }
    centres
}

/// Each value to its nearest centre.
fn clusters(data: &[Cell], centres: &[f64], floor: f64) -> Vec<Component> {
    let n: f64 = data.iter().map(|c| c.count).sum();
    let mut parts = vec![Vec::new(); centres.len()];
    for cell in data {
        let away = |j: &usize| (cell.at - centres[*j]).abs();
        let nearest = (0..centres.len()).min_by(|a, b| away(a).total_cmp(&away(b)));
        parts[nearest.unwrap_or(0)].push(*cell);
    }
    parts.iter().filter_map(|part| moments(part, n, floor)).collect()
}

/// The component with the weight, mean and variance of a part of the data.
fn moments(part: &[Cell], n: f64, floor: f64) -> Option<Component> {
    let count: f64 = part.iter().map(|c| c.count).sum();
    if part.is_empty() {
        return None;
    }
    let mean = part.iter().map(|c| c.count * c.at).sum::<f64>() / count;
    let square = part.iter().map(|c| c.count * (c.at - mean).powi(2)).sum::<f64>() / count;
    Some(Component { weight: count / n, mean, std: square.sqrt().max(floor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_start_is_a_mixture() {
        let mut data: Vec<Cell> =
            (-50..50).map(|i| Cell { at: f64::from(i) / 20.0, count: 3.0 }).collect();
        data.push(Cell { at: 1e6, count: 1.0 });
        for k in 1..=6 {
            for start in starts(&data, k, 1e-3) {
                let total: f64 = start.iter().map(|c| c.weight).sum();
                assert!((total - 1.0).abs() < 1e-12 && start.len() <= k, "{start:?}");
                assert!(start.iter().all(|c| c.std >= 1e-3 && c.mean.is_finite()));
            }
        }
        // Three centres drawn by squared distance find an outlier a million spreads away.
        let far = centres(&data, 3, 2, &mut Random::new(0));
        assert!(far.contains(&1e6));
        let two = [Cell { at: -1.0, count: 9.0 }, Cell { at: 1.0, count: 9.0 }];
        assert!(centres(&two, 5, 2, &mut Random::new(3)).len() == 2);
    }
}
