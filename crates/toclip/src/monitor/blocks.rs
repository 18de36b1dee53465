//! Stretches of steps in a row, in constant memory.

use super::block::{Block, Step};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Which steps are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// All of them.
    #[default]
    All,
    /// About the last so many, at least 512; forgotten by thirty-seconds of that number.
    Last(usize),
}

/// The shortest stretch.
const SHORTEST: usize = 16;
/// Stretches of a window; half the most that are kept of everything.
pub(super) const BLOCKS: usize = 32;
/// The shortest window.
pub(super) const SHORTEST_WINDOW: usize = SHORTEST * BLOCKS;

/// The steps in stretches: neighbouring steps are alike, means of long stretches hardly, and so
/// their spread shows how well the mean over all is known (the method of batch means).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Blocks {
    memory: Memory,
    /// Steps in a full stretch.
    length: usize,
    full: VecDeque<Block>,
    current: Block,
    /// Steps in the current one.
    steps: usize,
}

impl Blocks {
    pub fn new(memory: Memory) -> Self {
        let length = match memory {
            Memory::All => SHORTEST,
            Memory::Last(window) => (window / BLOCKS).max(SHORTEST),
        };
        Blocks { memory, length, full: VecDeque::new(), current: Block::default(), steps: 0 }
    }

    pub fn add(&mut self, step: Step) {
        self.current.add(step);
        self.steps += 1;
        if self.steps == self.length {
            self.full.push_back(std::mem::take(&mut self.current));
            self.steps = 0;
            match self.memory {
                Memory::All if self.full.len() == 2 * BLOCKS => self.double(),
                Memory::Last(_) if self.full.len() > BLOCKS => drop(self.full.pop_front()),
                _ => {}
            }
        }
    }

    /// Stretches of twice the length, from neighbours.
    fn double(&mut self) {
        let odd = self.full.len() % 2 == 1;
        let mut pairs = VecDeque::with_capacity(2 * BLOCKS);
        while let Some(mut first) = self.full.pop_front() {
            match self.full.pop_front() {
                Some(second) => {
                    first.merge(&second);
                    pairs.push_back(first);
                }
                None => {
                    // A last one without neighbour is the beginning of the current.
                    first.merge(&self.current);
                    self.current = first;
                }
            }
        }
        if odd {
            self.steps += self.length;
        }
        self.full = pairs;
        self.length *= 2;
    }

    /// Adds the stretches of another worker to those of the same time: of a window counted from
    /// its end, of everything from the beginning.
    pub fn merge(&mut self, other: &Blocks) {
        let mut other = other.clone();
        if self.memory == Memory::All {
            while self.length < other.length {
                self.double();
            }
            while other.length < self.length {
                other.double();
            }
        }
        let (a, b) = (self.full.len(), other.full.len());
        if a < b {
            std::mem::swap(&mut self.full, &mut other.full);
        }
        let skip = match self.memory {
            Memory::All => 0,
            Memory::Last(_) => a.abs_diff(b),
        };
        self.full.iter_mut().skip(skip).zip(&other.full).for_each(|(x, y)| x.merge(y));
        self.current.merge(&other.current);
        // The current stretch ends when that of the further worker does.
        self.steps = self.steps.max(other.steps);
    }

    /// All stretches, oldest first, the current one included.
    pub fn iter(&self) -> impl Iterator<Item = &Block> {
        self.full.iter().chain((self.steps > 0).then_some(&self.current))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(k: usize) -> Step {
        Step {
            log: (k as f64 * 0.7).sin(),
            log_scale: k as f64,
            before: None,
            inner: None,
            watched: None,
        }
    }

    #[test]
    fn nothing_is_lost_and_memory_is_bounded() {
        let mut blocks = Blocks::new(Memory::All);
        for k in 0..100_000 {
            blocks.add(step(k));
            assert!(blocks.iter().count() <= 2 * BLOCKS);
        }
        assert!(blocks.iter().count() >= BLOCKS);
        assert_eq!(blocks.iter().map(|b| b.whole.count).sum::<f64>(), 100_000.0);
    }

    #[test]
    fn a_window_forgets() {
        let mut blocks = Blocks::new(Memory::Last(640));
        (0..10_000).for_each(|k| blocks.add(step(k)));
        let count: f64 = blocks.iter().map(|b| b.whole.count).sum();
        assert!((640.0..=660.0).contains(&count), "{count}");
        let oldest = blocks.iter().next().unwrap().whole;
        assert!(oldest.log_scale / oldest.count > 9_300.0);
    }

    #[test]
    fn merging_keeps_every_sum_whatever_the_lengths() {
        for (n, m) in [(0, 50), (50, 0), (700, 16), (1024, 5_000), (33_333, 1_000), (999, 999)] {
            let (mut a, mut b) = (Blocks::new(Memory::All), Blocks::new(Memory::All));
            (0..n).for_each(|k| a.add(step(k)));
            (n..n + m).for_each(|k| b.add(step(k)));
            a.merge(&b);
            let count: f64 = a.iter().map(|b| b.whole.count).sum();
            let scales: f64 = a.iter().map(|b| b.whole.log_scale).sum();
            assert_eq!(count, (n + m) as f64);
            assert_eq!(scales, (0..n + m).map(|k| k as f64).sum::<f64>());
            assert!(a.iter().count() <= 2 * BLOCKS);
        }
    }
}
