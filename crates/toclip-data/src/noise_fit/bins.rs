//! Sorted residuals merged into bins.

/// `count` residuals at their mean `at`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bin {
    pub(super) at: f64,
    pub(super) count: f64,
}

/// Sorted values in bins at their means, none wider than `width` nor of more than `most` values.
pub(super) fn bins(sorted: &[f64], width: f64, most: usize) -> Vec<Bin> {
    let mut bins = Vec::new();
    let mut rest = sorted;
    while let Some(&first) = rest.first() {
        let reach = rest[..most.clamp(1, rest.len())].partition_point(|&x| x - first <= width);
        let (bin, more) = rest.split_at(reach.max(1));
        let count = bin.len() as f64;
        // Relative to the first value: the mean of equal values is then that value.
        let at = first + bin.iter().map(|x| x - first).sum::<f64>() / count;
        bins.push(Bin { at, count });
        rest = more;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost() {
        let sorted = [-5.0, 0.0, 0.0, 0.0, 0.25, 0.5, 1.0, 7.0, 7.0];
        let merged = bins(&sorted, 0.5, 4);
        let counts: Vec<f64> = merged.iter().map(|c| c.count).collect();
        assert_eq!(counts, [1.0, 4.0, 2.0, 2.0]);
        assert_eq!(merged[1].at, 0.0625);
        let mean = |bins: &[Bin]| bins.iter().map(|c| c.at * c.count).sum::<f64>();
        assert_eq!(mean(&merged), sorted.iter().sum::<f64>());
        assert_eq!(bins(&sorted, 0.0, 100).len(), 6);
        assert_eq!(bins(&sorted, 100.0, 1).len(), 9);
    }
}
