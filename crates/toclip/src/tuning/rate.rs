//! The rate, and the pair of rate and threshold, with the lowest predicted risk or loss.

use super::search::{Failing, RateSearch, final_value};
use crate::dynamics::{Ode, effective_moments};
use crate::error::{Error, Result};
use crate::factors::check_threshold;
use crate::model::{Objective, Overlaps};
use crate::numerics::maximise::{brent, log_grid};
use crate::parallel::map_long;
use crate::policy::{OpenLoop, Schedule, Shape};
use crate::problem::Problem;
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

/// The best of a search, and the value it ends with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tuned {
    /// $\eta$ at the start.
    pub eta: f64,
    /// $c$; infinite for no clipping.
    pub c: f64,
    /// $R(T)$ of the ODE, or the loss $E\thinspace\ell$ of a generalised linear model.
    pub end: f64,
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
    /// So many doublings or halvings at most.
    most_steps: u32,
}

/// Enough to tell two rates apart at a flat minimum of the risk.
const FINE: Search =
    Search { rtol: 1e-6, precision: 3e-3, first: None, factor: 2.0, most_steps: 24 };
/// The same for the loss of a model, whose coefficients are searched with to six digits.
const FINE_LOSS: Search =
    Search { rtol: 1e-5, precision: THRESHOLD_PRECISION, first: None, factor: 2.0, most_steps: 30 };
/// Enough to tell thresholds of a coarse grid apart.
const COARSE: Search =
    Search { rtol: 1e-3, precision: 0.03, first: None, factor: 2.0, most_steps: 30 };
/// To which $\ln c$ is found.
const THRESHOLD_PRECISION: f64 = 5e-3;
/// The descent $\eta\mu T$ where the search begins, with $\mu$, or $|b|$ of a model, of the start.
const DESCENT: f64 = 3.0;
/// Thresholds of the coarse grid, in units of the residuals of the start, and so many a decade.
const THRESHOLDS: (f64, f64) = (0.02, 4.0);
const PER_DECADE: f64 = 4.0;
/// Clipping has to lower the end by this share to be preferred to not clipping.
const TIE: f64 = 1e-6;

fn fine(problem: &Problem) -> Search {
    match problem.objective() {
        Objective::LeastSquares => FINE,
        Objective::Model(_) => FINE_LOSS,
    }
}

/// $\arg\min_\eta$ of the risk or loss at time $T$ of the ODE at threshold $c$, for a rate of this shape.
///
/// At a fixed rate, comparing two rules or thresholds also compares two speeds: a smaller threshold slows
/// descent down. With the best rate for each, only the rules differ. The minimum found is the one
/// downhill from $\eta\mu T = 3$, or from $\eta|b|T = 3$ in a model.
///
/// # Errors
/// Where no rate descends ([skipping](crate::Rule::Skip) can have $\mu \le 0$), every rate diverges, labels
/// say nothing about the teacher, or the loss is infinite whatever $\theta$ is; as [`Ode::solve`].
///
/// ```
/// use toclip::Problem;
/// use toclip::noise::StudentT;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// use toclip::tuning::{RateShape, tune_rate};
/// let modes = Modes::new(&Spectrum::isotropic(500)?, &Start::Uniform { norm: 1.0 })?;
/// let noise = StudentT::from_sigma(2.5, 0.7)?;
/// let problem = Problem::new(modes, noise, OpenLoop::constant(0.1, f64::INFINITY)?)?;
/// let clip = tune_rate(&problem, 0.4, RateShape::Constant, 10.0)?;
/// let open = tune_rate(&problem, f64::INFINITY, RateShape::Constant, 10.0)?;
/// // Heavy tails: clipping ends lower, at a larger rate.
/// assert!(clip.end < 0.8 * open.end && clip.eta > open.eta);
/// # Ok::<(), toclip::Error>(())
/// ```
pub fn tune_rate(problem: &Problem, c: f64, shape: RateShape, time: f64) -> Result<Tuned> {
    search_rate(problem, c, (shape, time), fine(problem))
}

fn search_rate(
    problem: &Problem,
    c: f64,
    (shape, time): (RateShape, f64),
    search: Search,
) -> Result<Tuned> {
    check_threshold(c)?;
    if !(time > 0.0 && time.is_finite()) {
        return Err(Error::parameter("time", time, "give a positive and finite time"));
    }
    let slope = first_slope(problem, c)?;
    let clip = if c < f64::INFINITY { Schedule::constant(c)? } else { Schedule::never() };
    let end = |eta: f64| -> Result<f64> {
        let policy = OpenLoop::new(shape.schedule(eta, time)?, clip.clone());
        let ode = Ode::new(&problem.with_policy(policy)?)?.tolerance(search.rtol, 0.0);
        final_value(&ode.approximately(), problem, time)
    };
    let factor = problem.optimizer().momentum().map_or(1.0, |m| m.rate_factor(problem.dim()));
    let downhill = RateSearch {
        first: search.first.unwrap_or(DESCENT / (slope * time) / factor),
        factor: search.factor,
        most_steps: search.most_steps,
        precision: search.precision,
    };
    let (eta, end) = downhill.run(time, end)?;
    Ok(Tuned { eta, c, end })
}

/// $\mu$ at the start, or $|b|$ of a model.
fn first_slope(problem: &Problem, c: f64) -> Result<f64> {
    let Some(model) = problem.model() else {
        let mu = effective_moments(problem, c)?.mu;
        return if mu > 0.0 {
            Ok(mu)
        } else {
            Err(Error::Invalid(format!(
                "no learning rate descends at c = {c}: mu is {mu:.3} at the start"
            )))
        };
    };
    let start = Overlaps::at_start(problem.modes()).filter(|start| start.v > 0.0);
    let Some(start) = start else {
        return Err(Error::Invalid(
            "the teacher is zero and there is nothing to learn, so no rate is better than another"
                .into(),
        ));
    };
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
    Ok(b)
}

/// $\arg\min_{c, \eta}$ of the risk or loss at time $T$ of the ODE over constant thresholds, $c = \infty$
/// included, each with its [best rate](tune_rate).
///
/// ```
/// use toclip::Problem;
/// use toclip::model::Logistic;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// use toclip::tuning::{RateShape, tune_clip};
/// let (teacher, start) = (Start::Uniform { norm: 3.0 }, Start::Uniform { norm: 0.0 });
/// let modes = Modes::with_teacher(&Spectrum::isotropic(500)?, &teacher, &start)?;
/// // Clean labels and a rate that falls to zero: do not clip.
/// let policy = OpenLoop::constant(1.0, f64::INFINITY)?;
/// let problem = Problem::of_model(modes, Logistic::new(0.0)?, policy)?;
/// assert_eq!(tune_clip(&problem, RateShape::Cosine, 5.0)?.c, f64::INFINITY);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// As [`tune_rate`].
pub fn tune_clip(problem: &Problem, shape: RateShape, time: f64) -> Result<Tuned> {
    let open = tune_rate(problem, f64::INFINITY, shape, time);
    let size = residual_size(problem);
    let rate = |c: f64, search: Search| search_rate(problem, c, (shape, time), search);
    let grid = log_grid(THRESHOLDS.0 * size, THRESHOLDS.1 * size, PER_DECADE);
    let coarse = map_long(&grid, |&c| rate(c, COARSE)).into_iter().collect::<Result<Vec<_>>>()?;
    let lower = |i: &usize, j: &usize| coarse[*i].end.total_cmp(&coarse[*j].end);
    let best = (0..grid.len()).min_by(lower).unwrap_or(0);
    let near = Search { first: Some(coarse[best].eta), factor: 1.4, ..fine(problem) };
    let ends = Failing::new(|c| rate(c, near).map(|tuned| tuned.end));
    let at_best = ends.gain(grid[best]);
    let (c, gain) = if best == 0 || best + 1 == grid.len() {
        (grid[best], at_best)
    } else {
        let f = |c: f64| ends.gain(c);
        brent(grid[best - 1], grid[best], grid[best + 1], at_best, THRESHOLD_PRECISION, &f)
    };
    ends.finish()?;
    match open {
        Ok(open) if !(-gain < open.end - TIE * open.end.abs()) => Ok(open),
        _ => rate(c, near),
    }
}

/// The root mean square of the residuals of the start, which are of the size of those that follow.
fn residual_size(problem: &Problem) -> f64 {
    let square = match problem.model() {
        None => problem.step().residual_second_moment(problem.risk()),
        Some(model) => Overlaps::at_start(problem.modes())
            .map_or(1.0, |start| model.coefficients(&start, f64::INFINITY).m2),
    };
    let size = square.sqrt();
    if size.is_finite() && size > 0.0 { size } else { 1.0 }
}
