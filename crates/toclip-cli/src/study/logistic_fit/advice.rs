//! Whether to clip, by the theory with the spectrum and θ* of the data.

use anyhow::{Context, Result};
use toclip::model::{
    GlmBestThreshold, Measures, Model, Overlaps, RateShape, TeacherModes, TunedClip, best_clip,
    best_rate, best_threshold, ccc, fixed_point,
};

use super::solve;

/// A gain in excess cross-entropy below this share is not worth a threshold.
const WORTH: f64 = 0.01;

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
        Ok(ClassificationAdvice {
            kappa: fixed.kappa,
            fixed_point: Measures::new(model, &fixed.overlaps),
            ccc: end.map(|at| ccc(model, &at, clip)).transpose()?,
            best_at_end: end.map(|at| best_threshold(model, &at)).transpose()?,
            unclipped: judged(best_rate(modes, model, one, f64::INFINITY, constant, time)?)?,
            tuned: judged(best_clip(modes, model, one, constant, time)?)?,
            least: model.expected_loss(&Overlaps::along_teacher(1.0, v)),
        })
    }

    /// How much lower the excess cross-entropy ends with the best threshold, as a share.
    pub fn gain(&self) -> f64 {
        let excess = |tuned: &TunedClip| tuned.loss - self.least;
        1.0 - excess(&self.tuned.0) / excess(&self.unclipped.0)
    }

    /// How much lower the cross-entropy itself ends with the best threshold, as a share.
    pub fn share_of_loss(&self) -> f64 {
        1.0 - self.tuned.0.loss / self.unclipped.0.loss
    }

    pub fn is_worth_clipping(&self) -> bool {
        self.tuned.0.c.is_finite() && self.gain() >= WORTH
    }

    /// Whether the best threshold leaves the error rate where it is, or higher.
    pub fn gains_in_norm_only(&self) -> bool {
        self.tuned.1.error_rate >= self.unclipped.1.error_rate
    }
}
