//! What makes two runs of an experiment the same, so that one may continue the other.

use serde_json::{Value, json};

use super::{Experiment, Problem};
use crate::output::fnv1a;

/// What the runs depend on: the version, the experiment, and the bits of spectrum and start, which
/// may come from a file that changes.
///
/// The number of runs, the band and the list of methods are left out: run $i$ of a method is the
/// same whatever they are, so they may be changed on resuming.
pub fn of(experiment: &Experiment, problem: &Problem) -> anyhow::Result<Value> {
    let mut fields = serde_json::to_value(experiment)?;
    if let Some(fields) = fields.as_object_mut() {
        for free in ["methods", "tolerance", "ensemble"] {
            fields.remove(free);
        }
    }
    let mut data = Vec::new();
    for mode in problem.modes.modes() {
        for x in [mode.lambda, mode.count, mode.energy] {
            data.extend(x.to_bits().to_le_bytes());
        }
    }
    // Residuals from a file show in these: whatever they are, two risks and thresholds tell.
    for (r, c) in [(0.1, 0.5), (1.0, 2.0), (0.0, 1.0)] {
        let x = problem.step.noise().clipped(r, c);
        data.extend(x.mu.to_bits().to_le_bytes());
        data.extend(x.m2.to_bits().to_le_bytes());
    }
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": experiment.ensemble.seed,
        "experiment": fields,
        "data": format!("{:016x}", fnv1a(&data)),
    }))
}
