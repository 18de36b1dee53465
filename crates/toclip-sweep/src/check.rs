//! Finding cells that cannot run before the first one does.

use rayon::prelude::*;
use toclip_experiment::Prepared;

use crate::error::{Error, Result};
use crate::sweep::Sweep;

/// Up to so many cells, every one is built before the first runs; of more, this many spread evenly.
/// The others fail alone, with their reason in the table.
const CHECKED: u64 = 20_000;

impl Sweep {
    /// Builds the cells without running them, on all cores; `tick` is called after each. Every shard checks
    /// the same cells as the whole sweep, so either all shards are refused or none.
    ///
    /// # Errors
    /// [`Error::Wrong`] for the first cell that cannot be run.
    pub fn check(&self, tick: &(dyn Fn() + Sync)) -> Result<()> {
        let (checked, cells) = (self.checked(), self.cells());
        let at = |k: u64| if checked == cells { k } else { spread(k, cells) };
        let failed = (0..checked).into_par_iter().map(at).find_map_first(|cell| {
            let failed = self.check_cell(cell).err();
            tick();
            failed
        });
        failed.map_or(Ok(()), Err)
    }

    /// How many cells [`Sweep::check`] builds.
    pub fn checked(&self) -> u64 {
        self.cells().min(CHECKED)
    }

    fn check_cell(&self, cell: u64) -> Result<(), Error> {
        let (file, origin) = self.experiment(cell)?;
        let built = match file.experiment() {
            Some(experiment) => Prepared::new(experiment, &origin).map(|_| ()),
            None => Ok(()),
        };
        built.map_err(|e| self.wrong(cell, &e.sentence()))
    }
}

/// The k-th of `0..all` in an order that spreads the first of them evenly: steps of the golden ratio,
/// made to share no factor with `all`, to reach every value of an axis.
fn spread(k: u64, all: u64) -> u64 {
    let golden = (all as f64 * 0.618_033_988_749_895) as u64;
    let stride = (golden.max(1)..).find(|stride| gcd(*stride, all) == 1).unwrap_or(1);
    (u128::from(k) * u128::from(stride) % u128::from(all)) as u64
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_visited_once_and_the_first_are_spread() {
        for all in [1u64, 2, 100, 1024, 9973] {
            let mut seen: Vec<u64> = (0..all).map(|k| spread(k, all)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..all), "{all}");
        }
        // 100 of a million: every value of an axis of 10 that changes fastest, and of the slowest.
        let first: Vec<u64> = (0..100).map(|k| spread(k, 1_000_000)).collect();
        for digit in 0..10 {
            assert!(first.iter().any(|at| at % 10 == digit));
            assert!(first.iter().any(|at| at / 100_000 == digit));
        }
    }
}
