//! What makes two runs of an experiment the same, so that one may continue the other.

use serde_json::{Value, json};

use super::{Experiment, Problem};

/// What the runs depend on: the version, the experiment, and the bits of spectrum and start, which
/// may come from a file that changes.
///
/// The number of runs, the band and the list of methods are left out: run $i$ of a method is the
/// same whatever they are, so they may be changed on resuming.
pub fn of(experiment: &Experiment, problem: &Problem) -> anyhow::Result<Value> {
    let mut fields = serde_json::to_value(experiment)?;
    if let Some(fields) = fields.as_object_mut() {
        for free in ["name", "methods", "tolerance", "ensemble"] {
            fields.remove(free);
        }
    }
    let mut digest = Digest::default();
    for mode in problem.modes.modes() {
        for x in [mode.lambda, mode.count, mode.energy] {
            digest.add(&x.to_bits().to_le_bytes());
        }
    }
    // Residuals from a file show in these: whatever they are, two risks and thresholds tell.
    for (r, c) in [(0.1, 0.5), (1.0, 2.0), (0.0, 1.0)] {
        let x = problem.step.noise().clipped(r, c);
        digest.add(&x.mu.to_bits().to_le_bytes());
        digest.add(&x.m2.to_bits().to_le_bytes());
    }
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": experiment.ensemble.seed,
        "experiment": fields,
        "data": format!("{:016x}", digest.value()),
    }))
}

/// What differs between two identities, in words.
pub fn difference(saved: &Value, now: &Value) -> String {
    let field = |of: &Value, key: &str| of.pointer(key).cloned().unwrap_or(Value::Null);
    let keys = ["/version".to_owned(), "/seed".to_owned()].into_iter().chain(
        [
            "spectrum",
            "start",
            "noise",
            "batch",
            "covariates",
            "time",
            "points",
            "learning_rate",
            "clip",
        ]
        .map(|key| format!("/experiment/{key}")),
    );
    for key in keys {
        let (before, after) = (field(saved, &key), field(now, &key));
        if before != after {
            let name = key.rsplit('/').next().unwrap_or(&key);
            return format!("{name} was {before} and is {after}");
        }
    }
    "the data it reads have changed".into()
}

/// The 64-bit hash of Fowler, Noll and Vo (FNV-1a): against accidents, not against malice.
#[derive(Debug, Clone)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub fn value(&self) -> u64 {
        self.0
    }

    pub fn of(bytes: &[u8]) -> u64 {
        let mut digest = Digest::default();
        digest.add(bytes);
        digest.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        // Test vectors of the authors.
        assert_eq!(Digest::of(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Digest::of(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Digest::of(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn the_difference_is_named() {
        let at = |eta: f64| json!({ "version": "1", "experiment": { "learning_rate": eta } });
        assert_eq!(difference(&at(0.5), &at(0.25)), "learning_rate was 0.5 and is 0.25");
        assert_eq!(difference(&at(0.5), &at(0.5)), "the data it reads have changed");
    }
}
