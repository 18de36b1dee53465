//! One step of SGD: the noise of a sample, the samples of a batch, and the rule for the gradient.

use crate::error::{Error, Result};
use crate::factors::batch::Batch;
use crate::factors::combination::{self, StepError};
use crate::factors::kernel::Moments;
use crate::factors::table::{FactorTable, TablePoint};
use crate::factors::{check_risk, check_threshold};
use crate::noise::{Feature, Noise};
use crate::privacy::Privacy;
use crate::rule::Rule;
use crate::rule::by_value::clipped_coordinate;
use crate::rule::radial;
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
/// let gain = |batch| Ok::<_, toclip::Error>(best_threshold(Step::new(&noise).with_batch(batch)?, 0.1)?.ccc);
/// // Averaging 64 samples removes the gain from clipping; clipping each of them keeps it.
/// assert!(gain(Batch::single())? > 2.0);
/// assert!(gain(Batch::mean(64)?)? < 1.02);
/// assert!(gain(Batch::per_sample(64)?)? > 2.0);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// A step takes its noise by value, by reference, or shares it through an [`Arc`]. Methods that keep
/// a step, such as [`Sgd`](crate::dynamics::Sgd), take one that does not borrow.
///
/// ```
/// use toclip::{Step, noise::Gaussian};
/// fn kept() -> toclip::Result<Step<'static>> {
///     Ok(Step::new(Gaussian::new(0.5)?))
/// }
/// assert_eq!(kept()?.moments(0.0, f64::INFINITY).m2, 0.25);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Step<'a> {
    noise: Arc<dyn Noise + 'a>,
    batch: Batch,
    rule: Rule,
    privacy: Option<Privacy>,
    /// $1/I(X)$ along the risk, for simulations of the optimal rule.
    scores: Option<FactorTable>,
}

/// Risks and thresholds for which integrals over the residual are computed: their squares, and those of
/// their products, are numbers.
const INTEGRATED: std::ops::RangeInclusive<f64> = 1e-100..=1e100;

impl<'a> Step<'a> {
    /// One sample of this noise, clipped; a step is returned as it is.
    pub fn new(noise: impl Into<Self>) -> Self {
        noise.into()
    }

    fn single(noise: Arc<dyn Noise + 'a>) -> Self {
        Step { noise, batch: Batch::single(), rule: Rule::default(), privacy: None, scores: None }
    }

    /// The same step with another batch.
    ///
    /// # Errors
    /// [`StepError`] for a noise that does not provide its
    /// [`squared_residual`](Noise::squared_residual), where several residuals are clipped together,
    /// and for a rule that is not defined for such a batch.
    pub fn with_batch(self, batch: Batch) -> Result<Self> {
        Step { batch, ..self }.checked()
    }

    /// The same step with another rule.
    ///
    /// # Errors
    /// [`StepError`] or [`Error::NotProvided`] for a rule that this noise or batch does not allow: the
    /// message says what is possible.
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
        let step = Step { rule, scores: None, ..self }.checked()?;
        let scores = if step.rule == Rule::Optimal { FactorTable::new(&step) } else { None };
        Ok(Step { scores, ..step })
    }

    /// The same step with private gradients: Gaussian noise of standard deviation $\sigma c\sqrt d$
    /// is added to the sum of the gradients of the batch, each clipped at $c\sqrt d$.
    ///
    /// To the equation of every coordinate, whatever its eigenvalue, this adds
    /// $\tfrac12\eta^2\sigma^2c^2/B^2$. $\mu$ and $m^{(2)}$ do not change.
    ///
    /// ```
    /// use toclip::{Batch, Step, noise::Gaussian, privacy::Privacy};
    /// let noise = Gaussian::new(0.5)?;
    /// let step = Step::new(&noise).with_batch(Batch::per_sample(16)?)?;
    /// assert!(step.clone().with_privacy(Privacy::new(1.0)?).is_ok());
    /// // The mean of a batch says too much about its samples.
    /// assert!(step.with_batch(Batch::mean(16)?)?.with_privacy(Privacy::new(1.0)?).is_err());
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`StepError`] unless each sample is clipped, by its norm.
    pub fn with_privacy(self, privacy: Privacy) -> Result<Self> {
        Step { privacy: Some(privacy), ..self }.checked()
    }

    fn checked(self) -> Result<Self> {
        combination::check(self.noise(), self.batch, &self.rule, self.privacy)?;
        Ok(self)
    }

    /// The noise of one sample.
    pub fn noise(&self) -> &dyn Noise {
        &*self.noise
    }

    /// How many samples the step averages.
    pub fn batch(&self) -> Batch {
        self.batch
    }

    /// The rule for the gradient.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The noise that is added for privacy, if any.
    pub fn privacy(&self) -> Option<Privacy> {
        self.privacy
    }

    /// $\sigma^2c^2/B^2$ of private SGD: the variance, in a unit of time and for $\eta = 1$, of the
    /// noise on each coordinate; zero without privacy.
    pub(crate) fn private_variance(&self, c: f64) -> f64 {
        match self.privacy {
            // Not 0·∞.
            Some(privacy) if privacy.noise_multiplier() > 0.0 => {
                (privacy.noise_multiplier() * c / self.batch.size() as f64).powi(2)
            }
            _ => 0.0,
        }
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
        self.noise().describe() + &self.describe_treatment()
    }

    /// The batch and the rule, to follow the name of the noise; empty for single samples that are clipped.
    pub fn describe_treatment(&self) -> String {
        let mut words = String::new();
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
    /// $m^{(2)}$ is that of the mean of $B$ samples, so about $1/B$ of that of one.
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
            Rule::ByValue | Rule::PerGroup(_) => Moments { mu: f64::NAN, m2: f64::NAN },
        }
    }

    /// $\mu_j$ and $m^{(2)}_j$ of the directions with eigenvalue $\lambda$, such that
    /// $$ \dot v_j = -2\eta\lambda\mu_j v_j + \frac{\eta^2}{d}\thinspace\frac{m^{(2)}_j}{2}. $$
    ///
    /// A radial rule has one $\mu$ for all, and $m^{(2)}_j = \lambda m^{(2)}$. For
    /// [`Rule::ByValue`], with $U = X\sqrt\lambda\thinspace z$, $X$ the residual and $z$ a standard
    /// normal variable,
    /// $$ \mu_j = P(|U| \le c) - c\thinspace(f_U(c) + f_U(-c)), \qquad m^{(2)}_j =
    /// \frac{E\min(U^2, c^2)}{B}. $$
    /// Relative errors are below $10^{-10}$.
    ///
    /// ```
    /// use toclip::{Rule, Step, noise::Gaussian};
    /// let noise = Gaussian::new(0.6)?; // with 2R = 0.64, X is standard normal
    /// let step = Step::new(&noise).with_rule(Rule::ByValue)?;
    /// let large = step.eigenvalue_moments(1.0, 0.32, 0.5)?;
    /// let small = step.eigenvalue_moments(0.01, 0.32, 0.5)?;
    /// // Small eigenvalues are hardly clipped at all.
    /// assert!(large.mu < 0.3 && small.mu > 0.94);
    /// assert!(large.m2 < 0.25 && small.m2 > 0.0094 && small.m2 < 0.01);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] for a risk, threshold or eigenvalue out of range; [`StepError`]
    /// for [`Rule::PerGroup`], which depends on groups and not on eigenvalues.
    pub fn eigenvalue_moments(&self, lambda: f64, r: f64, c: f64) -> Result<Moments> {
        check_risk(r)?;
        check_threshold(c)?;
        if !(lambda >= 0.0 && lambda.is_finite()) {
            return Err(Error::parameter(
                "lambda",
                lambda,
                "an eigenvalue must be finite and >= 0",
            ));
        }
        match self.rule {
            Rule::ByValue => {
                let x = clipped_coordinate(self.noise(), lambda, r, c);
                Ok(Moments { mu: x.mu, m2: x.m2 / self.batch.size() as f64 })
            }
            Rule::PerGroup(_) => Err(StepError::EigenvalueOfGroups.into()),
            _ => {
                let x = self.moments(r, c);
                self.check_defined(r, c, x)?;
                // An eigenvalue of zero has no noise, even where that of the others is infinite.
                Ok(Moments { mu: x.mu, m2: if lambda == 0.0 { 0.0 } else { lambda * x.m2 } })
            }
        }
    }

    /// $\mu_{c_g}$ and $m^{(2)}_{c_g}$ of group number `group`, from 0: all groups see the same
    /// residual, so they are those of clipping at $c_g = r_g c$. A rule without groups has one, 0.
    ///
    /// ```
    /// use toclip::{Factors, Group, Groups, Rule, Step, noise::Laplace};
    /// let noise = Laplace::new(1.0)?;
    /// let groups = Groups::new(&[Group { size: 9, ratio: 1.0 }, Group { size: 5, ratio: 0.5 }])?;
    /// let step = Step::new(&noise).with_rule(Rule::PerGroup(groups))?;
    /// assert_eq!(step.group_moments(1, 0.3, 0.8)?.mu, Factors::new(&noise, 0.3, 0.4)?.mu);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] for a risk or threshold out of range; [`StepError`] for a group
    /// that is not there, and for [`Rule::ByValue`].
    pub fn group_moments(&self, group: usize, r: f64, c: f64) -> Result<Moments> {
        check_risk(r)?;
        check_threshold(c)?;
        let ratios: Vec<f64> = match &self.rule {
            Rule::PerGroup(groups) => groups.groups().iter().map(|g| g.ratio).collect(),
            _ => {
                self.check_radial()?;
                vec![1.0]
            }
        };
        let Some(ratio) = ratios.get(group) else {
            return Err(StepError::NoGroup { group, count: ratios.len() }.into());
        };
        let x = match self.rule {
            Rule::PerGroup(_) => self.clipped_moments(r, c * ratio),
            _ => self.moments(r, c),
        };
        self.check_defined(r, c, x)?;
        Ok(x)
    }

    /// $\mu$ and $m^{(2)}$ of the same noise and batch, clipped by the norm.
    pub(crate) fn clipped_moments(&self, r: f64, c: f64) -> Moments {
        let x = self.batch.clipped(self.noise(), r, c);
        Moments { mu: x.mu, m2: x.m2 / self.batch.size() as f64 }
    }

    /// The largest $m^{(2)}$ of one residual that any direction sees, in units of its eigenvalue:
    /// the size of the noise, to tell a path that diverges.
    pub(crate) fn largest_m2(&self, r: f64, c: f64) -> f64 {
        match &self.rule {
            // Below E X², which is its limit for small eigenvalues.
            Rule::ByValue if c < f64::INFINITY => {
                let x = clipped_coordinate(self.noise(), 1.0, r, c).m2;
                let open = self.residual_second_moment(r);
                if open.is_finite() { open } else { x }
            }
            Rule::ByValue => self.residual_second_moment(r),
            Rule::PerGroup(groups) => {
                let ratio = groups.groups().iter().map(|g| g.ratio).fold(0.0, f64::max);
                self.batch.clipped(self.noise(), r, c * ratio).m2
            }
            _ => self.residual_moments(r, c).m2,
        }
    }

    /// $E X^2 = 2R + E\epsilon^2$ of one residual.
    pub(crate) fn residual_second_moment(&self, r: f64) -> f64 {
        2.0 * r + self.noise().second_moment()
    }

    /// The features of the distribution that is clipped: those of one residual, and the root mean
    /// square about which batches concentrate.
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

    /// Whether $\mu$ and $m^{(2)}$ take long to compute: several residuals together, or an integral
    /// over the density.
    pub(crate) fn is_slow(&self) -> bool {
        match self.rule {
            Rule::Clip | Rule::Normalise => self.batch.together() > 1,
            Rule::Skip | Rule::Smooth(_) | Rule::Optimal => true,
            Rule::ByValue | Rule::PerGroup(_) => false,
        }
    }

    /// The factor on $g$ that a radial rule gives for a gradient $x g$ with $\Vert g\Vert =$ `norm`, at
    /// threshold $c\cdot$`unit` on the norm and risk $R$.
    pub(crate) fn reshape(&self, x: f64, norm: f64, c: f64, unit: f64, r: f64) -> f64 {
        if self.rule != Rule::Optimal {
            return self.rule.reshape(x, norm, c, unit);
        }
        let y = x * norm / unit;
        let (f, df) = self.noise().residual_density(r, y).unwrap_or((f64::NAN, f64::NAN));
        let inverse_information = match &self.scores {
            Some(scores) => scores.moments(self, TablePoint::new(r, c), |_| c).m2,
            None => self.moments(r, c).m2,
        };
        // Where the density underflows its slope is not known.
        if f > 0.0 { -df / f * inverse_information * (unit / norm) } else { 0.0 }
    }

    /// Refuses a risk or a threshold so large or small that integrals over the residual are not
    /// computed right. One residual that is clipped or normalised has closed forms.
    pub(crate) fn check_sizes(&self, r: f64, c: f64) -> Result<()> {
        let range = INTEGRATED;
        if self.is_slow() && r != 0.0 && !range.contains(&r) {
            let expected = "for batches, and for rules other than clip, a risk must be 0, or from \
                            1e-100 to 1e100";
            return Err(Error::parameter("R", r, expected));
        }
        if self.is_slow() && c != f64::INFINITY && !range.contains(&c) {
            let expected = "for batches, and for rules other than clip, a threshold must be from \
                            1e-100 to 1e100, or infinite";
            return Err(Error::parameter("c", c, expected));
        }
        Ok(())
    }
}

impl<'a, N: Noise + 'a> From<N> for Step<'a> {
    fn from(noise: N) -> Self {
        Step::single(Arc::new(noise))
    }
}

impl<'a, N: Noise + 'a> From<Arc<N>> for Step<'a> {
    fn from(noise: Arc<N>) -> Self {
        Step::single(noise)
    }
}

impl From<Arc<dyn Noise>> for Step<'_> {
    fn from(noise: Arc<dyn Noise>) -> Self {
        Step::single(noise)
    }
}

impl From<&Arc<dyn Noise>> for Step<'_> {
    fn from(noise: &Arc<dyn Noise>) -> Self {
        Step::single(noise.clone())
    }
}

impl<'a> From<&Step<'a>> for Step<'a> {
    fn from(step: &Step<'a>) -> Self {
        step.clone()
    }
}
