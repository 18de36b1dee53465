//! Eight modes of the system side by side, and one iteration of a step on them.

use super::forces::Forces;
use super::radau::{NODES, PAIRS, RADAU};
use crate::sim::{Kernel, Lanes};
use num_complex::Complex64;

/// One number of each of eight modes.
type Lane = [f64; 8];
/// $a$, $b$ and $y$ of eight modes.
type Triple = [Lane; 3];

const ZERO: Triple = [[0.0; 8]; 3];

impl Forces {
    /// $(\dot a, \dot b, \dot y)$ of eight modes.
    #[inline(always)]
    fn slope(&self, lambda: &Lane, source: &Lane, [a, b, y]: &Triple) -> Triple {
        let mut out = ZERO;
        for i in 0..8 {
            let learn = self.learn * lambda[i];
            out[0][i] = -2.0 * self.follow * b[i];
            out[1][i] = learn * a[i] - self.forget * b[i] - self.follow * y[i];
            out[2][i] = 2.0 * (learn * b[i] - self.forget * y[i]) + self.noise * source[i];
        }
        out
    }
}

/// Eight modes; where there are fewer, the rest have $\lambda = 0$ and do not change.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    lambda: Lane,
    /// $\lambda n/d$.
    source: Lane,
    /// $(a, b, y)$ at the start of the step.
    start: Triple,
    /// The changes from the start to the nodes.
    stages: [Triple; NODES],
    /// The same in the basis in which they decouple.
    basis: [Triple; NODES],
}

/// Weights with which errors of $b$ and $y$ count as errors of $a$, to which they lead.
#[derive(Debug, Clone, Copy)]
pub(super) struct ErrorWeights {
    pub b: f64,
    pub y: f64,
}

impl ErrorWeights {
    /// An error of $b$ decays at the rate $\delta p$ and moves $a$ by $2\eta p$ of it on the way;
    /// one of $y$ moves $b$.
    pub fn new(forces: &Forces) -> Self {
        let lag = forces.lag();
        ErrorWeights { b: 2.0 * lag, y: lag * lag }
    }

    /// $(\sum\lambda |x|, \sum |x|)/2$: in the units of $R$ and $D/2$.
    #[inline(always)]
    fn size(self, lambda: &Lane, x: &Triple) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for i in 0..8 {
            let size = x[0][i].abs() + self.b * x[1][i].abs() + self.y * x[2][i].abs();
            sums[0] += 0.5 * lambda[i] * size;
            sums[1] += 0.5 * size;
        }
        sums
    }
}

/// $(1 - z J)x = r$ for the Jacobian $J$ of [`Forces`] that are held fixed, one eigenvalue of the
/// method at a time: eliminating $a$ and $y$ leaves one division per mode.
#[derive(Debug, Clone, Copy)]
struct Inverse<T> {
    rho: T,
    /// $2z\eta p$.
    twice_follow: T,
    /// $z\delta\mu$.
    learn: T,
    /// $1/(1 + 2z\delta p)$.
    last: T,
    /// $z\eta p/(1 + 2z\delta p)$.
    feedback: T,
    /// The pivot of $b$ is `pivot` + `slope`·λ.
    pivot: T,
    slope: T,
}

impl Inverse<Complex64> {
    fn new(rho: Complex64, h: f64, f: &Forces) -> Self {
        let z = rho * h;
        let last = (1.0 + 2.0 * z * f.forget).inv();
        Inverse {
            rho,
            twice_follow: 2.0 * z * f.follow,
            learn: z * f.learn,
            last,
            feedback: z * f.follow * last,
            pivot: 1.0 + z * f.forget,
            slope: 2.0 * z * z * f.follow * f.learn * (1.0 + last),
        }
    }

    fn real(self) -> Inverse<f64> {
        Inverse {
            rho: self.rho.re,
            twice_follow: self.twice_follow.re,
            learn: self.learn.re,
            last: self.last.re,
            feedback: self.feedback.re,
            pivot: self.pivot.re,
            slope: self.slope.re,
        }
    }

    #[inline(always)]
    fn solve(&self, lambda: f64, [a, b, y]: [Complex64; 3]) -> [Complex64; 3] {
        let learn = self.learn * lambda;
        let pivot = self.pivot + self.slope * lambda;
        let right = b + learn * a - self.feedback * y;
        let size = (pivot.re * pivot.re + pivot.im * pivot.im).recip();
        let x = right * Complex64::new(pivot.re * size, -pivot.im * size);
        [a - self.twice_follow * x, x, self.last * (y + 2.0 * learn * x)]
    }
}

impl Inverse<f64> {
    #[inline(always)]
    fn solve(&self, lambda: f64, [a, b, y]: [f64; 3]) -> [f64; 3] {
        let learn = self.learn * lambda;
        let x = (b + learn * a - self.feedback * y) / (self.pivot + self.slope * lambda);
        [a - self.twice_follow * x, x, self.last * (y + 2.0 * learn * x)]
    }
}

/// The step with the Jacobian held fixed, which every iteration of it solves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Newton {
    h: f64,
    real: Inverse<f64>,
    pairs: [Inverse<Complex64>; PAIRS],
}

impl Newton {
    pub fn new(h: f64, forces: &Forces) -> Self {
        Newton {
            h,
            real: Inverse::new(RADAU.real.into(), h, forces).real(),
            pairs: RADAU.pairs.map(|rho| Inverse::new(rho, h, forces)),
        }
    }
}

/// The result of an iteration, summed over modes: $(R, D/2)$ at the nodes, and the sizes of their
/// changes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Iterated {
    pub sums: [[f64; 2]; NODES],
    pub changes: [[f64; 2]; NODES],
}

/// One iteration on all chunks, with the forces at the nodes.
pub(super) struct Iterate<'a> {
    pub chunks: &'a mut [Chunk],
    pub newton: &'a Newton,
    pub forces: &'a [Forces; NODES],
    pub weights: ErrorWeights,
}

impl Kernel for Iterate<'_> {
    type Output = Iterated;

    #[inline(always)]
    fn run<L: Lanes>(self, _lanes: L) -> Iterated {
        let mut total = Iterated::default();
        for chunk in self.chunks {
            chunk.iterate(self.newton, self.forces, self.weights, &mut total);
        }
        total
    }
}

impl Chunk {
    /// From $\lambda$, $\lambda n/d$ and $(a, b, y)$ of each mode.
    pub fn new(modes: &[(f64, f64, [f64; 3])]) -> Self {
        let mut chunk = Chunk {
            lambda: [0.0; 8],
            source: [0.0; 8],
            start: ZERO,
            stages: [ZERO; NODES],
            basis: [ZERO; NODES],
        };
        for (i, (lambda, source, state)) in modes.iter().enumerate() {
            chunk.lambda[i] = *lambda;
            chunk.source[i] = *source;
            for (to, from) in chunk.start.iter_mut().zip(state) {
                to[i] = *from;
            }
        }
        chunk
    }

    /// $(R, D/2)$ of the start, and $\sum\lambda b$.
    pub fn sums(&self) -> [f64; 3] {
        let [a, b, _] = &self.start;
        let mut sums = [0.0; 3];
        for i in 0..8 {
            sums[0] += 0.5 * self.lambda[i] * a[i];
            sums[1] += 0.5 * a[i];
            sums[2] += self.lambda[i] * b[i];
        }
        sums
    }

    /// Starts from a path that does not move.
    pub fn begin(&mut self) {
        self.stages = [ZERO; NODES];
        self.basis = [ZERO; NODES];
    }

    /// The end of the step becomes the start of the next.
    pub fn advance(&mut self) {
        for k in 0..3 {
            for i in 0..8 {
                self.start[k][i] += self.stages[NODES - 1][k][i];
            }
        }
    }

    #[inline(always)]
    fn stage(&self, j: usize) -> Triple {
        let mut state = self.start;
        for k in 0..3 {
            for i in 0..8 {
                state[k][i] += self.stages[j][k][i];
            }
        }
        state
    }

    #[inline(always)]
    fn iterate(
        &mut self,
        newton: &Newton,
        forces: &[Forces; NODES],
        weights: ErrorWeights,
        total: &mut Iterated,
    ) {
        let mut slopes = [ZERO; NODES];
        for j in 0..NODES {
            slopes[j] = forces[j].slope(&self.lambda, &self.source, &self.stage(j));
        }
        let right = mixed(&RADAU.into_basis, &slopes);
        for i in 0..8 {
            let at = |m: usize, k: usize| newton.h * right[m][k][i];
            let lambda = self.lambda[i];
            let residual = [0, 1, 2].map(|k| newton.real.rho * at(0, k) - self.basis[0][k][i]);
            let change = newton.real.solve(lambda, residual);
            for k in 0..3 {
                self.basis[0][k][i] += change[k];
            }
            for (m, inverse) in newton.pairs.iter().enumerate() {
                let (re, im) = (2 * m + 1, 2 * m + 2);
                let residual = [0, 1, 2].map(|k| {
                    inverse.rho * Complex64::new(at(re, k), at(im, k))
                        - Complex64::new(self.basis[re][k][i], self.basis[im][k][i])
                });
                let change = inverse.solve(lambda, residual);
                for k in 0..3 {
                    self.basis[re][k][i] += change[k].re;
                    self.basis[im][k][i] += change[k].im;
                }
            }
        }
        let stages = mixed(&RADAU.from_basis, &self.basis);
        for j in 0..NODES {
            let mut change = ZERO;
            for k in 0..3 {
                for i in 0..8 {
                    change[k][i] = stages[j][k][i] - self.stages[j][k][i];
                }
            }
            self.stages[j] = stages[j];
            let size = weights.size(&self.lambda, &change);
            let mut sums = [0.0; 2];
            for i in 0..8 {
                let a = 0.5 * (self.start[0][i] + stages[j][0][i]);
                sums[0] += self.lambda[i] * a;
                sums[1] += a;
            }
            for k in 0..2 {
                total.sums[j][k] += sums[k];
                total.changes[j][k] += size[k];
            }
        }
    }

    /// The size of the misfit at the start, where the polynomial need not solve the equation: the
    /// change that the misfit would make over the step, with stiff parts damped.
    pub fn misfit(
        &self,
        newton: &Newton,
        first: &Forces,
        forces: &[Forces; NODES],
        weights: ErrorWeights,
    ) -> [f64; 2] {
        let mut misfit = first.slope(&self.lambda, &self.source, &self.start);
        for j in 0..NODES {
            let slope = forces[j].slope(&self.lambda, &self.source, &self.stage(j));
            for k in 0..3 {
                for i in 0..8 {
                    misfit[k][i] -= RADAU.at_start[j] * slope[k][i];
                }
            }
        }
        for i in 0..8 {
            let right = [0, 1, 2].map(|k| newton.h * newton.real.rho * misfit[k][i]);
            let solved = newton.real.solve(self.lambda[i], right);
            for k in 0..3 {
                misfit[k][i] = solved[k];
            }
        }
        weights.size(&self.lambda, &misfit)
    }
}

/// $\sum_k m_{jk} x_k$.
#[inline(always)]
fn mixed(matrix: &[[f64; NODES]; NODES], x: &[Triple; NODES]) -> [Triple; NODES] {
    let mut out = [ZERO; NODES];
    for j in 0..NODES {
        for m in 0..3 {
            let mut sum = [0.0; 8];
            for k in 0..NODES {
                for i in 0..8 {
                    sum[i] += matrix[j][k] * x[k][m][i];
                }
            }
            out[j][m] = sum;
        }
    }
    out
}
