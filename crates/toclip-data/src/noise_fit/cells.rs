//! Neighbouring residuals merged into weighted points.

/// So many residuals at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cell {
    pub(super) at: f64,
    pub(super) count: f64,
}

/// Sorted values in cells at their means, none wider than `width` nor of more than `most` values.
pub(super) fn cells(sorted: &[f64], width: f64, most: usize) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut rest = sorted;
    while let Some(&first) = rest.first() {
        let reach = rest[..most.clamp(1, rest.len())].partition_point(|&x| x - first <= width);
        let (cell, more) = rest.split_at(reach.max(1));
        let count = cell.len() as f64;
        // From the first value on, so that the mean of equal values is that value.
        let at = first + cell.iter().map(|x| x - first).sum::<f64>() / count;
        cells.push(Cell { at, count });
        rest = more;
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost() {
        let sorted = [-5.0, 0.0, 0.0, 0.0, 0.25, 0.5, 1.0, 7.0, 7.0];
        let merged = cells(&sorted, 0.5, 4);
        let counts: Vec<f64> = merged.iter().map(|c| c.count).collect();
        assert_eq!(counts, [1.0, 4.0, 2.0, 2.0]);
        assert_eq!(merged[1].at, 0.0625);
        let mean = |cells: &[Cell]| cells.iter().map(|c| c.at * c.count).sum::<f64>();
        assert_eq!(mean(&merged), sorted.iter().sum::<f64>());
        assert_eq!(cells(&sorted, 0.0, 100).len(), 6);
        assert_eq!(cells(&sorted, 100.0, 1).len(), 9);
    }
}
