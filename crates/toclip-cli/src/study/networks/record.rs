//! The records that `train.py` writes: numbers and words by key.

use std::collections::BTreeMap;
use std::ops::Index;

use anyhow::Result;
use serde_json::Value;

use crate::output::Table;
use toclip_words::interval;

/// The numbers of a line of `factors.jsonl` and of `curvature.jsonl` that the tables have as columns.
pub const FACTOR_COLUMNS: &str = "step epoch batch threshold median_norm clip_fraction nu nu_stderr \
    mu_direct mu_direct_stderr ccc_direct ccc_direct_stderr mu_batch mu_batch_stderr ccc_batch \
    ccc_batch_stderr mu_fraction mu_fraction_stderr ccc_fraction ccc_fraction_stderr";
pub const CURVATURE_COLUMNS: &str = "step epoch samples dimension dimension_stderr converged";

/// A line of a file, or all of `run.json`.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// NaN where a number was not finite; 1 for true.
    pub numbers: BTreeMap<String, f64>,
    pub words: BTreeMap<String, String>,
}

/// A number; the tests read all records that are compiled in.
impl Index<&str> for Record {
    type Output = f64;

    fn index(&self, key: &str) -> &f64 {
        &self.numbers[key]
    }
}

impl Record {
    /// Reads a JSON object of numbers, words and truth values; null is a number that is not finite.
    pub fn parse(json: &str) -> Result<Self> {
        let mut record = Record::default();
        for (key, value) in serde_json::from_str::<BTreeMap<String, Value>>(json)? {
            match value {
                Value::String(word) => drop(record.words.insert(key, word)),
                value => {
                    let number = value.as_f64().or(value.as_bool().map(f64::from));
                    record.numbers.insert(key, number.unwrap_or(f64::NAN));
                }
            }
        }
        Ok(record)
    }

    /// A record for each line.
    pub fn lines(text: &str) -> Result<Vec<Self>> {
        text.lines().map(Record::parse).collect()
    }

    /// A table with a column for each of the keys.
    pub fn table(records: &[&Self], keys: &'static str) -> Table {
        let column = |key| (key, records.iter().map(|record| record[key]).collect::<Vec<f64>>());
        keys.split_whitespace().map(column).collect()
    }

    /// A number and its standard error; NaN for a direct estimate that is not determined.
    pub fn estimate(&self, name: &str) -> Estimate {
        match name.ends_with("direct") && !self.determined() {
            true => Estimate::MISSING,
            false => Estimate { value: self[name], error: self[&*format!("{name}_stderr")] },
        }
    }

    /// Whether the batches showed a mean gradient at all. The direct estimate divides by its
    /// squared norm; where that is lost in the noise, neither the ratio nor its error means anything.
    pub fn determined(&self) -> bool {
        let half_width = Z * self["ccc_direct_stderr"];
        let known = half_width <= 0.5 * self["ccc_direct"].abs().max(1.0);
        self["clip_fraction"] == 0.0 || (self["gradient_norm"] > 0.0 && known)
    }
}

/// Standard errors on either side of a 95% interval.
pub const Z: f64 = 1.96;

/// A value and its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub error: f64,
}

impl Estimate {
    pub const MISSING: Estimate = Estimate { value: f64::NAN, error: f64::NAN };

    /// The lower end of the 95% interval.
    pub fn low(self) -> f64 {
        self.value - Z * self.error
    }

    /// The upper end of the 95% interval.
    pub fn high(self) -> f64 {
        self.value + Z * self.error
    }

    /// "1.181 (95% CI 1.137–1.225)".
    pub fn describe(self) -> String {
        interval(self.value, self.low(), self.high())
    }
}

/// The ways to estimate μ in the order of the colours: as the keys have them, and as the legend does.
pub const ESTIMATORS: [(&str, &str); 3] = [
    ("direct", "μ, direct"),
    ("batch", "μ, batch form"),
    ("fraction", "μ, unclipped fraction (the paper's)"),
];
