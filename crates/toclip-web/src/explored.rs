//! An experiment that the page asks about: its curves, its runs and its map of rates and thresholds.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use serde_json::{Value, json};
use toclip::criteria::stability_limits;
use toclip::dynamics::{Ode, Stop, Trajectory};
use toclip::policy::{OpenLoop, Schedule};
use toclip::spectrum::{Modes, SpectrumSpec, Start};
use toclip::{Optimizer, Problem};
use toclip_experiment::{Clip, Experiment, GroupsChoice, Method, Origin, Prepared};

use crate::answers::{MapColumn, early_end, finite};
use crate::kept::{Kept, recall};

/// An experiment, and its problem on modes that are few enough to solve the ODE within a frame.
///
/// The page calls the loss of a generalised linear model the risk. Thresholds and rates are in the units of
/// the experiment.
#[derive(Debug)]
pub struct Explored {
    experiment: Experiment,
    pub(crate) prepared: Prepared,
    pub(crate) problem: Problem,
    unclipped: Problem,
    path: OnceCell<Trajectory>,
}

/// Above so many modes they are compressed, with an error below the tolerance of the ODE: for least
/// squares, and for a model.
const COMPRESS_ABOVE: usize = 40;
const COMPRESSED: f64 = 1e-10;
const COMPRESSED_MODEL: f64 = 1e-11;

/// The tolerance of the map: colours show two digits.
const MAP_TOLERANCE: f64 = 1e-4;

pub(crate) const LEAST_SQUARES_ONLY: &str =
    "this picture is for least squares, not for classification";

impl Explored {
    /// Builds the problem of an experiment.
    pub fn new(experiment: Experiment, origin: &Origin) -> Result<Self, String> {
        let prepared = Prepared::new(&experiment, origin).map_err(|error| error.sentence())?;
        let few = few_modes(&experiment, &prepared.compressed)?;
        let on_few = |problem: &Problem| problem.with_modes(few.clone()).map_err(say);
        let (problem, unclipped) = (on_few(&prepared.compressed)?, on_few(&prepared.unclipped)?);
        Ok(Explored { experiment, prepared, problem, unclipped, path: OnceCell::new() })
    }

    /// The risk over time: clipped as the experiment says, and unclipped.
    pub fn paths(&self) -> Result<Value, String> {
        let modes = self.prepared.problem.modes();
        let clipped = self.curve(self.path()?, &self.problem);
        let unclipped = self.curve(&self.solve(&self.unclipped)?, &self.unclipped);
        let mut paths = json!({
            "times": self.prepared.times,
            "start_risk": modes.risk(),
            "clipped": clipped,
            "unclipped": unclipped,
            "dim": modes.ambient_dim(),
            "intrinsic_dim": modes.dim(),
        });
        if self.problem.model().is_some() {
            paths["start_risk"] = paths["clipped"]["risk"][0].clone();
            paths["fixed_points"] = json!(self.prepared.fixed_points());
        }
        Ok(paths)
    }

    /// The risk over time with the threshold of the largest CCC at every moment.
    pub fn best_path(&self) -> Result<Value, String> {
        if self.problem.model().is_some() {
            return Err(LEAST_SQUARES_ONLY.into());
        }
        let experiment = Experiment { clip: Clip::MaxCcc, ..self.experiment.clone() };
        let best = Explored::new(experiment, &Origin::default())?;
        Ok(json!({ "times": best.prepared.times, "best": best.curve(best.path()?, &best.problem) }))
    }

    /// One run of C-SGD.
    pub fn run(&self, seed: u64, index: u64) -> Result<Value, String> {
        let (simulator, _) =
            self.prepared.simulator(Method::Sgd).map_err(|error| format!("C-SGD: {error}"))?;
        Ok(json!({ "risk": losses(&simulator.run(seed, index, &self.prepared.times)) }))
    }

    /// The final risk at one threshold and several rates, each the largest rate of the schedule.
    pub fn map_column(&self, threshold: f64, rates: &[f64]) -> Result<MapColumn, String> {
        let constant = Schedule::constant(1.0).map_err(say)?;
        let schedule = self.experiment.learning_rate.schedule().unwrap_or(&constant);
        let (time, c) = (self.experiment.time, self.threshold(threshold));
        let moments = schedule.breakpoints().into_iter().chain([0.0, time]);
        let largest = moments.map(|t| schedule.at(t)).fold(f64::MIN_POSITIVE, f64::max);
        let clip = Schedule::constant(c).map_err(say)?;
        let rescaling = self.prepared.rescaling();
        let final_risk = |rate: &f64| {
            let rate = schedule.scaled(rescaling.learning_rate(*rate) / largest)?;
            let problem = self.problem.with_policy(OpenLoop::new(rate, clip.clone()))?;
            let path = Ode::new(&problem)?.tolerance(MAP_TOLERANCE, 0.0).solve(&[time])?;
            Ok(losses(&path).last().copied().filter(|_| path.stop == Stop::Finished))
        };
        let risk = rates.iter().map(final_risk).collect::<toclip::Result<_>>().map_err(say)?;
        // Logistic regression has no largest stable rate, and momentum has limits of another kind.
        let problem = &self.problem;
        let known = problem.model().is_none() && *problem.optimizer() == Optimizer::Sgd;
        let limits = stability_limits(problem, c).ok().filter(|_| known);
        let to_user = rescaling.inverse();
        let stable = limits.and_then(|limits| finite(to_user.learning_rate(limits.risk)));
        Ok(MapColumn { risk, stable })
    }

    /// A threshold of the user in the coordinates of the theory.
    pub(crate) fn threshold(&self, c: f64) -> f64 {
        self.prepared.rescaling().threshold(c)
    }

    /// A threshold of the theory in the coordinates of the user.
    pub(crate) fn user_threshold(&self, c: f64) -> f64 {
        self.prepared.rescaling().inverse().threshold(c)
    }

    /// Whether SGD diverges without clipping.
    pub(crate) fn diverges_unclipped(&self) -> Result<bool, String> {
        Ok(self.solve(&self.unclipped)?.stop.diverged_at().is_some())
    }

    /// The path of the theory, in the units of the experiment.
    pub(crate) fn path(&self) -> Result<&Trajectory, String> {
        if let Some(path) = self.path.get() {
            return Ok(path);
        }
        let path = self.solve(&self.problem)?;
        Ok(self.path.get_or_init(|| path))
    }

    fn solve(&self, problem: &Problem) -> Result<Trajectory, String> {
        let (rtol, times) = (self.experiment.tolerance, &self.prepared.times);
        Ode::new(problem)
            .and_then(|ode| ode.tolerance(rtol, 0.0).keep_path(true).solve(times))
            .map(|path| self.prepared.to_user(path))
            .map_err(|error| format!("the ODE: {error}"))
    }

    /// A path as the page draws it. An error rate that is not known is null.
    fn curve(&self, path: &Trajectory, problem: &Problem) -> Value {
        let (stop, end) = early_end(path.stop);
        let mut curve = json!({ "risk": losses(path), "stop": stop, "end": end });
        if let Some(measures) = &path.measures {
            let threshold = |t: &f64| finite(self.user_threshold(problem.policy().at(*t, 0.0).c));
            curve["c"] = path.times.iter().map(threshold).collect();
            curve["error_rate"] = measures.iter().map(|at| at.error_rate).collect();
        } else if let Some(points) = &path.path {
            curve["c"] = points.iter().map(|at| finite(at.c)).collect();
            curve["mu"] = points.iter().map(|at| at.mu).collect();
        }
        curve
    }
}

/// The risks of a path, or the losses of a model.
fn losses(path: &Trajectory) -> Vec<f64> {
    match &path.measures {
        Some(measures) => measures.iter().map(|at| at.loss).collect(),
        None => path.risk.clone(),
    }
}

pub(crate) fn say(error: toclip::Error) -> String {
    error.to_string()
}

/// What few modes are made from, and whether they are compressed.
#[derive(Clone, PartialEq)]
struct ModesKey {
    spectrum: SpectrumSpec,
    start: Start,
    teacher: Option<Start>,
    groups: GroupsChoice,
    tolerance: f64,
    compress: bool,
}

thread_local! {
    static FEW_MODES: Kept<ModesKey, Arc<Modes>> = const { RefCell::new(Vec::new()) };
}

/// Modes that give the same curves, kept while only noise, step and schedule change.
fn few_modes(experiment: &Experiment, problem: &Problem) -> Result<Arc<Modes>, String> {
    let (modes, step) = (problem.modes(), problem.step());
    let allowed = if problem.model().is_some() { COMPRESSED_MODEL } else { COMPRESSED };
    let key = ModesKey {
        spectrum: experiment.spectrum.clone(),
        start: experiment.start.clone(),
        teacher: experiment.teacher.clone(),
        groups: experiment.groups.clone(),
        tolerance: experiment.tolerance,
        // The bound on the error is that of the equations of radial rules; the noise of private SGD goes
        // into every direction, and compressed modes do not count directions.
        compress: modes.modes().len() > COMPRESS_ABOVE
            && step.rule().is_radial()
            && step.privacy().is_none(),
    };
    recall(&FEW_MODES, key, |key| match key.compress {
        true => modes.compress(allowed).map(Arc::new).map_err(say),
        false => Ok(Arc::new(modes.clone())),
    })
}

#[cfg(test)]
mod tests {
    use crate::answer;
    use serde_json::{Value, json};

    fn ask(mut question: Value) -> Value {
        question["experiment"] = json!({
            "model": { "kind": "logistic", "flips": 0.2 }, "teacher": { "kind": "uniform", "norm": 3 },
            "spectrum": { "kind": "isotropic", "dim": 100 },
            "time": 10, "learning_rate": 1, "clip": 0.4
        });
        let reply: Value = serde_json::from_str(&answer(&question.to_string())).unwrap();
        reply.get("ok").cloned().unwrap_or_else(|| panic!("{reply}"))
    }

    #[test]
    fn every_question_has_an_answer() {
        let paths = ask(json!({ "ask": "paths" }));
        let end = |value: &Value| value.as_array().unwrap().last().unwrap().as_f64().unwrap();
        let loss = end(&paths["clipped"]["risk"]);
        assert!(loss < 0.69 && end(&paths["clipped"]["error_rate"]) < 0.3, "{paths}");
        let question =
            json!({ "ask": "factors", "risk": 0, "time": 10, "thresholds": [0.1, 0.4, 1.5] });
        let factors = ask(question);
        let ccc = |k: usize| factors["ccc"][k].as_f64().unwrap();
        // Residuals are below one: a threshold of 1.5 changes nothing.
        assert!((ccc(2) - 1.0).abs() < 1e-12 && ccc(1) > 1.0, "{factors}");
        let verdict = ask(json!({ "ask": "verdict", "risk": 0, "time": 10 }));
        let best = verdict["evidence"]["ccc"].as_f64().unwrap();
        assert!(best >= ccc(1) && best >= ccc(0), "{verdict}");
        let run = ask(json!({ "ask": "run", "seed": 1, "index": 0 }));
        assert!((end(&run["risk"]) - loss).abs() < 0.1, "{run}");
        let column = ask(json!({ "ask": "map_column", "threshold": 0.4, "rates": [1.0] }));
        assert!((column["risk"][0].as_f64().unwrap() - loss).abs() < 1e-4, "{column}");
        assert!(column["stable"].is_null());
    }

    #[test]
    fn what_does_not_apply_is_said() {
        let experiment = json!({
            "model": { "kind": "logistic" }, "teacher": { "kind": "uniform", "norm": 3 },
            "spectrum": { "kind": "isotropic", "dim": 100 },
            "time": 10, "learning_rate": 1, "clip": 0.4
        });
        for ask in ["density", "best_path"] {
            let mut question = json!({ "ask": ask, "experiment": experiment });
            if ask == "density" {
                question["risk"] = 0.5.into();
                question["reach"] = 1.0.into();
            }
            let reply: Value = serde_json::from_str(&answer(&question.to_string())).unwrap();
            assert!(reply["error"].as_str().unwrap().contains("classification"), "{reply}");
        }
    }
}
