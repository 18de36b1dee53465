//! Classification and other generalised linear models: the answers to the page.
//!
//! The page calls the loss the risk, which is the cross-entropy for logistic regression. The state is
//! (Q, P, V) instead of the risk, so questions about a moment go by its time.

use serde_json::{Value, json};
use toclip::dynamics::Stop;
use toclip::model::{GlmOde, GlmPath, Overlaps};
use toclip::policy::Policy;
use toclip::verdict::Verdict;
use toclip_experiment::{GlmExperiment, GlmProblem, Method, Origin};

use crate::answers::{
    DensityCurve, FactorCurves, JudgedMoment, MAP_TOLERANCE, MapColumn, early_end, final_risks,
    finite,
};
use crate::setting::Explored;

/// A generalised linear model with the path of its ODE, along which the page asks.
#[derive(Debug)]
pub struct ExploredGlm {
    experiment: GlmExperiment,
    problem: GlmProblem,
    path: GlmPath,
}

/// Above so many modes they are compressed, and the error that leaves: below the tolerance of the ODE.
const COMPRESS_ABOVE: usize = 40;
const COMPRESSED: f64 = 1e-11;

const LEAST_SQUARES_ONLY: &str = "this picture is for least squares, not for classification";

fn solve(problem: &GlmProblem, method: Method, rtol: f64) -> Result<GlmPath, String> {
    problem.ode(method, rtol).solve(&problem.times).map_err(|error| error.to_string())
}

impl ExploredGlm {
    /// Builds the problem of an experiment and solves its ODE.
    pub fn new(experiment: GlmExperiment, origin: &Origin) -> Result<Self, String> {
        let mut problem = GlmProblem::new(&experiment, origin).map_err(|error| error.sentence())?;
        if problem.few_modes.modes().len() > COMPRESS_ABOVE {
            let fewer = problem.few_modes.compress(COMPRESSED);
            problem.few_modes = fewer.map_err(|error| error.to_string())?;
        }
        let path = solve(&problem, Method::Ode, experiment.tolerance)?;
        Ok(ExploredGlm { experiment, problem, path })
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

    fn losses(&self, path: &GlmPath) -> Vec<f64> {
        path.overlaps.iter().map(|at| self.problem.model.expected_loss(at)).collect()
    }

    /// A path in the units of the experiment. An error rate that is not known is null.
    fn curve(&self, path: &GlmPath, policy: &dyn Policy) -> Value {
        let to_user = self.problem.rescaling.inverse();
        let threshold = |t: &f64| finite(to_user.threshold(policy.at(*t, 0.0).c));
        let error_rates = path.overlaps.iter().map(|at| self.problem.model.error_rate(at));
        let (stop, end) = early_end(path.stop);
        json!({
            "risk": self.losses(path),
            "error_rate": error_rates.collect::<Vec<_>>(),
            "c": path.times.iter().map(threshold).collect::<Vec<_>>(),
            "stop": stop,
            "end": end,
        })
    }
}

impl Explored for ExploredGlm {
    fn paths(&self) -> Result<Value, String> {
        let problem = &self.problem;
        let open = solve(problem, Method::Unclipped, self.experiment.tolerance)?;
        let clipped = self.curve(&self.path, &*problem.policy);
        Ok(json!({
            "times": problem.times,
            "start_risk": clipped["risk"][0],
            "clipped": clipped,
            "unclipped": self.curve(&open, &*problem.unclipped),
            "dim": problem.spectrum.ambient_dim(),
            "intrinsic_dim": problem.modes.dim(),
            "fixed_points": problem.fixed_points(),
        }))
    }

    fn best_path(&self) -> Result<Value, String> {
        Err(LEAST_SQUARES_ONLY.into())
    }

    fn run(&self, seed: u64, index: u64) -> Result<Value, String> {
        let simulator = self.problem.simulator().map_err(|error| format!("C-SGD: {error}"))?;
        let run = simulator.run(seed, index, &self.problem.times);
        Ok(json!({ "risk": self.losses(&run) }))
    }

    /// The share that clipping keeps of b, the progress towards the teacher's direction, and of m2, the
    /// noise; their CCC.
    fn factors(&self, _risk: f64, time: f64, thresholds: &[f64]) -> Result<FactorCurves, String> {
        let (model, at) = (&*self.problem.model, self.at(time)?);
        let open = model.coefficients(&at, f64::INFINITY);
        let each = |&c: &f64| {
            let x = model.coefficients(&at, self.threshold(c));
            (x.b / open.b, x.m2, x.m2 / open.m2)
        };
        let all: Vec<(f64, f64, f64)> = thresholds.iter().map(each).collect();
        Ok(FactorCurves {
            mu: all.iter().map(|x| x.0).collect(),
            m2: all.iter().map(|x| x.1).collect(),
            nu: all.iter().map(|x| finite(x.2)).collect(),
            csc: all.iter().map(|x| finite(x.0 / x.2)).collect(),
            ccc: all.iter().map(|x| finite(x.0 * x.0 / x.2)).collect(),
            infinite_variance: open.m2.is_infinite(),
        })
    }

    fn verdict(&self, _risk: f64, time: f64) -> Result<JudgedMoment, String> {
        let verdict = Verdict::at_overlaps(&*self.problem.model, &self.at(time)?);
        let verdict = verdict.map_err(|error| error.to_string())?;
        let to_user = self.problem.rescaling.inverse();
        Ok(verdict.in_units(|c| to_user.threshold(c)).into())
    }

    fn density(&self, _risk: f64, _reach: f64) -> Result<DensityCurve, String> {
        Err(LEAST_SQUARES_ONLY.into())
    }

    /// Logistic regression has no largest stable rate.
    fn map_column(&self, threshold: f64, rates: &[f64]) -> Result<MapColumn, String> {
        let ExploredGlm { experiment, problem, .. } = self;
        let schedule = experiment.learning_rate.schedule().ok_or("the rate has no schedule")?;
        let (time, c) = (experiment.time, self.threshold(threshold));
        let rates = rates.iter().map(|&rate| problem.rescaling.learning_rate(rate));
        let risk = final_risks(schedule, time, c, rates, |policy| {
            let ode = GlmOde::new(&problem.few_modes, &*problem.model, policy);
            let path =
                ode.tolerance(MAP_TOLERANCE, 0.0).with_batch(problem.batch).solve(&[time])?;
            let end = path.overlaps.last().filter(|_| path.stop == Stop::Finished);
            Ok(end.map(|at| problem.model.expected_loss(at)))
        });
        Ok(MapColumn { risk: risk.map_err(|error| error.to_string())?, stable: None })
    }
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
