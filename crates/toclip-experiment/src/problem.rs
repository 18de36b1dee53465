//! The problem that an experiment describes, in the coordinates of the theory, where ‖K‖ = 1.

use std::sync::Arc;

use toclip::dynamics::{
    Collapsed, Covariates, Hsgd, Sgd, Simulator, Trajectory, linear_times, log_times,
};
use toclip::policy::{Control, Policy, Schedule};
use toclip::spectrum::{Modes, Rescaling, Spectrum, Start};
use toclip::{Momentum, Rule, Step};

use crate::error::Result;
use crate::files::{SpectrumSource, resolve_spectrum};
use crate::limits::{check_memory, check_steps};
use crate::{
    BuiltOptimizer, Clip, Experiment, KeyError, Method, NoiseChoice, Origin, PolicySpec,
    RuleChoice, SavedTimes, Spacing,
};
use toclip_words::short;

/// Above so many modes the deterministic methods get a compressed spectrum.
const COMPRESS_ABOVE: usize = 2000;
/// The error allowed in that, as a share of the solver's.
const COMPRESS_SHARE: f64 = 0.01;
/// A block of the collapsed form (a normal and a χ²) costs as much as so many plain coordinates.
const BLOCK_COST: u64 = 20;

/// An experiment, ready to run.
#[derive(Debug)]
pub struct Problem {
    /// The eigenvalues of K as the user means them.
    pub spectrum: Spectrum,
    /// The kind of file that the spectrum was read from, if any.
    pub source: Option<SpectrumSource>,
    /// Eigenvalues and start in the coordinates of the theory.
    pub modes: Modes,
    /// The modes for the ODE and the integral equation: the same, or fewer that stand for them.
    pub few_modes: Modes,
    /// The step: the noise, its batches and the rule.
    pub step: Step<'static>,
    /// The step of plain SGD, to compare with: without a threshold it does nothing to the gradient.
    pub plain: Step<'static>,
    /// How steps remember gradients.
    pub momentum: Option<Momentum>,
    /// η and c in the coordinates of the theory.
    pub policy: Arc<dyn Policy>,
    /// The same without clipping.
    pub unclipped: Arc<dyn Policy>,
    /// The distribution of the features that C-SGD sees.
    pub covariates: Covariates,
    /// The times that are saved.
    pub times: Vec<f64>,
    /// From the coordinates of the user to those of the theory.
    rescaling: Rescaling,
    /// Whether thresholds are numbers of the user.
    own_thresholds: bool,
}

impl Problem {
    /// Builds the problem of an experiment.
    ///
    /// # Errors
    /// [`Error::Wrong`](crate::Error::Wrong) with the place of the part that cannot be built.
    pub fn new(experiment: &Experiment, origin: &Origin) -> Result<Self> {
        let (spectrum, read) = resolve_spectrum(&experiment.spectrum, origin.folder())
            .map_err(|e| origin.error("spectrum", e))?;
        check_coordinates(experiment, read).map_err(|e| origin.at(e))?;
        let rescaling = spectrum.rescaling();
        let family = experiment
            .noise
            .build(experiment.batch, &RuleChoice::default(), origin.folder())
            .map_err(|e| origin.error("noise", e))?;
        let plain = family.clone();
        let BuiltOptimizer { modes, step, momentum } = experiment
            .optimizer()
            .build(family, &spectrum, &experiment.start)
            .map_err(|e| origin.at(e))?;
        if modes.risk() == 0.0
            && matches!(experiment.start, Start::Uniform { norm } if norm == 0.0)
            && experiment.noise == NoiseChoice::Family(toclip::noise::NoNoise.into())
        {
            let what = "the start is the optimum and there is no noise, so SGD would not move";
            return Err(origin.error("start", what));
        }
        // The bound on the error of compression is that of the equations of radial rules.
        let few_modes = match compression_error(modes.modes().len(), experiment.tolerance) {
            Some(allowed) if step.rule().is_radial() => {
                modes.compress(allowed).map_err(|e| origin.error("spectrum", e))?
            }
            _ => modes.clone(),
        };
        let times =
            times(experiment.time, experiment.points).map_err(|e| origin.error("points", e))?;
        if let Clip::Schedule(clip) = &experiment.clip {
            check_thresholds(clip, &times, experiment.time).map_err(|e| origin.at(e))?;
        }
        let spec = experiment.policy();
        spec.check_momentum(momentum).map_err(|e| origin.at(e))?;
        let build = |spec: &PolicySpec, step: &Step<'static>| {
            spec.build(&modes, step, &rescaling).map_err(|e| origin.at(e))
        };
        let without = PolicySpec { clip: Clip::None, ..spec.clone() };
        let (policy, unclipped) = (build(&spec, &step)?, build(&without, &plain)?);
        let own_thresholds = spec.has_own_thresholds();
        let problem = Problem {
            spectrum,
            source: read,
            modes,
            few_modes,
            step,
            plain,
            momentum,
            policy,
            unclipped,
            covariates: experiment.covariates,
            times,
            rescaling,
            own_thresholds,
        };
        if problem.momentum.is_some() && experiment.methods.contains(&Method::Volterra) {
            let what = "\"volterra\" does not support momentum; use \"ode\"";
            return Err(origin.error("methods", what));
        }
        problem.check_ensembles(experiment, origin)?;
        Ok(problem)
    }

    /// Refuses before the start methods that cannot be simulated, and more runs than fit into memory.
    fn check_ensembles(&self, experiment: &Experiment, origin: &Origin) -> Result<()> {
        for &method in experiment.methods.iter().filter(|m| m.is_ensemble()) {
            let key =
                if self.covariates == Covariates::Gaussian { "spectrum" } else { "covariates" };
            self.simulator(method).map_err(|e| origin.error(key, e))?;
            check_steps(experiment.time, self.modes.dim()).map_err(|e| origin.error("time", e))?;
            check_memory(experiment.ensemble.runs, self.times.len())
                .map_err(|e| origin.error("ensemble", e))?;
        }
        Ok(())
    }

    /// From the coordinates of the user to those of the theory.
    pub fn rescaling(&self) -> &Rescaling {
        &self.rescaling
    }

    /// η and c as the user means them, at the start.
    pub fn control_at_start(&self) -> Control {
        let Control { eta, c } = self.policy.at(0.0, self.modes.risk());
        let back = self.rescaling.inverse();
        Control { eta: back.learning_rate(eta), c: back.threshold(c) }
    }

    /// The threshold at the start as the theory sees it.
    pub fn threshold_at_start(&self) -> f64 {
        self.policy.at(0.0, self.modes.risk()).c
    }

    /// ‖θ₀ − θ*‖² as the user means it.
    pub fn distance(&self) -> f64 {
        self.rescaling.inverse().distance(self.modes.distance())
    }

    /// A sentence about the rescaling, if there was one.
    pub fn rescaled(&self) -> Option<String> {
        (!self.rescaling.is_identity()).then(|| {
            let s = short(self.rescaling.norm());
            let own =
                if self.own_thresholds { ", thresholds divided by its square root" } else { "" };
            format!(
                "||K|| = {s}: computed in coordinates where it is 1 (learning rates multiplied by \
                 it{own}); η, c and distances are reported in your coordinates"
            )
        })
    }

    /// A sentence about the compression, if there was one.
    pub fn compressed(&self) -> Option<String> {
        let (from, to) = (self.modes.modes().len(), self.few_modes.modes().len());
        (to < from).then(|| {
            format!(
                "compressed {from} distinct eigenvalues to {to} nodes for the ODE (error at most {:.0e})",
                self.few_modes.bound().largest()
            )
        })
    }

    /// A path in the coordinates of the user.
    pub fn to_user(&self, path: Trajectory) -> Trajectory {
        path.rescaled(&self.rescaling.inverse())
    }

    /// A sentence for features that are not those of the theory.
    pub fn other_covariates(&self) -> Option<String> {
        let kind = match self.covariates {
            Covariates::Gaussian => return None,
            Covariates::Rademacher => "Rademacher".into(),
            Covariates::Uniform => "uniform".into(),
            Covariates::Laplace => "Laplace".into(),
            Covariates::StudentT { df } => format!("Student-t (df = {df})"),
            other => format!("{other:?}"),
        };
        Some(format!("C-SGD uses {kind} features; the theory assumes Gaussian ones"))
    }

    /// The random method, and in which form it is simulated.
    pub fn simulator(&self, method: Method) -> toclip::Result<(Box<dyn Simulator>, &'static str)> {
        let (step, policy) = (self.step.clone(), Arc::clone(&self.policy));
        if method == Method::Hsgd {
            let mut hsgd = Hsgd::new(&self.modes, step, policy)?;
            if let Some(momentum) = self.momentum {
                hsgd = hsgd.with_momentum(momentum)?;
            }
            return Ok((Box::new(hsgd), "equal eigenvalues merged"));
        }
        let blocks = self.modes.modes().len() as u64;
        let few = blocks.saturating_mul(BLOCK_COST) <= self.modes.ambient_dim();
        let collapses = self.momentum.is_none() && self.step.rule().is_radial();
        if few && collapses && self.covariates == Covariates::Gaussian {
            let sgd = Collapsed::new(&self.modes, step, policy)?;
            return Ok((
                Box::new(sgd),
                "equal eigenvalues merged (collapsed form, exact in distribution)",
            ));
        }
        let mut sgd = Sgd::new(&self.modes, step, policy)?.with_covariates(self.covariates)?;
        if let Some(momentum) = self.momentum {
            sgd = sgd.with_momentum(momentum)?;
        }
        Ok((Box::new(sgd), "every coordinate"))
    }
}

/// The error allowed in compressed modes for the deterministic methods; `None` for modes few enough to be
/// used as they are.
pub(crate) fn compression_error(modes: usize, tolerance: f64) -> Option<f64> {
    (modes > COMPRESS_ABOVE).then(|| (COMPRESS_SHARE * tolerance).max(1e-12))
}

/// Refuses a threshold of 0 up to the end.
pub(crate) fn check_thresholds(clip: &Schedule, times: &[f64], end: f64) -> Result<(), KeyError> {
    let breaks = clip.breakpoints().into_iter().filter(|&t| t <= end);
    let mut moments = breaks.chain([0.0, end]).chain(times.iter().copied());
    match moments.find(|&t| clip.at(t) <= 0.0) {
        Some(t) => {
            let what = format!(
                "the threshold is 0 at t = {t}; expected a positive threshold at all times"
            );
            Err(KeyError::new("clip", what))
        }
        None => Ok(()),
    }
}

/// The times that are saved.
pub(crate) fn times(end: f64, points: SavedTimes) -> toclip::Result<Vec<f64>> {
    match points.spacing {
        Spacing::Linear => linear_times(end, points.count),
        Spacing::Log => log_times(points.first.unwrap_or(1e-3 * end), end, points.count),
    }
}

/// Refuses rules that depend on the coordinates where the file has a covariance, which is computed in its
/// eigenbasis.
fn check_coordinates(
    experiment: &Experiment,
    source: Option<SpectrumSource>,
) -> Result<(), KeyError> {
    let by_value = experiment.rule.0 == Rule::ByValue;
    match source {
        Some(source @ SpectrumSource::Covariance(_)) if by_value => Err(KeyError::new(
            "rule",
            format!(
                "\"by_value\" depends on the coordinates, and the theory is for those in which the \
                 covariance is diagonal, but the spectrum file has {source} that is not: give a \
                 diagonal covariance or its eigenvalues, or a rule for the norm, such as \"clip\""
            ),
        )),
        Some(source @ (SpectrumSource::Covariance(_) | SpectrumSource::Diagonal(_)))
            if !experiment.groups.is_empty() =>
        {
            Err(KeyError::new(
                "groups",
                format!(
                    "groups are coordinates in the order of the eigenvalues, but the spectrum file \
                     has {source}: give the variances of the coordinates as a list, in their order"
                ),
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::parse;
    use std::path::Path;
    use toclip::dynamics::Ode;

    fn problem(spectrum: &str, rest: &str) -> Result<Problem> {
        let text = format!(
            "spectrum = {spectrum}\nstart = {{ kind = 'uniform', norm = 2.0 }}\ntime = 3\n{rest}\n"
        );
        let (experiment, source) = parse(&text, Path::new("e.toml"))?;
        Problem::new(&experiment, &source)
    }

    fn path(problem: &Problem) -> Trajectory {
        let ode = Ode::new(&problem.few_modes, &problem.step, &*problem.policy).keep_path(true);
        problem.to_user(ode.solve(&problem.times).unwrap())
    }

    const GAUSS: &str = "noise = { family = 'gaussian', sigma = 0.5 }";

    #[test]
    fn rescaling_is_done_for_the_user() {
        // θ is the same in both: data twice as long, learning rate a quarter, threshold double.
        let unit = problem(
            "{ kind = 'eigenvalues', values = [1.0, 0.5, 0.25] }",
            &format!("learning_rate = 0.4\nclip = 0.9\n{GAUSS}"),
        )
        .unwrap();
        let (a, b) = (path(&unit), {
            // x' = 2x, θ' = θ/2 predicts the same: K' = 4K, ‖θ'‖ = 1, η' = η/4, c' = 2c.
            let text = format!(
                "spectrum = {{ kind = 'eigenvalues', values = [4.0, 2.0, 1.0] }}\n\
                 start = {{ kind = 'uniform', norm = 1.0 }}\ntime = 3\n\
                 learning_rate = 0.1\nclip = 1.8\n{GAUSS}\n"
            );
            let (experiment, source) = parse(&text, Path::new("e.toml")).unwrap();
            let scaled = Problem::new(&experiment, &source).unwrap();
            assert!(scaled.rescaled().unwrap().starts_with("||K|| = 4"));
            assert_eq!(scaled.distance(), 1.0);
            let start = scaled.control_at_start();
            assert!((start.eta - 0.1).abs() < 1e-15 && (start.c - 1.8).abs() < 1e-15);
            path(&scaled)
        });
        assert!(unit.rescaled().is_none());
        for k in 0..a.risk.len() {
            assert!((a.risk[k] / b.risk[k] - 1.0).abs() < 1e-9);
            assert!((a.distance[k] / (4.0 * b.distance[k]) - 1.0).abs() < 1e-9);
        }
        let (pa, pb) = (a.path.unwrap()[9], b.path.unwrap()[9]);
        assert!((pa.mu - pb.mu).abs() < 1e-9 && (pb.c - 1.8).abs() < 1e-12);
        assert!((pb.eta - 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_rule_sees_the_residual_whatever_the_norm() {
        let rest = format!("learning_rate = 0.1\nclip = {{ kind = 'proportional' }}\n{GAUSS}");
        let problem = problem("{ kind = 'eigenvalues', values = [4.0, 2.0] }", &rest).unwrap();
        let sigma = (2.0 * problem.modes.risk() + 0.25_f64).sqrt();
        assert!((problem.threshold_at_start() / (1.345 * sigma) - 1.0).abs() < 1e-12);
        assert!((problem.control_at_start().c / (2.0 * 1.345 * sigma) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_cheaper_form_is_chosen() {
        let rest = format!("learning_rate = 0.4\nclip = 0.9\n{GAUSS}");
        let form = |spectrum: &str, rest: &str| {
            problem(spectrum, rest).unwrap().simulator(Method::Sgd).unwrap().1
        };
        assert!(form("{ kind = 'isotropic', dim = 1000000 }", &rest).contains("collapsed"));
        assert_eq!(
            form("{ kind = 'power_law', dim = 50, exponent = 1 }", &rest),
            "every coordinate"
        );
        let other = format!("{rest}\ncovariates = {{ kind = 'rademacher' }}");
        assert_eq!(form("{ kind = 'isotropic', dim = 100 }", &other), "every coordinate");
    }

    #[test]
    fn a_large_spectrum_is_compressed_below_the_tolerance() {
        let rest = format!("learning_rate = 0.4\nclip = 0.9\n{GAUSS}");
        let large = problem("{ kind = 'power_law', dim = 20000, exponent = 0.5 }", &rest).unwrap();
        assert!(large.few_modes.modes().len() < 500);
        assert!(large.few_modes.bound().largest() <= 1e-10);
        assert!(
            large.compressed().unwrap().starts_with("compressed 20000 distinct eigenvalues to ")
        );
        let full = Ode::new(&large.modes, &large.step, &*large.policy);
        let full = full.solve(&large.times).unwrap();
        for (a, b) in path(&large).risk.iter().zip(&full.risk) {
            assert!((a / b - 1.0).abs() < 1e-8);
        }
    }

    #[test]
    fn what_cannot_be_is_told_by_key() {
        let says = |spectrum: &str, rest: &str| problem(spectrum, rest).unwrap_err().to_string();
        let iso = "{ kind = 'isotropic', dim = 10 }";
        let cauchy = "noise = { family = 'student_t', df = 1, scale = 1 }";
        let rule = "learning_rate = 0.1\nclip = { kind = 'proportional' }";
        assert!(says(iso, &format!("{rule}\n{cauchy}")).starts_with("e.toml, line 5: clip: "));
        let to_zero = "learning_rate = 0.1\nclip = { kind = 'cosine', from = 1, over = 2 }";
        assert!(says(iso, &format!("{to_zero}\n{GAUSS}")).contains("threshold is 0 at t = 2"));
        let gone = says("{ kind = 'file', path = 'gone.csv' }", &format!("{rule}\n{GAUSS}"));
        assert!(gone.starts_with("e.toml, line 1: spectrum: gone.csv"), "{gone}");
        let file = "noise = { family = 'empirical', file = 'gone.csv' }";
        assert!(
            says(iso, &format!("{rule}\n{file}")).starts_with("e.toml, line 6: noise: gone.csv")
        );
        assert!(
            says("{ kind = 'isotropic', dim = 0 }", &format!("{rule}\n{GAUSS}"))
                .contains("dim = 0")
        );
    }
}
