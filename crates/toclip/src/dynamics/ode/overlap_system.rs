//! Generalised linear models: two numbers a mode.

use super::run::Followed;
use super::stages::{Dense, OdeSystem, Stages, add_slopes, blocks};
use super::tableau::TableauRow;
use crate::dynamics::Stop;
use crate::dynamics::solver::{SolvedPath, Watch};
use crate::error::{Error, Result};
use crate::model::{Coefficients, Model, Overlaps};
use crate::numerics::sum::{compensated, dot};
use crate::policy::Policy;
use crate::problem::{Combination, Problem};

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
    evaluations: u64,
    target: Option<f64>,
    /// The largest $Q$.
    limit: f64,
}

impl<'a> OverlapSystem<'a> {
    /// # Errors
    /// [`Error::Combination`] for a batch whose mean is clipped before the last of the times.
    pub fn new(
        problem: &'a Problem,
        model: &'a dyn Model,
        target: Option<f64>,
        times: &[f64],
    ) -> Result<Self> {
        let (modes, policy, batch) = (problem.modes(), problem.policy(), problem.step().batch());
        let end = times.last().copied().unwrap_or(0.0);
        if batch.size() > 1 && !batch.is_per_sample() && clips(policy, end) {
            return Err(Error::Combination(Combination::ModelBatchMean));
        }
        let dim = modes.dim() * batch.size() as f64;
        let alignments = modes.alignments().unwrap_or_default();
        let of = || modes.modes().iter();
        let (p, q) = (alignments.iter().map(|a| a.p), alignments.iter().map(|a| a.q));
        let start = Overlaps::at_start(modes).unwrap_or(Overlaps { q: 0.0, p: 0.0, v: 0.0 });
        Ok(OverlapSystem {
            model,
            policy,
            lambda: of().map(|m| m.lambda).collect(),
            teacher: alignments.iter().map(|a| a.teacher).collect(),
            source: of().map(|m| m.lambda * m.count / dim).collect(),
            teacher_sums: (start.v, compensated(alignments.iter().map(|a| a.teacher))),
            stages: Stages::new(p.chain(q).collect()),
            rate: 0.0,
            m2: 0.0,
            evaluations: 0,
            target,
            limit: start.largest_q(policy),
        })
    }
}

/// Whether the policy clips at some time up to `end`.
fn clips(policy: &dyn Policy, end: f64) -> bool {
    let times = policy.breakpoints().into_iter().chain([0.0, end]);
    times.filter(|t| *t <= end).any(|t| policy.at(t, 0.0).c < f64::INFINITY)
}

impl Followed<4> for OverlapSystem<'_> {
    /// A risk above the limit of $Q$ means a $Q$ of its size.
    fn watch(&self) -> Watch {
        Watch { target: self.target, limit: self.limit }
    }

    fn risk(&self, [p, q, ..]: OverlapSums) -> f64 {
        let (v, _) = self.teacher_sums;
        0.5 * (q - 2.0 * p + v)
    }

    fn scales(&self, start: OverlapSums, end: OverlapSums) -> OverlapSums {
        let (v, teacher) = self.teacher_sums;
        let size = |i: usize| start[i].max(end[i]);
        // P and Σp may vanish: their errors are seen by the lengths.
        [(size(1) * v).sqrt(), size(1), (size(3) * teacher).sqrt(), size(3)]
    }

    fn pace(&self, _sums: OverlapSums, _slope: OverlapSums) -> f64 {
        self.rate
    }

    fn stuck(&self, t: f64, _sums: OverlapSums, slope: OverlapSums) -> Option<Stop> {
        if self.m2 == f64::INFINITY {
            return Some(Stop::InfiniteVariance { t });
        }
        let is_finite = slope.iter().all(|s| s.is_finite());
        (!is_finite).then_some(Stop::Diverged { t })
    }

    fn save(&mut self, path: &mut SolvedPath<'_>, t: f64, sums: OverlapSums, _: Option<&Dense<4>>) {
        let [p, q, overlap, square] = sums;
        let (v, teacher) = self.teacher_sums;
        let distance = square - 2.0 * overlap + teacher;
        path.save_overlaps(t, Overlaps::rounded(q, p, v), distance.max(0.0));
    }

    fn evaluations(&self) -> u64 {
        self.evaluations
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
