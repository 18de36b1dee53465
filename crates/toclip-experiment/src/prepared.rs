//! The problem that an experiment describes, in the coordinates of the theory, where ‖K‖ = 1.

use std::sync::Arc;

use toclip::dynamics::{
    Collapsed, Covariates, Hsgd, Ode, Sgd, Simulator, Trajectory, linear_times, log_times,
};
use toclip::model::{Overlaps, fixed_point};
use toclip::noise::Noise;
use toclip::policy::{Control, Schedule};
use toclip::spectrum::{Modes, Rescaling, Spectrum, Start};
use toclip::{Problem, Rule};
use toclip_words::short;

use crate::error::Result;
use crate::files::{SpectrumSource, resolve_spectrum};
use crate::limits::{check_memory, check_steps};
use crate::model::check_model;
use crate::{
    BuiltTraining, Clip, Experiment, KeyError, Method, NoiseChoice, Origin, PolicySpec, RuleChoice,
    SavedTimes, Spacing,
};

/// Above so many modes the deterministic methods get a compressed spectrum.
const COMPRESS_ABOVE: usize = 2000;
/// The error allowed in that, as a share of the solver's.
const COMPRESS_SHARE: f64 = 0.01;
/// A block of the collapsed form (a normal and a χ²) costs as much as so many plain coordinates.
const BLOCK_COST: u64 = 20;

/// An experiment built: the [`Problem`] of the theory, in the forms that the methods take.
#[derive(Debug)]
pub struct Prepared {
    /// The eigenvalues.
    pub spectrum: Spectrum,
    /// The file that the spectrum was read from.
    pub source: Option<SpectrumSource>,
    /// The problem with every eigendirection, for simulations.
    pub problem: Problem,
    /// The same with a few weighted nodes in the place of a large spectrum, for the ODE and the integral
    /// equation.
    pub compressed: Problem,
    /// The same without clipping, whatever the rule, to compare with.
    pub unclipped: Problem,
    /// The distribution of the features that C-SGD sees.
    pub covariates: Covariates,
    /// The times that are saved.
    pub times: Vec<f64>,
    rescaling: Rescaling,
    own_thresholds: bool,
}

impl Prepared {
    /// Builds an experiment.
    ///
    /// # Errors
    /// [`Error::Wrong`](crate::Error::Wrong) for parts that cannot be built or do not go together.
    pub fn new(experiment: &Experiment, origin: &Origin) -> Result<Self> {
        // It may have been changed since it was read.
        check_model(experiment).map_err(|e| origin.key_error(e))?;
        let (spectrum, source) = resolve_spectrum(&experiment.spectrum, origin.folder())
            .map_err(|e| origin.error("spectrum", e))?;
        check_coordinates(experiment, source).map_err(|e| origin.key_error(e))?;
        let rescaling = spectrum.rescaling();
        let times =
            times(experiment.time, experiment.points).map_err(|e| origin.error("points", e))?;
        if let Clip::Schedule(clip) = &experiment.clip {
            check_thresholds(clip, &times, experiment.time).map_err(|e| origin.key_error(e))?;
        }
        let (problem, unclipped) = match experiment.model {
            None => least_squares(experiment, origin, &spectrum)?,
            Some(_) => with_model(experiment, origin, &spectrum)?,
        };
        // The bound on the error of compression is that of the equations of radial rules.
        let modes = problem.modes();
        let few = match compression_error(modes.modes().len(), experiment.tolerance) {
            Some(allowed) if problem.step().rule().is_radial() => {
                Some(modes.compress(allowed).map_err(|e| origin.error("spectrum", e))?)
            }
            _ => None,
        };
        let on_few = |problem: &Problem| match &few {
            Some(few) => problem.with_modes(few.clone()).map_err(|e| origin.error("spectrum", e)),
            None => Ok(problem.clone()),
        };
        let prepared = Prepared {
            compressed: on_few(&problem)?,
            unclipped: on_few(&unclipped)?,
            spectrum,
            source,
            problem,
            covariates: experiment.covariates,
            times,
            rescaling,
            own_thresholds: experiment.policy().has_own_thresholds(),
        };
        prepared.check_methods(experiment, origin)?;
        Ok(prepared)
    }

    /// Refuses methods that cannot be run, before any is.
    fn check_methods(&self, experiment: &Experiment, origin: &Origin) -> Result<()> {
        let is_momentum = self.problem.optimizer().momentum().is_some();
        if is_momentum && experiment.methods.contains(&Method::Volterra) {
            let what = "\"volterra\" does not support momentum; use \"ode\"";
            return Err(origin.error("methods", what));
        }
        if self.problem.model().is_some() && experiment.methods.contains(&Method::Ode) {
            // At its start: whether the batch has an ODE.
            let ode = Ode::new(&self.compressed).map(|ode| ode.tolerance(0.1, 0.0));
            ode.and_then(|ode| ode.solve(&[0.0])).map_err(|e| origin.error("batch", e))?;
        }
        for &method in experiment.methods.iter().filter(|m| m.is_ensemble()) {
            let key =
                if self.covariates == Covariates::Gaussian { "spectrum" } else { "covariates" };
            self.simulator(method).map_err(|e| origin.error(key, e))?;
            check_steps(experiment.time, self.problem.dim())
                .map_err(|e| origin.error("time", e))?;
            // Q and P as well as R and D in a model.
            let numbers = if self.problem.model().is_some() { 2 } else { 1 };
            check_memory(numbers * experiment.ensemble.runs, self.times.len())
                .map_err(|e| origin.error("ensemble", e))?;
        }
        Ok(())
    }

    /// From the coordinates of the user to those of the theory.
    pub fn rescaling(&self) -> &Rescaling {
        &self.rescaling
    }

    /// $\eta$ and $c$ at the start, in the coordinates of the user.
    pub fn control_at_start(&self) -> Control {
        let Control { eta, c } = self.problem.policy().at(0.0, self.problem.risk());
        let back = self.rescaling.inverse();
        Control { eta: back.learning_rate(eta), c: back.threshold(c) }
    }

    /// $c$ at the start, in the coordinates of the theory.
    pub fn threshold_at_start(&self) -> f64 {
        self.problem.policy().at(0.0, self.problem.risk()).c
    }

    /// $\Vert\theta_0 - \theta^\ast\Vert^2$ in the coordinates of the user.
    pub fn distance(&self) -> f64 {
        self.rescaling.inverse().distance(self.problem.modes().distance())
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
    pub fn compression(&self) -> Option<String> {
        let (from, to) =
            (self.problem.modes().modes().len(), self.compressed.modes().modes().len());
        (to < from).then(|| {
            format!(
                "compressed {from} distinct eigenvalues to {to} nodes for the ODE (error at most {:.0e})",
                self.compressed.modes().bound().largest()
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
        let problem = &self.problem;
        if method == Method::Hsgd {
            return Ok((Box::new(Hsgd::new(problem)?), "equal eigenvalues merged"));
        }
        let modes = problem.modes();
        let few = (modes.modes().len() as u64).saturating_mul(BLOCK_COST) <= modes.ambient_dim();
        if few
            && self.covariates == Covariates::Gaussian
            && problem.supports(toclip::problem::Method::Collapsed)
        {
            return Ok((
                Box::new(Collapsed::new(problem)?),
                "equal eigenvalues merged (collapsed form, exact in distribution)",
            ));
        }
        let sgd = Sgd::new(problem)?.with_covariates(self.covariates)?;
        Ok((Box::new(sgd), "every coordinate"))
    }

    /// $\kappa$ of the fixed point of a model with the threshold of the end and without one; `None` where
    /// there is no model, no fixed point, or the mean of a batch is clipped.
    pub fn fixed_points(&self) -> [Option<f64>; 2] {
        let end = self.times.last().copied().unwrap_or(0.0);
        let (Some(model), Some(start)) =
            (self.problem.model(), Overlaps::at_start(self.problem.modes()))
        else {
            return [None; 2];
        };
        [self.problem.policy().at(end, 0.0).c, f64::INFINITY].map(|c| {
            let known = c == f64::INFINITY || !self.averages_before_clipping();
            fixed_point(model, start.v, c).ok().filter(|_| known).map(|at| at.kappa)
        })
    }

    /// Whether the mean of several samples is clipped.
    pub fn averages_before_clipping(&self) -> bool {
        let batch = self.problem.step().batch();
        batch.size() > 1 && !batch.is_per_sample()
    }
}

/// Least squares as it is, and without clipping.
fn least_squares(
    experiment: &Experiment,
    origin: &Origin,
    spectrum: &Spectrum,
) -> Result<(Problem, Problem)> {
    let plain = experiment
        .noise
        .build(experiment.batch, &RuleChoice::default(), origin.folder())
        .map_err(|e| origin.error("noise", e))?;
    let BuiltTraining { modes, step, optimizer } = experiment
        .training()
        .build(plain.clone(), spectrum, &experiment.start)
        .map_err(|e| origin.key_error(e))?;
    if modes.risk() == 0.0
        && matches!(experiment.start, Start::Uniform { norm } if norm == 0.0)
        && experiment.noise == NoiseChoice::Family(toclip::noise::NoNoise.into())
    {
        let what = "the start is the optimum and there is no noise, so SGD would not move";
        return Err(origin.error("start", what));
    }
    let spec = experiment.policy();
    spec.check_optimizer(&optimizer).map_err(|e| origin.key_error(e))?;
    let modes = Arc::new(modes);
    let build = |spec: &PolicySpec, step: &toclip::Step<'static>| -> Result<Problem> {
        let policy = spec.build(&modes, step, &spectrum.rescaling());
        let policy = policy.map_err(|e| origin.key_error(e))?;
        Problem::new(modes.clone(), step.clone(), policy)
            .and_then(|problem| problem.with_optimizer(optimizer))
            .map_err(|e| origin.error("rule", e))
    };
    let without = PolicySpec { clip: Clip::None, ..spec.clone() };
    Ok((build(&spec, &step)?, build(&without, &plain)?))
}

/// A generalised linear model as it is, and without clipping.
fn with_model(
    experiment: &Experiment,
    origin: &Origin,
    spectrum: &Spectrum,
) -> Result<(Problem, Problem)> {
    let (Some(choice), Some(teacher)) = (&experiment.model, &experiment.teacher) else {
        return Err(origin.error("teacher", "a model needs a teacher"));
    };
    Modes::new(spectrum, teacher).map_err(|e| origin.error("teacher", e))?;
    let modes = Modes::with_teacher(spectrum, teacher, &experiment.start)
        .map_err(|e| origin.error("start", e))?;
    let modes = Arc::new(modes);
    let noise = match &experiment.noise {
        NoiseChoice::OfModel => None,
        noise => {
            let family = noise.family(origin.folder()).map_err(|e| origin.error("noise", e))?;
            Some(Arc::new(family) as Arc<dyn Noise>)
        }
    };
    let model = choice.build(noise).map_err(|e| origin.error("model", e))?;
    let batch = experiment.batch.to_core().map_err(|e| origin.error("batch", e))?;
    let step = toclip::Step::new(toclip::noise::NoNoise);
    let build = |spec: &PolicySpec| -> Result<Problem> {
        let policy = spec.build(&modes, &step, &spectrum.rescaling());
        let policy = policy.map_err(|e| origin.key_error(e))?;
        Problem::of_model(modes.clone(), model.clone(), policy)
            .and_then(|problem| problem.with_batch(batch))
            .map_err(|e| origin.error("model", e))
    };
    let spec = experiment.policy();
    let without = PolicySpec { clip: Clip::None, ..spec.clone() };
    Ok((build(&spec)?, build(&without)?))
}

/// The error allowed in compressed modes for the deterministic methods; `None` for modes few enough to be
/// used as they are.
fn compression_error(modes: usize, tolerance: f64) -> Option<f64> {
    (modes > COMPRESS_ABOVE).then(|| (COMPRESS_SHARE * tolerance).max(1e-12))
}

/// Refuses a threshold of 0 up to the end.
fn check_thresholds(clip: &Schedule, times: &[f64], end: f64) -> Result<(), KeyError> {
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
fn times(end: f64, points: SavedTimes) -> toclip::Result<Vec<f64>> {
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

    fn prepared(spectrum: &str, rest: &str) -> Result<Prepared> {
        let text = format!(
            "spectrum = {spectrum}\nstart = {{ kind = 'uniform', norm = 2.0 }}\ntime = 3\n{rest}\n"
        );
        let (experiment, source) = parse(&text, Path::new("e.toml"))?;
        Prepared::new(&experiment, &source)
    }

    fn path(prepared: &Prepared) -> Trajectory {
        let ode = Ode::new(&prepared.compressed).unwrap().keep_path(true);
        prepared.to_user(ode.solve(&prepared.times).unwrap())
    }

    const GAUSS: &str = "noise = { family = 'gaussian', sigma = 0.5 }";

    #[test]
    fn rescaling_is_done_for_the_user() {
        // θ is the same in both: data twice as long, learning rate a quarter, threshold double.
        let unit = prepared(
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
            let scaled = Prepared::new(&experiment, &source).unwrap();
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
        let problem = prepared("{ kind = 'eigenvalues', values = [4.0, 2.0] }", &rest).unwrap();
        let sigma = (2.0 * problem.problem.risk() + 0.25_f64).sqrt();
        assert!((problem.threshold_at_start() / (1.345 * sigma) - 1.0).abs() < 1e-12);
        assert!((problem.control_at_start().c / (2.0 * 1.345 * sigma) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_cheaper_form_is_chosen() {
        let rest = format!("learning_rate = 0.4\nclip = 0.9\n{GAUSS}");
        let form = |spectrum: &str, rest: &str| {
            prepared(spectrum, rest).unwrap().simulator(Method::Sgd).unwrap().1
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
        let large = prepared("{ kind = 'power_law', dim = 20000, exponent = 0.5 }", &rest).unwrap();
        assert!(large.compressed.modes().modes().len() < 500);
        assert!(large.compressed.modes().bound().largest() <= 1e-10);
        assert!(
            large.compression().unwrap().starts_with("compressed 20000 distinct eigenvalues to ")
        );
        let full = Ode::new(&large.problem).unwrap();
        let full = full.solve(&large.times).unwrap();
        for (a, b) in path(&large).risk.iter().zip(&full.risk) {
            assert!((a / b - 1.0).abs() < 1e-8);
        }
    }

    #[test]
    fn what_cannot_be_is_told_by_key() {
        let says = |spectrum: &str, rest: &str| prepared(spectrum, rest).unwrap_err().to_string();
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

    #[test]
    fn a_clipped_mean_has_no_fixed_point_of_single_samples() {
        let found = |batch: &str, clip: &str| {
            let text = format!(
                "model = {{ kind = 'logistic', flips = 0.1 }}\n\
                 teacher = {{ kind = 'uniform', norm = 3.0 }}\n\
                 spectrum = {{ kind = 'isotropic', dim = 50 }}\n\
                 time = 2.0\nlearning_rate = 1.0\nmethods = ['sgd']\n\
                 batch = {batch}\nclip = {clip}"
            );
            let (experiment, origin) = parse(&text, Path::new("e.toml")).unwrap();
            Prepared::new(&experiment, &origin).unwrap().fixed_points()
        };
        let [clipped, open] = found("1", "0.4");
        assert!(clipped.unwrap() > 0.8 && open.unwrap() < 0.6);
        assert_eq!(found("{ size = 8, rule = 'per_sample' }", "0.4"), [clipped, open]);
        assert_eq!(found("8", "0.4"), [None, open]);
        assert_eq!(found("8", "'none'"), [open, open]);
    }
}
