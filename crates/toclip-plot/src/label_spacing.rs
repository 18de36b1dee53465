//! Names that would overlap, moved apart.

/// Centres of names in a row, as near as can be (in the mean square) to where they are wanted, in
/// increasing order, such that names of these sizes do not overlap and keep within the room.
///
/// Less the sizes before them, centres need only be in order: an isotonic regression, by pooling
/// adjacent violators.
pub(super) fn space_labels(wanted: &[f64], sizes: &[f64], room: (f64, f64)) -> Vec<f64> {
    let mut before = 0.0;
    let offsets: Vec<f64> = sizes
        .iter()
        .map(|size| {
            before += size;
            before - size / 2.0
        })
        .collect();
    // Pools as (sum, members).
    let mut pools: Vec<(f64, usize)> = Vec::new();
    let mean = |pool: &(f64, usize)| pool.0 / pool.1 as f64;
    for (at, offset) in wanted.iter().zip(&offsets) {
        pools.push((at - offset, 1));
        while let [.., a, b] = &pools[..]
            && mean(a) > mean(b)
        {
            let joined = (a.0 + b.0, a.1 + b.1);
            pools.truncate(pools.len() - 2);
            pools.push(joined);
        }
    }
    let (low, high) = (room.0, room.1 - before);
    let places = pools.iter().flat_map(|pool| std::iter::repeat_n(mean(pool), pool.1));
    places.zip(offsets).map(|(at, offset)| at.min(high).max(low) + offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_apart_about_their_places() {
        let places = |wanted: &[f64]| space_labels(wanted, &vec![10.0; wanted.len()], (0.0, 100.0));
        assert_eq!(places(&[10.0, 50.0]), [10.0, 50.0]);
        assert_eq!(places(&[20.0, 20.0]), [15.0, 25.0]);
        assert_eq!(places(&[20.0, 20.0, 26.0, 90.0]), [12.0, 22.0, 32.0, 90.0]);
        assert_eq!(places(&[1.0, 99.0, 99.0]), [5.0, 85.0, 95.0]);
        assert_eq!(space_labels(&[20.0, 21.0], &[8.0, 20.0], (0.0, 100.0)), [13.5, 27.5]);
        assert!(places(&[]).is_empty());
    }
}
