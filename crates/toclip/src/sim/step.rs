//! One step of C-SGD in one pass over the coordinates.
//!
//! The state is $w_i = \sqrt{\lambda_i}\thinspace \theta_i$, so that with $x_i =
//! \sqrt{\lambda_i}\thinspace z_i$
//! $$\langle x, \theta\rangle = \sum_i z_i w_i, \quad \Vert x\Vert ^2 = \sum_i \lambda_i z_i^2, \quad
//! w_i \leftarrow w_i - s \lambda_i z_i, \quad R = \tfrac12 \sum_i w_i^2.$$
//! The size $s$ of a step is known only after its sums, so a pass first makes the update that the
//! step before left open, $y_i = \lambda_i z_i$, and then draws and sums for its own: every number
//! is touched once a step, while it is in a register.
//!
//! Where every coordinate of the gradient is clipped on its own, the open update is $\sqrt{\lambda_i}
//! \thinspace\operatorname{clip}(s\sqrt{\lambda_i}\thinspace z_i)$, which is $s y_i$ clipped at the
//! bound times $\sqrt{\lambda_i}$.
//!
//! With momentum the update goes through a buffer: with $B_i$ the buffer times $\sqrt{\lambda_i}$,
//! $$ B_i \leftarrow \beta B_i + s y_i, \qquad w_i \leftarrow w_i - \epsilon B_i. $$

use super::Isa;
use super::lanes::{Kernel, Lanes, total};
use super::normal::{Block16, Streams, pair};

/// The sums of one pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PassSums {
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
    Given(&'a [Block16]),
}

/// The state of an iteration, sixteen coordinates at a time.
#[derive(Debug, Clone)]
pub(crate) struct SgdState {
    coordinates: Vec<Coordinates>,
    open: Open,
}

/// The update that the last pass left open.
#[derive(Debug, Clone)]
enum Open {
    /// $w_i \leftarrow w_i - s y_i$.
    Scaled { size: f64 },
    /// The same with every coordinate clipped, given $\sqrt{\lambda_i}$.
    Clamped { size: f64, bound: f64, roots: Vec<Block16> },
    /// Through a buffer that remembers the updates before it.
    Buffered { update: BufferUpdate, buffer: Vec<Block16> },
}

/// $B_i \leftarrow \beta B_i + s y_i$, $w_i \leftarrow w_i - \epsilon B_i$: one step with momentum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BufferUpdate {
    /// $\beta$.
    pub(crate) decay: f64,
    /// $s$.
    pub(crate) gain: f64,
    /// $\epsilon$.
    pub(crate) rate: f64,
}

impl BufferUpdate {
    /// Leaves buffer and weights as they are.
    pub(crate) const NONE: Self = Self { decay: 1.0, gain: 0.0, rate: 0.0 };
}

/// Sixteen coordinates of all that a pass needs, side by side.
#[derive(Debug, Clone, Copy)]
struct Coordinates {
    lambda: Block16,
    w: Block16,
    /// The open update $\lambda_i z_i$.
    y: Block16,
}

impl SgdState {
    /// From $\lambda_i$ and $w_i = \sqrt{\lambda_i}\thinspace \theta_i$; a last block that is not
    /// full is filled up with $\lambda = 0$.
    pub(crate) fn new(values: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (lambda, w): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
        let blocks = Block16::from_values(lambda).into_iter().zip(Block16::from_values(w));
        let coordinates = blocks.map(|(lambda, w)| Coordinates { lambda, w, y: Block16::ZERO });
        Self { coordinates: coordinates.collect(), open: Open::Scaled { size: 0.0 } }
    }

    /// The same, with the steps of every coordinate clipped.
    pub(crate) fn clamped(self) -> Self {
        let root = |x: &[f64; 8]| x.map(f64::sqrt);
        let roots = self
            .coordinates
            .iter()
            .map(|c| Block16 { first: root(&c.lambda.first), second: root(&c.lambda.second) });
        let open = Open::Clamped { size: 0.0, bound: 0.0, roots: roots.collect() };
        Self { open, ..self }
    }

    /// The same with momentum, and an empty buffer.
    pub(crate) fn buffered(self) -> Self {
        let buffer = vec![Block16::ZERO; self.coordinates.len()];
        Self { open: Open::Buffered { update: BufferUpdate::NONE, buffer }, ..self }
    }

    /// $w$, before any step.
    pub(crate) fn w(&self) -> impl Iterator<Item = Block16> {
        self.coordinates.iter().map(|c| c.w)
    }

    /// $\lambda$.
    pub(crate) fn lambda(&self) -> impl Iterator<Item = Block16> {
        self.coordinates.iter().map(|c| c.lambda)
    }

    /// The number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.coordinates.len()
    }

    /// Makes the update that the step before left open, draws $x$, and sums.
    pub(crate) fn pass(&mut self, isa: Isa, source: CovariateSource<'_>) -> PassSums {
        let Self { coordinates, open } = self;
        match open {
            Open::Scaled { size } => pass(isa, coordinates, Scaled(*size), source),
            Open::Clamped { size, bound, roots } => {
                pass(isa, coordinates, Clamped { size: *size, bound: *bound, roots }, source)
            }
            Open::Buffered { update, buffer } => {
                pass(isa, coordinates, Buffered { update: *update, buffer }, source)
            }
        }
    }

    /// Sets the size $s$ of the step that the last pass drew; for a [buffered](Self::buffered) state
    /// use [`remember`](Self::remember).
    pub(crate) fn step(&mut self, by: f64) {
        if let Open::Scaled { size } | Open::Clamped { size, .. } = &mut self.open {
            *size = by;
        }
    }

    /// Sets the bound on $s\sqrt{\lambda_i}\thinspace z_i$ of a [clamped](Self::clamped) state.
    pub(crate) fn bound(&mut self, by: f64) {
        if let Open::Clamped { bound, .. } = &mut self.open {
            // Infinity times the zeros that fill up the last block would be NaN.
            *bound = by.min(f64::MAX);
        }
    }

    /// Sets the update of a [buffered](Self::buffered) state.
    pub(crate) fn remember(&mut self, by: BufferUpdate) {
        if let Open::Buffered { update, .. } = &mut self.open {
            *update = by;
        }
    }

    /// $(2R, D)$ now, with $D = \sum_i (w_i r_i)^2$ for weights $r_i = \lambda_i^{-1/2}$.
    ///
    /// Makes the open update, which changes nothing of what follows.
    pub(crate) fn measure(&mut self, isa: Isa, weights: &[Block16]) -> (f64, f64) {
        let Self { coordinates, open } = self;
        match open {
            Open::Scaled { size } => {
                let update = Scaled(std::mem::take(size));
                isa.run(Measure { coordinates, update, weights })
            }
            Open::Clamped { size, bound, roots } => {
                let update = Clamped { size: std::mem::take(size), bound: *bound, roots };
                isa.run(Measure { coordinates, update, weights })
            }
            Open::Buffered { update, buffer } => {
                let made = std::mem::replace(update, BufferUpdate::NONE);
                isa.run(Measure { coordinates, update: Buffered { update: made, buffer }, weights })
            }
        }
    }
}

fn pass<U: Update>(
    isa: Isa,
    coordinates: &mut [Coordinates],
    update: U,
    source: CovariateSource<'_>,
) -> PassSums {
    match source {
        CovariateSource::Normal(streams) => isa.run(NormalPass { coordinates, update, streams }),
        CovariateSource::Given(z) => isa.run(GivenPass { coordinates, update, z }),
    }
}

/// How an open update is made.
trait Update {
    /// $w$ after the update $y$, in half `h` of a block.
    fn settle<L: Lanes>(&mut self, l: L, block: usize, h: usize, y: L::F, w: L::F) -> L::F;
}

/// $w - s y$.
struct Scaled(f64);

impl Update for Scaled {
    #[inline(always)]
    fn settle<L: Lanes>(&mut self, l: L, _block: usize, _h: usize, y: L::F, w: L::F) -> L::F {
        l.fnma(l.splat(self.0), y, w)
    }
}

/// $w$ less $s y$ clipped at the bound times $\sqrt\lambda$.
struct Clamped<'a> {
    size: f64,
    bound: f64,
    roots: &'a [Block16],
}

impl Update for Clamped<'_> {
    #[inline(always)]
    fn settle<L: Lanes>(&mut self, l: L, block: usize, h: usize, y: L::F, w: L::F) -> L::F {
        let roots = &self.roots[block];
        let root = l.load(if h == 0 { &roots.first } else { &roots.second });
        let (high, low) = (l.mul(l.splat(self.bound), root), l.mul(l.splat(-self.bound), root));
        let step = l.mul(l.splat(self.size), y);
        l.sub(w, l.max(l.min(step, high), low))
    }
}

/// $w - \epsilon B$ with $B$ the buffer after $s y$ has entered it.
struct Buffered<'a> {
    update: BufferUpdate,
    buffer: &'a mut [Block16],
}

impl Update for Buffered<'_> {
    #[inline(always)]
    fn settle<L: Lanes>(&mut self, l: L, block: usize, h: usize, y: L::F, w: L::F) -> L::F {
        let BufferUpdate { decay, gain, rate } = self.update;
        let block = &mut self.buffer[block];
        let buffer = if h == 0 { &mut block.first } else { &mut block.second };
        let moved = l.fma(l.splat(gain), y, l.mul(l.splat(decay), l.load(buffer)));
        l.store(moved, buffer);
        l.fnma(l.splat(rate), moved, w)
    }
}

struct Measure<'a, U> {
    coordinates: &'a mut [Coordinates],
    update: U,
    weights: &'a [Block16],
}

impl<U: Update> Kernel for Measure<'_, U> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run<L: Lanes>(mut self, l: L) -> (f64, f64) {
        let (mut twice_risk, mut distance) = (l.splat(0.0), l.splat(0.0));
        for (i, (c, weights)) in self.coordinates.iter_mut().zip(self.weights).enumerate() {
            let halves = [
                (&mut c.w.first, &c.y.first, &weights.first),
                (&mut c.w.second, &c.y.second, &weights.second),
            ];
            for (h, (w, y, weight)) in halves.into_iter().enumerate() {
                let settled = self.update.settle(l, i, h, l.load(y), l.load(w));
                l.store(settled, w);
                let theta = l.mul(settled, l.load(weight));
                twice_risk = l.fma(settled, settled, twice_risk);
                distance = l.fma(theta, theta, distance);
            }
        }
        (total(l, twice_risk), total(l, distance))
    }
}

struct NormalPass<'a, U> {
    coordinates: &'a mut [Coordinates],
    update: U,
    streams: &'a mut Streams,
}

impl<U: Update> Kernel for NormalPass<'_, U> {
    type Output = PassSums;

    #[inline(always)]
    fn run<L: Lanes>(mut self, l: L) -> PassSums {
        let mut rng = self.streams.load(l);
        let mut sums = Accumulators::new(l);
        for (i, c) in self.coordinates.iter_mut().enumerate() {
            let (first, second) = pair(l, &mut rng);
            sums.add(l, c, i, &mut self.update, first, second);
        }
        self.streams.store(l, rng);
        sums.total(l)
    }
}

struct GivenPass<'a, U> {
    coordinates: &'a mut [Coordinates],
    update: U,
    z: &'a [Block16],
}

impl<U: Update> Kernel for GivenPass<'_, U> {
    type Output = PassSums;

    #[inline(always)]
    fn run<L: Lanes>(mut self, l: L) -> PassSums {
        let mut sums = Accumulators::new(l);
        for (i, (c, z)) in self.coordinates.iter_mut().zip(self.z).enumerate() {
            sums.add(l, c, i, &mut self.update, l.load(&z.first), l.load(&z.second));
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
    fn add(
        &mut self,
        l: L,
        c: &mut Coordinates,
        block: usize,
        update: &mut impl Update,
        first: L::F,
        second: L::F,
    ) {
        let settled = update.settle(l, block, 0, l.load(&c.y.first), l.load(&c.w.first));
        l.store(settled, &mut c.w.first);
        self.draw(l, 0, &c.lambda.first, &mut c.y.first, settled, first);
        let settled = update.settle(l, block, 1, l.load(&c.y.second), l.load(&c.w.second));
        l.store(settled, &mut c.w.second);
        self.draw(l, 1, &c.lambda.second, &mut c.y.second, settled, second);
    }

    /// Sums over eight coordinates whose open update is made, and leaves $y$ of the next.
    #[inline(always)]
    fn draw(
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
    fn total(self, l: L) -> PassSums {
        let sum = |x: [L::F; 2]| total(l, l.add(x[0], x[1]));
        PassSums {
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
        let mut state = SgdState::new(values.clone());
        let mut streams = Streams::new(1, 1, Purpose::Covariates);
        let mut normals = Normals::new(1, 1, Purpose::Covariates);
        let weights = Block16::from_values(values.iter().map(|(lambda, _)| lambda.sqrt().recip()));
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
    fn clamped_passes_clip_every_coordinate() {
        let values = problem(37);
        let mut state = SgdState::new(values.clone()).clamped();
        let mut streams = Streams::new(1, 2, Purpose::Covariates);
        let mut normals = Normals::new(1, 2, Purpose::Covariates);
        let weights = Block16::from_values(values.iter().map(|(lambda, _)| lambda.sqrt().recip()));
        let mut theta: Vec<f64> = values.iter().map(|(lambda, w)| w / lambda.sqrt()).collect();
        for bound in [0.01, 0.001, 1e-9, f64::INFINITY] {
            let mut z = [0.0; 48];
            normals.fill(&mut z);
            state.pass(Isa::best(), CovariateSource::Normal(&mut streams));
            state.step(0.01);
            state.bound(bound);
            for ((t, (lambda, _)), z) in theta.iter_mut().zip(&values).zip(z) {
                *t -= (0.01 * lambda.sqrt() * z).clamp(-bound, bound);
            }
            let (twice_risk, distance) = state.clone().measure(Isa::best(), &weights);
            let exact: f64 = values.iter().zip(&theta).map(|((l, _), t)| l * t * t).sum();
            assert!((twice_risk - exact).abs() < 1e-13, "{twice_risk} against {exact}");
            assert!((distance - theta.iter().map(|t| t * t).sum::<f64>()).abs() < 1e-13);
        }
    }

    #[test]
    fn buffered_passes_are_the_formulas() {
        let values = problem(37);
        let mut state = SgdState::new(values.clone()).buffered();
        let mut streams = Streams::new(1, 1, Purpose::Covariates);
        let mut normals = Normals::new(1, 1, Purpose::Covariates);
        let weights = Block16::from_values(values.iter().map(|(lambda, _)| lambda.sqrt().recip()));
        let mut theta: Vec<f64> = values.iter().map(|(lambda, w)| w / lambda.sqrt()).collect();
        let mut buffer = vec![0.0; 37];
        for k in 0..12 {
            let mut z = [0.0; 48];
            normals.fill(&mut z);
            let x: Vec<f64> = values.iter().zip(z).map(|((l, _), z)| l.sqrt() * z).collect();
            let sums = state.pass(Isa::best(), CovariateSource::Normal(&mut streams));
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            assert!((sums.inner - dot(&x, &theta)).abs() < 1e-13);
            let update = BufferUpdate { decay: 0.9, gain: 0.1 * f64::from(k), rate: 0.02 };
            // Every fourth step is not made.
            let update = if k % 4 == 3 { BufferUpdate::NONE } else { update };
            state.remember(update);
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
        bits_are_the_same(|state| state);
        bits_are_the_same(SgdState::clamped);
        bits_are_the_same(SgdState::buffered);
    }

    fn bits_are_the_same(kind: fn(SgdState) -> SgdState) {
        let path = |set, every: usize, given: bool| {
            let isa = Isa::new(set).unwrap();
            let mut state = kind(SgdState::new(problem(100)));
            let mut streams = Streams::new(3, 0, Purpose::Covariates);
            let mut z = vec![Block16::ZERO; 7];
            let weights = vec![Block16::from_values([2.0; 16])[0]; 7];
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
                let size = sums.inner / sums.norm_sq.sqrt();
                state.step(0.03 * size);
                state.bound(1e-3);
                state.remember(BufferUpdate { decay: 0.9, gain: 0.3 * size, rate: 0.1 });
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
