//! Which noise, batch, rule and privacy go together in a step, and which factors it then has.

use crate::error::{Error, Result, plain};
use crate::factors::batch::Batch;
use crate::factors::kernel::Moments;
use crate::factors::step::Step;
use crate::noise::Noise;
use crate::privacy::Privacy;
use crate::rule::Rule;

/// A step that the theory does not cover, or a number that a step does not have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// Privacy with another rule than clipping, or with a batch that is clipped as a whole.
    #[error(
        "private SGD bounds what each sample contributes: clip each sample by its norm (rule clip, \
         clipping per sample or a batch of one), not {rule} of {batch}"
    )]
    PrivateUnlessEachSampleIsClipped {
        /// The name of the rule.
        rule: &'static str,
        /// The batch.
        batch: Batch,
    },
    /// [`Rule::Optimal`] for several residuals together.
    #[error(
        "the optimal rule is the score of one residual, and a batch has several: use a batch of \
         one, or apply it to each sample"
    )]
    OptimalOfSeveral,
    /// [`Rule::ByValue`] for several samples together.
    #[error(
        "clipping by value is solved for the gradient of one sample: use a batch of one, or clip \
         each sample"
    )]
    ByValueOfSeveral,
    /// A noise without [`Noise::squared_residual`] for several residuals together.
    #[error(
        "{noise} noise does not provide the distribution of squared residuals, which batches need: \
         implement `Noise::squared_residual`, use a batch of one, or clip each sample"
    )]
    NoSquaredResidual {
        /// The noise in words.
        noise: String,
    },
    /// One pair of factors of a rule that has a pair for each eigenvalue or group.
    #[error("the rule `{rule}` has factors for each eigenvalue, not one pair for all of them")]
    SeveralPairs {
        /// The name of the rule.
        rule: &'static str,
    },
    /// Factors of an eigenvalue under [`Rule::PerGroup`].
    #[error(
        "clip per group has factors for each group, whatever the eigenvalue: ask for those of a \
         group"
    )]
    EigenvalueOfGroups,
    /// A group that is not there.
    #[error("there is no group {group}: there are {count}, counted from 0")]
    NoGroup {
        /// The group asked for.
        group: usize,
        /// How many there are.
        count: usize,
    },
    /// [`Rule::Optimal`] at a risk where the residual has atoms.
    #[error(
        "the optimal rule at R = {} for {noise} noise: the residual has atoms or jumps there, and \
         its score is not a function; use R > 0", plain(*r)
    )]
    ScoreOfAtoms {
        /// The risk.
        r: f64,
        /// The noise in words.
        noise: String,
    },
    /// Integrals over a batch that do not converge.
    #[error(
        "the factors of a batch at R = {}, c = {} did not converge for {noise} noise: its parts \
         are too narrow for their distances; widen the narrowest, or leave out the rarest",
        plain(*r), plain(*c)
    )]
    BatchDidNotConverge {
        /// The risk.
        r: f64,
        /// The threshold.
        c: f64,
        /// The noise in words.
        noise: String,
    },
    /// A rule that needs a density where the noise has none.
    #[error(
        "the factors of rule `{rule}` at R = {}, c = {} need the density of the residual, which \
         {noise} noise does not provide at this risk", plain(*r), plain(*c)
    )]
    NoDensity {
        /// The name of the rule.
        rule: &'static str,
        /// The risk.
        r: f64,
        /// The threshold.
        c: f64,
        /// The noise in words.
        noise: String,
    },
}

/// Refuses combinations that the theory does not cover:
///
/// | | several residuals clipped together | private |
/// |---|---|---|
/// | `Clip`, `PerGroup` | with [`Noise::squared_residual`] | `Clip` of each sample |
/// | `Skip`, `Normalise`, `Smooth` | the same; for one residual with [`Noise::residual_density`] | – |
/// | `Optimal`, which needs the density | – | – |
/// | `ByValue` | – | – |
pub(crate) fn check(
    noise: &dyn Noise,
    batch: Batch,
    rule: &Rule,
    privacy: Option<Privacy>,
) -> Result<()> {
    let single = batch.together() == 1;
    if !single && noise.squared_residual(1.0).is_none() {
        return Err(StepError::NoSquaredResidual { noise: noise.describe() }.into());
    }
    if privacy.is_some() && !(single && *rule == Rule::Clip) {
        let rule = rule.name();
        return Err(StepError::PrivateUnlessEachSampleIsClipped { rule, batch }.into());
    }
    match rule {
        Rule::Optimal if !single => Err(StepError::OptimalOfSeveral.into()),
        Rule::ByValue if !single => Err(StepError::ByValueOfSeveral.into()),
        Rule::Clip | Rule::ByValue | Rule::PerGroup(_) => Ok(()),
        _ if single && noise.residual_density(1.0, 0.0).is_none() => Err(Error::NotProvided {
            family: noise.describe(),
            what: "the density of the residual",
            method: "residual_density",
        }),
        _ => Ok(()),
    }
}

impl Step<'_> {
    /// Refuses a rule that has no single $\mu$ and $m^{(2)}$.
    pub(crate) fn check_radial(&self) -> Result<()> {
        match self.rule().is_radial() {
            true => Ok(()),
            false => Err(StepError::SeveralPairs { rule: self.rule().name() }.into()),
        }
    }

    /// Refuses factors that are NaN, and says why they are.
    pub(crate) fn check_defined(&self, r: f64, c: f64, x: Moments) -> Result<()> {
        if *self.rule() == Rule::Normalise && c == f64::INFINITY {
            let expected = "to normalise gradients, give a finite threshold";
            return Err(Error::parameter("c", c, expected));
        }
        let noise = || self.noise().describe();
        if *self.rule() == Rule::Optimal && x.m2 == 0.0 && self.residual_second_moment(r) > 0.0 {
            return Err(StepError::ScoreOfAtoms { r, noise: noise() }.into());
        }
        if !x.mu.is_nan() && !x.m2.is_nan() {
            return Ok(());
        }
        Err(if self.batch().together() > 1 {
            StepError::BatchDidNotConverge { r, c, noise: noise() }.into()
        } else {
            StepError::NoDensity { rule: self.rule().name(), r, c, noise: noise() }.into()
        })
    }
}
