//! One step of C-SGD with momentum in one pass over the coordinates: as [`step`](super::step), with
//! a buffer.
//!
//! With $B_i$ the buffer times $\sqrt{\lambda_i}$, a step is
//! $$ B_i \leftarrow \beta B_i + s \lambda_i z_i, \qquad w_i \leftarrow w_i - \epsilon B_i. $$

use super::Isa;
use super::lanes::{Kernel, Lanes, total};
use super::normal::{Block, Streams, pair};
use super::step::{Accumulators, CovariateSource, Sums};

/// The numbers of a step that are known only after its sums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Update {
    /// $\beta$.
    pub(crate) decay: f64,
    /// $s$.
    pub(crate) gain: f64,
    /// $\epsilon$.
    pub(crate) rate: f64,
}

impl Update {
    /// Leaves buffer and weights as they are.
    pub(crate) const NONE: Self = Self { decay: 1.0, gain: 0.0, rate: 0.0 };
}

/// The state of an iteration with momentum, sixteen coordinates at a time.
#[derive(Debug, Clone)]
pub(crate) struct MomentumState {
    coordinates: Vec<Coordinates>,
    /// The update that is still open.
    open: Update,
}

/// Sixteen coordinates of all that a pass needs, side by side.
#[derive(Debug, Clone, Copy)]
struct Coordinates {
    lambda: Block,
    w: Block,
    /// $\lambda_i z_i$ of the open update.
    y: Block,
    buffer: Block,
}

impl MomentumState {
    /// From $\lambda_i$ and $w_i = \sqrt{\lambda_i}\thinspace \theta_i$, with an empty buffer.
    pub(crate) fn new(lambda: &[Block], w: &[Block]) -> Self {
        let (y, buffer) = (Block::ZERO, Block::ZERO);
        let coordinates = lambda.iter().zip(w);
        let coordinates = coordinates.map(|(&lambda, &w)| Coordinates { lambda, w, y, buffer });
        Self { coordinates: coordinates.collect(), open: Update::NONE }
    }

    /// Makes the update that the step before left open, draws $x$, and sums.
    pub(crate) fn pass(&mut self, isa: Isa, source: CovariateSource<'_>) -> Sums {
        match source {
            CovariateSource::Normal(streams) => isa.run(NormalPass { state: self, streams }),
            CovariateSource::Given(z) => isa.run(GivenPass { state: self, z }),
        }
    }

    /// Sets the update of the step that the last pass drew.
    pub(crate) fn step(&mut self, update: Update) {
        self.open = update;
    }

    /// $(2R, D)$ now, with $D = \sum_i (w_i r_i)^2$ for weights $r_i = \lambda_i^{-1/2}$.
    ///
    /// Makes the open update, which changes nothing of what follows.
    pub(crate) fn measure(&mut self, isa: Isa, weights: &[Block]) -> (f64, f64) {
        let measured = isa.run(Measure { state: self, weights });
        self.open = Update::NONE;
        measured
    }
}

/// The open update in registers.
#[derive(Clone, Copy)]
struct Open<L: Lanes> {
    decay: L::F,
    gain: L::F,
    rate: L::F,
}

impl<L: Lanes> Open<L> {
    #[inline(always)]
    fn new(l: L, open: Update) -> Self {
        Self { decay: l.splat(open.decay), gain: l.splat(open.gain), rate: l.splat(open.rate) }
    }

    /// Makes the update of eight coordinates; their $w$ after it.
    #[inline(always)]
    fn settle(self, l: L, w: &mut [f64; 8], y: &[f64; 8], buffer: &mut [f64; 8]) -> L::F {
        let moved = l.fma(self.gain, l.load(y), l.mul(self.decay, l.load(buffer)));
        l.store(moved, buffer);
        let settled = l.fnma(self.rate, moved, l.load(w));
        l.store(settled, w);
        settled
    }
}

struct Measure<'a> {
    state: &'a mut MomentumState,
    weights: &'a [Block],
}

impl Kernel for Measure<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> (f64, f64) {
        let open = Open::new(l, self.state.open);
        let (mut twice_risk, mut distance) = (l.splat(0.0), l.splat(0.0));
        for (c, weights) in self.state.coordinates.iter_mut().zip(self.weights) {
            let halves = [
                (&mut c.w.first, &c.y.first, &mut c.buffer.first, &weights.first),
                (&mut c.w.second, &c.y.second, &mut c.buffer.second, &weights.second),
            ];
            for (w, y, buffer, weight) in halves {
                let settled = open.settle(l, w, y, buffer);
                let theta = l.mul(settled, l.load(weight));
                twice_risk = l.fma(settled, settled, twice_risk);
                distance = l.fma(theta, theta, distance);
            }
        }
        (total(l, twice_risk), total(l, distance))
    }
}

struct NormalPass<'a> {
    state: &'a mut MomentumState,
    streams: &'a mut Streams,
}

impl Kernel for NormalPass<'_> {
    type Output = Sums;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Sums {
        let mut rng = self.streams.load(l);
        let mut sums = Accumulators::new(l);
        let open = Open::new(l, self.state.open);
        for c in &mut self.state.coordinates {
            let (first, second) = pair(l, &mut rng);
            c.pass(l, &mut sums, open, first, second);
        }
        self.streams.store(l, rng);
        sums.total(l)
    }
}

struct GivenPass<'a> {
    state: &'a mut MomentumState,
    z: &'a [Block],
}

impl Kernel for GivenPass<'_> {
    type Output = Sums;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Sums {
        let mut sums = Accumulators::new(l);
        let open = Open::new(l, self.state.open);
        for (c, z) in self.state.coordinates.iter_mut().zip(self.z) {
            c.pass(l, &mut sums, open, l.load(&z.first), l.load(&z.second));
        }
        sums.total(l)
    }
}

impl Coordinates {
    #[inline(always)]
    fn pass<L: Lanes>(
        &mut self,
        l: L,
        sums: &mut Accumulators<L>,
        open: Open<L>,
        first: L::F,
        second: L::F,
    ) {
        let Self { lambda, w, y, buffer } = self;
        let settled = open.settle(l, &mut w.first, &y.first, &mut buffer.first);
        sums.draw(l, 0, &lambda.first, &mut y.first, settled, first);
        let settled = open.settle(l, &mut w.second, &y.second, &mut buffer.second);
        sums.draw(l, 1, &lambda.second, &mut y.second, settled, second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::normal::Normals;
    use crate::sim::{InstructionSet, Purpose};

    fn problem(n: usize) -> [Vec<f64>; 2] {
        let lambda = (1..=n).map(|i| (i as f64).powf(-0.3)).collect();
        [lambda, (1..=n).map(|i| 1.0 / (i as f64 + 2.0)).collect()]
    }

    fn state([lambda, w]: &[Vec<f64>; 2]) -> MomentumState {
        let blocks = |values: &Vec<f64>| Block::from_values(values.iter().copied());
        MomentumState::new(&blocks(lambda), &blocks(w))
    }

    #[test]
    fn passes_are_the_formulas() {
        // 37 coordinates: two full blocks and a part of one.
        let values = problem(37);
        let mut state = state(&values);
        let [lambda, w] = values;
        let mut streams = Streams::new(1, 1, Purpose::Covariates);
        let mut normals = Normals::new(1, 1, Purpose::Covariates);
        let weights = Block::from_values(lambda.iter().map(|l| l.sqrt().recip()));
        let mut theta: Vec<f64> = lambda.iter().zip(&w).map(|(l, w)| w / l.sqrt()).collect();
        let mut buffer = vec![0.0; 37];
        for k in 0..12 {
            let mut z = [0.0; 48];
            normals.fill(&mut z);
            let x: Vec<f64> = lambda.iter().zip(z).map(|(l, z)| l.sqrt() * z).collect();
            let sums = state.pass(Isa::best(), CovariateSource::Normal(&mut streams));
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            assert!((sums.inner - dot(&x, &theta)).abs() < 1e-13);
            let update = Update { decay: 0.9, gain: 0.1 * f64::from(k), rate: 0.02 };
            // Every fourth step is not made.
            let update = if k % 4 == 3 { Update::NONE } else { update };
            state.step(update);
            for ((t, x), b) in theta.iter_mut().zip(&x).zip(&mut buffer) {
                *b = update.decay * *b + update.gain * x;
                *t -= update.rate * *b;
            }
            if k % 3 == 0 {
                let (_, distance) = state.measure(Isa::best(), &weights);
                assert!((distance - dot(&theta, &theta)).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn bits_depend_neither_on_instructions_nor_on_measuring() {
        let path = |set, every: usize, given: bool| {
            let isa = Isa::new(set).unwrap();
            let mut state = state(&problem(100));
            let mut streams = Streams::new(3, 0, Purpose::Covariates);
            let mut z = vec![Block::ZERO; 7];
            let weights = vec![Block::from_values([2.0; 16])[0]; 7];
            for k in 0..60 {
                if every > 0 && k % every == 0 {
                    state.measure(isa, &weights);
                }
                let source = if given {
                    crate::sim::normal::fill(isa, &mut streams, &mut z);
                    CovariateSource::Given(&z)
                } else {
                    CovariateSource::Normal(&mut streams)
                };
                let sums = state.pass(isa, source);
                let gain = 0.3 * sums.inner / sums.norm_sq.sqrt();
                state.step(Update { decay: 0.9, gain, rate: 0.1 });
            }
            let (risk, distance) = state.measure(isa, &weights);
            (risk.to_bits(), distance.to_bits())
        };
        let plain = path(InstructionSet::Portable, 0, false);
        for set in InstructionSet::available() {
            for (every, given) in [(0, false), (1, false), (7, false), (0, true)] {
                assert_eq!(path(set, every, given), plain, "{set:?} {every} {given}");
            }
        }
    }
}
