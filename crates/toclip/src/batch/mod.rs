//! Mini-batches: how many samples a step averages, and what is clipped.

mod batched;
pub(crate) mod complex;
mod contour;
pub(crate) mod law;
mod sum;

pub use batched::Batched;
pub use law::SquareLaw;

use crate::error::{Error, Result};
use crate::factors::{check_risk, check_threshold};
use crate::kernel::Clipped;
use crate::noise::Noise;
use serde::Serialize;

/// The most residuals that a batch may have.
const LARGEST: u64 = 1_000_000_000;

/// $B$, the samples of a step, and what of them is clipped: their mean gradient, or each one's.
///
/// * [`Rule::batch`]: the gradient of the batch, $g = \frac1B\sum_i \rho_i x_i$, is clipped at
///   $c\sqrt{d/B}$, as training code does. With $S = \sum_{i\le B} X_i^2$ that is $\sqrt S \le
///   c\sqrt B$, and
///   $$ \mu_B = P(\sqrt S \le c\sqrt B) + \Bigl(1-\frac1B\Bigr) E\Bigl[\frac{c\sqrt B}{\sqrt S};
///   \sqrt S > c\sqrt B\Bigr], \qquad m^{(2)}_B = \frac{E\min(S, c^2B)}{B^2}. $$
/// * [`Rule::per_sample`]: each $\rho_i x_i$ is clipped at $c\sqrt d$ and the results are averaged,
///   as differentially private training does: $\mu = \mu_1$ and $m^{(2)} = m^{(2)}_1/B$.
///
/// The dynamics are the same equations with these two numbers. `docs/batches.md` derives them.
///
/// ```
/// use toclip::{Rule, noise::Rademacher};
/// let noise = Rademacher::from_sigma(0.8, 0.2)?;
/// // With eight samples a batch is hardly ever below the threshold, yet half of the descent is left.
/// let x = Rule::batch(8)?.clipped(&noise, 0.18, 0.5)?;
/// assert!(x.mu > 0.5 && x.mu < 0.6);
/// let one_by_one = Rule::per_sample(8)?.clipped(&noise, 0.18, 0.5)?;
/// assert_eq!(one_by_one.m2, Rule::single().clipped(&noise, 0.18, 0.5)?.m2 / 8.0);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rule {
    size: u64,
    outputs: u64,
    per_sample: bool,
}

impl Default for Rule {
    fn default() -> Self {
        Rule::single()
    }
}

impl Rule {
    /// $B = 1$: the paper.
    pub const fn single() -> Self {
        Rule { size: 1, outputs: 1, per_sample: false }
    }

    /// The mean gradient of $B$ samples is clipped.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $1 \le B \le 10^9$.
    pub fn batch(size: u64) -> Result<Self> {
        Rule { size, ..Rule::single() }.checked()
    }

    /// Each of $B$ gradients is clipped, and the mean of them is taken.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $1 \le B \le 10^9$.
    pub fn per_sample(size: u64) -> Result<Self> {
        // One sample clipped is one sample clipped.
        Rule { size, outputs: 1, per_sample: size > 1 }.checked()
    }

    /// With $C$ outputs: targets in $\mathbb R^C$ and the mean of their squared errors.
    ///
    /// $S$ then has $N = BC$ terms; the gradient of the batch is clipped at $c\sqrt{dC/B}$, and
    /// $\mu$, $m^{(2)} = E\min(S, c^2N)/(NB)$, $R$ are those of one output. Of the rule per sample,
    /// $B = 1$ in $\mu$: each sample's $C$ residuals are clipped together.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $C \ge 1$ and $BC \le 10^9$.
    ///
    /// ```
    /// use toclip::{Rule, noise::StudentT};
    /// let noise = StudentT::new(2.5, 0.5)?;
    /// let ten = Rule::batch(2)?.outputs(10)?.clipped(&noise, 0.1, 0.6)?;
    /// let twenty = Rule::batch(20)?.clipped(&noise, 0.1, 0.6)?;
    /// assert_eq!(ten.mu, twenty.mu);
    /// assert!((ten.m2 / (10.0 * twenty.m2) - 1.0).abs() < 1e-15);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn outputs(self, outputs: u64) -> Result<Self> {
        Rule { outputs, ..self }.checked()
    }

    fn checked(self) -> Result<Self> {
        let expected = "give a whole number from 1; batch times outputs may be up to 1e9";
        if self.size == 0 || self.size > LARGEST {
            return Err(Error::parameter("batch", self.size as f64, expected));
        }
        if self.outputs == 0 || self.size.saturating_mul(self.outputs) > LARGEST {
            return Err(Error::parameter("outputs", self.outputs as f64, expected));
        }
        Ok(self)
    }

    /// $B$.
    pub fn size(self) -> u64 {
        self.size
    }

    /// $C$, the outputs of the model.
    pub fn output_count(self) -> u64 {
        self.outputs
    }

    /// Whether each sample is clipped, rather than their mean.
    pub fn is_per_sample(self) -> bool {
        self.per_sample
    }

    /// Whether it is the paper's rule, one sample a step and one output.
    pub fn is_single(self) -> bool {
        self.size == 1 && self.outputs == 1
    }

    /// $N$, the residuals that are clipped together.
    fn together(self) -> u64 {
        if self.per_sample { self.outputs } else { self.size * self.outputs }
    }

    /// $\mu_B$ and $m^{(2)}_B$ at risk $R \ge 0$ and threshold $0 < c \le \infty$.
    ///
    /// For $B = 1$ they are [`Noise::clipped`] to the last bit. Otherwise relative errors are below
    /// $10^{-10}$ for noise that is Gaussian, Rademacher-like or none, and below $10^{-6}$ (mostly
    /// far below) for the other families, with two exceptions.
    ///
    /// Where $2R$ is below $10^{-6} E\epsilon^2$, laws with atoms or edges (uniform, empirical,
    /// mixtures with a std next to zero, densities) are taken as if it were that large, which
    /// matters where $c$ is within $10^{-3}$ of where batches cluster. Mixtures of atoms and
    /// empirical noise of which there are few ways to draw a batch ($10^5$ at $R = 0$, 300 above)
    /// are summed over these instead, exactly. And Student-t noise of so few degrees of freedom
    /// that nearly all batches are above $10^{34}$ scales has a $\mu$ below $10^{-30}$ of which only
    /// that is right.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another $R$ or $c$; [`Error::Invalid`] for a noise that does not say
    /// its [`square_law`](Noise::square_law), that comes in batches already, or whose integral does
    /// not converge in the steps allowed.
    pub fn clipped(self, noise: &dyn Noise, r: f64, c: f64) -> Result<Clipped> {
        check_risk(r)?;
        check_threshold(c)?;
        check_single(noise)?;
        let several = self.together() > 1;
        if several {
            check_law(noise)?;
        }
        let x = self.per_residual(noise, r, c);
        if several {
            check_converged(noise, r, c, x)?;
        }
        Ok(Clipped { mu: x.mu, m2: x.m2 / self.size as f64 })
    }

    /// $\mu_B$ and $B m^{(2)}_B = E\min(S, c^2N)/N$, which is what a single sample has for $N = 1$.
    fn per_residual(self, noise: &dyn Noise, r: f64, c: f64) -> Clipped {
        let n = self.together();
        if n == 1 || c == f64::INFINITY {
            return noise.clipped(r, c);
        }
        let second_moment = 2.0 * r + noise.second_moment();
        match noise.square_law(r) {
            _ if second_moment == 0.0 => Clipped::open(0.0),
            Some(law) => {
                let x = sum::clipped_sum(&law, n as f64, c, second_moment);
                // Bounds would make a number of what is none.
                if x.mu.is_nan() { x } else { x.within(c, second_moment) }
            }
            // Refused where it came in.
            None => Clipped { mu: f64::NAN, m2: f64::NAN },
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.is_single(), self.per_sample) {
            (true, _) => write!(f, "one sample a step"),
            (_, false) => write!(f, "batches of {}", self.size),
            (_, true) => write!(f, "batches of {}, each sample clipped", self.size),
        }?;
        if self.outputs > 1 { write!(f, ", {} outputs", self.outputs) } else { Ok(()) }
    }
}

/// $\mu$ and $m^{(2)}$ of a step under this noise and the rule that it comes with.
pub(crate) fn of_step(noise: &dyn Noise, r: f64, c: f64) -> Clipped {
    let x = noise.clipped(r, c);
    Clipped { mu: x.mu, m2: x.m2 / noise.rule().size() as f64 }
}

/// Refuses a noise that comes in batches already.
fn check_single(noise: &dyn Noise) -> Result<()> {
    if noise.rule().is_single() {
        return Ok(());
    }
    let what = format!("the noise comes in batches already: {}", noise.rule());
    Err(Error::Invalid(what))
}

/// Refuses what an integral left that did not come to its end.
pub(crate) fn check_converged(noise: &dyn Noise, r: f64, c: f64, x: Clipped) -> Result<()> {
    if !x.mu.is_nan() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "the factors of a batch at R = {r}, c = {c} did not converge for {} noise: its parts are too \
         narrow for their distances; widen the narrowest, or leave out the rarest",
        noise.describe()
    )))
}

/// Refuses a noise without a [`SquareLaw`].
fn check_law(noise: &dyn Noise) -> Result<()> {
    if noise.square_law(1.0).is_some() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{} noise does not say the law of its squares, which batches need: implement \
         `Noise::square_law`, or use a batch of one or the rule per sample",
        noise.describe()
    )))
}
