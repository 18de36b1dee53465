//! Problems whose solution is known.

use crate::logistic::Logistic;
use toclip::noise::{
    Component, Family, Gaussian, Laplace, Mixture, NoNoise, Noise, Rademacher, StudentT, Uniform,
};
use toclip::spectrum::{Block, Spectrum};
use toclip::{Error, Result};

/// Streaming batches of $B$ samples with Gaussian features $x \sim N(0, K)$, and the exact risk.
///
/// Least squares has targets $\langle x, \theta^\ast\rangle + \epsilon$, logistic regression labels
/// drawn from a logistic model and then flipped with some probability. The risk is the excess of
/// the population risk over its minimum.
///
/// ```
/// use toclip_trial::Problem;
/// let all = Problem::standard()?;
/// assert_eq!(all.len(), 33);
/// assert!(all.iter().any(|p| p.name() == "cauchy/8" && p.batch() == 8));
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Problem {
    group: &'static str,
    describe: String,
    batch: usize,
    pub(crate) labels: Labels,
    /// $\sqrt{\lambda_i}$.
    pub(crate) root: Vec<f64>,
    /// Least squares: $\theta_0 - \theta^\ast$; logistic regression: $\theta_0 = 0$.
    pub(crate) start: Vec<f64>,
    /// $K^{1/2}\theta^\ast/\Vert\theta^\ast\Vert_K$ for logistic regression.
    pub(crate) truth: Vec<f64>,
    /// $\Vert\theta^\ast\Vert_K$ for logistic regression.
    pub(crate) margin: f64,
    dim: f64,
    start_risk: f64,
}

/// The model of the labels.
#[derive(Debug, Clone)]
pub(crate) enum Labels {
    Linear(Family),
    Logistic(Logistic),
}

/// Batch sizes of the standard problems.
const BATCHES: [usize; 3] = [1, 8, 64];
/// $R(0)$ of the standard least squares: four times the noise's $\sigma^2/2$.
const START_RISK: f64 = 2.0;
/// $\Vert\theta^\ast\Vert_K$ of the standard logistic regressions: with the labels not flipped, the
/// best classifier errs on 13% of them.
const MARGIN: f64 = 4.0;

impl Problem {
    /// Least squares from $R(0)$ = `start_risk`, with $\theta_0 - \theta^\ast$ the same in all
    /// coordinates of the eigenbasis.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an empty batch or a risk that is not positive and finite.
    ///
    /// ```
    /// use toclip::noise::Gaussian;
    /// use toclip::spectrum::Spectrum;
    /// use toclip_trial::Problem;
    /// let k = Spectrum::isotropic(100)?;
    /// let problem = Problem::least_squares("mine", &k, 2.0, Gaussian::new(1.0)?.into(), 8)?;
    /// assert!((problem.start_risk() - 2.0).abs() < 1e-12);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn least_squares(
        group: &'static str,
        spectrum: &Spectrum,
        start_risk: f64,
        noise: Family,
        batch: usize,
    ) -> Result<Self> {
        if !(start_risk > 0.0 && start_risk.is_finite()) {
            return Err(Error::parameter("start_risk", start_risk, "positive and finite"));
        }
        let describe = format!("least squares, {} noise", noise.describe());
        let mut problem = Self::new(group, describe, spectrum, batch, Labels::Linear(noise))?;
        let each = (2.0 * start_risk / problem.dim).sqrt();
        problem.start.fill(each);
        problem.start_risk = start_risk;
        Ok(problem)
    }

    /// Logistic regression from zero, with $\Vert\theta^\ast\Vert_K$ = `margin` and a share `flip`
    /// of the labels flipped.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an empty batch, a margin that is not positive and finite, or a
    /// share outside $\[0, 1/2)$.
    ///
    /// ```
    /// use toclip::spectrum::Spectrum;
    /// use toclip_trial::Problem;
    /// let k = Spectrum::isotropic(100)?;
    /// let problem = Problem::logistic("mine", &k, 3.0, 0.1, 8)?;
    /// // At zero the loss is log 2.
    /// assert!(problem.start_risk() < std::f64::consts::LN_2);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn logistic(
        group: &'static str,
        spectrum: &Spectrum,
        margin: f64,
        flip: f64,
        batch: usize,
    ) -> Result<Self> {
        if !(margin > 0.0 && margin.is_finite()) {
            return Err(Error::parameter("margin", margin, "positive and finite"));
        }
        if !(0.0..0.5).contains(&flip) {
            return Err(Error::parameter("flip", flip, "a share from 0 to less than 1/2"));
        }
        let model = Logistic::new(margin, flip);
        let describe = format!("logistic regression, {}% of labels flipped", 100.0 * flip);
        let mut problem = Self::new(group, describe, spectrum, batch, Labels::Logistic(model))?;
        // θ* is the same in all coordinates.
        let norm = problem.root.iter().map(|r| r * r).sum::<f64>().sqrt();
        problem.truth = problem.root.iter().map(|r| r / norm).collect();
        problem.margin = margin;
        problem.start_risk = model.excess(0.0, 0.0);
        Ok(problem)
    }

    fn new(
        group: &'static str,
        describe: String,
        spectrum: &Spectrum,
        batch: usize,
        labels: Labels,
    ) -> Result<Self> {
        if batch == 0 {
            return Err(Error::parameter("batch", 0.0, "a batch has at least one sample"));
        }
        let eigenvalues = spectrum.blocks().iter();
        let root: Vec<f64> = eigenvalues
            .flat_map(|b| std::iter::repeat_n(b.value.sqrt(), b.multiplicity as usize))
            .collect();
        let start = vec![0.0; root.len()];
        let dim = spectrum.intrinsic_dim();
        let (truth, margin, start_risk) = (Vec::new(), 0.0, 0.0);
        Ok(Self { group, describe, batch, labels, root, start, truth, margin, dim, start_risk })
    }

    /// The problems of the trial: eight noises and three shares of flipped labels, each at batch
    /// sizes 1, 8 and 64.
    ///
    /// The spectrum of least squares is a power model in 256 dimensions, that of logistic
    /// regression three blocks in 200; the intrinsic dimension is about 70 for both. All noises but
    /// Cauchy's, which has none, have variance one.
    ///
    /// # Errors
    /// None that a caller could cause.
    pub fn standard() -> Result<Vec<Self>> {
        let power_law = Spectrum::power_law(256, 0.3)?;
        let wide = Component { weight: 0.1, mean: 0.0, std: 3.0 };
        let narrow = Component { weight: 0.9, mean: 0.0, std: (0.1_f64 / 0.9).sqrt() };
        let noises: [(&str, Family); 8] = [
            ("none", NoNoise.into()),
            ("gaussian", Gaussian::new(1.0)?.into()),
            ("rademacher", Rademacher::from_sigma(1.0, 0.2)?.into()),
            ("uniform", Uniform::from_sigma(1.0)?.into()),
            ("laplace", Laplace::new(1.0)?.into()),
            ("student_t", StudentT::from_sigma(2.5, 1.0)?.into()),
            ("cauchy", StudentT::new(1.0, 0.5)?.into()),
            ("mixture", Mixture::new(&[narrow, wide])?.into()),
        ];
        let block = |value, multiplicity| Block { value, multiplicity };
        let blocks = Spectrum::from_blocks(&[block(1.0, 20), block(0.5, 60), block(0.2, 120)])?;
        let flips = [("logistic 0%", 0.0), ("logistic 10%", 0.1), ("logistic 30%", 0.3)];
        let mut all = Vec::new();
        for (group, noise) in noises {
            for batch in BATCHES {
                let noise = noise.clone();
                all.push(Self::least_squares(group, &power_law, START_RISK, noise, batch)?);
            }
        }
        for (group, flip) in flips {
            for batch in BATCHES {
                all.push(Self::logistic(group, &blocks, MARGIN, flip, batch)?);
            }
        }
        Ok(all)
    }

    /// The problem in one word: its group and $B$.
    pub fn name(&self) -> String {
        format!("{}/{}", self.group, self.batch)
    }

    /// The name without the batch size.
    pub fn group(&self) -> &'static str {
        self.group
    }

    /// The problem in a few words, without $B$.
    pub fn describe(&self) -> &str {
        &self.describe
    }

    /// $B$, the samples of a batch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// $d = \operatorname{Tr} K$: a learning rate $\eta$ makes steps of $\eta/d$.
    pub fn dim(&self) -> f64 {
        self.dim
    }

    /// The excess risk at the start.
    pub fn start_risk(&self) -> f64 {
        self.start_risk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_problems_are_refused() {
        let k = Spectrum::isotropic(10).unwrap();
        let noise = || Family::from(NoNoise);
        assert!(Problem::least_squares("x", &k, 1.0, noise(), 0).is_err());
        assert!(Problem::least_squares("x", &k, 0.0, noise(), 1).is_err());
        assert!(Problem::logistic("x", &k, 1.0, 0.5, 1).is_err());
        assert!(Problem::logistic("x", &k, f64::NAN, 0.1, 1).is_err());
    }

    #[test]
    fn names_are_unique_and_dimensions_as_documented() {
        let all = Problem::standard().unwrap();
        let names: std::collections::BTreeSet<String> = all.iter().map(Problem::name).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().all(|p| (65.0..80.0).contains(&p.dim())));
    }
}
