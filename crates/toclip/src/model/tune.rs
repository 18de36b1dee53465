//! The learning rate and the threshold with the lowest predicted loss.

use super::{GlmOde, Model, TeacherModes};
use crate::dynamics::Stop;
use crate::error::{Error, Result};
use crate::factors::batch::Batch;
use crate::factors::check_threshold;
use crate::numerics::maximise::{brent, log_grid};
use crate::parallel::map_long;
use crate::policy::tuning::{Objective, RateSearch};
use crate::policy::{OpenLoop, Schedule, Shape};
use serde::Serialize;

/// How the learning rate falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateShape {
    /// Constant.
    Constant,
    /// Half a cosine to zero at the end.
    Cosine,
}

impl RateShape {
    /// The schedule that begins at $\eta$ and ends at `time`.
    ///
    /// # Errors
    /// As [`Schedule::new`].
    pub fn schedule(self, eta: f64, time: f64) -> Result<Schedule> {
        match self {
            RateShape::Constant => Schedule::constant(eta),
            RateShape::Cosine => {
                Schedule::new(Shape::Cosine { from: eta, to: 0.0, over: time, warmup: 0.0 })
            }
        }
    }
}

/// The best of a search, and the loss $E\thinspace\ell$ it ends with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TunedClip {
    /// $\eta$ at the start.
    pub eta: f64,
    /// $c$; infinite for no clipping.
    pub c: f64,
    /// $E\thinspace\ell$ of the ODE at the end.
    pub loss: f64,
}

/// How closely a rate is searched for.
#[derive(Debug, Clone, Copy)]
struct Search {
    /// The relative tolerance of the ODE.
    rtol: f64,
    /// To which $\ln\eta$ is found.
    precision: f64,
    /// Where the search begins, if a good rate is known, and the factor between its first rates.
    first: Option<f64>,
    factor: f64,
}

/// To which $\ln\eta$ and $\ln c$ are found.
const PRECISION: f64 = 5e-3;
/// Enough to tell two rates apart at a flat minimum.
const FINE: Search = Search { rtol: 1e-5, precision: PRECISION, first: None, factor: 2.0 };
/// Enough to tell thresholds of a coarse grid apart.
const COARSE: Search = Search { rtol: 1e-3, precision: 0.03, first: None, factor: 2.0 };
/// The most doublings or halvings of the rate.
const MOST_STEPS: u32 = 30;

/// $\arg\min_\eta E\thinspace\ell$ at time $T$ of the ODE at threshold $c$, for a rate of this shape.
///
/// At a fixed rate, comparing two thresholds also compares two speeds: a smaller threshold slows
/// descent down. With the best rate for each, only the thresholds differ. The minimum found is the one downhill from $\eta|b|T = 3$, with $b$ that of the start.
/// Steps average a `batch` of samples, each clipped on its own.
///
/// ```
/// use toclip::Batch;
/// use toclip::model::{Logistic, RateShape, TeacherModes, best_rate};
/// use toclip::spectrum::{Spectrum, Start};
/// let modes = TeacherModes::new(&Spectrum::isotropic(500)?, &Start::Uniform { norm: 3.0 })?;
/// let model = Logistic::new(0.2)?;
/// let open = best_rate(&modes, &model, Batch::single(), f64::INFINITY, RateShape::Cosine, 10.0)?;
/// let clip = best_rate(&modes, &model, Batch::single(), 0.3, RateShape::Cosine, 10.0)?;
/// assert!(clip.eta > open.eta && open.loss < 0.7);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for a threshold or a time that is not positive;
/// [`Error::Invalid`] where every rate diverges, the labels say nothing about the teacher, or the loss
/// is infinite whatever $\theta$ is, as for targets whose noise has no mean; as
/// [`GlmOde::solve`].
pub fn best_rate(
    modes: &TeacherModes,
    model: &dyn Model,
    batch: Batch,
    c: f64,
    shape: RateShape,
    time: f64,
) -> Result<TunedClip> {
    search_rate(modes, model, batch, c, (shape, time), FINE)
}

fn search_rate(
    modes: &TeacherModes,
    model: &dyn Model,
    batch: Batch,
    c: f64,
    (shape, time): (RateShape, f64),
    search: Search,
) -> Result<TunedClip> {
    check_threshold(c)?;
    if !(time > 0.0 && time.is_finite()) {
        return Err(Error::parameter("time", time, "give a positive and finite time"));
    }
    let start = modes.overlaps();
    if start.v == 0.0 {
        return Err(Error::Invalid(
            "the teacher is zero and there is nothing to learn, so no rate is better than another"
                .into(),
        ));
    }
    let b = model.coefficients(&start, c).b.abs();
    if !(b > 0.0) {
        return Err(Error::Invalid(
            "the labels say nothing about the teacher (b = 0), so no rate is better than another"
                .into(),
        ));
    }
    if model.expected_loss(&start) == f64::INFINITY {
        return Err(Error::Invalid(format!(
            "the loss of {} is infinite at every time, so no rate is better than another; noise with \
             lighter tails has a finite one",
            model.describe()
        )));
    }
    let clip = if c < f64::INFINITY { Schedule::constant(c)? } else { Schedule::never() };
    let end = |eta: f64| -> Result<f64> {
        let policy = OpenLoop::new(shape.schedule(eta, time)?, clip.clone());
        let ode = GlmOde::new(modes, model, &policy).tolerance(search.rtol, 0.0).with_batch(batch);
        let path = ode.solve(&[time])?;
        Ok(match (path.stop, path.overlaps.last()) {
            (Stop::Finished, Some(at)) => model.expected_loss(at),
            _ => f64::INFINITY,
        })
    };
    let downhill = RateSearch {
        first: search.first.unwrap_or(3.0 / (b * time)),
        factor: search.factor,
        most_steps: MOST_STEPS,
        precision: search.precision,
    };
    let (eta, loss) = downhill.run(time, end)?;
    Ok(TunedClip { eta, c, loss })
}

/// $\arg\min_{c, \eta} E\thinspace\ell$ at time $T$ of the ODE over constant thresholds, $c = \infty$ included,
/// each with its [best rate](best_rate).
///
/// ```
/// use toclip::Batch;
/// use toclip::model::{Logistic, RateShape, TeacherModes, best_clip};
/// use toclip::spectrum::{Spectrum, Start};
/// let modes = TeacherModes::new(&Spectrum::isotropic(500)?, &Start::Uniform { norm: 3.0 })?;
/// // Clean labels and a rate that falls to zero: do not clip.
/// let model = Logistic::new(0.0)?;
/// let best = best_clip(&modes, &model, Batch::single(), RateShape::Cosine, 5.0)?;
/// assert_eq!(best.c, f64::INFINITY);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// As [`best_rate`].
pub fn best_clip(
    modes: &TeacherModes,
    model: &dyn Model,
    batch: Batch,
    shape: RateShape,
    time: f64,
) -> Result<TunedClip> {
    let open = best_rate(modes, model, batch, f64::INFINITY, shape, time);
    // The residuals of the start, which are of the size of those that follow.
    let size = model.coefficients(&modes.overlaps(), f64::INFINITY).m2.sqrt();
    let size = if size.is_finite() { size } else { 1.0 };
    let rate = |c: f64, search: Search| search_rate(modes, model, batch, c, (shape, time), search);
    let grid = log_grid(0.02 * size, 4.0 * size, 4.0);
    let coarse = map_long(&grid, |&c| rate(c, COARSE)).into_iter().collect::<Result<Vec<_>>>()?;
    let lower = |i: &usize, j: &usize| coarse[*i].loss.total_cmp(&coarse[*j].loss);
    let best = (0..grid.len()).min_by(lower).unwrap_or(0);
    let fine = Search { first: Some(coarse[best].eta), factor: 1.4, ..FINE };
    let objective = Objective::new(|c| rate(c, fine).map(|tuned| tuned.loss));
    let at_best = objective.gain(grid[best]);
    let (c, gain) = if best == 0 || best + 1 == grid.len() {
        (grid[best], at_best)
    } else {
        let f = |c: f64| objective.gain(c);
        brent(grid[best - 1], grid[best], grid[best + 1], at_best, PRECISION, &f)
    };
    objective.finish()?;
    match open {
        Ok(open) if !(-gain < open.loss - 1e-6 * open.loss.abs()) => Ok(open),
        _ => rate(c, fine),
    }
}
