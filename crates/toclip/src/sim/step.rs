//! One step of C-SGD in one pass over the coordinates.
//!
//! The state is $w_i = \sqrt{\lambda_i}\\,\theta_i$, so that with $x_i = \sqrt{\lambda_i}\\,z_i$
//! $$\langle x, \theta\rangle = \sum_i z_i w_i, \quad \|x\|^2 = \sum_i \lambda_i z_i^2, \quad
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
    /// $\|x\|^2 = \sum \lambda_i z_i^2$.
    pub(crate) norm_sq: f64,
    /// $2R = \sum w_i^2$, before this step.
    pub(crate) twice_risk: f64,
}

/// Where $z$ comes from.
pub(crate) enum Source<'a> {
    /// Standard normal, drawn on the way.
    Normal(&'a mut Streams),
    /// Already drawn.
    Given(&'a [Block]),
}

/// The state of an iteration: $\lambda$, $w$ and the open update $y$, block by block.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) coordinates: Vec<Coordinates>,
    /// The size of the step that is still open.
    pub(crate) open: f64,
}

/// Sixteen coordinates of all that the pass needs, side by side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coordinates {
    pub(crate) lambda: Block,
    pub(crate) w: Block,
    pub(crate) y: Block,
}

impl State {
    /// Makes the update that the last pass left open.
    pub(crate) fn settle(&mut self) {
        for c in &mut self.coordinates {
            for (w, y) in c.w.first.iter_mut().zip(c.y.first) {
                *w = (-self.open).mul_add(y, *w);
            }
            for (w, y) in c.w.second.iter_mut().zip(c.y.second) {
                *w = (-self.open).mul_add(y, *w);
            }
        }
        self.open = 0.0;
    }

    /// Draws $x$, and sums.
    pub(crate) fn pass(&mut self, isa: Isa, source: Source<'_>) -> Sums {
        match source {
            Source::Normal(streams) => isa.run(NormalPass { state: self, streams }),
            Source::Given(z) => isa.run(GivenPass { state: self, z }),
        }
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
struct Accumulators<L: Lanes> {
    inner: [L::F; 2],
    norm_sq: [L::F; 2],
    twice_risk: [L::F; 2],
}

impl<L: Lanes> Accumulators<L> {
    #[inline(always)]
    fn new(l: L) -> Self {
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
        let step = l.mul(l.load(lambda), z);
        l.store(step, y);
        self.inner[h] = l.fma(z, settled, self.inner[h]);
        self.norm_sq[h] = l.fma(z, step, self.norm_sq[h]);
        self.twice_risk[h] = l.fma(settled, settled, self.twice_risk[h]);
    }

    #[inline(always)]
    fn total(self, l: L) -> Sums {
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
    use crate::sim::*;
    #[test]
    #[ignore]
    fn speed() {
        for set in InstructionSet::available() {
            let isa = Isa::new(set).unwrap();
            let mut st = State {
                coordinates: vec![
                    Coordinates {
                        lambda: Block { first: [0.5; 8], second: [0.5; 8] },
                        w: Block { first: [0.1; 8], second: [0.1; 8] },
                        y: Block::ZERO
                    };
                    32
                ],
                open: 0.0,
            };
            let mut streams = Streams::new(1, 2, Purpose::Covariates);
            let mut best = f64::INFINITY;
            let mut bestf = f64::INFINITY;
            let mut blocks = vec![Block::ZERO; 32];
            let mut acc = 0.0;
            for _ in 0..200 {
                let t = std::time::Instant::now();
                for _ in 0..20 {
                    let s = st.pass(isa, Source::Normal(&mut streams));
                    st.open = 1e-3 * s.inner;
                    acc += s.norm_sq;
                }
                best = best.min(t.elapsed().as_secs_f64() / 20.0 / 512.0 * 1e9);
                let t = std::time::Instant::now();
                for _ in 0..20 {
                    normal::fill(isa, &mut streams, &mut blocks);
                }
                bestf = bestf.min(t.elapsed().as_secs_f64() / 20.0 / 512.0 * 1e9);
            }
            println!("{set:?} pass {best:.3} fill {bestf:.3} ns per dim {acc}");
        }
    }
}
