//! The result of every method.

use crate::model::{Measures, Model, Overlaps};
use crate::spectrum::Rescaling;
use serde::Serialize;

/// A path of the risk $R(t)$ and the distance $D(t)$, and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trajectory {
    /// $t$, the requested times up to where the path ended.
    pub times: Vec<f64>,
    /// $R(t) = \sum_i \lambda_i v_i$.
    pub risk: Vec<f64>,
    /// $D(t) = 2 \sum_i v_i = \Vert \theta - \theta^\ast\Vert ^2$.
    pub distance: Vec<f64>,
    /// $\mu, m^{(2)}, \eta, c$ at the same times, if requested.
    pub path: Option<Vec<PathPoint>>,
    /// $(Q, P, V)$ at the same times; `None` for least squares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlaps: Option<Vec<Overlaps>>,
    /// Loss, error rate, angle and calibration at the same times; `None` for least squares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measures: Option<Vec<Measures>>,
    /// Why it stopped.
    pub stop: Stop,
    /// The number of steps and evaluations.
    pub counts: Counts,
}

impl Trajectory {
    /// An empty path with room for so many times.
    pub(crate) fn with_capacity(times: usize) -> Self {
        Trajectory {
            times: Vec::with_capacity(times),
            risk: Vec::with_capacity(times),
            distance: Vec::with_capacity(times),
            path: None,
            overlaps: None,
            measures: None,
            stop: Stop::Finished,
            counts: Counts::default(),
        }
    }

    /// The same with the loss and the other measures of a model at its [`overlaps`](Self::overlaps).
    pub fn measured(mut self, model: &dyn Model) -> Self {
        let overlaps = self.overlaps.as_deref();
        self.measures = overlaps.map(|all| all.iter().map(|at| Measures::new(model, at)).collect());
        self
    }

    /// $D^\prime, \eta^\prime, c^\prime$: the same path in other coordinates, where times and risks
    /// are the same.
    ///
    /// ```
    /// use toclip::Problem;
    /// use toclip::dynamics::Ode;
    /// use toclip::noise::NoNoise;
    /// use toclip::policy::OpenLoop;
    /// use toclip::spectrum::{Modes, Rescaling, Spectrum, Start};
    ///
    /// let modes = Modes::new(&Spectrum::isotropic(10)?, &Start::Uniform { norm: 1.0 })?;
    /// let problem = Problem::new(modes, NoNoise, OpenLoop::constant(0.8, 0.5)?)?;
    /// let path = Ode::new(&problem)?.keep_path(true).solve(&[0.0])?;
    /// // To where the norm of K is 4.
    /// let there = path.clone().rescaled(&Rescaling::new(4.0)?.inverse());
    /// assert_eq!((there.risk[0], there.distance[0]), (path.risk[0], path.distance[0] / 4.0));
    /// let point = there.path.unwrap()[0];
    /// assert_eq!((point.eta, point.c), (0.2, 1.0));
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn rescaled(mut self, by: &Rescaling) -> Self {
        self.distance.iter_mut().for_each(|d| *d = by.distance(*d));
        for point in self.path.iter_mut().flatten() {
            point.eta = by.learning_rate(point.eta);
            point.c = by.threshold(point.c);
        }
        self
    }
}

/// Factors and controls at one time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PathPoint {
    /// $\mu_c(R)$.
    pub mu: f64,
    /// $m^{(2)}_c(R)$.
    pub m2: f64,
    /// $\eta$.
    pub eta: f64,
    /// $c$.
    pub c: f64,
}

/// Why a path ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// The last requested time was reached.
    Finished,
    /// The risk fell to the target.
    TargetReached {
        /// When it did.
        t: f64,
    },
    /// The risk grew without bound: the learning rate is above its stability limit.
    Diverged {
        /// When it did.
        t: f64,
    },
    /// The noise has infinite variance and is not clipped from here on: the risk has no finite
    /// mean.
    InfiniteVariance {
        /// When clipping ended: zero, unless the threshold becomes infinite later.
        t: f64,
    },
    /// The data ended before the last requested time.
    DataEnded {
        /// When it was.
        t: f64,
    },
}

impl Stop {
    /// When the risk stopped being finite, for whichever reason.
    ///
    /// ```
    /// use toclip::dynamics::Stop;
    /// assert_eq!(Stop::InfiniteVariance { t: 0.0 }.diverged_at(), Some(0.0));
    /// assert_eq!(Stop::Finished.diverged_at(), None);
    /// ```
    pub fn diverged_at(&self) -> Option<f64> {
        match self {
            Stop::Diverged { t } | Stop::InfiniteVariance { t } => Some(*t),
            Stop::Finished | Stop::TargetReached { .. } | Stop::DataEnded { .. } => None,
        }
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Finished => write!(f, "finished"),
            Stop::TargetReached { t } => write!(f, "target reached at t = {t:.4}"),
            Stop::Diverged { t } => write!(f, "diverged at t = {t:.4}"),
            Stop::InfiniteVariance { t } => write!(
                f,
                "diverged at t = {t:.4}: the noise has infinite variance and is not clipped"
            ),
            Stop::DataEnded { t } => write!(f, "the data ended at t = {t:.4}"),
        }
    }
}

/// The number of steps and evaluations behind a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Steps taken.
    pub steps: u64,
    /// Steps tried and refused by the error control.
    pub rejected: u64,
    /// Evaluations of $(\mu, m^{(2)})$.
    pub evaluations: u64,
}
