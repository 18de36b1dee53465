//! A part of a sweep, for one of several processes.

use std::fmt;
use std::str::FromStr;

/// Every `of`-th cell, from the `index`-th on: neighbours, which cost alike, go to different shards.
///
/// ```
/// use toclip_sweep::Shard;
/// let shard: Shard = "2/3".parse()?;
/// assert_eq!((0..7).filter(|cell| shard.holds(*cell)).collect::<Vec<_>>(), [1, 4]);
/// assert_eq!((shard.cells_of(7), shard.to_string()), (2, "2/3".into()));
/// assert!("0/3".parse::<Shard>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    index: u64,
    of: u64,
}

impl Shard {
    /// The whole sweep.
    pub const WHOLE: Shard = Shard { index: 1, of: 1 };
    /// More processes than any cluster starts.
    const MOST: u64 = 1_000_000;

    /// Its number, from 1.
    pub fn index(self) -> u64 {
        self.index
    }

    /// How many there are.
    pub fn of(self) -> u64 {
        self.of
    }

    /// Whether it is the whole sweep.
    pub fn is_whole(self) -> bool {
        self.of == 1
    }

    /// Whether a cell belongs to it.
    pub fn holds(self, cell: u64) -> bool {
        cell % self.of == self.index - 1
    }

    /// The k-th of its cells.
    pub fn cell(self, k: u64) -> u64 {
        self.index - 1 + k * self.of
    }

    /// How many of so many cells belong to it.
    pub fn cells_of(self, cells: u64) -> u64 {
        (cells + self.of - self.index) / self.of
    }

    /// All shards of as many.
    pub fn all(self) -> impl Iterator<Item = Shard> {
        (1..=self.of).map(move |index| Shard { index, ..self })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(index, of)| {
            Some(Shard { index: index.trim().parse().ok()?, of: of.trim().parse().ok()? })
        });
        parts
            .filter(|s| (1..=s.of).contains(&s.index) && s.of <= Shard::MOST)
            .ok_or_else(|| "expected K/N such as 3/64: part K of N, counted from 1".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every cell is in exactly one shard, and the counts agree.
        #[test]
        fn shards_are_a_partition(cells in 0u64..500, of in 1u64..40) {
            let shards: Vec<Shard> = Shard { index: 1, of }.all().collect();
            for cell in 0..cells {
                prop_assert_eq!(shards.iter().filter(|s| s.holds(cell)).count(), 1);
            }
            for shard in shards {
                let held = (0..cells).filter(|cell| shard.holds(*cell)).count() as u64;
                prop_assert_eq!(held, shard.cells_of(cells));
                prop_assert!((0..held).all(|k| shard.holds(shard.cell(k)) && shard.cell(k) < cells));
            }
        }
    }
}
