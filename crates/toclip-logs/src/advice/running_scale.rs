//! The running scale of the norms: a geometric mean that remembers 200 norms.

use crate::Point;

/// Norms that the running scale remembers, the same as in the monitor.
const MEMORY: f64 = 200.0;
const FIRST: usize = 32;
/// If the scale moved by more than this factor, a fixed threshold would no longer fit.
const MOVED: f64 = 1.5;

/// The steps that a running scale should remember, if thresholds must follow one: if the scale of the
/// norms moved too much for a fixed number. Norms are logged every few steps, but code counts steps.
pub(super) fn memory_in_steps(points: &[Point], steady: &[f64]) -> Option<f64> {
    (scale_range(steady) > MOVED).then(|| (MEMORY * mean_gap(points).max(1.0)).round())
}

/// The scale of each norm: the running geometric mean of the norms before it. The first norms use
/// their own mean.
///
/// ```
/// let scales = toclip_logs::running_scales(&[3.0; 40]);
/// assert!((scales[39] - 3.0).abs() < 1e-12);
/// ```
pub fn running_scales(norms: &[f64]) -> Vec<f64> {
    let (mut log, mut weight) = (0.0, 0.0);
    let mut scales = Vec::with_capacity(norms.len());
    for (i, norm) in norms.iter().enumerate() {
        scales.push(f64::exp(log));
        if *norm > 0.0 {
            weight = f64::min(weight + 1.0, MEMORY);
            log += (norm.ln() - log) / weight;
        }
        if i + 1 == FIRST || i + 1 == norms.len() && i < FIRST {
            scales.fill(log.exp());
        }
    }
    scales
}

/// Steps from one point to the next on average, including rows that thinning dropped.
fn mean_gap(points: &[Point]) -> f64 {
    match points {
        [first, .., last] => (last.step - first.step) / (points.len() as f64 - 1.0),
        _ => 1.0,
    }
}

/// The largest over the smallest geometric mean of the four quarters of some norms.
fn scale_range(norms: &[f64]) -> f64 {
    let quarter = norms.len().div_ceil(4).max(1);
    let mean = |part: &[f64]| {
        let logs: Vec<f64> = part.iter().filter(|n| **n > 0.0).map(|n| n.ln()).collect();
        (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
    };
    let means: Vec<f64> = norms.chunks(quarter).filter_map(mean).collect();
    let most = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    (most - least).exp().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_a_geometric_mean() {
        let flat = running_scales(&[2.0; 100]);
        assert!(flat.iter().all(|s| (s - 2.0).abs() < 1e-12));
        let two: Vec<f64> = (0..64).map(|i| [1.0, 4.0][i % 2]).collect();
        assert!((running_scales(&two)[63] - 2.0).abs() < 0.05);
        assert!(running_scales(&[0.0, 0.0]).iter().all(|s| s.is_finite()));
        assert!(running_scales(&[]).is_empty());
    }

    #[test]
    fn the_range_of_the_scale() {
        assert_eq!(scale_range(&[2.0; 100]), 1.0);
        assert_eq!(scale_range(&[]), 1.0);
        let falling: Vec<f64> = (0..100).map(|i| 0.9_f64.powi(i)).collect();
        // From the middle of the first quarter to that of the last are 75 steps.
        assert!((scale_range(&falling) / 0.9_f64.powi(-75) - 1.0).abs() < 1e-9);
        // It rose and fell again: the ends alone would not show it.
        let bump: Vec<f64> = (0..100).map(|i| if i / 25 == 1 { 3.0 } else { 1.0 }).collect();
        assert!((scale_range(&bump) - 3.0).abs() < 1e-9);
    }
}
