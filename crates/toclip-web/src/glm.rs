//! Classification: the same questions of the page, answered for generalised linear models.
//!
//! What the page calls risk is the loss here, the cross-entropy for logistic regression. The state is
//! (Q, P, V) instead of the risk, so that questions about a moment name its time.

use std::rc::Rc;

use serde::Serialize;
use serde_json::{Value, json};
use toclip::dynamics::Stop;
use toclip::glm::{GlmOde, GlmPath, Model, Overlaps, best_threshold};
use toclip::schedule::{OpenLoop, Policy, Schedule};
use toclip_experiment::{GlmExperiment, GlmProblem, Method, Origin, of_values};

use crate::factors::{Curves, Verdict};
use crate::map::{Column, largest};
use crate::setting::{Description, Kept, recall, toml_values};

/// A generalised linear model with the path of its ODE, along which the page asks.
#[derive(Debug)]
pub struct GlmSetting {
    experiment: GlmExperiment,
    problem: GlmProblem,
    path: GlmPath,
}

/// Above so many modes they are compressed, and the error that leaves: below the tolerance of the ODE.
const COMPRESS_ABOVE: usize = 40;
const COMPRESSED: f64 = 1e-11;
/// Of the map: colours show two digits.
const RTOL: f64 = 1e-4;

thread_local! {
    static RECENT: Kept<GlmSetting> = const { Kept::new(Vec::new()) };
}

/// Whether an experiment describes one.
pub fn is_glm(description: &Description) -> bool {
    description.contains_key("model")
}

/// Refuses what is no experiment.
pub fn check(experiment: &GlmExperiment, origin: &Origin) -> Result<(), String> {
    GlmProblem::new(experiment, origin).map(|_| ()).map_err(|error| error.sentence())
}

impl GlmSetting {
    /// The setting, built unless it is one of the last few.
    pub fn of(description: &Description) -> Result<Rc<Self>, String> {
        let key = serde_json::to_string(description).unwrap_or_default();
        recall(&RECENT, key, || {
            let (file, origin) =
                of_values(&toml_values(description)?).map_err(|error| error.sentence())?;
            let experiment = file.glm.ok_or("the experiment has no model")?;
            let mut problem =
                GlmProblem::new(&experiment, &origin).map_err(|error| error.sentence())?;
            if problem.few_modes.modes().len() > COMPRESS_ABOVE {
                let fewer = problem.few_modes.compress(COMPRESSED);
                problem.few_modes = fewer.map_err(|error| error.to_string())?;
            }
            let path = solve(&problem, Method::Ode, experiment.tolerance)?;
            Ok(GlmSetting { experiment, problem, path })
        })
    }

    /// (Q, P, V) at a time, by straight lines.
    fn at(&self, time: f64) -> Result<Overlaps, String> {
        let GlmPath { times, overlaps, .. } = &self.path;
        let after = times.partition_point(|t| *t < time).min(times.len().saturating_sub(1));
        let (Some(next), Some(last)) = (overlaps.get(after), overlaps.get(after.saturating_sub(1)))
        else {
            return Err("the path has no times".into());
        };
        let (from, to) = (times[after.saturating_sub(1)], times[after]);
        let share = if to > from { ((time - from) / (to - from)).clamp(0.0, 1.0) } else { 1.0 };
        let between = |a: f64, b: f64| a + share * (b - a);
        Overlaps::new(between(last.q, next.q), between(last.p, next.p), next.v)
            .map_err(|error| error.to_string())
    }

    fn threshold(&self, c: f64) -> f64 {
        self.problem.rescaling.threshold(c)
    }
}

fn solve(problem: &GlmProblem, method: Method, rtol: f64) -> Result<GlmPath, String> {
    problem.ode(method, rtol).solve(&problem.times).map_err(|error| error.to_string())
}

fn losses(path: &GlmPath, model: &dyn Model) -> Vec<f64> {
    path.overlaps.iter().map(|at| model.expected_loss(at)).collect()
}

/// A curve, in the units of the experiment. A share that is not known is null.
#[derive(Debug, Serialize)]
struct Path {
    risk: Vec<f64>,
    error_rate: Vec<Option<f64>>,
    c: Vec<Option<f64>>,
    stop: Option<&'static str>,
    end: Option<f64>,
}

impl Path {
    fn new(path: &GlmPath, model: &dyn Model, policy: &dyn Policy, unit: f64) -> Self {
        let GlmPath { times, overlaps, stop, .. } = path;
        let threshold = |t: &f64| Some(policy.at(*t, 0.0).c * unit).filter(|c| c.is_finite());
        let stop = match *stop {
            Stop::Finished => None,
            Stop::Diverged { t } => Some(("diverged", t)),
            Stop::InfiniteVariance { t } => Some(("infinite variance", t)),
            _ => Some(("stopped", times.last().copied().unwrap_or(0.0))),
        };
        Path {
            risk: losses(path, model),
            error_rate: overlaps.iter().map(|at| model.error_rate(at)).collect(),
            c: times.iter().map(threshold).collect(),
            stop: stop.map(|(why, _)| why),
            end: stop.map(|(_, t)| t),
        }
    }
}

/// Loss and error rate over time: clipped as the experiment says, and unclipped.
pub fn both(setting: &GlmSetting) -> Result<Value, String> {
    let problem = &setting.problem;
    let unit = problem.rescaling.inverse().threshold(1.0);
    let open = solve(problem, Method::Unclipped, setting.experiment.tolerance)?;
    let model = &*problem.model;
    let clipped = Path::new(&setting.path, model, &*problem.policy, unit);
    Ok(json!({
        "times": problem.times,
        "start_risk": clipped.risk.first(),
        "clipped": clipped,
        "unclipped": Path::new(&open, model, &*problem.unclipped, unit),
        "dim": problem.spectrum.ambient_dim(),
        "intrinsic_dim": problem.modes.dim(),
        "fixed_points": problem.fixed_points(),
    }))
}

/// The loss of one run of C-SGD.
pub fn run(setting: &GlmSetting, seed: u64, index: u64) -> Result<Value, String> {
    let problem = &setting.problem;
    let simulator = problem.simulator().map_err(|error| format!("C-SGD: {error}"))?;
    let run = simulator.run(seed, index, &problem.times);
    Ok(json!({ "risk": losses(&run, &*problem.model) }))
}

/// What clipping keeps of b, the progress towards the teacher's direction, and of m2, the noise, against the
/// threshold at a time; their CCC.
pub fn curves(setting: &GlmSetting, time: f64, thresholds: &[f64]) -> Result<Curves, String> {
    let (model, at) = (&*setting.problem.model, setting.at(time)?);
    let open = model.coefficients(&at, f64::INFINITY);
    let each = |&c: &f64| {
        let x = model.coefficients(&at, setting.threshold(c));
        (x.b / open.b, x.m2, x.m2 / open.m2)
    };
    let all: Vec<(f64, f64, f64)> = thresholds.iter().map(each).collect();
    let finite = |x: f64| Some(x).filter(|x| x.is_finite());
    Ok(Curves {
        mu: all.iter().map(|x| x.0).collect(),
        m2: all.iter().map(|x| x.1).collect(),
        nu: all.iter().map(|x| finite(x.2)).collect(),
        csc: all.iter().map(|x| finite(x.0 / x.2)).collect(),
        ccc: all.iter().map(|x| finite(x.0 * x.0 / x.2)).collect(),
        infinite_variance: open.m2.is_infinite(),
    })
}

/// The best threshold for the direction at a time, in the units of the experiment.
pub fn verdict(setting: &GlmSetting, time: f64) -> Result<Verdict, String> {
    let (model, at) = (&*setting.problem.model, setting.at(time)?);
    let best = best_threshold(model, &at).map_err(|error| error.to_string())?;
    let [kept, open] = [best.c, f64::INFINITY].map(|c| model.coefficients(&at, c).b);
    let c = setting.problem.rescaling.inverse().threshold(best.c);
    Ok(Verdict {
        c: Some(c).filter(|c| c.is_finite()),
        mu: kept / open,
        ccc: Some(best.ccc),
        limit: None,
        reached: None,
        infinite_variance: false,
    })
}

/// The final loss at one threshold and several rates. Logistic regression has no largest stable rate.
pub fn column(setting: &GlmSetting, threshold: f64, rates: &[f64]) -> Result<Column, String> {
    let GlmSetting { experiment, problem, .. } = setting;
    let say = |error: toclip::Error| error.to_string();
    let shape = experiment.learning_rate.schedule().ok_or("the rate has no schedule")?;
    let largest = largest(shape, experiment.time);
    let clip = Schedule::constant(setting.threshold(threshold)).map_err(say)?;
    let loss = |rate: f64| -> toclip::Result<Option<f64>> {
        let eta = problem.rescaling.learning_rate(rate) / largest;
        let policy = OpenLoop::new(shape.scaled(eta)?, clip.clone());
        let ode = GlmOde::new(&problem.few_modes, &*problem.model, &policy);
        let path = ode.tolerance(RTOL, 0.0).with_batch(problem.batch).solve(&[experiment.time])?;
        let end = path.overlaps.last().filter(|_| path.stop == Stop::Finished);
        Ok(end.map(|at| problem.model.expected_loss(at)))
    };
    let risk = rates.iter().map(|&rate| loss(rate)).collect::<toclip::Result<_>>();
    Ok(Column { risk: risk.map_err(say)?, stable: None })
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
        // Residuals are below one, so that 1.5 changes nothing.
        assert!((ccc(2) - 1.0).abs() < 1e-12 && ccc(1) > 1.0, "{factors}");
        let verdict = ask(json!({ "ask": "verdict", "risk": 0, "time": 10 }));
        let best = verdict["ccc"].as_f64().unwrap();
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
