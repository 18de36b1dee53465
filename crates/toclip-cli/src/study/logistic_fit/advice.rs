//! Whether to clip, by the theory with the spectrum and θ* of the data.

use anyhow::{Context, Result};
use toclip::model::{
    DirectionThreshold, Measures, Model, Overlaps, best_threshold, ccc, fixed_point,
};
use toclip::tuning::{RateShape, Tuned, tune_clip, tune_rate};
use toclip::verdict::{Candidate, Comparison, End, JudgedBy, Rate, Threshold, Unclipped, Verdict};
use toclip::{Problem, Rule};

use super::solve;

/// The effect of clipping here, and the best threshold.
#[derive(Debug, Clone)]
pub struct ClassificationAdvice {
    /// κ: with this threshold SGD converges to κθ*.
    pub kappa: f64,
    /// κθ*, judged.
    pub fixed_point: Measures,
    /// CCC of the threshold at the end of the pass, and the best there; `None` where the ODE
    /// diverged.
    pub ccc: Option<f64>,
    pub best_at_end: Option<DirectionThreshold>,
    /// The best constant learning rate without clipping, and the best with any threshold; and the ends
    /// of their passes.
    pub unclipped: (Tuned, Measures),
    pub tuned: (Tuned, Measures),
    /// The cross-entropy of θ*.
    pub least: f64,
    /// By the excess over it at the end, each at its best constant rate.
    pub verdict: Verdict,
}

impl ClassificationAdvice {
    pub fn new(
        problem: &Problem,
        model: &dyn Model,
        clip: f64,
        end: Option<Overlaps>,
        time: f64,
    ) -> Result<Self> {
        let start = Overlaps::at_start(problem.modes()).context("the problem has no teacher")?;
        let v = start.v;
        let fixed = fixed_point(model, v, clip)?;
        let constant = RateShape::Constant;
        let judged = |tuned: Tuned| -> Result<(Tuned, Measures)> {
            let end = solve(problem, tuned.eta, tuned.c, &[time])?.0.pop();
            Ok((tuned, end.context("the best learning rate diverges")?))
        };
        let unclipped = judged(tune_rate(problem, f64::INFINITY, constant, time)?)?;
        let tuned = judged(tune_clip(problem, constant, time)?)?;
        let least = model.expected_loss(&Overlaps::along_teacher(1.0, v));
        let excess = |loss: f64| End::Risk(loss - least);
        let candidate = |tuned: &Tuned| Candidate {
            name: "tuned",
            rule: Rule::Clip,
            threshold: Threshold::At(tuned.c),
            rate: Rate::Best(tuned.eta),
            end: excess(tuned.end),
        };
        let compared = Comparison {
            judged_by: JudgedBy::ExcessLoss,
            start: model.expected_loss(&start) - least,
            unclipped: Some(Unclipped {
                rate: Rate::Best(unclipped.0.eta),
                end: excess(unclipped.0.end),
            }),
            candidates: [&tuned.0].into_iter().filter(|t| t.c.is_finite()).map(candidate).collect(),
        };
        Ok(ClassificationAdvice {
            kappa: fixed.kappa,
            fixed_point: Measures::new(model, &fixed.overlaps),
            ccc: end.map(|at| ccc(model, &at, clip)).transpose()?,
            best_at_end: end.map(|at| best_threshold(model, &at)).transpose()?,
            unclipped,
            tuned,
            least,
            verdict: compared.verdict(),
        })
    }

    /// How much lower the cross-entropy itself ends with the best threshold, as a share.
    pub fn share_of_loss(&self) -> f64 {
        1.0 - self.tuned.0.end / self.unclipped.0.end
    }

    /// Whether the best threshold leaves the error rate where it is, or higher.
    pub fn gains_in_norm_only(&self) -> bool {
        self.tuned.1.error_rate >= self.unclipped.1.error_rate
    }
}
