//! The final risk over learning rate and threshold, one threshold at a time.

use std::sync::Arc;

use serde::Serialize;
use toclip::criteria::stability_limits;
use toclip::dynamics::{Ode, Stop};
use toclip::schedule::{OpenLoop, Schedule};
use toclip_experiment::LearningRate;

use crate::setting::Setting;

/// Colours show two digits.
const RTOL: f64 = 1e-4;

/// The final risks at one threshold.
#[derive(Debug, Serialize)]
pub struct Column {
    /// At each rate; null where the risk diverged.
    pub risk: Vec<Option<f64>>,
    /// The largest rate at which the risk falls at the start; null where it has no limit or is not
    /// known for the rule.
    pub stable: Option<f64>,
}

/// The final risk at a threshold and several rates, each the rate at the start of the schedule.
pub fn column(setting: &Setting, threshold: f64, rates: &[f64]) -> Result<Column, String> {
    let problem = &setting.problem;
    let say = |error: toclip::Error| error.to_string();
    let modes = &setting.nodes;
    let shape = match &setting.experiment.learning_rate {
        LearningRate::Schedule(schedule) => schedule.clone(),
        LearningRate::Greedy => Schedule::constant(1.0).map_err(say)?,
    };
    let largest = largest(&shape, setting.experiment.time);
    let c = setting.threshold(threshold);
    let clip = Schedule::constant(c).map_err(say)?;
    let final_risk = |rate: f64| -> toclip::Result<Option<f64>> {
        let eta = problem.rescaling().learning_rate(rate) / largest;
        let policy = Arc::new(OpenLoop::new(shape.scaled(eta)?, clip.clone()));
        let mut ode = Ode::new(modes, &problem.step, &*policy).tolerance(RTOL, 0.0);
        if let Some(momentum) = problem.momentum {
            ode = ode.with_momentum(momentum);
        }
        let path = ode.solve(&[setting.experiment.time])?;
        Ok(path.risk.last().copied().filter(|_| path.stop == Stop::Finished))
    };
    let risk = rates.iter().map(|&rate| final_risk(rate)).collect::<toclip::Result<_>>();
    let stable =
        stability_limits(modes, &problem.step, c).ok().filter(|_| problem.momentum.is_none());
    let to_user = problem.rescaling().inverse();
    let stable = stable.map(|limits| to_user.learning_rate(limits.risk));
    Ok(Column { risk: risk.map_err(say)?, stable: stable.filter(|eta| eta.is_finite()) })
}

/// The largest rate of a schedule: that by which people name it.
pub fn largest(schedule: &Schedule, time: f64) -> f64 {
    let moments = schedule.breakpoints().into_iter().chain([0.0, time]);
    moments.map(|t| schedule.at(t)).fold(f64::MIN_POSITIVE, f64::max)
}
