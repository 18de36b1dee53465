//! The right-hand side, and one step of it.

use crate::dynamics::ode::stages::{OdeSystem, Stages, add_slopes, blocks};
use crate::dynamics::ode::tableau::TableauRow;
use crate::model::{Coefficients, Model, Overlaps, TeacherModes};
use crate::numerics::sum::{compensated, dot};
use crate::policy::Policy;

/// $(\sum\lambda p, \sum\lambda q, \sum p, \sum q)$ of some state.
pub(super) type OverlapSums = [f64; 4];

/// The system and the arrays that a step needs. A state is $p$ of all modes, then $q$.
pub(super) struct OverlapSystem<'a> {
    model: &'a dyn Model,
    policy: &'a dyn Policy,
    lambda: Vec<f64>,
    /// $\sum\theta^{\ast2}$ of every mode.
    teacher: Vec<f64>,
    /// $\lambda n/Bd$.
    source: Vec<f64>,
    /// $V$ and $\Vert\theta^\ast\Vert ^2$.
    teacher_sums: (f64, f64),
    /// The states, with rates $2\eta a$.
    stages: Stages<4>,
    /// $\eta(a + |b|)$ and $m^{(2)}$ at the start of the step.
    rate: f64,
    m2: f64,
    pub evaluations: u64,
}

impl<'a> OverlapSystem<'a> {
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
        OverlapSystem {
            model,
            policy,
            lambda: all.iter().map(|m| m.lambda).collect(),
            teacher: all.iter().map(|m| m.teacher).collect(),
            source: all.iter().map(|m| m.lambda * m.count / dim).collect(),
            teacher_sums: (modes.overlaps().v, compensated(all.iter().map(|m| m.teacher))),
            stages: Stages::new(state),
            rate: 0.0,
            m2: 0.0,
            evaluations: 0,
        }
    }

    /// $V$ and $\Vert\theta^\ast\Vert ^2$.
    pub fn teacher(&self) -> (f64, f64) {
        self.teacher_sums
    }

    /// How fast the logits change at the start of the step.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// $m^{(2)}$ at the start of the step.
    pub fn noise(&self) -> f64 {
        self.m2
    }
}

impl OdeSystem<4> for OverlapSystem<'_> {
    fn stages(&self) -> &Stages<4> {
        &self.stages
    }

    fn stages_mut(&mut self) -> &mut Stages<4> {
        &mut self.stages
    }

    fn weigh(&self, state: &[f64]) -> OverlapSums {
        weigh(&self.lambda, state)
    }

    fn slope(&mut self, number: usize, t: f64) {
        let n = self.lambda.len();
        let Stages { stage, slopes, slope_sums, rates, .. } = &mut self.stages;
        let [p, q, ..] = weigh(&self.lambda, stage);
        // A stage may undershoot zero by the tolerance.
        let at = Overlaps::rounded(q, p, self.teacher_sums.0);
        let control = self.policy.at(t, 0.0);
        let eta = control.eta;
        let Coefficients { a, b, m2 } = if eta == 0.0 {
            Coefficients { a: 0.0, b: 0.0, m2: 0.0 }
        } else {
            self.evaluations += 1;
            self.model.coefficients(&at, control.c)
        };
        rates[number] = 2.0 * eta * a;
        if number == 0 {
            (self.rate, self.m2) = (eta * (a + b.abs()), m2);
        }
        let (of_p, of_q) = stage.split_at(n);
        let (to_p, to_q) = slopes[number].split_at_mut(n);
        let (drift, pull, noise) = (eta * a, eta * b, eta * eta * m2);
        for i in 0..n {
            to_p[i] = -self.lambda[i] * (drift * of_p[i] + pull * self.teacher[i]);
            to_q[i] =
                noise * self.source[i] - 2.0 * self.lambda[i] * (drift * of_q[i] + pull * of_p[i]);
        }
        slope_sums[number] = weigh(&self.lambda, &slopes[number]);
    }

    fn size(&self, row: TableauRow, h: f64) -> OverlapSums {
        let mut x = vec![0.0; self.stages.state.len()];
        for range in blocks(x.len()) {
            add_slopes(&self.stages.slopes, row, h, range.clone(), &mut x[range]);
        }
        x.iter_mut().for_each(|x| *x = x.abs());
        weigh(&self.lambda, &x)
    }
}

fn weigh(lambda: &[f64], state: &[f64]) -> OverlapSums {
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
