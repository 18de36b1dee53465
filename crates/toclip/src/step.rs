//! One step of SGD: the noise of a sample, the samples of a batch, and what is done to the
//! gradient.

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::kernel::Moments;
use crate::noise::{Feature, Noise};
use crate::radial;
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
    /// [`squared_residual`](Noise::squared_residual), where several residuals are clipped together,
    /// and for a rule that is not defined for such a batch.
    pub fn with_batch(self, batch: Batch) -> Result<Self> {
        Step { batch, ..self }.checked()
    }

    /// The same step with another rule.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a rule that this noise or batch does not allow: the sentence says
    /// what is possible.
    ///
    /// ```
    /// use toclip::{Factors, Rule, Step, noise::Rademacher};
    /// let noise = Rademacher::new(1.0, 0.4)?;
    /// let ccc = |rule| Factors::new(Step::new(&noise).with_rule(rule)?, 0.01, 0.5)?.ccc();
    /// // With outliers far beyond the threshold skipping beats clipping.
    /// assert!(ccc(Rule::Skip)? > 1.5 * ccc(Rule::Clip)?);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn with_rule(self, rule: Rule) -> Result<Self> {
        Step { rule, ..self }.checked()
    }

    /// Refuses combinations of noise, batch and rule of which there is no theory.
    fn checked(self) -> Result<Self> {
        self.batch.check(self.noise())?;
        let single = self.batch.together() == 1;
        match &self.rule {
            Rule::Optimal if !single => Err(Error::Invalid(
                "the optimal rule is the score of one residual, and a batch has several: use a \
                 batch of one, or apply it to each sample"
                    .into(),
            )),
            Rule::ByValue if !single => Err(Error::Invalid(
                "clipping by value is solved for the gradient of one sample: use a batch of one, or \
                 clip each sample"
                    .into(),
            )),
            Rule::Clip => Ok(self),
            _ if single && self.noise().residual_density(1.0, 0.0).is_none() => {
                Err(Error::NotProvided {
                    family: self.noise().describe(),
                    what: "the density of the residual",
                    method: "residual_density",
                })
            }
            _ => Ok(self),
        }
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

    /// Noise, batch and rule in a few words, for messages and legends.
    ///
    /// ```
    /// use toclip::{Batch, Step, noise::Gaussian};
    /// let noise = Gaussian::new(0.5)?;
    /// let step = Step::new(&noise).with_batch(Batch::mean(32)?)?;
    /// assert_eq!(step.describe(), "Gaussian (σ = 0.5), batches of 32");
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn describe(&self) -> String {
        let mut words = self.noise().describe();
        if !self.batch.is_single() {
            words += &format!(", {}", self.batch);
        }
        if self.rule != Rule::Clip {
            words += &format!(", rule {}", self.rule.name());
        }
        words
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
        let (noise, n) = (self.noise(), self.batch.together());
        match self.rule {
            Rule::Clip => self.batch.clipped(noise, r, c),
            Rule::Skip if n == 1 => radial::skip(noise, r, c),
            Rule::Normalise if n == 1 => radial::normalise(noise, r, c),
            Rule::Smooth(smooth) if n == 1 => radial::smooth(noise, smooth, r, c),
            Rule::Skip | Rule::Normalise | Rule::Smooth(_) => {
                self.batch.reshaped(noise, &self.rule, r, c)
            }
            Rule::Optimal => radial::optimal(noise, r),
            // Not radial: there is no such pair of numbers.
            Rule::ByValue => Moments { mu: f64::NAN, m2: f64::NAN },
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

    /// $P(|X| \le c)$, or that of a batch: the share of steps that are made where the others are
    /// skipped.
    pub(crate) fn made(&self, r: f64, c: f64) -> f64 {
        self.batch.within(self.noise(), r, c)
    }

    /// What a radial rule leaves of a gradient $x g$ with $\Vert g\Vert =$ `norm`: the factor on $g$,
    /// at threshold $c\cdot$`unit` on the norm and risk $R$.
    pub(crate) fn reshape(&self, x: f64, norm: f64, c: f64, unit: f64, r: f64) -> f64 {
        if self.rule != Rule::Optimal {
            return self.rule.reshape(x, norm, c, unit);
        }
        let y = x * norm / unit;
        let (f, df) = self.noise().residual_density(r, y).unwrap_or((f64::NAN, f64::NAN));
        // Where the density underflows nothing is known of its slope.
        if f > 0.0 { -df / f * self.moments(r, c).m2 * (unit / norm) } else { 0.0 }
    }

    /// Refuses a rule that has no single $\mu$ and $m^{(2)}$.
    pub(crate) fn check_radial(&self) -> Result<()> {
        if self.rule.is_radial() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "the rule `{}` has factors for each eigenvalue, not one pair for all of them",
            self.rule.name()
        )))
    }

    /// Refuses factors that are no numbers, and says why they are not.
    pub(crate) fn check_defined(&self, r: f64, c: f64, x: Moments) -> Result<()> {
        if self.rule == Rule::Normalise && c == f64::INFINITY {
            return Err(Error::parameter(
                "c",
                c,
                "to normalise gradients, give a finite threshold",
            ));
        }
        if self.rule == Rule::Optimal && x.m2 == 0.0 && self.residual_second_moment(r) > 0.0 {
            return Err(Error::Invalid(format!(
                "the optimal rule at R = {r} for {} noise: the residual has atoms or jumps there, \
                 and its score is not a function; use R > 0",
                self.noise().describe()
            )));
        }
        if !x.mu.is_nan() && !x.m2.is_nan() {
            return Ok(());
        }
        let noise = self.noise().describe();
        Err(Error::Invalid(if self.batch.together() > 1 {
            format!(
                "the factors of a batch at R = {r}, c = {c} did not converge for {noise} noise: \
                 its parts are too narrow for their distances; widen the narrowest, or leave out \
                 the rarest"
            )
        } else {
            format!(
                "the factors of rule `{}` at R = {r}, c = {c} need the density of the residual, \
                 which {noise} noise does not provide at this risk",
                self.rule.name()
            )
        }))
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
