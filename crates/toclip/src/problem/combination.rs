//! What goes together, and what is refused.

use super::Problem;
use crate::error::{Error, Result};
use crate::model::Objective;
use crate::optimizer::Optimizer;
use crate::policy::Policy;
use crate::rule::Rule;

/// A way to compute or simulate a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// [`Ode`](crate::dynamics::Ode).
    Ode,
    /// [`Volterra`](crate::dynamics::Volterra).
    Volterra,
    /// [`Hsgd`](crate::dynamics::Hsgd).
    Hsgd,
    /// [`Sgd`](crate::dynamics::Sgd).
    Sgd,
    /// [`Collapsed`](crate::dynamics::Collapsed).
    Collapsed,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Method::Ode => "the ODE",
            Method::Volterra => "the integral equation",
            Method::Hsgd => "C-HSGD",
            Method::Sgd => "C-SGD",
            Method::Collapsed => "collapsed C-SGD",
        })
    }
}

/// A combination that has no theory or no simulation; its message says what is possible.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Combination {
    /// Momentum with a rule that is not radial, or with privacy.
    #[error(
        "momentum is solved and simulated for rules that keep the direction of the gradient, \
         without privacy noise: use such a rule, or leave momentum out"
    )]
    MomentumStep,
    /// An average of gradients with dampening.
    #[error("an average of gradients has no dampening: use the heavy ball, or leave it out")]
    AverageDampening,
    /// $\delta$ above $d$ in a simulation.
    #[error(
        "delta = {delta} is above the dimension {dim}, so beta = 1 - delta/d would be negative: use \
         a smaller delta, or the ODE, which allows any"
    )]
    DeltaAboveDimension {
        /// $\delta$.
        delta: f64,
        /// $d$.
        dim: f64,
    },
    /// A rule with a factor for each direction in a method that needs one for all.
    #[error(
        "the rule `{rule}` has one factor for each direction of the gradient, but {method} needs one \
         for all of them: use the ODE, full C-SGD or C-HSGD"
    )]
    RuleNotRadial {
        /// The rule.
        rule: &'static str,
        /// The method.
        method: Method,
    },
    /// A rule with factors for each direction, from compressed modes.
    #[error(
        "{rule} has factors for each eigendirection, and these modes are compressed: use the modes \
         from before `compress`"
    )]
    RuleOnCompressedModes {
        /// The rule.
        rule: &'static str,
    },
    /// A simulation from compressed modes.
    #[error(
        "{method} needs every eigendirection, and these modes are compressed: use the modes from \
         before `compress`"
    )]
    CompressedModes {
        /// The method.
        method: Method,
    },
    /// More coordinates than are simulated one by one.
    #[error(
        "full C-SGD in {dim} dimensions would need more than 4 GB: with repeated eigenvalues use the \
         collapsed form, which has the same distribution; otherwise use at most {most}"
    )]
    TooManyCoordinates {
        /// The number of coordinates.
        dim: u64,
        /// The most that are simulated.
        most: u64,
    },
    /// More coordinates than are simulated one by one, where there is no collapsed form.
    #[error(
        "{method} simulates every direction of this problem, and {dim} are too many: use at most \
         {most}, or the ODE"
    )]
    TooManyDirections {
        /// The method.
        method: Method,
        /// The number of directions.
        dim: u64,
        /// The most that are simulated.
        most: u64,
    },
    /// A batch with several outputs in a simulation.
    #[error(
        "C-SGD is simulated with one output, not {outputs}; the ODE, the integral equation and C-HSGD \
         support several"
    )]
    SeveralOutputs {
        /// Their number.
        outputs: u64,
    },
    /// An online policy with a batch.
    #[error(
        "an online policy needs one residual a step: use a batch of one, or a policy that knows the \
         risk"
    )]
    OnlineBatch,
    /// An online policy in private SGD.
    #[error(
        "an online policy looks at residuals, which are not private: use a policy that knows the \
         risk, or a schedule"
    )]
    OnlinePrivate,
    /// Private SGD without a threshold.
    #[error("private SGD adds noise in proportion to the threshold: give a finite one")]
    PrivateUnclipped,
    /// Private SGD in the integral equation.
    #[error("the integral equation does not include the noise of private SGD: use the ODE")]
    PrivateVolterra,
    /// Private SGD from compressed modes.
    #[error(
        "private SGD adds noise to every direction, and compressed modes do not count them: use the \
         modes from before `compress`"
    )]
    PrivateOnCompressedModes,
    /// An optimizer that a method does not support.
    #[error("{method} does not support {optimizer}; use {possible}")]
    OptimizerMethod {
        /// The optimizer.
        optimizer: &'static str,
        /// The method.
        method: Method,
        /// What does.
        possible: &'static str,
    },
    /// A generalised linear model with another rule, privacy, outputs or optimizer.
    #[error(
        "generalised linear models are solved and simulated for plain SGD with clipping by the norm \
         and one output, without privacy: leave out {refused}, or use least squares"
    )]
    ModelStep {
        /// What is not possible.
        refused: &'static str,
    },
    /// A generalised linear model under a policy that follows the risk of least squares.
    #[error(
        "generalised linear models take rates and thresholds that depend on time alone, and this \
         policy follows the risk of least squares"
    )]
    ModelPolicy,
    /// A generalised linear model in a method for least squares.
    #[error(
        "{method} is for least squares; generalised linear models have the ODE, C-SGD and C-SGD on \
         data"
    )]
    ModelMethod {
        /// The method.
        method: Method,
    },
    /// A generalised linear model with features that are not Gaussian.
    #[error("generalised linear models are simulated with Gaussian features: use those")]
    ModelCovariates,
    /// A generalised linear model without a teacher.
    #[error(
        "a generalised linear model needs a teacher: build the modes with `Modes::with_teacher`"
    )]
    ModelWithoutTeacher,
    /// The ODE of a generalised linear model where the mean of a batch is clipped.
    #[error(
        "the ODE of a generalised linear model clips single samples: use a batch of one, clip each \
         sample, or simulate"
    )]
    ModelBatchMean,
    /// A rule per group with modes that have other groups, or none.
    #[error(
        "clip per group needs modes with its groups, of sizes {sizes:?}: make them with \
         `Modes::grouped`"
    )]
    Groups {
        /// The sizes that the rule has.
        sizes: Vec<u64>,
    },
    /// The optimal rule on data.
    #[error(
        "the optimal rule needs the distribution of the noise, which data do not give: use another \
         rule"
    )]
    OptimalOnData,
}

/// Refuses parts for which there is neither theory nor simulation.
pub(super) fn check(problem: &Problem) -> std::result::Result<(), Combination> {
    let Problem { modes, objective, step, optimizer, policy } = problem;
    if let Optimizer::Momentum(_) = optimizer
        && !(step.rule().is_radial() && step.privacy().is_none())
    {
        return Err(Combination::MomentumStep);
    }
    if let Objective::Model(_) = objective {
        let refused = match step {
            _ if *optimizer != Optimizer::Sgd => Some("the optimizer"),
            step if *step.rule() != Rule::Clip => Some("the rule"),
            step if step.privacy().is_some() => Some("privacy"),
            step if step.batch().output_count() > 1 => Some("the outputs of the batch"),
            _ => None,
        };
        if let Some(refused) = refused {
            return Err(Combination::ModelStep { refused });
        }
        if follows_risk(&**policy) {
            return Err(Combination::ModelPolicy);
        }
        if modes.alignments().is_none() {
            return Err(Combination::ModelWithoutTeacher);
        }
    }
    if let Rule::PerGroup(_) = step.rule()
        && !modes.is_whole()
    {
        return Err(Combination::RuleOnCompressedModes { rule: step.rule().name() });
    }
    if let Rule::PerGroup(groups) = step.rule()
        && modes.groups().is_none_or(|labels| labels.sizes != groups.sizes())
    {
        return Err(Combination::Groups { sizes: groups.sizes() });
    }
    if step.private_variance(policy.at(0.0, modes.risk()).c) == f64::INFINITY {
        return Err(Combination::PrivateUnclipped);
    }
    Ok(())
}

/// Refuses what C-SGD on data does not support, of least squares or of a model.
pub(crate) fn check_stream(rule: &Rule, is_model: bool, policy: &dyn Policy) -> Result<()> {
    let refused = if *rule == Rule::Optimal {
        Some(Combination::OptimalOnData)
    } else if is_model && *rule != Rule::Clip {
        Some(Combination::ModelStep { refused: "the rule" })
    } else if is_model && follows_risk(policy) {
        Some(Combination::ModelPolicy)
    } else {
        None
    };
    refused.map_or(Ok(()), |why| Err(Error::Combination(why)))
}

/// Whether a policy needs the risk of least squares, or the residuals that estimate it.
fn follows_risk(policy: &dyn Policy) -> bool {
    policy.uses_risk() || policy.session().is_some()
}

/// The most coordinates that are simulated one by one: 4 GB of state a run.
pub(crate) const MOST_COORDINATES: u64 = 100_000_000;

impl Problem {
    /// Whether this method can compute or simulate the problem.
    pub fn supports(&self, method: Method) -> bool {
        method_refuses(self, method).is_none()
    }

    /// Refuses what this method does not support.
    pub(crate) fn check_method(&self, method: Method) -> Result<()> {
        method_refuses(self, method).map_or(Ok(()), |why| Err(Error::Combination(why)))
    }
}

fn method_refuses(problem: &Problem, method: Method) -> Option<Combination> {
    let Problem { modes, objective, step, optimizer, policy } = problem;
    let is_model = matches!(objective, Objective::Model(_));
    if is_model && !matches!(method, Method::Ode | Method::Sgd) {
        return Some(Combination::ModelMethod { method });
    }
    if let Some(possible) = optimizer.instead_of(method) {
        return Some(Combination::OptimizerMethod {
            optimizer: optimizer.name(),
            method,
            possible,
        });
    }
    let is_simulated = matches!(method, Method::Sgd | Method::Collapsed);
    if matches!(method, Method::Volterra | Method::Collapsed) && !step.rule().is_radial() {
        return Some(Combination::RuleNotRadial { rule: step.rule().name(), method });
    }
    if method == Method::Volterra && step.privacy().is_some() {
        return Some(Combination::PrivateVolterra);
    }
    if !step.rule().is_radial() && !modes.is_whole() {
        return Some(Combination::RuleOnCompressedModes { rule: step.rule().name() });
    }
    if step.privacy().is_some() && !modes.is_whole() {
        return Some(Combination::PrivateOnCompressedModes);
    }
    if (is_simulated || method == Method::Hsgd) && !modes.is_whole() {
        return Some(Combination::CompressedModes { method });
    }
    if is_simulated {
        let batch = step.batch();
        let online = policy.session().is_some();
        if batch.output_count() > 1 {
            return Some(Combination::SeveralOutputs { outputs: batch.output_count() });
        }
        if online && batch.size() > 1 {
            return Some(Combination::OnlineBatch);
        }
        if online && step.privacy().is_some() {
            return Some(Combination::OnlinePrivate);
        }
    }
    let every_coordinate = match optimizer {
        Optimizer::Sgd => method == Method::Sgd,
        _ => is_simulated || method == Method::Hsgd,
    };
    if every_coordinate && modes.ambient_dim() > MOST_COORDINATES {
        let (dim, most) = (modes.ambient_dim(), MOST_COORDINATES);
        return Some(if is_model || *optimizer != Optimizer::Sgd {
            Combination::TooManyDirections { method, dim, most }
        } else {
            Combination::TooManyCoordinates { dim, most }
        });
    }
    if is_simulated { optimizer.beyond_dimension(modes.dim()) } else { None }
}
