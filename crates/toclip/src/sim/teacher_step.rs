//! One step of C-SGD on a generalised linear model in one pass over the coordinates.
//!
//! As [`step`](super::step), with the logit $\langle x, \theta^\ast\rangle = \sum_i z_i w^\ast_i$ of the
//! teacher, $w^\ast_i = \sqrt{\lambda_i}\thinspace\theta^\ast_i$, in the place of the risk.

use super::Isa;
use super::lanes::{Kernel, Lanes, total};
use super::normal::{Block16, Streams, pair};

/// The sums of one pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TeacherSums {
    /// $u = \langle x, \theta\rangle$.
    pub(crate) model: f64,
    /// $v = \langle x, \theta^\ast\rangle$.
    pub(crate) teacher: f64,
    /// $\Vert x\Vert ^2$.
    pub(crate) norm_sq: f64,
}

/// $\langle\theta, K\theta\rangle$ and $\langle\theta, K\theta^\ast\rangle$, and the same without $K$.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    pub(crate) q: f64,
    pub(crate) p: f64,
    pub(crate) square: f64,
    pub(crate) overlap: f64,
}

/// The state of an iteration, sixteen coordinates at a time.
#[derive(Debug, Clone)]
pub(crate) struct TeacherState {
    coordinates: Vec<Coordinates>,
    /// The size of the step that is still open.
    open: f64,
}

#[derive(Debug, Clone, Copy)]
struct Coordinates {
    lambda: Block16,
    w: Block16,
    /// The open update $\lambda_i z_i$.
    y: Block16,
    teacher: Block16,
}

impl TeacherState {
    /// From $\lambda_i$, $w_i$ and $w^\ast_i$.
    pub(crate) fn new(lambda: &[Block16], w: &[Block16], teacher: &[Block16]) -> Self {
        let blocks = lambda.iter().zip(w).zip(teacher);
        let coordinates = blocks.map(|((&lambda, &w), &teacher)| Coordinates {
            lambda,
            w,
            y: Block16::ZERO,
            teacher,
        });
        TeacherState { coordinates: coordinates.collect(), open: 0.0 }
    }

    /// Makes the update that the step before left open, draws $x$, and sums.
    pub(crate) fn pass(&mut self, isa: Isa, streams: &mut Streams) -> TeacherSums {
        isa.run(Pass { coordinates: &mut self.coordinates, open: self.open, streams })
    }

    /// Sets the size of the step that the last pass drew.
    pub(crate) fn step(&mut self, size: f64) {
        self.open = size;
    }

    /// Makes the open update, which changes nothing of what follows, and sums with weights $r_i =
    /// \lambda_i^{-1/2}$.
    pub(crate) fn measure(&mut self, isa: Isa, weights: &[Block16]) -> Measured {
        let measured =
            isa.run(Measure { coordinates: &mut self.coordinates, open: self.open, weights });
        self.open = 0.0;
        measured
    }
}

struct Pass<'a> {
    coordinates: &'a mut [Coordinates],
    open: f64,
    streams: &'a mut Streams,
}

impl Kernel for Pass<'_> {
    type Output = TeacherSums;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> TeacherSums {
        let mut rng = self.streams.load(l);
        let zero = [l.splat(0.0); 2];
        let (mut model, mut teacher, mut norm_sq) = (zero, zero, zero);
        let open = l.splat(self.open);
        for c in self.coordinates.iter_mut() {
            let (first, second) = pair(l, &mut rng);
            let halves = [
                (first, &c.lambda.first, &mut c.w.first, &mut c.y.first, &c.teacher.first),
                (second, &c.lambda.second, &mut c.w.second, &mut c.y.second, &c.teacher.second),
            ];
            for (h, (z, lambda, w, y, truth)) in halves.into_iter().enumerate() {
                let settled = l.fnma(open, l.load(y), l.load(w));
                l.store(settled, w);
                let step = l.mul(l.load(lambda), z);
                l.store(step, y);
                model[h] = l.fma(z, settled, model[h]);
                teacher[h] = l.fma(z, l.load(truth), teacher[h]);
                norm_sq[h] = l.fma(z, step, norm_sq[h]);
            }
        }
        self.streams.store(l, rng);
        let sum = |x: [L::F; 2]| total(l, l.add(x[0], x[1]));
        TeacherSums { model: sum(model), teacher: sum(teacher), norm_sq: sum(norm_sq) }
    }
}

struct Measure<'a> {
    coordinates: &'a mut [Coordinates],
    open: f64,
    weights: &'a [Block16],
}

impl Kernel for Measure<'_> {
    type Output = Measured;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Measured {
        let (open, zero) = (l.splat(self.open), l.splat(0.0));
        let [mut q, mut p, mut square, mut overlap] = [zero; 4];
        for (c, weights) in self.coordinates.iter_mut().zip(self.weights) {
            let halves = [
                (&mut c.w.first, &c.y.first, &c.teacher.first, &weights.first),
                (&mut c.w.second, &c.y.second, &c.teacher.second, &weights.second),
            ];
            for (w, y, truth, weight) in halves {
                let settled = l.fnma(open, l.load(y), l.load(w));
                l.store(settled, w);
                let (truth, weight) = (l.load(truth), l.load(weight));
                let theta = l.mul(settled, weight);
                q = l.fma(settled, settled, q);
                p = l.fma(settled, truth, p);
                square = l.fma(theta, theta, square);
                overlap = l.fma(theta, l.mul(truth, weight), overlap);
            }
        }
        Measured {
            q: total(l, q),
            p: total(l, p),
            square: total(l, square),
            overlap: total(l, overlap),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::normal::Normals;
    use crate::sim::{InstructionSet, Purpose};

    #[test]
    fn passes_are_the_formulas_with_every_instruction_set() {
        // 37 coordinates: two full blocks and a part of one.
        let n = 37;
        let lambda: Vec<f64> = (1..=n).map(|i| f64::from(i).powf(-0.3)).collect();
        let mut theta: Vec<f64> = (1..=n).map(|i| 1.0 / f64::from(i + 2)).collect();
        let truth: Vec<f64> = (1..=n).map(|i| f64::from(i).sin()).collect();
        let blocks =
            |x: &[f64]| Block16::from_values(x.iter().zip(&lambda).map(|(x, l)| x * l.sqrt()));
        let weights = Block16::from_values(lambda.iter().map(|l| l.sqrt().recip()));
        let lambdas = Block16::from_values(lambda.iter().copied());
        let fresh = TeacherState::new(&lambdas, &blocks(&theta), &blocks(&truth));
        let mut states: Vec<_> = InstructionSet::available()
            .into_iter()
            .map(|set| {
                (Isa::new(set).unwrap(), fresh.clone(), Streams::new(1, 1, Purpose::Covariates))
            })
            .collect();
        let mut normals = Normals::new(1, 1, Purpose::Covariates);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for k in 0..10 {
            let mut z = [0.0; 48];
            normals.fill(&mut z);
            let x: Vec<f64> = lambda.iter().zip(z).map(|(l, z)| l.sqrt() * z).collect();
            let size = 0.01 * f64::from(k);
            let sums: Vec<_> = states
                .iter_mut()
                .map(|(isa, state, streams)| {
                    let sums = state.pass(*isa, streams);
                    state.step(size);
                    sums
                })
                .collect();
            assert!(sums.windows(2).all(|pair| pair[0] == pair[1]));
            assert!((sums[0].model - dot(&x, &theta)).abs() < 1e-13);
            assert!((sums[0].teacher - dot(&x, &truth)).abs() < 1e-13);
            assert!((sums[0].norm_sq - dot(&x, &x)).abs() < 1e-13);
            for (theta, x) in theta.iter_mut().zip(&x) {
                *theta -= size * x;
            }
            if k % 3 == 0 {
                let found: Vec<_> =
                    states.iter_mut().map(|(isa, s, _)| s.measure(*isa, &weights)).collect();
                assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
                let weighted: Vec<f64> = lambda.iter().zip(&theta).map(|(l, t)| l * t).collect();
                assert!((found[0].q - dot(&weighted, &theta)).abs() < 1e-13);
                assert!((found[0].p - dot(&weighted, &truth)).abs() < 1e-13);
                assert!((found[0].square - dot(&theta, &theta)).abs() < 1e-13);
                assert!((found[0].overlap - dot(&theta, &truth)).abs() < 1e-13);
            }
        }
    }
}
