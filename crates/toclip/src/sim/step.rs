//! One step of C-SGD in one pass over the coordinates.
//!
//! The state is $w_i = \sqrt{\lambda_i}\thinspace \theta_i$, so that with $x_i =
//! \sqrt{\lambda_i}\thinspace z_i$
//! $$\langle x, \theta\rangle = \sum_i z_i w_i, \quad \Vert x\Vert ^2 = \sum_i \lambda_i z_i^2, \quad
//! w_i \leftarrow w_i - s \lambda_i z_i, \quad R = \tfrac12 \sum_i w_i^2.$$
//! The size $s$ of a step is known only after its sums, so a pass first makes the update that the
//! step before left open, $y_i = \lambda_i z_i$, and then draws and sums for its own: every number
//! is touched once a step, while it is in a register.

use super::Isa;
use super::lanes::{Kernel, Lanes, total};
use super::normal::{Block, Streams, pair};

/// What one pass adds up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sums {
    /// $\langle x, \theta \rangle = \sum z_i w_i$.
    pub(crate) inner: f64,
    /// $\Vert x\Vert ^2 = \sum \lambda_i z_i^2$.
    pub(crate) norm_sq: f64,
    /// $2R = \sum w_i^2$, before this step.
    pub(crate) twice_risk: f64,
}

/// Where $z$ comes from.
pub(crate) enum CovariateSource<'a> {
    /// Standard normal, drawn on the way.
    Normal(&'a mut Streams),
    /// Already drawn.
    Given(&'a [Block]),
}

/// The state of an iteration, sixteen coordinates at a time.
#[derive(Debug, Clone)]
pub(crate) struct State {
    coordinates: Vec<Coordinates>,
    /// The size $s$ of the step that is still open.
    open: f64,
}

/// Sixteen coordinates of all that a pass needs, side by side.
#[derive(Debug, Clone, Copy)]
struct Coordinates {
    lambda: Block,
    w: Block,
    /// The open update $\lambda_i z_i$.
    y: Block,
}

impl State {
    /// From $\lambda_i$ and $w_i = \sqrt{\lambda_i}\thinspace \theta_i$; a last block that is not
    /// full is filled up with $\lambda = 0$.
    pub(crate) fn new(values: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (lambda, w): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
        let blocks = Block::from_values(lambda).into_iter().zip(Block::from_values(w));
        let coordinates = blocks.map(|(lambda, w)| Coordinates { lambda, w, y: Block::ZERO });
        Self { coordinates: coordinates.collect(), open: 0.0 }
    }

    /// $w$, before any step.
    pub(crate) fn w(&self) -> Vec<Block> {
        self.coordinates.iter().map(|c| c.w).collect()
    }

    /// $\lambda$.
    pub(crate) fn lambda(&self) -> Vec<Block> {
        self.coordinates.iter().map(|c| c.lambda).collect()
    }

    /// The number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.coordinates.len()
    }

    /// Makes the update that the step before left open, draws $x$, and sums.
    pub(crate) fn pass(&mut self, isa: Isa, source: CovariateSource<'_>) -> Sums {
        match source {
            CovariateSource::Normal(streams) => isa.run(NormalPass { state: self, streams }),
            CovariateSource::Given(z) => isa.run(GivenPass { state: self, z }),
        }
    }

    /// Sets the size $s$ of the step that the last pass drew.
    pub(crate) fn step(&mut self, size: f64) {
        self.open = size;
    }

    /// $(2R, D)$ now, with $D = \sum_i (w_i r_i)^2$ for weights $r_i = \lambda_i^{-1/2}$.
    ///
    /// Makes the open update, which changes nothing of what follows.
    pub(crate) fn measure(&mut self, isa: Isa, weights: &[Block]) -> (f64, f64) {
        let measured = isa.run(Measure { state: self, weights });
        self.open = 0.0;
        measured
    }
}

struct Measure<'a> {
    state: &'a mut State,
    weights: &'a [Block],
}

impl Kernel for Measure<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> (f64, f64) {
        let open = l.splat(self.state.open);
        let (mut twice_risk, mut distance) = (l.splat(0.0), l.splat(0.0));
        for (c, weights) in self.state.coordinates.iter_mut().zip(self.weights) {
            let halves = [
                (&mut c.w.first, &c.y.first, &weights.first),
                (&mut c.w.second, &c.y.second, &weights.second),
            ];
            for (w, y, weight) in halves {
                let settled = l.fnma(open, l.load(y), l.load(w));
                l.store(settled, w);
                let theta = l.mul(settled, l.load(weight));
                twice_risk = l.fma(settled, settled, twice_risk);
                distance = l.fma(theta, theta, distance);
            }
        }
        (total(l, twice_risk), total(l, distance))
    }
}

struct NormalPass<'a> {
    state: &'a mut State,
    streams: &'a mut Streams,
}

impl Kernel for NormalPass<'_> {
    type Output = Sums;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Sums {
        let mut rng = self.streams.load(l);
        let mut sums = Accumulators::new(l);
        let open = l.splat(self.state.open);
        for c in &mut self.state.coordinates {
            let (first, second) = pair(l, &mut rng);
            sums.add(l, c, open, first, second);
        }
        self.streams.store(l, rng);
        sums.total(l)
    }
}

struct GivenPass<'a> {
    state: &'a mut State,
    z: &'a [Block],
}

impl Kernel for GivenPass<'_> {
    type Output = Sums;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Sums {
        let mut sums = Accumulators::new(l);
        let open = l.splat(self.state.open);
        for (c, z) in self.state.coordinates.iter_mut().zip(self.z) {
            sums.add(l, c, open, l.load(&z.first), l.load(&z.second));
        }
        sums.total(l)
    }
}

/// Two of each, so that the additions of one need not wait for the other's.
pub(super) struct Accumulators<L: Lanes> {
    inner: [L::F; 2],
    norm_sq: [L::F; 2],
    twice_risk: [L::F; 2],
}

impl<L: Lanes> Accumulators<L> {
    #[inline(always)]
    pub(super) fn new(l: L) -> Self {
        let zero = [l.splat(0.0); 2];
        Self { inner: zero, norm_sq: zero, twice_risk: zero }
    }

    #[inline(always)]
    fn add(&mut self, l: L, c: &mut Coordinates, open: L::F, first: L::F, second: L::F) {
        self.half(l, 0, &c.lambda.first, &mut c.w.first, &mut c.y.first, open, first);
        self.half(l, 1, &c.lambda.second, &mut c.w.second, &mut c.y.second, open, second);
    }

    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "inlined: registers, not a call")]
    fn half(
        &mut self,
        l: L,
        h: usize,
        lambda: &[f64; 8],
        w: &mut [f64; 8],
        y: &mut [f64; 8],
        open: L::F,
        z: L::F,
    ) {
        let settled = l.fnma(open, l.load(y), l.load(w));
        l.store(settled, w);
        self.draw(l, h, lambda, y, settled, z);
    }

    /// Sums over eight coordinates whose open update is made, and leaves $y$ of the next.
    #[inline(always)]
    pub(super) fn draw(
        &mut self,
        l: L,
        h: usize,
        lambda: &[f64; 8],
        y: &mut [f64; 8],
        settled: L::F,
        z: L::F,
    ) {
        let step = l.mul(l.load(lambda), z);
        l.store(step, y);
        self.inner[h] = l.fma(z, settled, self.inner[h]);
        self.norm_sq[h] = l.fma(z, step, self.norm_sq[h]);
        self.twice_risk[h] = l.fma(settled, settled, self.twice_risk[h]);
    }

    #[inline(always)]
    pub(super) fn total(self, l: L) -> Sums {
        let sum = |x: [L::F; 2]| total(l, l.add(x[0], x[1]));
        Sums {
            inner: sum(self.inner),
            norm_sq: sum(self.norm_sq),
            twice_risk: sum(self.twice_risk),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::normal::Normals;
    use crate::sim::{InstructionSet, Purpose};

    fn problem(n: usize) -> Vec<(f64, f64)> {
        (1..=n).map(|i| ((i as f64).powf(-0.3), 1.0 / (i as f64 + 2.0))).collect()
    }

    #[test]
    fn passes_are_the_formulas() {
        // 37 coordinates: two full blocks and a part of one.
        let values = problem(37);
        let mut state = State::new(values.clone());
        let mut streams = Streams::new(1, 1, Purpose::Covariates);
        let mut normals = Normals::new(1, 1, Purpose::Covariates);
        let weights = Block::from_values(values.iter().map(|(lambda, _)| lambda.sqrt().recip()));
        let mut theta: Vec<f64> = values.iter().map(|(lambda, w)| w / lambda.sqrt()).collect();
        for k in 0..10 {
            let mut z = [0.0; 48];
            normals.fill(&mut z);
            let x: Vec<f64> =
                values.iter().zip(z).map(|((lambda, _), z)| lambda.sqrt() * z).collect();
            let sums = state.pass(Isa::best(), CovariateSource::Normal(&mut streams));
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            assert!((sums.inner - dot(&x, &theta)).abs() < 1e-13);
            assert!((sums.norm_sq - dot(&x, &x)).abs() < 1e-13);
            let twice_risk = |theta: &[f64]| {
                values.iter().zip(theta).map(|((lambda, _), t)| lambda * t * t).sum::<f64>()
            };
            assert!((sums.twice_risk - twice_risk(&theta)).abs() < 1e-13);
            let size = 0.01 * f64::from(k);
            state.step(size);
            for (t, x) in theta.iter_mut().zip(&x) {
                *t -= size * x;
            }
            if k % 3 == 0 {
                let (risk, distance) = state.measure(Isa::best(), &weights);
                assert!((risk - twice_risk(&theta)).abs() < 1e-13);
                assert!((distance - dot(&theta, &theta)).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn bits_depend_neither_on_instructions_nor_on_measuring() {
        let path = |set, every: usize, given: bool| {
            let isa = Isa::new(set).unwrap();
            let mut state = State::new(problem(100));
            let mut streams = Streams::new(3, 0, Purpose::Covariates);
            let mut z = vec![Block::ZERO; state.len()];
            let weights = vec![Block::from_values([2.0; 16])[0]; state.len()];
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
                state.step(0.03 * sums.inner / sums.norm_sq.sqrt());
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
