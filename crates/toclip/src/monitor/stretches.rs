//! Sums over stretches of steps, in constant memory.

use super::candidates::{BINS, CANDIDATES, bin, multiple};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// One norm as a multiple $u = G/s$ of the scale, with the other data of its step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observation {
    /// $\ln u$.
    pub log: f64,
    /// $\ln s$.
    pub log_scale: f64,
    /// $\ln u$ of the step before, if there was one.
    pub before: Option<f64>,
    /// $\langle g, \text{reference}\rangle/s^2$, where it was given.
    pub inner: Option<f64>,
    /// $\ln(\tau/s)$ of the watched threshold, if one is watched.
    pub watched: Option<f64>,
}

/// Sums over the norms of one bin: they give the moments clipped at every candidate without the error
/// of a histogram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Bin {
    count: f64,
    /// $\sum 1/u$.
    inverse: f64,
    /// $\sum u^2$.
    square: f64,
    /// $\sum \ln u$.
    log: f64,
}

/// Sums over one bin of inner products $p$ with a reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct InnerBin {
    /// $\sum p$.
    inner: f64,
    /// $\sum p/u$.
    over: f64,
}

/// Sums of a stretch of steps at one threshold $\tau$.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ClipSums {
    /// How many norms are above.
    pub above: f64,
    /// $\sum \tau/G$ over those.
    pub ratio: f64,
    /// $\sum \min(u^2, (\tau/s)^2)$.
    pub square: f64,
    /// $\sum p \min(1, \tau/G)$.
    pub inner: f64,
    /// $\sum \ln (G/\tau)$ over those above.
    pub excess: f64,
}

/// Sums of a stretch of steps that do not depend on a threshold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StretchSums {
    pub count: f64,
    /// $\sum u^2$.
    pub square: f64,
    /// $\sum \ln u$.
    pub log: f64,
    /// $\sum (\ln u)^2$.
    pub log_square: f64,
    /// $\sum \ln s$.
    pub log_scale: f64,
    /// $\sum \ln u_k \ln u_{k-1}$.
    pub log_before: f64,
    /// $\sum p$.
    pub inner: f64,
    /// How many steps had an inner product.
    pub inners: f64,
}

/// A stretch of steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Stretch {
    pub whole: StretchSums,
    pub watched: ClipSums,
    bins: Vec<Bin>,
    /// Empty until an inner product comes.
    inners: Vec<InnerBin>,
}

/// Multiples of the scale are limited to this range in the logarithm, so that their squares stay
/// finite.
const EXTREME: f64 = 230.0;

impl Stretch {
    pub fn add(&mut self, step: Observation) {
        let log = step.log.clamp(-EXTREME, EXTREME);
        let u = log.exp();
        let (inverse, square) = (1.0 / u, u * u);
        if self.bins.is_empty() {
            self.bins = vec![Bin::default(); BINS];
        }
        let place = bin(log);
        let bin = &mut self.bins[place];
        bin.count += 1.0;
        bin.inverse += inverse;
        bin.square += square;
        bin.log += log;
        let whole = &mut self.whole;
        whole.count += 1.0;
        whole.square += square;
        whole.log += log;
        whole.log_square += log * log;
        whole.log_scale += step.log_scale;
        whole.log_before += log * step.before.unwrap_or(0.0).clamp(-EXTREME, EXTREME);
        if let Some(inner) = step.inner {
            if self.inners.is_empty() {
                self.inners = vec![InnerBin::default(); BINS];
            }
            self.inners[place].inner += inner;
            self.inners[place].over += inner * inverse;
            whole.inner += inner;
            whole.inners += 1.0;
        }
        if let Some(at) = step.watched {
            let clip = &mut self.watched;
            // Logarithms are compared, which are equal where norm and threshold are: norms that
            // were logged after clipping pile up there.
            let above = log > at;
            let factor = if above { (at - log).exp() } else { 1.0 };
            if above {
                clip.above += 1.0;
                clip.ratio += factor;
                clip.excess += log - at;
            }
            clip.square += square * factor * factor;
            clip.inner += step.inner.unwrap_or(0.0) * factor;
        }
    }

    /// The sums at every candidate, lowest first.
    pub fn at_candidates(&self) -> Vec<ClipSums> {
        let mut clips = vec![ClipSums::default(); CANDIDATES];
        // Sums over the bins above a candidate from the top, over those below from the bottom.
        let (mut above, mut inner_over) = (Bin::default(), 0.0);
        for k in (0..CANDIDATES).rev() {
            let at = multiple(k);
            if let Some(bin) = self.bins.get(k + 1) {
                above.count += bin.count;
                above.inverse += bin.inverse;
                above.log += bin.log;
            }
            inner_over += self.inners.get(k + 1).map_or(0.0, |bin| bin.over);
            clips[k] = ClipSums {
                above: above.count,
                ratio: at * above.inverse,
                square: at * at * above.count,
                inner: at * inner_over,
                excess: above.log - at.ln() * above.count,
            };
        }
        let (mut square, mut inner) = (0.0, 0.0);
        for (k, clip) in clips.iter_mut().enumerate() {
            square += self.bins.get(k).map_or(0.0, |bin| bin.square);
            inner += self.inners.get(k).map_or(0.0, |bin| bin.inner);
            clip.square += square;
            clip.inner += inner;
        }
        clips
    }

    /// Adds the sums of another stretch.
    pub fn merge(&mut self, other: &Stretch) {
        let (a, b) = (&mut self.whole, &other.whole);
        a.count += b.count;
        a.square += b.square;
        a.log += b.log;
        a.log_square += b.log_square;
        a.log_scale += b.log_scale;
        a.log_before += b.log_before;
        a.inner += b.inner;
        a.inners += b.inners;
        let (a, b) = (&mut self.watched, &other.watched);
        a.above += b.above;
        a.ratio += b.ratio;
        a.square += b.square;
        a.inner += b.inner;
        a.excess += b.excess;
        if self.bins.is_empty() {
            self.bins.clone_from(&other.bins);
        } else {
            for (a, b) in self.bins.iter_mut().zip(&other.bins) {
                a.count += b.count;
                a.inverse += b.inverse;
                a.square += b.square;
                a.log += b.log;
            }
        }
        if self.inners.is_empty() {
            self.inners.clone_from(&other.inners);
        } else {
            for (a, b) in self.inners.iter_mut().zip(&other.inners) {
                a.inner += b.inner;
                a.over += b.over;
            }
        }
    }
}

/// Which steps are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MonitorMemory {
    /// All of them.
    #[default]
    All,
    /// About this many last ones, at least 512; the oldest thirty-second is dropped at a time.
    Last(usize),
}

/// The shortest stretch.
const SHORTEST: usize = 16;
/// Stretches of a window; half of the most that are kept where all steps are remembered.
pub(super) const BLOCKS: usize = 32;
/// The shortest window.
pub(super) const SHORTEST_WINDOW: usize = SHORTEST * BLOCKS;

/// The steps in stretches: neighbouring steps are correlated, means of long stretches hardly, so
/// their spread shows how well the mean over all is known (the method of batch means).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Stretches {
    memory: MonitorMemory,
    /// Steps in a full stretch.
    length: usize,
    full: VecDeque<Stretch>,
    current: Stretch,
    /// Steps in the current one.
    steps: usize,
}

impl Stretches {
    pub fn new(memory: MonitorMemory) -> Self {
        let length = match memory {
            MonitorMemory::All => SHORTEST,
            MonitorMemory::Last(window) => (window / BLOCKS).max(SHORTEST),
        };
        Stretches { memory, length, full: VecDeque::new(), current: Stretch::default(), steps: 0 }
    }

    pub fn add(&mut self, step: Observation) {
        self.current.add(step);
        self.steps += 1;
        if self.steps == self.length {
            self.full.push_back(std::mem::take(&mut self.current));
            self.steps = 0;
            match self.memory {
                MonitorMemory::All if self.full.len() == 2 * BLOCKS => self.double(),
                MonitorMemory::Last(_) if self.full.len() > BLOCKS => drop(self.full.pop_front()),
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

    /// Adds the stretches of another worker to those of the same time, counted from the end of a
    /// window, or from the beginning where all steps are remembered.
    pub fn merge(&mut self, other: &Stretches) {
        let mut other = other.clone();
        if self.memory == MonitorMemory::All {
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
            MonitorMemory::All => 0,
            MonitorMemory::Last(_) => a.abs_diff(b),
        };
        self.full.iter_mut().skip(skip).zip(&other.full).for_each(|(x, y)| x.merge(y));
        self.current.merge(&other.current);
        // The current stretch ends when that of the worker with more steps does.
        self.steps = self.steps.max(other.steps);
    }

    /// All stretches, oldest first, the current one included.
    pub fn iter(&self) -> impl Iterator<Item = &Stretch> {
        self.full.iter().chain((self.steps > 0).then_some(&self.current))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn sums_at_a_candidate_are_those_over_the_norms() {
        let steps: Vec<Observation> = (0..500_u32)
            .map(|k| {
                let v = (f64::from(k) * 0.618_033_988_749_895).fract();
                let log = 8.0 * v - 4.0;
                Observation {
                    log,
                    log_scale: 0.0,
                    before: None,
                    inner: Some(v - 0.3),
                    watched: Some(1.7_f64.ln()),
                }
            })
            .collect();
        let mut block = Stretch::default();
        steps.iter().for_each(|step| block.add(*step));
        let close = |a: f64, b: f64| (a - b).abs() < 1e-11 * b.abs().max(1.0);
        let direct = |at: f64| {
            let mut sums = ClipSums::default();
            for step in &steps {
                let (u, p) = (step.log.exp(), step.inner.unwrap());
                if u > at {
                    sums.above += 1.0;
                    sums.ratio += at / u;
                    sums.excess += (u / at).ln();
                }
                sums.square += (u * u).min(at * at);
                sums.inner += p * (at / u).min(1.0);
            }
            sums
        };
        let at_candidates = block.at_candidates().into_iter().enumerate();
        let pairs = at_candidates.map(|(k, clip)| (multiple(k), clip));
        for (at, got) in pairs.chain([(1.7, block.watched)]) {
            let want = direct(at);
            assert_eq!(got.above, want.above, "{at}");
            assert!(close(got.ratio, want.ratio) && close(got.square, want.square), "{at}");
            assert!(close(got.inner, want.inner) && close(got.excess, want.excess), "{at}");
        }
    }

    fn step(k: usize) -> Observation {
        Observation {
            log: (k as f64 * 0.7).sin(),
            log_scale: k as f64,
            before: None,
            inner: None,
            watched: None,
        }
    }

    #[test]
    fn nothing_is_lost_and_memory_is_bounded() {
        let mut blocks = Stretches::new(MonitorMemory::All);
        for k in 0..100_000 {
            blocks.add(step(k));
            assert!(blocks.iter().count() <= 2 * BLOCKS);
        }
        assert!(blocks.iter().count() >= BLOCKS);
        assert_eq!(blocks.iter().map(|b| b.whole.count).sum::<f64>(), 100_000.0);
    }

    #[test]
    fn a_window_forgets() {
        let mut blocks = Stretches::new(MonitorMemory::Last(640));
        (0..10_000).for_each(|k| blocks.add(step(k)));
        let count: f64 = blocks.iter().map(|b| b.whole.count).sum();
        assert!((640.0..=660.0).contains(&count), "{count}");
        let oldest = blocks.iter().next().unwrap().whole;
        assert!(oldest.log_scale / oldest.count > 9_300.0);
    }

    #[test]
    fn merging_keeps_every_sum_whatever_the_lengths() {
        for (n, m) in [(0, 50), (50, 0), (700, 16), (1024, 5_000), (33_333, 1_000), (999, 999)] {
            let (mut a, mut b) =
                (Stretches::new(MonitorMemory::All), Stretches::new(MonitorMemory::All));
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
