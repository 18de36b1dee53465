//! Whether to clip, by the theory with the spectrum and θ* of the data.

use anyhow::{Context, Result};
use toclip::Rule;
use toclip::model::{
    GlmBestThreshold, Measures, Model, Overlaps, RateShape, TeacherModes, TunedClip, best_clip,
    best_rate, best_threshold, ccc, fixed_point,
};
use toclip::verdict::{Candidate, Comparison, End, JudgedBy, Rate, Threshold, Unclipped, Verdict};

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
    pub best_at_end: Option<GlmBestThreshold>,
    /// The best constant learning rate without clipping, and the best with any threshold; and the ends
    /// of their passes.
    pub unclipped: (TunedClip, Measures),
    pub tuned: (TunedClip, Measures),
    /// The cross-entropy of θ*.
    pub least: f64,
    /// By the excess over it at the end, each at its best constant rate.
    pub verdict: Verdict,
}

impl ClassificationAdvice {
    pub fn new(
        modes: &TeacherModes,
        model: &dyn Model,
        clip: f64,
        end: Option<Overlaps>,
        time: f64,
    ) -> Result<Self> {
        let v = modes.overlaps().v;
        let fixed = fixed_point(model, v, clip)?;
        let (one, constant) = (toclip::Batch::single(), RateShape::Constant);
        let judged = |tuned: TunedClip| -> Result<(TunedClip, Measures)> {
            let end = solve(modes, model, tuned.eta, tuned.c, &[time])?.0.pop();
            Ok((tuned, end.context("the best learning rate diverges")?))
        };
        let unclipped = judged(best_rate(modes, model, one, f64::INFINITY, constant, time)?)?;
        let tuned = judged(best_clip(modes, model, one, constant, time)?)?;
        let least = model.expected_loss(&Overlaps::along_teacher(1.0, v));
        let excess = |loss: f64| End::Risk(loss - least);
        let candidate = |tuned: &TunedClip| Candidate {
            name: "tuned",
            rule: Rule::Clip,
            threshold: Threshold::At(tuned.c),
            rate: Rate::Best(tuned.eta),
            end: excess(tuned.loss),
        };
        let compared = Comparison {
            judged_by: JudgedBy::ExcessLoss,
            start: model.expected_loss(&modes.overlaps()) - least,
            unclipped: Some(Unclipped {
                rate: Rate::Best(unclipped.0.eta),
                end: excess(unclipped.0.loss),
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
        1.0 - self.tuned.0.loss / self.unclipped.0.loss
    }

    /// Whether the best threshold leaves the error rate where it is, or higher.
    pub fn gains_in_norm_only(&self) -> bool {
        self.tuned.1.error_rate >= self.unclipped.1.error_rate
    }
}
