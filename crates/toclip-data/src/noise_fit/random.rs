//! Random numbers for folds and starts, the same in every version and on every machine.

/// SplitMix64 (Steele, Lea and Flood 2014): ample for dealing cards.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform on [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform on 0..n. The bias, n/2⁶⁴, is far below anything that could be seen.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Shuffles (Fisher and Yates).
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_pinned_and_even() {
        let mut random = Random::new(1234567);
        // The generator's published first outputs for this seed.
        assert_eq!(random.next(), 6457827717110365317);
        assert_eq!(random.next(), 3203168211198807973);
        // 10,000 draws below 10: chi-square with 9 degrees of freedom; above 27.9 by chance with
        // probability 1e-3, and the seed is fixed.
        let mut counts = [0.0; 10];
        (0..10_000).for_each(|_| counts[random.below(10)] += 1.0);
        let chi: f64 = counts.iter().map(|c| (c - 1000.0) * (c - 1000.0) / 1000.0).sum();
        assert!(chi < 27.9, "{chi}");
        let mut items: Vec<usize> = (0..100).collect();
        random.shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
