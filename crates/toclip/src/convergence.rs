//! The rate of Theorem 1: how fast C-SGD approaches its ODE as the dimension grows.

use crate::dynamics::{Collapsed, Ode, Sgd, Simulator, Stop, Trajectory, linear_times};
use crate::ensemble::{Progress, on_threads};
use crate::error::{Error, Result};
use crate::numerics::special::upper_tail;
use crate::numerics::sum::compensated;
use crate::optimizer::Optimizer;
use crate::parallel::try_map_long;
use crate::problem::Problem;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// $\sup_{t\le T}|R_{\text{SGD}}(t) - R_{\text{ODE}}(t)|$ against $d$: an experiment on Theorem 1.
///
/// For each problem of a family, `runs` runs of [`Collapsed`] C-SGD are compared with the [`Ode`]
/// at **every step** $k \le Td$, and the mean of the largest gap is taken. By the theorem it falls
/// as $d^{-1/2}$, up to an arbitrarily small power of $d$.
///
/// The ODE is known at every step where there are at most $2^{20}$ of them, and beyond that at
/// $2^{20}$ even times with straight lines between, which is off by
/// $T^2 |\ddot R| / 2^{43}$ where the learning rate is smooth.
///
/// | field | meaning |
/// |---|---|
/// | `time` | $T > 0$ |
/// | `runs` | runs for each dimension, at least 2 |
/// | `seed` | seed; in the $j$-th dimension (from 0) the runs of [`Collapsed`] with it from index $j\cdot$`runs` on, so that dimensions are independent |
/// | `confidence` | of the interval of the slope |
/// | `threads` | `None` for all cores; changes no bit of the result |
///
/// Optimizers other than SGD, the noise of privacy, rules that are not radial and generalised linear
/// models have no collapsed form. Their runs are those of [`Sgd`], at a cost in proportion to $d$, with at most
/// $2^{20}$ steps.
///
/// ```
/// use toclip::Problem;
/// use toclip::convergence::Convergence;
/// use toclip::noise::Gaussian;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
///
/// let family = |d| {
///     let modes = Modes::new(&Spectrum::isotropic(d)?, &Start::Uniform { norm: 1.0 })?;
///     Problem::new(modes, Gaussian::new(0.5)?, OpenLoop::constant(0.7, 0.9)?)
/// };
/// let experiment = Convergence { time: 2.0, runs: 50, seed: 1, confidence: 0.95, threads: None };
/// let rate = experiment.measure(&[100, 1000], &family, None)?;
/// assert!(rate.slope < -0.3 && rate.slope > -0.7);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Convergence {
    /// $T$.
    pub time: f64,
    /// Runs for each dimension.
    pub runs: u64,
    /// The seed.
    pub seed: u64,
    /// The confidence of the interval of the slope.
    pub confidence: f64,
    /// The number of threads; `None` for all cores.
    pub threads: Option<usize>,
}

/// $E\sup_t|R_{\text{SGD}} - R_{\text{ODE}}|$ in one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DimensionGap {
    /// $d$.
    pub dim: f64,
    /// The mean over the runs.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The runs it is the mean of.
    pub runs: u64,
    /// Runs left out because they diverged.
    pub diverged: u64,
}

/// $\log E\sup_t|R_{\text{SGD}} - R_{\text{ODE}}| = a + b\log d$: the measured rate $b$.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConvergenceRate {
    /// What was measured.
    pub gaps: Vec<DimensionGap>,
    /// $b$, by least squares weighted with the standard errors.
    pub slope: f64,
    /// $a$.
    pub intercept: f64,
    /// The standard error of $b$ from those of the means.
    pub standard_error: f64,
    /// The lower end of the interval of $b$.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The confidence of that interval.
    pub confidence: f64,
    /// $\chi^2$ of the fit per degree of freedom: much above one, the points do not lie on a
    /// straight line within their errors; `None` with two points.
    pub chi_square: Option<f64>,
}

/// A rate that cannot be measured.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvergenceError {
    /// Fewer than two dimensions.
    #[error("a slope needs at least two different dimensions")]
    Dimensions,
    /// A learning rate above the stability limit.
    #[error(
        "in dimension {dim} the ODE itself diverges at t = {t:.4}: there is no rate; use a smaller \
         learning rate or threshold"
    )]
    OdeDiverges {
        /// $d$.
        dim: f64,
        /// When it does.
        t: f64,
    },
    /// Too few runs that end.
    #[error(
        "in dimension {dim} {diverged} of {runs} runs diverged and the others do not vary: no mean can \
         be taken"
    )]
    NoMean {
        /// $d$.
        dim: f64,
        /// The runs that diverged.
        diverged: u64,
        /// All runs.
        runs: u64,
    },
    /// More steps than are simulated coordinate by coordinate.
    #[error(
        "{steps} steps in dimension {dim} are too many: momentum, privacy, models and rules that are \
         not radial are simulated coordinate by coordinate, up to {most} steps; give smaller dimensions \
         or a shorter time"
    )]
    TooManySteps {
        /// Their number.
        steps: u64,
        /// $d$.
        dim: f64,
        /// The most that are simulated.
        most: u64,
    },
    /// Gaps through which there is no line.
    #[error("the gaps have no slope: are the dimensions equal?")]
    NoSlope,
    /// The measurement was stopped.
    #[error("the measurement was stopped")]
    Stopped,
}

/// The ODE is tabulated at so many times at most.
const TABLE: u64 = 1 << 20;

impl Convergence {
    /// The gaps in the problems `family(d)` and the slope through them.
    ///
    /// `progress` is called with the number of finished runs, of `dims.len()` times `runs`.
    ///
    /// # Errors
    /// [`Error::Parameter`] or [`Error::Convergence`] for fewer than two dimensions or runs, an
    /// impossible time or confidence, a problem that cannot be built, and one whose ODE diverges.
    pub fn measure(
        &self,
        dims: &[u64],
        family: &dyn Fn(u64) -> Result<Problem>,
        progress: Option<Progress<'_>>,
    ) -> Result<ConvergenceRate> {
        let never = AtomicBool::new(false);
        let rate = self.measure_until(dims, family, progress, &never)?;
        rate.ok_or(Error::Convergence(ConvergenceError::Stopped))
    }

    /// [`measure`](Self::measure) that may be stopped: `None` once `cancel` is set. Runs under way
    /// are finished.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn measure_until(
        &self,
        dims: &[u64],
        family: &dyn Fn(u64) -> Result<Problem>,
        progress: Option<Progress<'_>>,
        cancel: &AtomicBool,
    ) -> Result<Option<ConvergenceRate>> {
        self.check(dims)?;
        let done = AtomicU64::new(0);
        let tick = || {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = progress {
                progress(done);
            }
        };
        let mut gaps = Vec::new();
        for (first, &d) in (0..).step_by(self.runs as usize).zip(dims) {
            let go_on = || {
                tick();
                !cancel.load(Ordering::Relaxed)
            };
            match self.gap(&family(d)?, first, &go_on)? {
                Some(gap) => gaps.push(gap),
                None => return Ok(None),
            }
        }
        ConvergenceRate::through(gaps, self.confidence).map(Some)
    }

    /// The gap in one problem, of the runs from index `first` on; `None` once `go_on`, which is
    /// called after each run, returns false.
    fn gap(
        &self,
        problem: &Problem,
        first: u64,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<DimensionGap>> {
        let dim = problem.dim();
        let steps = (self.time * dim).floor().max(1.0) as u64;
        let runs = Runs::new(problem, steps)?;
        let cells = steps.min(TABLE);
        let end = steps as f64 / dim;
        let times = linear_times(end, cells as usize + 1)?;
        let theory = Ode::new(problem)?.solve(&times)?;
        if let Some(t) = theory.stop.diverged_at() {
            return Err(Error::Convergence(ConvergenceError::OdeDiverges { dim, t }));
        }
        let sup = |&index: &u64| {
            let sup = runs.largest_gap(self.seed, index, steps, &theory);
            go_on().then_some(sup)
        };
        let indices: Vec<u64> = (first..first + self.runs).collect();
        let sups: Option<Vec<Option<f64>>> =
            on_threads(self.threads, || try_map_long(&indices, sup))?;
        let Some(sups) = sups else { return Ok(None) };
        let finished: Vec<f64> = sups.into_iter().flatten().collect();
        let n = finished.len() as f64;
        let mean = compensated(finished.iter().copied()) / n;
        let squares = compensated(finished.iter().map(|s| (s - mean).powi(2)));
        let runs = finished.len() as u64;
        let gap = DimensionGap {
            dim,
            mean,
            standard_error: (squares / (n - 1.0) / n).sqrt(),
            runs,
            diverged: self.runs - runs,
        };
        if runs < 2 || gap.standard_error == 0.0 {
            let (diverged, runs) = (gap.diverged, self.runs);
            return Err(Error::Convergence(ConvergenceError::NoMean { dim, diverged, runs }));
        }
        Ok(Some(gap))
    }

    fn check(&self, dims: &[u64]) -> Result<()> {
        if dims.len() < 2 || dims.iter().all(|d| *d == dims[0]) {
            return Err(Error::Convergence(ConvergenceError::Dimensions));
        }
        if self.runs > 1_000_000_000 {
            let expected = "give at most 1e9 runs";
            return Err(Error::parameter("runs", self.runs as f64, expected));
        }
        if self.runs < 2 {
            let expected = "an error bar needs at least two runs";
            return Err(Error::parameter("runs", self.runs as f64, expected));
        }
        if !(self.time > 0.0 && self.time.is_finite()) {
            return Err(Error::parameter("time", self.time, "must be positive and finite"));
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            let expected = "give a number in (0, 1)";
            return Err(Error::parameter("confidence", self.confidence, expected));
        }
        Ok(())
    }
}

/// Runs of SGD that are compared with the ODE at every step.
enum Runs {
    Collapsed(Collapsed),
    Full(Sgd),
}

impl Runs {
    fn new(problem: &Problem, steps: u64) -> Result<Self> {
        let step = problem.step();
        let collapses = *problem.optimizer() == Optimizer::Sgd
            && problem.model().is_none()
            && step.privacy().is_none()
            && step.rule().is_radial();
        if collapses {
            return Collapsed::new(problem).map(Runs::Collapsed);
        }
        if steps > TABLE {
            let (dim, most) = (problem.dim(), TABLE);
            return Err(Error::Convergence(ConvergenceError::TooManySteps { steps, dim, most }));
        }
        Sgd::new(problem).map(Runs::Full)
    }

    /// $\sup_k |R_k - R(k/d)|$ of a run; `None` if it diverges.
    fn largest_gap(&self, seed: u64, index: u64, steps: u64, theory: &Trajectory) -> Option<f64> {
        match self {
            Runs::Collapsed(sgd) => {
                let cells_per_step = (theory.risk.len() - 1) as f64 / steps as f64;
                let mut sup = 0.0_f64;
                let (stop, _) = sgd.observe(seed, index, steps, |k, risk, _| {
                    let place = k as f64 * cells_per_step;
                    let cell = (place as usize).min(theory.risk.len() - 2);
                    let (left, right) = (theory.risk[cell], theory.risk[cell + 1]);
                    let expected = left + (place - cell as f64) * (right - left);
                    sup = sup.max((risk - expected).abs());
                });
                (stop == Stop::Finished).then_some(sup)
            }
            Runs::Full(sgd) => {
                let run = sgd.run(seed, index, &theory.times);
                let gaps = run.risk.iter().zip(&theory.risk).map(|(a, b)| (a - b).abs());
                (run.stop == Stop::Finished).then(|| gaps.fold(0.0, f64::max))
            }
        }
    }
}

impl ConvergenceRate {
    /// $b$ through the gaps, weighted by the inverse variance of $\log$ mean.
    ///
    /// Where the points scatter more than their errors ($\chi^2$ above one a degree of freedom) the
    /// interval is widened by that factor's root (Birge, 1932); it is never narrowed.
    fn through(gaps: Vec<DimensionGap>, confidence: f64) -> Result<Self> {
        let weight = |g: &DimensionGap| (g.mean / g.standard_error).powi(2);
        let total: f64 = gaps.iter().map(weight).sum();
        let mean = |f: &dyn Fn(&DimensionGap) -> f64| {
            gaps.iter().map(|g| weight(g) * f(g)).sum::<f64>() / total
        };
        let x0 = mean(&|g| g.dim.ln());
        let y0 = mean(&|g| g.mean.ln());
        let spread = total * mean(&|g| (g.dim.ln() - x0).powi(2));
        let slope = total * mean(&|g| (g.dim.ln() - x0) * (g.mean.ln() - y0)) / spread;
        if !slope.is_finite() {
            return Err(Error::Convergence(ConvergenceError::NoSlope));
        }
        let off = |g: &DimensionGap| g.mean.ln() - y0 - slope * (g.dim.ln() - x0);
        let chi_square =
            (gaps.len() > 2).then(|| total * mean(&|g| off(g).powi(2)) / (gaps.len() - 2) as f64);
        let standard_error = spread.sqrt().recip();
        let widened = standard_error * chi_square.unwrap_or(1.0).max(1.0).sqrt();
        let half = two_sided(confidence) * widened;
        Ok(ConvergenceRate {
            intercept: y0 - slope * x0,
            slope,
            standard_error,
            low: slope - half,
            high: slope + half,
            confidence,
            chi_square,
            gaps,
        })
    }
}

/// The $q$ with $P(|z| \le q) = p$ for a standard normal $z$, by bisection.
fn two_sided(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..60 {
        let q = 0.5 * (low + high);
        if 2.0 * upper_tail(q) > 1.0 - p { low = q } else { high = q }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles() {
        // Abramowitz and Stegun, table 26.6.
        assert!((two_sided(0.95) - 1.959_963_984_540_054).abs() < 1e-12);
        assert!((two_sided(0.99) - 2.575_829_303_548_901).abs() < 1e-12);
    }

    #[test]
    fn a_power_law_is_found_and_a_bend_widens_the_interval() {
        let gap = |dim: f64, mean: f64| DimensionGap {
            dim,
            mean,
            standard_error: 0.01 * mean,
            runs: 100,
            diverged: 0,
        };
        let dims = [1e2, 1e3, 1e4, 1e5];
        let line =
            ConvergenceRate::through(dims.map(|d| gap(d, 0.4 * d.powf(-0.5))).to_vec(), 0.95)
                .unwrap();
        assert!((line.slope + 0.5).abs() < 1e-12 && line.chi_square.unwrap() < 1e-12);
        assert!((line.intercept.exp() - 0.4).abs() < 1e-12);
        // Equal relative errors e at log10 d = 2…5: variance e²/(Σ(x − x̄)²), Σ = 5 ln²10.
        let exact = 0.01 / (5_f64.sqrt() * std::f64::consts::LN_10);
        assert!((line.standard_error / exact - 1.0).abs() < 1e-12);
        assert!((line.high - line.slope - 1.959_964 * exact).abs() < 1e-8);
        let bent = dims.map(|d| gap(d, 0.4 * d.powf(-0.5) * (1.0 + 3.0 / d.sqrt()))).to_vec();
        let bent = ConvergenceRate::through(bent, 0.95).unwrap();
        assert!(bent.high - bent.low > 2.0 * (line.high - line.low));
    }

    #[test]
    fn a_measurement_stops_when_told() {
        use crate::noise::Gaussian;
        use crate::policy::OpenLoop;
        use crate::spectrum::{Modes, Spectrum, Start};
        let experiment =
            Convergence { time: 1.0, runs: 50, seed: 1, confidence: 0.9, threads: Some(1) };
        let family = |d| {
            let modes = Modes::new(&Spectrum::isotropic(d)?, &Start::Uniform { norm: 1.0 })?;
            Problem::new(modes, Gaussian::new(0.5)?, OpenLoop::constant(0.5, f64::INFINITY)?)
        };
        let (cancel, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let tell = |now| {
            done.store(now, Ordering::Relaxed);
            cancel.store(now >= 3, Ordering::Relaxed);
        };
        let stopped = experiment.measure_until(&[10, 100], &family, Some(&tell), &cancel).unwrap();
        // One run of each piece of work that was already handed out may follow.
        assert!(stopped.is_none() && done.into_inner() < 50);
    }

    #[test]
    fn impossible_experiments_are_refused_with_a_message() {
        let good = Convergence { time: 1.0, runs: 2, seed: 1, confidence: 0.9, threads: None };
        let message = |c: Convergence, dims: &[u64]| c.check(dims).unwrap_err().to_string();
        assert!(good.check(&[1, 2]).is_ok());
        assert!(message(good.clone(), &[5, 5]).contains("two different"));
        assert!(message(Convergence { runs: 1, ..good.clone() }, &[1, 2]).contains("runs = 1"));
        assert!(message(Convergence { time: 0.0, ..good.clone() }, &[1, 2]).contains("time = 0"));
        assert!(message(Convergence { confidence: 1.0, ..good }, &[1, 2]).contains("(0, 1)"));
    }
}
