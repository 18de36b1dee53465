//! The right-hand side, and one step of it.

use crate::dynamics::ode::tableau::{
    A, C, E3, E5, LAST, Row, STAGES, dense_change, dense_coefficients,
};
use crate::glm::{Coefficients, Model, Overlaps, TeacherModes};
use crate::schedule::Policy;
use crate::sum::{compensated, dot};

/// $(\sum\lambda p, \sum\lambda q, \sum p, \sum q)$ of some state.
pub(super) type Sums = [f64; 4];

/// The system and the arrays that a step needs. A state is $p$ of all modes, then $q$.
pub(super) struct System<'a> {
    model: &'a dyn Model,
    policy: &'a dyn Policy,
    lambda: Vec<f64>,
    /// $\sum\theta^{\ast2}$ of every mode.
    teacher: Vec<f64>,
    /// $\lambda n/Bd$.
    source: Vec<f64>,
    /// $V$ and $\Vert\theta^\ast\Vert ^2$.
    teacher_sums: (f64, f64),
    /// The state at the start of the step.
    state: Vec<f64>,
    /// The argument of the latest stage; after [`System::step`], the state at the end.
    stage: Vec<f64>,
    slopes: Vec<Vec<f64>>,
    slope_sums: [Sums; STAGES],
    /// $2\eta a$ at each stage: the rate of decay of the fastest mode.
    decays: [f64; STAGES],
    /// $\eta(a + |b|)$ and $m^{(2)}$ at the start of the step.
    rate: f64,
    m2: f64,
    pub evaluations: u64,
    approximate: bool,
}

/// Steps are at most this over the rate of decay, as for least squares.
const REACH: f64 = 3.0;

/// What a step found, before it is known whether it is good enough.
pub(super) struct Attempt {
    pub end: Sums,
    /// Estimated errors of order 5 and 3, without cancellation between modes.
    pub errors: [Sums; 2],
}

impl<'a> System<'a> {
    /// With steps that average `samples`.
    pub fn new(
        modes: &TeacherModes,
        model: &'a dyn Model,
        policy: &'a dyn Policy,
        samples: f64,
    ) -> Self {
        let dim = modes.dim() * samples;
        let all = modes.modes();
        let state: Vec<f64> = all.iter().map(|m| m.p).chain(all.iter().map(|m| m.q)).collect();
        System {
            model,
            policy,
            lambda: all.iter().map(|m| m.lambda).collect(),
            teacher: all.iter().map(|m| m.teacher).collect(),
            source: all.iter().map(|m| m.lambda * m.count / dim).collect(),
            teacher_sums: (modes.overlaps().v, compensated(all.iter().map(|m| m.teacher))),
            stage: state.clone(),
            slopes: vec![vec![0.0; state.len()]; STAGES],
            state,
            slope_sums: [[0.0; 4]; STAGES],
            decays: [0.0; STAGES],
            rate: 0.0,
            m2: 0.0,
            evaluations: 0,
            approximate: false,
        }
    }

    /// With coefficients to six digits.
    pub fn approximately(self, approximate: bool) -> Self {
        System { approximate, ..self }
    }

    /// $V$ and $\Vert\theta^\ast\Vert ^2$.
    pub fn teacher(&self) -> (f64, f64) {
        self.teacher_sums
    }

    /// The sums at the start of the step.
    pub fn sums(&self) -> Sums {
        weigh(&self.lambda, &self.state)
    }

    /// The longest step in which dense output is as good as the step itself.
    pub fn longest(&self) -> f64 {
        REACH / self.decays[0].abs()
    }

    /// How fast the logits change at the start of the step.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// $m^{(2)}$ at the start of the step.
    pub fn noise(&self) -> f64 {
        self.m2
    }

    fn slope(&mut self, number: usize, t: f64) {
        let n = self.lambda.len();
        let [p, q, ..] = weigh(&self.lambda, &self.stage);
        // A stage may undershoot zero by the tolerance.
        let at = Overlaps::rounded(q, p, self.teacher_sums.0);
        let control = self.policy.at(t, 0.0);
        let eta = control.eta;
        let Coefficients { a, b, m2 } = if eta == 0.0 {
            Coefficients { a: 0.0, b: 0.0, m2: 0.0 }
        } else {
            self.evaluations += 1;
            if self.approximate {
                self.model.approximate_coefficients(&at, control.c)
            } else {
                self.model.coefficients(&at, control.c)
            }
        };
        self.decays[number] = 2.0 * eta * a;
        if number == 0 {
            (self.rate, self.m2) = (eta * (a + b.abs()), m2);
        }
        let (of_p, of_q) = self.stage.split_at(n);
        let (to_p, to_q) = self.slopes[number].split_at_mut(n);
        let (drift, pull, noise) = (eta * a, eta * b, eta * eta * m2);
        for i in 0..n {
            to_p[i] = -self.lambda[i] * (drift * of_p[i] + pull * self.teacher[i]);
            to_q[i] =
                noise * self.source[i] - 2.0 * self.lambda[i] * (drift * of_q[i] + pull * of_p[i]);
        }
        self.slope_sums[number] = weigh(&self.lambda, &self.slopes[number]);
    }

    /// The slope at the start, from which everything else is computed.
    pub fn begin(&mut self, t: f64) -> Sums {
        self.stage.copy_from_slice(&self.state);
        self.slope(0, t);
        self.slope_sums[0]
    }

    /// Stages `from` to `to` of a step of length `h`; no stage is evaluated after `latest`.
    fn stages(&mut self, from: usize, to: usize, t: f64, h: f64, latest: f64) {
        for number in from..=to {
            combine(&self.state, A[number], h, &self.slopes, &mut self.stage);
            self.slope(number, (t + C[number] * h).min(latest));
        }
    }

    /// Tries a step of length `h` after [`System::begin`].
    pub fn step(&mut self, t: f64, h: f64, latest: f64) -> Attempt {
        self.stages(1, LAST, t, h, latest);
        let errors = [E5, E3].map(|row| self.size(row, h));
        Attempt { end: weigh(&self.lambda, &self.stage), errors }
    }

    /// The sums of $|x_i|$ for $x = h\sum_j e_jk_j$.
    fn size(&self, row: Row, h: f64) -> Sums {
        let zero = vec![0.0; self.state.len()];
        let mut x = zero.clone();
        combine(&zero, row, h, &self.slopes, &mut x);
        x.iter_mut().for_each(|x| *x = x.abs());
        weigh(&self.lambda, &x)
    }

    /// Accepts the step: its end is the start of the next, and its last slope the first.
    pub fn advance(&mut self) {
        std::mem::swap(&mut self.state, &mut self.stage);
        self.slopes.swap(0, LAST);
        self.slope_sums[0] = self.slope_sums[LAST];
        self.decays[0] = self.decays[LAST];
    }

    /// The sums as a function of time in the step just tried; three more evaluations.
    pub fn dense(&mut self, t: f64, h: f64, latest: f64, end: Sums) -> Dense {
        let start = self.sums();
        let finish = self.stage.clone();
        self.stages(LAST + 1, STAGES - 1, t, h, latest);
        self.stage = finish;
        let k = &self.slope_sums;
        let coefficients =
            std::array::from_fn(|i| dense_coefficients(start[i], end[i], h, |stage| k[stage][i]));
        Dense { t, h, start, coefficients }
    }
}

/// The sums inside a step, to order 7.
pub(super) struct Dense {
    t: f64,
    h: f64,
    start: Sums,
    coefficients: [[f64; 7]; 4],
}

impl Dense {
    pub fn at(&self, t: f64) -> Sums {
        let x = (t - self.t) / self.h;
        std::array::from_fn(|i| self.start[i] + dense_change(&self.coefficients[i], x))
    }
}

/// $y = x + h\sum_j a_jk_j$, a stretch at a time that stays in the nearest cache.
fn combine(x: &[f64], row: Row, h: f64, slopes: &[Vec<f64>], y: &mut [f64]) {
    const BLOCK: usize = 64;
    for first in (0..x.len()).step_by(BLOCK) {
        let range = first..(first + BLOCK).min(x.len());
        let y = &mut y[range.clone()];
        y.copy_from_slice(&x[range.clone()]);
        for &(j, a) in row {
            let a = h * a;
            for (y, k) in y.iter_mut().zip(&slopes[j][range.clone()]) {
                *y += a * k;
            }
        }
    }
}

fn weigh(lambda: &[f64], state: &[f64]) -> Sums {
    let (p, q) = state.split_at(lambda.len());
    [dot(lambda, p), dot(lambda, q), plain(p), plain(q)]
}

/// $\sum_i x_i$ in eight strands.
fn plain(x: &[f64]) -> f64 {
    let (heads, rest) = x.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for head in heads {
        for i in 0..8 {
            sums[i] += head[i];
        }
    }
    sums.iter().sum::<f64>() + rest.iter().sum::<f64>()
}
