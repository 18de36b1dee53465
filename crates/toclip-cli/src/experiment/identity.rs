//! The identity of an experiment: a run may continue an interrupted one with the same identity.

use serde::Serialize;
use serde_json::{Value, json};
use toclip::model::Overlaps;

use super::{Experiment, GlmExperiment, GlmProblem, Problem};
use crate::output::fnv1a;

/// Everything that the runs depend on: the version, the experiment, and the bits of spectrum and start, which
/// may come from a file that changes.
pub fn of(experiment: &Experiment, problem: &Problem) -> anyhow::Result<Value> {
    let modes = problem.modes.modes().iter().flat_map(|m| [m.lambda, m.count, m.energy]);
    // Residuals from a file change these numbers.
    let noise = [(0.1, 0.5), (1.0, 2.0), (0.0, 1.0)].into_iter().flat_map(|(r, c)| {
        let x = problem.step.noise().clipped(r, c);
        [x.mu, x.m2]
    });
    inputs(experiment, experiment.ensemble.seed, modes.chain(noise))
}

/// The same for a generalised linear model.
pub fn of_glm(experiment: &GlmExperiment, problem: &GlmProblem) -> anyhow::Result<Value> {
    let modes = problem.modes.modes().iter();
    let modes = modes.flat_map(|m| [m.lambda, m.count, m.teacher, m.p, m.q]);
    let states = [(0.2, 0.5), (2.0, 2.0), (0.0, 1.0)];
    let model = states.into_iter().flat_map(|(q, c)| {
        let x = problem.model.coefficients(&Overlaps { q, p: 0.0, v: 0.0 }, c);
        [x.a, x.m2]
    });
    inputs(experiment, experiment.ensemble.seed, modes.chain(model))
}

/// The number of runs, the band and the list of methods are left out: run $i$ of a method is the
/// same whatever they are, so they may be changed on resuming.
fn inputs(
    experiment: &impl Serialize,
    seed: u64,
    numbers: impl Iterator<Item = f64>,
) -> anyhow::Result<Value> {
    let mut fields = serde_json::to_value(experiment)?;
    if let Some(fields) = fields.as_object_mut() {
        for free in ["methods", "tolerance", "ensemble"] {
            fields.remove(free);
        }
    }
    let data: Vec<u8> = numbers.flat_map(|x| x.to_bits().to_le_bytes()).collect();
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": seed,
        "experiment": fields,
        "data": format!("{:016x}", fnv1a(&data)),
    }))
}
