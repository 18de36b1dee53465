//! One step of SGD: the noise of a sample, the samples of a batch, and what is done to the
//! gradient.

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::kernel::Moments;
use crate::noise::{Feature, Noise};
use crate::rule::Rule;
use std::sync::Arc;

/// A step of SGD: [noise](Noise), [batch](Batch) and [rule](Rule).
///
/// The theory needs two numbers of a step, $\mu$ and $m^{(2)}$ at risk $R$ and threshold $c$
/// ([`moments`](Self::moments)); this type is the only place that computes them. Factors, criteria,
/// schedules and dynamics all take a step, and a noise converts into the step of the paper: one
/// sample, clipped.
///
/// ```
/// use toclip::{Batch, Factors, Step, criteria::best_threshold, noise::Rademacher};
/// let noise = Rademacher::from_sigma(0.8, 0.2)?;
/// assert_eq!(Factors::new(&noise, 0.1, 0.5)?, Factors::new(Step::new(&noise), 0.1, 0.5)?);
/// let gain = |batch| Ok(best_threshold(Step::new(&noise).with_batch(batch)?, 0.1)?.ccc);
/// // Averaging 64 samples takes away what clipping gains; clipping each of them keeps it.
/// assert!(gain(Batch::single())? > 2.0);
/// assert!(gain(Batch::mean(64)?)? < 1.02);
/// assert!(gain(Batch::per_sample(64)?)? > 2.0);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// A step borrows its noise or shares it. Methods that keep a step, such as
/// [`Sgd`](crate::dynamics::Sgd), take one that shares it, made from an [`Arc`].
#[derive(Debug, Clone)]
pub struct Step<'a> {
    noise: NoiseRef<'a>,
    batch: Batch,
    rule: Rule,
}

#[derive(Debug, Clone)]
enum NoiseRef<'a> {
    Borrowed(&'a dyn Noise),
    Shared(Arc<dyn Noise>),
}

impl<'a> Step<'a> {
    /// One sample of this noise, clipped; a step is returned as it is.
    pub fn new(noise: impl Into<Self>) -> Self {
        noise.into()
    }

    fn single(noise: NoiseRef<'a>) -> Self {
        Step { noise, batch: Batch::single(), rule: Rule::default() }
    }

    /// The same step with another batch.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a noise that does not provide its
    /// [`squared_residual`](Noise::squared_residual), where several residuals are clipped together.
    pub fn with_batch(self, batch: Batch) -> Result<Self> {
        batch.check(self.noise())?;
        Ok(Step { batch, ..self })
    }

    /// The same step with another rule.
    pub fn with_rule(self, rule: Rule) -> Self {
        Step { rule, ..self }
    }

    /// The noise of one sample.
    pub fn noise(&self) -> &dyn Noise {
        match &self.noise {
            NoiseRef::Borrowed(noise) => *noise,
            NoiseRef::Shared(noise) => &**noise,
        }
    }

    /// How many samples the step averages.
    pub fn batch(&self) -> Batch {
        self.batch
    }

    /// What is done to the gradient.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Noise and batch in a few words, for messages and legends.
    ///
    /// ```
    /// use toclip::{Batch, Step, noise::Gaussian};
    /// let noise = Gaussian::new(0.5)?;
    /// let step = Step::new(&noise).with_batch(Batch::mean(32)?)?;
    /// assert_eq!(step.describe(), "Gaussian (σ = 0.5), batches of 32");
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn describe(&self) -> String {
        if self.batch.is_single() {
            return self.noise().describe();
        }
        format!("{}, {}", self.noise().describe(), self.batch)
    }

    /// $\mu$ and $m^{(2)}$ of the step at risk $R \ge 0$ and threshold $0 < c \le \infty$.
    ///
    /// $m^{(2)}$ is that of the mean of $B$ samples, so about $1/B$ of what it is for one.
    /// [`Factors::new`](crate::Factors::new) checks $R$, $c$ and that the result is a number.
    pub fn moments(&self, r: f64, c: f64) -> Moments {
        let x = self.residual_moments(r, c);
        Moments { mu: x.mu, m2: x.m2 / self.batch.size() as f64 }
    }

    /// $m^{(2)}$ without clipping, $(2R + E\epsilon^2)/B$; infinite for heavy tails.
    pub fn second_moment(&self, r: f64) -> f64 {
        self.residual_second_moment(r) / self.batch.size() as f64
    }

    /// $\mu$ and $B\thinspace m^{(2)}$: in the unit of one residual, whatever the batch.
    ///
    /// Ratios such as $\nu$ and CCC are the same in both units. The searches work in this unit, so
    /// that their bits do not depend on a division by $B$.
    pub(crate) fn residual_moments(&self, r: f64, c: f64) -> Moments {
        match self.rule {
            Rule::Clip => self.batch.clipped(self.noise(), r, c),
        }
    }

    /// $E X^2 = 2R + E\epsilon^2$ of one residual.
    pub(crate) fn residual_second_moment(&self, r: f64) -> f64 {
        2.0 * r + self.noise().second_moment()
    }

    /// Where the distribution of what is clipped changes: the features of one residual, and the
    /// root mean square of a batch, about which batches gather.
    pub(crate) fn features(&self, r: f64) -> Vec<Feature> {
        let mut features = self.noise().features(r);
        let n = self.batch.together() as f64;
        let second_moment = self.residual_second_moment(r);
        if n > 1.0 && second_moment > 0.0 && second_moment.is_finite() {
            let size = second_moment.sqrt();
            features.push(Feature::new(size, size / n.sqrt()));
        }
        features
    }

    /// Refuses the result of an integral that did not converge.
    pub(crate) fn check_converged(&self, r: f64, c: f64, x: Moments) -> Result<()> {
        if !x.mu.is_nan() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "the factors of a batch at R = {r}, c = {c} did not converge for {} noise: its parts \
             are too narrow for their distances; widen the narrowest, or leave out the rarest",
            self.noise().describe()
        )))
    }
}

impl<'a, N: Noise> From<&'a N> for Step<'a> {
    fn from(noise: &'a N) -> Self {
        Step::single(NoiseRef::Borrowed(noise))
    }
}

impl<'a, 'n: 'a> From<&'a (dyn Noise + 'n)> for Step<'a> {
    fn from(noise: &'a (dyn Noise + 'n)) -> Self {
        Step::single(NoiseRef::Borrowed(noise))
    }
}

impl<'a> From<&'a Arc<dyn Noise>> for Step<'a> {
    fn from(noise: &'a Arc<dyn Noise>) -> Self {
        Step::single(NoiseRef::Borrowed(&**noise))
    }
}

impl<N: Noise + 'static> From<Arc<N>> for Step<'_> {
    fn from(noise: Arc<N>) -> Self {
        Step::single(NoiseRef::Shared(noise))
    }
}

impl From<Arc<dyn Noise>> for Step<'_> {
    fn from(noise: Arc<dyn Noise>) -> Self {
        Step::single(NoiseRef::Shared(noise))
    }
}

impl<'a> From<&'a Step<'_>> for Step<'a> {
    fn from(step: &'a Step<'_>) -> Self {
        Step { noise: NoiseRef::Borrowed(step.noise()), batch: step.batch, rule: step.rule.clone() }
    }
}
