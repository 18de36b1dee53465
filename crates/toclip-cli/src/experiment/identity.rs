//! The identity of an experiment: a run may continue an interrupted one with the same identity.

use serde::Serialize;
use serde_json::{Value, json};
use toclip::model::Overlaps;

use super::{Experiment, Prepared};
use crate::output::fnv1a;

/// Everything that the runs depend on: the version, the experiment, and the bits of spectrum and start, which
/// may come from a file that changes.
pub fn of(experiment: &Experiment, prepared: &Prepared) -> anyhow::Result<Value> {
    let (modes, step) = (prepared.problem.modes(), prepared.problem.step());
    let each = modes.modes().iter().flat_map(|m| [m.lambda, m.count, m.energy]);
    let aligned = modes.alignments().unwrap_or_default().iter().flat_map(|a| [a.teacher, a.p, a.q]);
    // Residuals from a file change these numbers.
    let points = [(0.1, 0.5), (1.0, 2.0), (0.0, 1.0)];
    let noise = points.into_iter().flat_map(|(r, c)| match prepared.problem.model() {
        Some(model) => {
            let x = model.coefficients(&Overlaps { q: 2.0 * r, p: 0.0, v: 0.0 }, c);
            [x.a, x.m2]
        }
        None => {
            let x = step.noise().clipped(r, c);
            [x.mu, x.m2]
        }
    });
    inputs(experiment, experiment.ensemble.seed, each.chain(aligned).chain(noise))
}

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
