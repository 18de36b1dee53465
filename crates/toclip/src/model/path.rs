//! The result of the dynamics of a generalised linear model.

use super::{Measures, Model, Overlaps};
use crate::dynamics::{Counts, Stop};
use serde::Serialize;

/// A path with the loss and the other measures of the model along it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredPath {
    /// $t$, the requested times up to where the path ended.
    pub times: Vec<f64>,
    /// $(Q, P, V)$ at these times.
    pub overlaps: Vec<Overlaps>,
    /// Loss, error rate, angle and calibration at these times.
    pub measures: Vec<Measures>,
    /// Why it stopped.
    pub stop: Stop,
}

/// A path of $(Q, P, V)$ and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GlmPath {
    /// $t$, the requested times up to where the path ended.
    pub times: Vec<f64>,
    /// $(Q, P, V)$ at these times.
    pub overlaps: Vec<Overlaps>,
    /// $\Vert\theta - \theta^\ast\Vert ^2$ at these times, with $\Vert K\Vert = 1$.
    pub distance: Vec<f64>,
    /// Why it stopped.
    pub stop: Stop,
    /// The number of steps and evaluations.
    pub counts: Counts,
}

impl GlmPath {
    pub(super) fn new(expected: usize) -> Self {
        GlmPath {
            times: Vec::with_capacity(expected),
            overlaps: Vec::with_capacity(expected),
            distance: Vec::with_capacity(expected),
            stop: Stop::Finished,
            counts: Counts::default(),
        }
    }

    pub(super) fn save(&mut self, t: f64, overlaps: Overlaps, distance: f64) {
        self.times.push(t);
        self.overlaps.push(overlaps);
        self.distance.push(distance.max(0.0));
    }

    /// Loss, error rate, angle and calibration at every time.
    ///
    /// ```
    /// use toclip::model::{GlmOde, Logistic, TeacherModes};
    /// use toclip::policy::{OpenLoop, Schedule};
    /// use toclip::spectrum::{Spectrum, Start};
    /// let modes = TeacherModes::new(&Spectrum::isotropic(500)?, &Start::Uniform { norm: 3.0 })?;
    /// let (model, policy) = (Logistic::new(0.0)?, OpenLoop::unclipped(Schedule::constant(1.0)?));
    /// let path = GlmOde::new(&modes, &model, &policy).solve(&[0.0, 5.0])?;
    /// let [start, end] = path.measures(&model)[..] else { panic!() };
    /// assert!(end.loss < start.loss && end.angle < start.angle);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn measures(&self, model: &dyn Model) -> Vec<Measures> {
        self.overlaps.iter().map(|at| Measures::new(model, at)).collect()
    }

    /// The same path with its [`measures`](Self::measures).
    pub fn measured(&self, model: &dyn Model) -> MeasuredPath {
        MeasuredPath {
            times: self.times.clone(),
            overlaps: self.overlaps.clone(),
            measures: self.measures(model),
            stop: self.stop,
        }
    }
}
