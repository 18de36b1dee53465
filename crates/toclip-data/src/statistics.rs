//! Statistics of samples.

/// The mean, and the standard deviation with divisor n.
pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
}

/// At most `most` of sorted values, evenly spaced by rank: the middles of equal shares.
pub(crate) fn thinned(sorted: &[f64], most: usize) -> impl Iterator<Item = f64> {
    let (n, count) = (sorted.len(), sorted.len().min(most));
    (0..count).map(move |k| sorted[(2 * k + 1) * n / (2 * count)])
}

/// Shuffles (Fisher and Yates) by random integers. The bias, n/2⁶⁴, is negligible.
pub(crate) fn shuffle<T>(items: &mut [T], mut random: impl FnMut() -> u64) {
    for last in (1..items.len()).rev() {
        let below = u128::from(random()) * (last as u128 + 1);
        items.swap(last, (below >> 64) as usize);
    }
}
