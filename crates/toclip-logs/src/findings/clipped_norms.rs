//! Detects norms that were logged after clipping: they pile up at the threshold.

use crate::{Finding, Log};

/// Widths of the windows, relative to the norm: clipped norms agree up to
/// half precision, PyTorch's 1e-6, and the noise of a norm that is taken again after clipping.
const WIDTHS: [f64; 3] = [1e-3, 3e-3, 8e-3];
/// A pile has more than this many times the norms that its neighbourhood predicts, ...
const OVER: f64 = 4.0;
/// ... plus this many: with Poisson counts, fewer than one window in a million exceeds both by chance.
const MORE: f64 = 10.0;
/// With fewer distinct norms, several of them repeated, the rounding is too coarse to tell.
const FEW: usize = 12;
/// Smaller shares of the steps are ignored.
const SHARE: f64 = 2e-3;

/// A threshold this close to a pile of norms is the one that made it.
const NEAR: f64 = 0.01;

/// Finds the threshold at which norms pile up, if they do. A user who gives another threshold knows that
/// the norms were not clipped there.
///
/// The distribution of an unclipped norm is smooth: a narrow window holds about as many norms as the
/// density next to it, on its denser side, predicts. A window that holds far more is where norms were
/// clipped; a few rows above it (a restart, a step without clipping) change nothing. Norms that all
/// agree to a quarter of a percent are a pile too: no stochastic gradient is that steady.
pub(crate) fn find(log: &Log, given: Option<f64>) -> Option<Finding> {
    let (threshold, share) = largest_pile(log.points.iter().map(|p| p.norm))?;
    Some(match given.is_some_and(|c| !((c / threshold - 1.0).abs() < NEAR)) {
        true => Finding::NotClipped { threshold, share },
        false => Finding::NormsAfterClipping { threshold, share },
    })
}

/// The place and the share of the largest pile.
fn largest_pile(norms: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut sorted: Vec<f64> = norms.filter(|n| *n > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let logs: Vec<f64> = sorted.iter().map(|x| x.ln()).collect();
    let least = (SHARE * n as f64).max(MORE) as usize;
    // Where rounding left only a few values, a pile cannot be told from a mode.
    let distinct = 1 + logs.windows(2).filter(|w| w[0] < w[1]).count();
    let coarse = if distinct < FEW { distinct } else { 0 };
    let (mut most, mut found) = (0, None);
    for width in WIDTHS {
        let mut end = 0;
        for start in 0..n {
            while end < n && logs[end] - logs[start] <= width {
                end += 1;
            }
            let held = end - start;
            if held < least || held <= most {
                continue;
            }
            // Equal norms belong to the same window.
            if start > 0 && logs[start - 1] == logs[start] {
                continue;
            }
            let next = (held / 3).max(10);
            let inside = logs[end - 1] - logs[start];
            let below = &logs[start.saturating_sub(next)..=start];
            let above = &logs[end - 1..(end + next).min(n)];
            let is_pile = |extent: fn(&[f64]) -> f64| {
                let expected = |side| expected(side, width.max(inside + extent(side)));
                held as f64 >= OVER * expected(below).max(expected(above)) + MORE
            };
            let too_coarse = coarse > 0 && n - held >= 3 * (coarse - 1) && held < n;
            // The spacing is checked last, because it scans the neighbours.
            if is_pile(|_| 0.0) && !too_coarse && is_pile(spacing) {
                most = held;
                found = Some((sorted[start + held / 2], held as f64 / n as f64));
            }
        }
    }
    found
}

/// How many norms the density on one side of a window, including its edge, predicts for the window.
fn expected(side: &[f64], width: f64) -> f64 {
    match side {
        [first, .., last] => (side.len() - 1) as f64 * width / (last - first),
        _ => 0.0,
    }
}

/// The spacing of norms written with few digits, which makes a window effectively that much wider.
fn spacing(side: &[f64]) -> f64 {
    let steps = side.windows(2).map(|w| w[1] - w[0]).filter(|step| *step > 0.0);
    steps.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, LogNormal, StandardNormal};

    fn log_normal(seed: u64, n: usize, width: f64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let distribution = LogNormal::new(0.0, width).unwrap();
        (0..n).map(|_| distribution.sample(&mut rng)).collect()
    }

    fn pile(norms: &[f64]) -> Option<(f64, f64)> {
        largest_pile(norms.iter().copied())
    }

    /// 3000 logs without clipping, smooth and rounded, narrow and wide, short and long: none has a
    /// pile. With a chance of 0.001 for each, none at all would have a chance of 0.05.
    #[test]
    fn smooth_distributions_have_no_pile() {
        let mut found = Vec::new();
        for seed in 0..150 {
            for (width, n) in [(0.5, 500), (0.5, 20_000), (0.1, 2000), (0.02, 1000), (1.5, 2000)] {
                let norms = log_normal(seed, n, width);
                for digits in [1e9, 1e3, 100.0, 10.0_f64] {
                    // Few digits only where they leave a dozen different norms.
                    if digits * width < 3.0 {
                        continue;
                    }
                    let rounded: Vec<f64> =
                        norms.iter().map(|x| (x * digits).round() / digits).collect();
                    found.extend(pile(&rounded).map(|at| (seed, width, n, digits, at)));
                }
                // Half precision of brain floats: eight bits.
                let bits = |x: f64| f64::from(f32::from_bits((x as f32).to_bits() & 0xffff_0000));
                let rounded: Vec<f64> = norms.iter().map(|x| bits(*x)).collect();
                if width > 0.05 {
                    found.extend(pile(&rounded).map(|at| (seed, width, n, 0.0, at)));
                }
            }
        }
        assert!(found.is_empty(), "{} {:?}", found.len(), &found[..found.len().min(8)]);
    }

    #[test]
    fn clipped_norms_pile_up_under_outliers_and_jitter() {
        for seed in 0..50 {
            let norms = log_normal(seed, 2000, 0.5);
            let mut rng = ChaCha8Rng::seed_from_u64(seed + 1000);
            for jitter in [0.0, 1e-4, 5e-4, 1e-3] {
                for (c, outliers) in [(1.2, 0), (1.2, 1), (0.7, 20), (2.9, 0), (2.9, 2)] {
                    let mut noise =
                        || 1.0 + jitter * Distribution::<f64>::sample(&StandardNormal, &mut rng);
                    let mut clipped: Vec<f64> =
                        norms.iter().map(|x| if *x > c { c * noise() } else { *x }).collect();
                    (0..outliers).for_each(|k| clipped[97 * k] = 1.3 * c + 0.1 * k as f64);
                    let share = norms.iter().filter(|x| **x > c).count() as f64 / 2000.0;
                    let (at, seen) = pile(&clipped).unwrap_or_else(|| {
                        panic!("seed {seed} jitter {jitter} c {c} share {share}")
                    });
                    assert!((at / c - 1.0).abs() < 2e-3, "{at} for {c}");
                    assert!((seen - share).abs() < 0.2 * share + 0.01, "{seen} for {share}");
                }
            }
        }
        // Rounded to three places, and clipped but for three rows.
        let coarse: Vec<f64> =
            (0..1000).map(|i| [0.03, 0.02, 0.03, 0.04][i * i % 97 % 4]).collect();
        let narrow: Vec<f64> =
            log_normal(7, 1000, 0.15).iter().map(|x| (x * 3.0).round() / 100.0).collect();
        assert_eq!((pile(&coarse), pile(&narrow)), (None, None));
        let mut clipped = [1.0; 1000];
        clipped[..3].copy_from_slice(&[0.5, 0.7, 0.8]);
        assert_eq!(pile(&clipped), Some((1.0, 0.997)));
        // Everything clipped: one value.
        assert_eq!(pile(&[1.0; 50]), Some((1.0, 1.0)));
        assert_eq!(pile(&[0.0; 50]), None);
        assert_eq!(pile(&[]), None);
    }
}
