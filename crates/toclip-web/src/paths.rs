//! Risk over time: by the theory, and in one run of C-SGD.

use serde::Serialize;
use serde_json::{Value, json};
use toclip::dynamics::{Ode, Stop, Trajectory};
use toclip_experiment::Method;

use crate::setting::Setting;

/// A curve, in the units of the experiment.
#[derive(Debug, Serialize)]
struct Path {
    risk: Vec<f64>,
    c: Vec<Option<f64>>,
    mu: Vec<f64>,
    /// Why the curve ends early, if it does.
    stop: Option<&'static str>,
    /// When it ends.
    end: Option<f64>,
}

impl From<Trajectory> for Path {
    fn from(path: Trajectory) -> Self {
        let points = path.path.unwrap_or_default();
        let stop = match path.stop {
            Stop::Diverged { t } => Some(("diverged", t)),
            Stop::InfiniteVariance { t } => Some(("infinite variance", t)),
            _ => None,
        };
        Path {
            risk: path.risk,
            c: points.iter().map(|p| p.c.is_finite().then_some(p.c)).collect(),
            mu: points.iter().map(|p| p.mu).collect(),
            stop: stop.map(|(why, _)| why),
            end: stop.map(|(_, t)| t),
        }
    }
}

/// The path of the theory, clipped as the experiment says or not at all.
fn path(setting: &Setting, clipped: bool) -> Result<Path, String> {
    let problem = &setting.problem;
    let (step, policy) = if clipped {
        (&problem.step, &problem.policy)
    } else {
        (&problem.plain, &problem.unclipped)
    };
    let mut ode = Ode::new(&setting.nodes, step, &**policy)
        .tolerance(setting.experiment.tolerance, 0.0)
        .keep_path(true);
    if let Some(momentum) = problem.momentum {
        ode = ode.with_momentum(momentum);
    }
    let path = ode.solve(&problem.times).map_err(|error| format!("the ODE: {error}"))?;
    Ok(problem.to_user(path).into())
}

/// The risk with the threshold of the experiment, and without any.
pub fn both(setting: &Setting) -> Result<Value, String> {
    let problem = &setting.problem;
    Ok(json!({
        "times": problem.times,
        "clipped": path(setting, true)?,
        "unclipped": path(setting, false)?,
        "dim": problem.modes.ambient_dim(),
        "intrinsic_dim": problem.modes.dim(),
        "start_risk": problem.modes.risk(),
    }))
}

/// The risk under the policy of the setting, alone.
pub fn best(setting: &Setting) -> Result<Value, String> {
    Ok(json!({ "times": setting.problem.times, "best": path(setting, true)? }))
}

/// The risk of one run of C-SGD.
pub fn run(setting: &Setting, seed: u64, index: u64) -> Result<Value, String> {
    let problem = &setting.problem;
    let (simulator, _) =
        problem.simulator(Method::Sgd).map_err(|error| format!("C-SGD: {error}"))?;
    let run = simulator.run(seed, index, &problem.times);
    Ok(json!({ "risk": run.risk }))
}
