//! A run of SGD: gradients of whole batches, exact in distribution, at the cost of one
//! sample.

use crate::logistic::sigmoid;
use crate::problem::{Labels, Problem};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use toclip::internals::Normals;
use toclip::internals::{Isa, Purpose, scalar_rng};
use toclip::internals::{inner, subtract};
use toclip::noise::Noise;

/// One run of SGD on a [`Problem`].
///
/// A residual $\rho_i$ depends on its sample $x_i = K^{1/2}\xi_i$ through one direction $e_1$ of
/// $\xi_i$ (least squares: that of $K^{1/2}(\theta - \theta^\ast)$) or two (logistic regression:
/// those of $K^{1/2}\theta^\ast$ and $K^{1/2}\theta$). What $\xi_i$ has across them is independent
/// of $\rho_i$ and normal, so the sum over the batch is one normal vector:
/// $$ \frac1B\sum_i \rho_i x_i = \frac{K^{1/2}}{B} \Bigl( \sum_j e_j \sum_i \rho_i z_{ij}
/// \thinspace + \sqrt{\textstyle\sum_i \rho_i^2}\thinspace (1 - P)\zeta \Bigr), $$
/// with $P$ the projection on the directions and $\zeta$ standard normal. A batch costs $d + B$
/// random numbers instead of $dB$.
pub(crate) struct SgdRun<'a> {
    problem: &'a Problem,
    isa: Isa,
    covariates: Normals,
    along: Normals,
    noise: Xoshiro256PlusPlus,
    /// $\theta$, or $\theta - \theta^\ast$ for least squares.
    state: Vec<f64>,
    /// $K^{1/2}$ times the state, then the direction that moves, $e_1$ or $e_2$.
    direction: Vec<f64>,
    zeta: Vec<f64>,
    gradient: Vec<f64>,
    z: Vec<f64>,
    /// The components of $K^{1/2}\theta$, or of $K^{1/2}(\theta - \theta^\ast)$, along the truth
    /// and along the direction that moves, at the batch drawn last.
    components: [f64; 2],
}

/// A run whose parameters have grown so much has diverged: a risk ten orders of magnitude over the
/// start, from which none comes back.
const BOUND: f64 = 1e5;

/// The sums of a batch that its gradient depends on.
struct BatchSums {
    /// $\sum_i \rho_i z_{ij}$ along the direction that moves and, for logistic regression, along
    /// the truth.
    along: [f64; 2],
    /// $\sum_i \rho_i^2$.
    squares: f64,
}

impl<'a> SgdRun<'a> {
    /// Run `index` of `seed`. Its random numbers do not depend on the steps taken, so rules can be
    /// compared run by run.
    pub fn new(problem: &'a Problem, seed: u64, index: u64) -> Self {
        let n = problem.root.len();
        Self {
            problem,
            isa: Isa::best(),
            covariates: Normals::new(seed, index, Purpose::Covariates),
            along: Normals::new(seed, index, Purpose::Along),
            noise: scalar_rng(seed, index, Purpose::Noise),
            state: problem.start.clone(),
            direction: vec![0.0; n],
            zeta: vec![0.0; n],
            gradient: vec![0.0; n],
            z: vec![0.0; problem.batch() * if problem.truth.is_empty() { 1 } else { 2 }],
            components: [0.0; 2],
        }
    }

    /// Draws a batch; the norm of its gradient. Not finite once the run has diverged.
    pub fn draw(&mut self) -> f64 {
        let [truth, length] = self.find_direction();
        self.components = [truth, length];
        self.along.fill(&mut self.z);
        self.covariates.fill(&mut self.zeta);
        let sums = match &self.problem.labels {
            Labels::Linear(noise) => {
                let (rng, z) = (&mut self.noise, &self.z);
                sums_of(z.iter().map(|&z| (length * z - noise.sample(rng), [z, 0.0])))
            }
            Labels::Logistic(model) => {
                let (rng, z, margin) = (&mut self.noise, &self.z, self.problem.margin);
                sums_of(z.chunks_exact(2).map(|z| {
                    let label = rng.random::<f64>() < model.probability(margin * z[0]);
                    let guess = sigmoid(truth * z[0] + length * z[1]);
                    (guess - f64::from(u8::from(label)), [z[1], z[0]])
                }))
            }
        };
        let (root, zeta) = (&self.problem.root, &self.zeta);
        let spread = sums.squares.sqrt();
        let moving = sums.along[0] - spread * inner(self.isa, &self.direction, zeta);
        let scale = 1.0 / self.problem.batch() as f64;
        let parts = self.gradient.iter_mut().zip(root).zip(zeta).zip(&self.direction);
        for (((to, root), zeta), e) in parts {
            *to = scale * root * (moving * e + spread * zeta);
        }
        if !self.problem.truth.is_empty() {
            let fixed = sums.along[1] - spread * inner(self.isa, &self.problem.truth, zeta);
            for ((to, root), e) in self.gradient.iter_mut().zip(root).zip(&self.problem.truth) {
                *to += scale * root * fixed * e;
            }
        }
        inner(self.isa, &self.gradient, &self.gradient).sqrt()
    }

    /// Finds the unit vector of the direction that moves, or zero if there is none, and the
    /// components of $K^{1/2}\theta$ along the truth and along it.
    fn find_direction(&mut self) -> [f64; 2] {
        for ((to, root), x) in self.direction.iter_mut().zip(&self.problem.root).zip(&self.state) {
            *to = root * x;
        }
        let truth = if self.problem.truth.is_empty() {
            0.0
        } else {
            let component = inner(self.isa, &self.direction, &self.problem.truth);
            subtract(self.isa, component, &self.problem.truth, &mut self.direction);
            component
        };
        let length = inner(self.isa, &self.direction, &self.direction).sqrt();
        let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
        self.direction.iter_mut().for_each(|x| *x *= scale);
        [truth, length]
    }

    /// Whether the parameters were finite and of a sensible size when the last batch was drawn.
    pub fn is_bounded(&self) -> bool {
        let natural = self.problem.margin.max((2.0 * self.problem.start_risk()).sqrt());
        self.components[0].hypot(self.components[1]) <= BOUND * natural
    }

    /// $\nabla$, the mean gradient of the batch drawn last.
    pub fn gradient(&self) -> &[f64] {
        &self.gradient
    }

    /// $\theta \leftarrow \theta - s\nabla$.
    pub fn step(&mut self, s: f64) {
        subtract(self.isa, s, &self.gradient, &mut self.state);
    }

    /// $\langle\nabla, E\nabla\rangle$ of the batch drawn last with the exact mean gradient: what
    /// an endless held-out batch would give.
    pub fn descent(&self) -> f64 {
        let along = |e: &[f64]| {
            let parts = self.gradient.iter().zip(&self.problem.root).zip(e);
            parts.map(|((g, root), e)| g * root * e).sum::<f64>()
        };
        let [truth, length] = self.components;
        match &self.problem.labels {
            Labels::Linear(_) => length * along(&self.direction),
            Labels::Logistic(model) => {
                let [fixed, moving] = model.descent([truth, length], self.problem.margin);
                fixed * along(&self.problem.truth) + moving * along(&self.direction)
            }
        }
    }

    /// The excess risk.
    pub fn risk(&mut self) -> f64 {
        let [truth, length] = self.find_direction();
        match &self.problem.labels {
            Labels::Linear(_) => 0.5 * length * length,
            Labels::Logistic(model) => {
                model.excess(truth.hypot(length), truth * self.problem.margin)
            }
        }
    }
}

fn sums_of(residuals: impl Iterator<Item = (f64, [f64; 2])>) -> BatchSums {
    let mut sums = BatchSums { along: [0.0; 2], squares: 0.0 };
    for (rho, z) in residuals {
        sums.along[0] += rho * z[0];
        sums.along[1] += rho * z[1];
        sums.squares += rho * rho;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip::noise::Rademacher;
    use toclip::spectrum::Spectrum;

    fn problems(batch: usize) -> [Problem; 2] {
        let k = Spectrum::power_law(12, 0.7).unwrap();
        let noise = Rademacher::new(2.0, 0.3).unwrap().into();
        [
            Problem::least_squares("linear", &k, 1.0, noise, batch).unwrap(),
            Problem::logistic("logistic", &k, 2.0, 0.2, batch).unwrap(),
        ]
    }

    /// A state that is not along the truth.
    fn state(n: usize) -> Vec<f64> {
        (0..n).map(|i| 0.4 * (1.3 * i as f64).cos()).collect()
    }

    /// The mean gradient of a batch, sample by sample as the problem is written.
    fn plainly(
        problem: &Problem,
        state: &[f64],
        x: &mut Normals,
        u: &mut Xoshiro256PlusPlus,
    ) -> Vec<f64> {
        let n = state.len();
        let mut gradient = vec![0.0; n];
        for _ in 0..problem.batch() {
            let mut xi = vec![0.0; n];
            x.fill(&mut xi);
            let x: Vec<f64> = xi.iter().zip(&problem.root).map(|(a, b)| a * b).collect();
            let guess: f64 = x.iter().zip(state).map(|(a, b)| a * b).sum();
            let rho = match &problem.labels {
                Labels::Linear(noise) => guess - noise.sample(u),
                Labels::Logistic(model) => {
                    let truth: f64 = xi.iter().zip(&problem.truth).map(|(a, b)| a * b).sum();
                    let label = u.random::<f64>() < sigmoid(problem.margin * truth);
                    let label = label != (u.random::<f64>() < model.flip);
                    sigmoid(guess) - f64::from(u8::from(label))
                }
            };
            for (g, x) in gradient.iter_mut().zip(&x) {
                *g += rho * x / problem.batch() as f64;
            }
        }
        gradient
    }

    /// Numbers that a wrong distribution of the gradient would change: norm, its square, its fourth
    /// power, components along and across state and truth, and a product of two.
    fn looks(problem: &Problem, state: &[f64], g: &[f64]) -> [f64; 7] {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let square = dot(g, g);
        let along = dot(g, state);
        let truth = if problem.truth.is_empty() { g[0] } else { dot(g, &problem.truth) };
        [square.sqrt(), square, square * square, along, along * along, truth * along, g[3] * g[4]]
    }

    #[test]
    fn batches_have_the_distribution_of_samples_drawn_one_by_one() {
        // 2 problems × 3 sizes × 7 means of 20 000 draws each: 42 two-sample z-scores, none beyond
        // 5: false alarm 2.4e-5.
        let n = 20_000;
        for batch in [1, 3, 16] {
            for problem in problems(batch) {
                let state = state(problem.root.len());
                let mut sums = [[[0.0; 2]; 7]; 2];
                let mut run = SgdRun::new(&problem, 1, 0);
                let mut x = Normals::new(2, 0, Purpose::Covariates);
                let mut u = scalar_rng(2, 0, Purpose::Noise);
                for _ in 0..n {
                    run.state.clone_from(&state);
                    let norm = run.draw();
                    let fast = looks(&problem, &state, run.gradient());
                    assert!((norm - fast[0]).abs() < 1e-12 * norm);
                    let slow = looks(&problem, &state, &plainly(&problem, &state, &mut x, &mut u));
                    for (sums, values) in sums.iter_mut().zip([fast, slow]) {
                        for (sum, value) in sums.iter_mut().zip(values) {
                            sum[0] += value / f64::from(n);
                            sum[1] += value * value / f64::from(n);
                        }
                    }
                }
                for k in 0..7 {
                    let error = |s: [f64; 2]| (s[1] - s[0] * s[0]) / f64::from(n);
                    let (fast, slow) = (sums[0][k], sums[1][k]);
                    let z = (fast[0] - slow[0]) / (error(fast) + error(slow)).sqrt();
                    assert!(z.abs() < 5.0, "{} look {k}: {fast:?} {slow:?}", problem.name());
                }
            }
        }
    }

    #[test]
    fn risk_is_the_formula_and_the_gradient_is_its_slope() {
        // The mean of many batches against differences of the exact risk: 3 directions × 2
        // problems, 5 standard errors: false alarm 3.4e-6.
        for problem in problems(16) {
            let n = problem.root.len();
            let mut run = SgdRun::new(&problem, 3, 0);
            let base = state(n);
            let runs = 20_000;
            let (mut mean, mut square) = (vec![0.0; n], vec![0.0; n]);
            for _ in 0..runs {
                run.state.clone_from(&base);
                run.draw();
                for (i, g) in run.gradient().iter().enumerate() {
                    mean[i] += g / f64::from(runs);
                    square[i] += g * g / f64::from(runs);
                }
            }
            for i in [0, 5, 11] {
                let mut risk_at = |h: f64| {
                    run.state.clone_from(&base);
                    run.state[i] += h;
                    run.risk()
                };
                let slope = (risk_at(1e-4) - risk_at(-1e-4)) / 2e-4;
                let error = ((square[i] - mean[i] * mean[i]) / f64::from(runs)).sqrt();
                assert!((mean[i] - slope).abs() < 5.0 * error + 1e-7, "{i}: {} {slope}", mean[i]);
            }
        }
    }

    #[test]
    fn descent_is_the_inner_product_with_the_slope_of_the_risk() {
        for problem in problems(3) {
            let n = problem.root.len();
            let mut run = SgdRun::new(&problem, 4, 0);
            let base = state(n);
            let slope: Vec<f64> = (0..n)
                .map(|i| {
                    let mut risk_at = |h: f64| {
                        run.state.clone_from(&base);
                        run.state[i] += h;
                        run.risk()
                    };
                    (risk_at(1e-4) - risk_at(-1e-4)) / 2e-4
                })
                .collect();
            run.state.clone_from(&base);
            let norm = run.draw();
            let expected: f64 = run.gradient().iter().zip(&slope).map(|(g, s)| g * s).sum();
            assert!((run.descent() - expected).abs() < 1e-7 * norm, "{}", problem.name());
        }
    }

    #[test]
    fn from_zero_there_is_no_second_direction() {
        let [_, problem] = problems(4);
        let mut run = SgdRun::new(&problem, 1, 0);
        assert!(run.draw().is_finite() && run.is_bounded());
        assert!((run.risk() - problem.start_risk()).abs() < 1e-15);
        run.step(f64::INFINITY);
        run.draw();
        assert!(!run.is_bounded());
    }
}
