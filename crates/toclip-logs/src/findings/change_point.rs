//! Where the distribution of the norms changed.

use super::running_scales;

/// Norms that are taken together.
const BLOCK: usize = 16;

/// The index at which mean and variance of ln(norm/scale) changed most: the split of largest likelihood
/// if both parts are normal. At least an eighth of the norms are on either side.
pub(super) fn find(norms: &[f64]) -> usize {
    let scales = running_scales(norms);
    let logs: Vec<f64> = norms
        .iter()
        .zip(&scales)
        .map(|(norm, scale)| if *norm > 0.0 { (norm / scale).ln() } else { 0.0 })
        .collect();
    // Sums of one, x and x² up to the end of each block.
    let mut sums = vec![[0.0; 3]];
    for block in logs.chunks(BLOCK) {
        let [n, x, square] = sums[sums.len() - 1];
        let count = block.len() as f64;
        let (sum, squares) = block.iter().fold((0.0, 0.0), |(a, b), x| (a + x, b + x * x));
        sums.push([n + count, x + sum, square + squares]);
    }
    let total = sums[sums.len() - 1];
    let cost = |[n, x, square]: [f64; 3]| n * (square / n - (x / n).powi(2)).max(1e-12).ln();
    let blocks = sums.len() - 1;
    let split = |k: &usize| cost(sums[*k]) + cost([0, 1, 2].map(|i| total[i] - sums[*k][i]));
    let best = (blocks.div_ceil(8)..=7 * blocks / 8)
        .min_by(|a, b| split(a).total_cmp(&split(b)))
        .unwrap_or(blocks / 2);
    (best * BLOCK).min(norms.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    /// The spread doubles at one of several places. With 1500 norms of either kind nearby the place is
    /// found to within a few blocks.
    #[test]
    fn a_change_of_the_spread_is_located() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for at in [700, 1500, 2200] {
            let norms: Vec<f64> = (0..3000)
                .map(|i| {
                    let x: f64 = StandardNormal.sample(&mut rng);
                    (x * if i < at { 0.1 } else { 0.2 }).exp()
                })
                .collect();
            let found = find(&norms);
            assert!(found.abs_diff(at) <= 4 * BLOCK, "{found} for {at}");
        }
    }
}
