//! Mini-batches: how many samples a step averages, and whether each or their mean is clipped.

mod contour;
pub(crate) mod scale_mixture;
pub(crate) mod squared_residual;
mod sum;
mod transform;

pub use squared_residual::SquaredResidual;

use crate::error::{Error, Result};
use crate::factors::kernel::Moments;
use crate::noise::Noise;
use crate::rule::{Rule, Smooth};
use serde::Serialize;

/// The most residuals that a batch may have.
const LARGEST: u64 = 1_000_000_000;

/// $B$, the number of samples of a step, and whether their mean gradient is clipped or each of
/// them.
///
/// * [`Batch::mean`]: the gradient of the batch, $g = \frac1B\sum_i \rho_i x_i$, is clipped at
///   $c\sqrt{d/B}$, as training code does. With $S = \sum_{i\le B} X_i^2$ that is $\sqrt S \le
///   c\sqrt B$, and
///   $$ \mu_B = P(\sqrt S \le c\sqrt B) + \Bigl(1-\frac1B\Bigr) E\Bigl[\frac{c\sqrt B}{\sqrt S};
///   \sqrt S > c\sqrt B\Bigr], \qquad m^{(2)}_B = \frac{E\min(S, c^2B)}{B^2}. $$
/// * [`Batch::per_sample`]: each $\rho_i x_i$ is clipped at $c\sqrt d$ and the results are
///   averaged, as differentially private training does: $\mu = \mu_1$ and $m^{(2)} = m^{(2)}_1/B$.
///
/// The dynamics are the same equations with these two numbers. `docs/batches.md` derives them.
///
/// # Accuracy
///
/// For $B = 1$ the two are [`Noise::clipped`] to the last bit. Otherwise relative errors are below
/// $10^{-10}$ for noise that is Gaussian, Rademacher-like or none, and below $10^{-6}$ (mostly
/// far below) for the other families, with two exceptions.
///
/// Where $2R$ is below $10^{-6} E\epsilon^2$, distributions with atoms or edges (uniform,
/// empirical, mixtures with a std next to zero, densities) are taken as if it were that large,
/// which matters where $c$ is within $10^{-3}$ of where batches cluster. Where there are few ways
/// to draw a batch from a mixture of atoms or from empirical noise ($10^5$ at $R = 0$, 300 above),
/// the sum over them is exact instead. And Student-t noise of so few degrees of freedom that nearly
/// all batches are above $10^{34}$ scales has a $\mu$ below $10^{-30}$ that is only
/// right in its order of magnitude.
///
/// ```
/// use toclip::{Batch, Factors, Step, noise::Rademacher};
/// let noise = Rademacher::from_sigma(0.8, 0.2)?;
/// let factors = |batch| Factors::new(Step::new(&noise).with_batch(batch)?, 0.18, 0.5);
/// // The mean of eight samples is nearly always clipped, yet half of the descent is left.
/// let mean = factors(Batch::mean(8)?)?;
/// assert!(mean.mu > 0.5 && mean.mu < 0.6);
/// let one_by_one = factors(Batch::per_sample(8)?)?;
/// assert_eq!(one_by_one.m2, factors(Batch::single())?.m2 / 8.0);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Batch {
    size: u64,
    outputs: u64,
    per_sample: bool,
}

impl Default for Batch {
    fn default() -> Self {
        Batch::single()
    }
}

impl Batch {
    /// $B = 1$: the paper.
    pub const fn single() -> Self {
        Batch { size: 1, outputs: 1, per_sample: false }
    }

    /// The mean gradient of $B$ samples is clipped.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $1 \le B \le 10^9$.
    pub fn mean(size: u64) -> Result<Self> {
        Batch { size, ..Batch::single() }.checked()
    }

    /// Each of $B$ gradients is clipped, and then they are averaged.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $1 \le B \le 10^9$.
    pub fn per_sample(size: u64) -> Result<Self> {
        // For one sample the two are the same.
        Batch { size, outputs: 1, per_sample: size > 1 }.checked()
    }

    /// With $C$ outputs: targets in $\mathbb R^C$ and the mean of their squared errors.
    ///
    /// $S$ then has $N = BC$ terms; the gradient of the batch is clipped at $c\sqrt{dC/B}$, and
    /// $\mu$, $m^{(2)} = E\min(S, c^2N)/(NB)$, $R$ are those of one output. With clipping per
    /// sample, $B = 1$ in $\mu$: the $C$ residuals of a sample are clipped together.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $C \ge 1$ and $BC \le 10^9$.
    ///
    /// ```
    /// use toclip::{Batch, Factors, Step, noise::StudentT};
    /// let noise = StudentT::new(2.5, 0.5)?;
    /// let factors = |batch| Factors::new(Step::new(&noise).with_batch(batch)?, 0.1, 0.6);
    /// let ten = factors(Batch::mean(2)?.outputs(10)?)?;
    /// let twenty = factors(Batch::mean(20)?)?;
    /// assert_eq!(ten.mu, twenty.mu);
    /// assert!((ten.m2 / (10.0 * twenty.m2) - 1.0).abs() < 1e-15);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn outputs(self, outputs: u64) -> Result<Self> {
        Batch { outputs, ..self }.checked()
    }

    fn checked(self) -> Result<Self> {
        let expected = "give an integer of at least 1; batch times outputs may be up to 1e9";
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

    /// Whether it is that of the paper, one sample a step and one output.
    pub fn is_single(self) -> bool {
        self.size == 1 && self.outputs == 1
    }

    /// $N$, the residuals that are clipped together.
    pub(crate) fn together(self) -> u64 {
        if self.per_sample { self.outputs } else { self.size * self.outputs }
    }

    /// $\mu_B$ and $B m^{(2)}_B = E\min(S, c^2N)/N$, which for $N = 1$ are those of a single sample.
    pub(crate) fn clipped(self, noise: &dyn Noise, r: f64, c: f64) -> Moments {
        let n = self.together();
        if n == 1 || c == f64::INFINITY {
            return noise.clipped(r, c);
        }
        let second_moment = 2.0 * r + noise.second_moment();
        match noise.squared_residual(r) {
            _ if second_moment == 0.0 => Moments::open(0.0),
            _ if is_far(noise, r, c) => {
                let x = open_beyond(noise, r, c, second_moment);
                // A sum of heavy tails is as large as its largest term.
                let is_heavy = x.m2.is_nan() && 1.0 - noise.clipped(r, c).mu < LOST;
                let largest = noise.clipped(r, c * (n as f64).sqrt());
                if is_heavy { Moments { mu: 1.0, m2: largest.m2 } } else { x }
            }
            Some(squared) => {
                let x = sum::clipped_sum(&squared, n as f64, c, second_moment);
                // The bounds would turn NaN into a number.
                if x.mu.is_nan() { x } else { x.within(c, second_moment) }
            }
            // `Step::with_batch` refuses such a noise.
            None => Moments { mu: f64::NAN, m2: f64::NAN },
        }
    }
}

/// Thresholds this many times as large as the residual are beyond the transforms of heavy tails.
const FAR: f64 = 1e30;
/// The share of $m^{(2)}$ that a threshold far out may remove and still count as no clipping.
const LOST: f64 = 1e-12;

/// Whether the threshold is [`FAR`] beyond every scale of the residual.
fn is_far(noise: &dyn Noise, r: f64, c: f64) -> bool {
    // Mostly the threshold is nowhere near, and the features need not be computed.
    let second_moment = 2.0 * r + noise.second_moment();
    if second_moment.is_finite() && c < 1e-10 * FAR * second_moment.sqrt() {
        return false;
    }
    let features = noise.features(r);
    let size = features.iter().map(|f| f.at.abs() + f.width).fold(0.0, f64::max);
    size > 0.0 && c > FAR * size
}

/// The moments for a threshold beyond all residuals; NaN where the tail is so heavy that it still
/// counts.
fn open_beyond(noise: &dyn Noise, r: f64, c: f64, second_moment: f64) -> Moments {
    if noise.clipped(r, c).m2 >= second_moment * (1.0 - LOST) && second_moment.is_finite() {
        return Moments::open(second_moment);
    }
    Moments { mu: f64::NAN, m2: f64::NAN }
}

/// $\mu = E\thinspace{\psi^\prime}(X)$ and $E\thinspace\psi(X)^2$ of one residual under a smooth rule,
/// from its transform; `None` where that is not known to rounding.
pub(crate) fn smooth_residual(
    noise: &dyn Noise,
    smooth: Smooth,
    r: f64,
    c: f64,
) -> Option<Moments> {
    let squared = noise.squared_residual(r).filter(|squared| squared.exact)?;
    Some(transform::Squares { squared: &squared, n: 1.0, c }.smoothed(smooth))
}

impl Batch {
    /// $\mu_B$ and $B m^{(2)}_B$ of another radial rule than clipping, applied to several residuals
    /// together.
    pub(crate) fn reshaped(self, noise: &dyn Noise, rule: &Rule, r: f64, c: f64) -> Moments {
        let second_moment = 2.0 * r + noise.second_moment();
        if second_moment == 0.0 || c == f64::INFINITY {
            return Moments::open(second_moment);
        }
        let n = self.together() as f64;
        match noise.squared_residual(r) {
            Some(_) if *rule != Rule::Normalise && is_far(noise, r, c) => {
                open_beyond(noise, r, c, second_moment)
            }
            Some(squared) => sum::reshaped_sum(&squared, rule, n, c, second_moment),
            None => Moments { mu: f64::NAN, m2: f64::NAN },
        }
    }
}

impl Batch {
    /// $P(S \le c^2N)$: the share of batches that are not clipped.
    pub(crate) fn within(self, noise: &dyn Noise, r: f64, c: f64) -> f64 {
        let n = self.together();
        let second_moment = 2.0 * r + noise.second_moment();
        if second_moment == 0.0 || c == f64::INFINITY {
            return 1.0;
        }
        if n == 1 {
            return noise.clipped(r, c).mu;
        }
        let squared = noise.squared_residual(r);
        squared.map_or(f64::NAN, |squared| sum::within(&squared, n as f64, c, second_moment))
    }
}

impl std::fmt::Display for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.is_single(), self.per_sample) {
            (true, _) => write!(f, "one sample a step"),
            (_, false) => write!(f, "batches of {}", self.size),
            (_, true) => write!(f, "batches of {}, each sample clipped", self.size),
        }?;
        if self.outputs > 1 { write!(f, ", {} outputs", self.outputs) } else { Ok(()) }
    }
}
