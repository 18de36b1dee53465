//! The two conventions of momentum, and the length of its memory.

use crate::error::{Error, Result};
use crate::factors::step::Step;
use crate::problem::Combination;
use crate::rule::Rule;
use serde::{Deserialize, Serialize};

/// The memory of an optimizer with momentum, in one of two conventions.
///
/// With $\hat g_k$ the gradient of step $k$ as the [rule](Rule) reshapes it, and $\eta$ from the
/// policy as for plain SGD (the learning rate of the optimizer is $\eta/d$):
///
/// | | buffer | weights |
/// |---|---|---|
/// | [`heavy_ball`](Self::heavy_ball), PyTorch's | $B_{k+1} = \beta B_k + (1-\tau)\thinspace\hat g_k$, first $B_1 = \hat g_0$ | $\theta_{k+1} = \theta_k - \frac\eta d B_{k+1}$ |
/// | [`average`](Self::average) | $M_{k+1} = \beta M_k + (1-\beta)\thinspace\hat g_k$, first $M_1 = (1-\beta)\thinspace\hat g_0$ | $\theta_{k+1} = \theta_k - \frac\eta d M_{k+1}$ |
///
/// The second moves as far in the end as plain SGD at the same $\eta$, the first
/// [$(1-\tau)/(1-\beta)$ times](Self::rate_factor) as far: `torch.optim.SGD` with `momentum=0.9`
/// and `lr` is plain SGD at ten times `lr`, up to a delay of $\beta/(1-\beta)$ steps. The memory is
/// given as [`Memory`]: a fixed $\beta$, or a fixed $\delta = (1-\beta)d$, for which the delay
/// is a fixed time $1/\delta$ in any dimension and momentum is more than another learning rate.
///
/// The gradient is reshaped before it enters the buffer, which is what `clip_grad_norm_` does. Where
/// the rule is to skip, [`OnSkip`] says what happens to the buffer.
///
/// ```
/// use toclip::dynamics::Ode;
/// use toclip::noise::Gaussian;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// use toclip::{Memory, Momentum, Problem};
///
/// let modes = Modes::new(&Spectrum::power_law(2000, 0.2)?, &Start::Uniform { norm: 1.0 })?;
/// let fast = Problem::new(modes, Gaussian::new(0.5)?, OpenLoop::constant(0.5, 0.9)?)?;
/// let torch = Momentum::heavy_ball(Memory::Beta(0.9))?;
/// let slow = fast.with_policy(OpenLoop::constant(0.05, 0.9)?)?.with_optimizer(torch)?;
/// let with = Ode::new(&slow)?.solve(&[2.0])?;
/// let plain = Ode::new(&fast)?.solve(&[2.0])?;
/// assert!((with.risk[0] / plain.risk[0] - 1.0).abs() < 0.01);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Momentum {
    form: Form,
    memory: Memory,
    on_skip: OnSkip,
}

/// How long a buffer remembers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// $\beta$: a fixed number of steps, about $1/(1-\beta)$.
    Beta(f64),
    /// $\delta = (1-\beta)\thinspace d$: a fixed time, $1/\delta$.
    Delta(f64),
}

/// How a step whose gradient is [skipped](Rule::Skip) treats the buffer.
///
/// Both tend to the same as $\delta \to \infty$. Where each sample of a batch is skipped on its own,
/// the step is always made, with the samples that are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnSkip {
    /// Nothing: buffer and weights stay as they are, which is what training code does that does not
    /// call the optimizer.
    #[default]
    NotMade,
    /// The gradient is taken as zero: the buffer decays and the weights move along it.
    ZeroGradient,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    Average,
    HeavyBall { dampening: f64 },
}

impl Momentum {
    /// The exponential average of gradients, $M_{k+1} = \beta M_k + (1-\beta)\thinspace\hat g_k$.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $0 \le \beta < 1$, or $10^{-5} \le \delta < \infty$.
    pub fn average(memory: Memory) -> Result<Self> {
        Ok(Momentum { form: Form::Average, memory: memory.checked()?, on_skip: OnSkip::default() })
    }

    /// The heavy ball as PyTorch has it, $B_{k+1} = \beta B_k + \hat g_k$.
    ///
    /// # Errors
    /// As [`average`](Self::average).
    pub fn heavy_ball(memory: Memory) -> Result<Self> {
        let form = Form::HeavyBall { dampening: 0.0 };
        Ok(Momentum { form, memory: memory.checked()?, on_skip: OnSkip::default() })
    }

    /// The same with PyTorch's `dampening` $\tau$: $B_{k+1} = \beta B_k + (1-\tau)\thinspace\hat g_k$
    /// after a first $B_1 = \hat g_0$, which is not dampened.
    ///
    /// ```
    /// use toclip::{Memory, Momentum};
    /// let torch = Momentum::heavy_ball(Memory::Beta(0.9))?.with_dampening(0.5)?;
    /// assert!((torch.rate_factor(1000.0) - 5.0).abs() < 1e-12);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $0 \le \tau < 1$, and [`Error::Combination`] for the average, which
    /// has none.
    pub fn with_dampening(self, dampening: f64) -> Result<Self> {
        if self.form == Form::Average {
            return Err(Error::Combination(Combination::AverageDampening));
        }
        if !(0.0..1.0).contains(&dampening) {
            let expected = "the dampening must be at least 0 and below 1";
            return Err(Error::parameter("dampening", dampening, expected));
        }
        Ok(Momentum { form: Form::HeavyBall { dampening }, ..self })
    }

    /// The same with another way to skip.
    pub fn on_skip(self, on_skip: OnSkip) -> Self {
        Momentum { on_skip, ..self }
    }

    /// $\beta = 1 - \delta/d$ in dimension $d$; negative where $\delta$ is above $d$, which the ODE
    /// allows and the iteration does not.
    pub fn beta(&self, dim: f64) -> f64 {
        match self.memory {
            Memory::Beta(beta) => beta,
            Memory::Delta(delta) => 1.0 - delta / dim,
        }
    }

    /// $\delta = (1-\beta)\thinspace d$ in dimension $d$.
    pub fn delta(&self, dim: f64) -> f64 {
        match self.memory {
            Memory::Beta(beta) => (1.0 - beta) * dim,
            Memory::Delta(delta) => delta,
        }
    }

    /// The learning rate of plain SGD that moves as far in the end, over that of the policy: 1 for
    /// the average and $(1-\tau)/(1-\beta)$ for the heavy ball.
    pub fn rate_factor(&self, dim: f64) -> f64 {
        match self.form {
            Form::Average => 1.0,
            Form::HeavyBall { dampening } => (1.0 - dampening) * dim / self.delta(dim),
        }
    }

    /// How much of a gradient enters the buffer: of the first, and of the others.
    pub(crate) fn gains(&self, dim: f64) -> [f64; 2] {
        match self.form {
            Form::Average => [1.0 - self.beta(dim); 2],
            Form::HeavyBall { dampening } => [1.0, 1.0 - dampening],
        }
    }

    /// Whether this step is not made at all where its gradient is skipped.
    pub(crate) fn leaves_out(&self, step: &Step<'_>) -> bool {
        let whole = !step.batch().is_per_sample();
        self.on_skip == OnSkip::NotMade && *step.rule() == Rule::Skip && whole
    }

    /// $\delta$ where it is above $d$, so that $\beta$ would be negative.
    pub(crate) fn delta_above(&self, dim: f64) -> Option<f64> {
        match self.memory {
            Memory::Delta(delta) if delta > dim => Some(delta),
            _ => None,
        }
    }
}

impl Memory {
    fn checked(self) -> Result<Self> {
        match self {
            Memory::Beta(beta) if !(0.0..1.0).contains(&beta) => {
                Err(Error::parameter("beta", beta, "beta must be at least 0 and below 1"))
            }
            Memory::Delta(delta) if !(delta >= 1e-5 && delta.is_finite()) => {
                Err(Error::parameter("delta", delta, "delta must be at least 1e-5 and finite"))
            }
            _ => Ok(self),
        }
    }
}

impl std::fmt::Display for Momentum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.form {
            Form::Average => write!(f, "average of gradients"),
            Form::HeavyBall { .. } => write!(f, "momentum"),
        }?;
        match self.memory {
            Memory::Beta(beta) => write!(f, ", β = {beta}"),
            Memory::Delta(delta) => write!(f, ", δ = {delta}"),
        }?;
        match self.form {
            Form::HeavyBall { dampening } if dampening > 0.0 => {
                write!(f, ", dampening {dampening}")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_memories_are_the_same_in_one_dimension() {
        for form in [Momentum::average, Momentum::heavy_ball] {
            let [by_beta, by_delta] = [Memory::Beta(0.75), Memory::Delta(25.0)].map(form);
            let (by_beta, by_delta) = (by_beta.unwrap(), by_delta.unwrap());
            assert_eq!(by_beta.delta(100.0), by_delta.delta(100.0));
            assert_eq!(by_beta.beta(100.0), by_delta.beta(100.0));
            assert_eq!(by_beta.rate_factor(100.0), by_delta.rate_factor(100.0));
            // The gains of an endless constant gradient add up to the factor of the rate.
            let total = by_beta.gains(100.0)[1] / (1.0 - by_beta.beta(100.0));
            assert_eq!(total, by_beta.rate_factor(100.0));
        }
    }

    #[test]
    fn impossible_values_are_refused_with_a_message() {
        let says = |memory| Momentum::average(memory).unwrap_err().to_string();
        assert_eq!(
            says(Memory::Beta(1.0)),
            "beta = 1 is not allowed: beta must be at least 0 and below 1"
        );
        assert!(says(Memory::Beta(f64::NAN)).contains("beta"));
        assert!(says(Memory::Delta(0.0)).contains("at least 1e-5"));
        let average = Momentum::average(Memory::Delta(3.0)).unwrap();
        assert!(average.with_dampening(0.5).unwrap_err().to_string().contains("heavy ball"));
        assert_eq!((average.delta_above(2.0), average.delta_above(4.0)), (Some(3.0), None));
        let ball = Momentum::heavy_ball(Memory::Beta(0.9)).unwrap();
        assert!(ball.with_dampening(1.0).is_err());
        assert_eq!(
            ball.with_dampening(0.5).unwrap().to_string(),
            "momentum, β = 0.9, dampening 0.5"
        );
        assert_eq!(average.to_string(), "average of gradients, δ = 3");
    }
}
