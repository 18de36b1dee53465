//! Learning rates that stay below the stability limit.

use super::{Control, Policy, Schedule, Session, Shape};
use crate::criteria::StabilityLimits;
use crate::error::{Error, Result};
use crate::factors::kernel::Moments;
use crate::factors::step::Step;
use crate::factors::table::FactorTable;
use crate::numbers::short;
use crate::problem::Problem;
use crate::spectrum::Modes;
use std::sync::Arc;

/// $\eta \le \text{margin}\cdot\eta^\ast_R$: another policy, slowed where the risk would grow.
///
/// The limit needs $\Vert \nabla P\Vert ^2 = 2\sum\lambda_i^2 v_i$ as well as the risk
/// ([`StabilityLimits`]), while a policy only gets the risk. There are two ways around this, and
/// both give policies for every method of the dynamics:
///
/// * [`certified`](Self::certified) bounds the limit from below by a function of $R$. It holds on
///   every path, and costs speed where eigenvalues differ much.
/// * [`predicted`](Self::predicted) computes the limit along the predicted path, as a table in
///   time. It costs no speed, and is as good as the prediction: in C-SGD up to fluctuations of
///   order $d^{-1/2}$, which the margin has to absorb.
///
/// The threshold is that of the wrapped policy. For isotropic data both are the limit itself.
///
/// ```
/// use toclip::Problem;
/// use toclip::dynamics::{Ode, Stop, linear_times};
/// use toclip::noise::Gaussian;
/// use toclip::policy::{Margin, OpenLoop};
/// use toclip::spectrum::{Modes, Spectrum, Start};
///
/// let modes = Modes::new(&Spectrum::power_law(200, 0.5)?, &Start::Uniform { norm: 1.0 })?;
/// let fast = OpenLoop::constant(20.0, f64::INFINITY)?;
/// let problem = Problem::new(modes, Gaussian::new(0.5)?, fast)?;
/// let times = linear_times(10.0, 101)?;
/// let diverges = Ode::new(&problem)?.solve(&times)?;
/// assert!(matches!(diverges.stop, Stop::Diverged { .. }));
/// let tame = problem.with_policy(Margin::predicted(&problem, 0.9, 10.0)?)?;
/// let path = Ode::new(&tame)?.solve(&times)?;
/// assert!(path.risk.windows(2).all(|w| w[1] <= w[0]));
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Margin {
    inner: Arc<dyn Policy>,
    cap: Cap,
}

#[derive(Debug, Clone)]
enum Cap {
    Certified { step: Step<'static>, factors: Option<FactorTable>, margin: f64, known: Known },
    Predicted(Schedule),
}

/// The constants of the spectrum.
#[derive(Debug, Clone, Copy)]
struct Known {
    dim: f64,
    trace_sq: f64,
    /// The smallest eigenvalue that is not zero.
    least: f64,
    /// $D(0)$ in the directions that move.
    distance: f64,
}

impl Margin {
    /// $\eta \le \text{margin}\cdot\min(\eta^\ast_D, \underline\eta_R)$, from the risk alone.
    ///
    /// By Cauchy and Schwarz $R^2 = (\sum\lambda_i v_i)^2 \le \tfrac{D}{2}\sum\lambda_i^2 v_i$, and
    /// below $\eta^\ast_D$ the distance falls, so $D \le D(0)$; also $\sum\lambda_i^2 v_i \ge
    /// \lambda_{\min} R$. Hence
    /// $$ \eta^\ast_R \ge \underline\eta_R = \frac{4d\mu}{\operatorname{Tr}(K^2)\thinspace m^{(2)}}
    /// \max\Bigl(\lambda_{\min} R, \frac{2R^2}{D(0)}\Bigr). $$
    /// In the ODE risk and distance then never grow, whatever the wrapped policy asks for.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $0 < \text{margin} \le 1$; [`Error::Invalid`] if $\mu < 0$ at the
    /// start, where no learning rate is stable.
    ///
    /// ```
    /// use toclip::Problem;
    /// use toclip::noise::NoNoise;
    /// use toclip::policy::{Margin, OpenLoop, Policy};
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// // Isotropic data without noise: the limit is 2.
    /// let modes = Modes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 1.0 })?;
    /// let problem = Problem::new(modes, NoNoise, OpenLoop::constant(5.0, f64::INFINITY)?)?;
    /// let policy = Margin::certified(&problem, 0.9)?;
    /// assert!((policy.at(0.0, 0.5).eta - 1.8).abs() < 1e-12);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn certified(problem: &Problem, margin: f64) -> Result<Self> {
        check(margin)?;
        let (modes, step, inner) =
            (problem.modes(), problem.step().clone(), problem.shared_policy());
        let moving = || modes.modes().iter().filter(|m| m.lambda > 0.0);
        let known = Known {
            dim: modes.dim(),
            trace_sq: modes.trace_sq(),
            least: moving().map(|m| m.lambda).fold(f64::INFINITY, f64::min),
            distance: moving().map(|m| 2.0 * m.energy).sum(),
        };
        let risk = modes.modes().iter().map(|m| m.lambda * m.energy).sum();
        check_descent(0.0, risk, step.moments(risk, inner.at(0.0, risk).c).mu)?;
        let factors = FactorTable::new(&step);
        Ok(Margin { inner, cap: Cap::Certified { step, factors, margin, known } })
    }

    /// $\eta(t) \le \text{margin}\cdot\eta^\ast_R(t)$ with the limit on the predicted path up to
    /// `time`, and as it was at the end from there on.
    ///
    /// Around a policy with an infinite rate and with a margin of one half this is the greedy
    /// learning rate for any spectrum: $\eta^\ast_R/2$ is the rate of fastest descent of $R$.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $0 < \text{margin} \le 1$ and the time is positive and finite;
    /// [`Error::Invalid`] if the path changes too fast for a table up to that time, or where $\mu < 0$
    /// and no learning rate is stable.
    ///
    /// ```
    /// use toclip::Problem;
    /// use toclip::noise::Gaussian;
    /// use toclip::policy::{Margin, OpenLoop, Policy, Schedule};
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// // Isotropic data, R = 1/2, σ = 1: the limit is 2R/(R + σ²/2) = 1, and falls with the risk.
    /// let modes = Modes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 1.0 })?;
    /// let fastest = OpenLoop::unclipped(Schedule::never());
    /// let problem = Problem::new(modes, Gaussian::new(1.0)?, fastest)?;
    /// let greedy = Margin::predicted(&problem, 0.5, 10.0)?;
    /// assert!((greedy.at(0.0, 0.5).eta - 0.5).abs() < 1e-12);
    /// assert!(greedy.at(10.0, 0.1).eta < 0.2);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn predicted(problem: &Problem, margin: f64, time: f64) -> Result<Self> {
        check(margin)?;
        if !(time > 0.0 && time.is_finite()) {
            return Err(Error::parameter("time", time, "must be positive and finite"));
        }
        let followed = {
            let mut path = Path::new(problem, margin);
            path.follow(time)?;
            Shape::Table { times: path.times, values: path.values }
        };
        let cap = Cap::Predicted(Schedule::new(followed)?);
        Ok(Margin { inner: problem.shared_policy(), cap })
    }
}

/// Refuses $\mu < 0$, where the limit is zero and the path would stand still.
fn check_descent(t: f64, risk: f64, mu: f64) -> Result<()> {
    if mu < 0.0 {
        return Err(Error::Invalid(format!(
            "no learning rate is stable at t = {}: mu = {} is negative at R = {}, so steps go away \
             from the solution on average; choose another threshold or rule",
            short(t),
            short(mu),
            short(risk)
        )));
    }
    Ok(())
}

fn check(margin: f64) -> Result<()> {
    if margin > 0.0 && margin <= 1.0 {
        Ok(())
    } else {
        Err(Error::parameter("margin", margin, "the share of the limit must be in (0, 1]"))
    }
}

impl Policy for Margin {
    fn at(&self, t: f64, r: f64) -> Control {
        let control = self.inner.at(t, r);
        let cap = match &self.cap {
            Cap::Predicted(table) => table.at(t),
            Cap::Certified { step, factors, margin, known } => {
                let x = match factors {
                    Some(table) => table.under_policy(step, &*self.inner, r, control.c),
                    None => step.moments(r, control.c),
                };
                margin * known.limit(r, x)
            }
        };
        Control { eta: control.eta.min(cap), ..control }
    }

    fn uses_risk(&self) -> bool {
        self.inner.uses_risk() || matches!(self.cap, Cap::Certified { .. })
    }

    fn threshold_at(&self, r: f64) -> Option<f64> {
        self.inner.threshold_at(r)
    }

    fn threshold_span(&self, r: f64) -> (f64, f64) {
        self.inner.threshold_span(r)
    }

    fn breakpoints(&self) -> Vec<f64> {
        let mut times = self.inner.breakpoints();
        if let Cap::Predicted(table) = &self.cap {
            times.extend(table.breakpoints());
        }
        times
    }

    /// A table in time also caps a policy that watches the run; the certified limit is a function
    /// of the risk, so that policy needs the risk.
    fn session(&self) -> Option<Box<dyn Session>> {
        match &self.cap {
            Cap::Certified { .. } => None,
            Cap::Predicted(table) => {
                let inner = self.inner.session()?;
                Some(Box::new(Capped { inner, table: table.clone() }))
            }
        }
    }
}

/// A session below a table of limits.
struct Capped {
    inner: Box<dyn Session>,
    table: Schedule,
}

impl Session for Capped {
    fn control(&mut self, t: f64) -> Control {
        let control = self.inner.control(t);
        Control { eta: control.eta.min(self.table.at(t)), ..control }
    }

    fn observe(&mut self, residual: f64) {
        self.inner.observe(residual);
    }
}

impl Known {
    fn limit(&self, r: f64, x: Moments) -> f64 {
        let gradient_sq = 2.0 * r * self.least.max(2.0 * r / self.distance);
        let limits = StabilityLimits::at(self.dim, self.trace_sq, r, gradient_sq, x);
        limits.risk.min(limits.distance)
    }
}

/// Steps are at most this share of $1/\eta\mu$ and of the whole time: the table is linear between
/// them, and off by a square of it.
const SHARE: f64 = 0.02;
const FEWEST: f64 = 200.0;
const MOST: usize = 50_000;
/// Stands for an absent limit in a table of finite numbers.
const UNLIMITED: f64 = 1e300;

/// The capped path, mode by mode, and the table that grows with it.
///
/// Between two times of the table $\eta\mu$ and $\eta^2 m^{(2)}$ are held at their values in the
/// middle and every mode is solved exactly: of second order, and stable for any step.
struct Path<'a> {
    modes: &'a Modes,
    inner: &'a dyn Policy,
    step: &'a Step<'static>,
    factors: Option<FactorTable>,
    margin: f64,
    v: Vec<f64>,
    times: Vec<f64>,
    values: Vec<f64>,
}

/// $\eta\mu$, $\eta^2 m^{(2)}/2d$ and the cap at one state; $R$ and $\mu$ there.
struct Push {
    risk: f64,
    mu: f64,
    drift: f64,
    source: f64,
    cap: f64,
}

impl<'a> Path<'a> {
    fn new(problem: &'a Problem, margin: f64) -> Self {
        let (modes, inner, step) = (problem.modes(), problem.policy(), problem.step());
        let v = modes.modes().iter().map(|m| m.energy).collect();
        let factors = FactorTable::new(step);
        Path { modes, inner, step, factors, margin, v, times: Vec::new(), values: Vec::new() }
    }

    fn push(&self, t: f64, v: &[f64]) -> Push {
        let (mut risk, mut gradient_sq) = (0.0, 0.0);
        for (mode, v) in self.modes.modes().iter().zip(v) {
            risk += mode.lambda * v;
            gradient_sq += 2.0 * mode.lambda * mode.lambda * v;
        }
        let control = self.inner.at(t, risk);
        let x = match &self.factors {
            Some(table) => table.under_policy(self.step, self.inner, risk, control.c),
            None => self.step.moments(risk, control.c),
        };
        let (dim, trace_sq) = (self.modes.dim(), self.modes.trace_sq());
        let limits = StabilityLimits::at(dim, trace_sq, risk, gradient_sq, x);
        let cap = (self.margin * limits.risk).min(UNLIMITED);
        let eta = control.eta.min(cap);
        // No step, no noise: also where m2 is infinite.
        let source = if eta == 0.0 { 0.0 } else { eta * eta * x.m2 / (2.0 * dim) };
        Push { risk, mu: x.mu, drift: eta * x.mu, source, cap }
    }

    /// $v$ after the time $h$ under a constant push.
    fn moved(&self, push: &Push, h: f64) -> Vec<f64> {
        let each = self.modes.modes().iter().zip(&self.v);
        each.map(|(mode, v)| {
            let decay = 2.0 * push.drift * mode.lambda * h;
            let gain = push.source * mode.lambda * mode.count * h;
            // (1 − e^(−x))/x, which is one at zero.
            let mean = if decay > 0.0 { -(-decay).exp_m1() / decay } else { 1.0 };
            v * (-decay).exp() + gain * mean
        })
        .collect()
    }

    fn follow(&mut self, time: f64) -> Result<()> {
        let mut ends: Vec<f64> =
            self.inner.breakpoints().into_iter().filter(|t| *t > 0.0 && *t < time).collect();
        ends.push(time);
        ends.sort_by(f64::total_cmp);
        ends.dedup();
        let mut t = 0.0;
        for end in ends {
            // The wrapped policy may jump at the end; the table up to there has its values before the
            // jump.
            let last = end.next_down();
            let mut push = self.push(t, &self.v);
            self.save(t, push.cap);
            while t < last {
                check_descent(t, push.risk, push.mu)?;
                let h = (SHARE / push.drift).min(time / FEWEST).min(last - t);
                let middle = self.push(t + 0.5 * h, &self.moved(&push, 0.5 * h));
                self.v = self.moved(&middle, h);
                let next = if h == last - t { last } else { t + h };
                if next <= t || self.times.len() >= MOST {
                    return Err(Error::Invalid(format!(
                        "a table of {} learning rates below the stability limit only reached t = {t} \
                         of {time}: ask for a shorter time or a slower policy",
                        self.times.len()
                    )));
                }
                t = next;
                push = self.push(t, &self.v);
                self.save(t, push.cap);
            }
            t = end;
        }
        Ok(())
    }

    fn save(&mut self, t: f64, cap: f64) {
        self.times.push(t);
        self.values.push(cap);
    }
}
