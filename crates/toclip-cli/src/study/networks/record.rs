//! The records that `train.py` writes: numbers and words by key, with errors that name the file, the
//! line and the key.

use std::collections::BTreeMap;
use std::ops::Index;

use anyhow::{Result, bail};
use serde::de::IgnoredAny;
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

/// A number, by a key that was checked when the record was read.
impl Index<&str> for Record {
    type Output = f64;

    fn index(&self, key: &str) -> &f64 {
        &self.numbers[key]
    }
}

impl Record {
    /// Reads a JSON object; errors name its `place`.
    pub fn parse(json: &str, place: &str, keys: &str) -> Result<Self> {
        let Ok(Value::Object(values)) = serde_json::from_str(json) else {
            bail!("{place}: expected a JSON object as train.py writes it");
        };
        for key in keys.split_whitespace() {
            let Some(value) = values.get(key) else {
                bail!("{place}: `{key}` is missing; train.py writes it");
            };
            if let (false, expected) = is_allowed(key, value) {
                bail!("{place}: `{key}` is {value}; expected {expected}");
            }
        }
        // Only some files have it; another type would be taken for the whole model.
        if let Some(value) = values.get("group").filter(|value| !value.is_string()) {
            bail!("{place}: `group` is {value}; expected a string");
        }
        let mut record = Record::default();
        for (key, value) in values {
            if let Value::String(word) = value {
                record.words.insert(key, word);
            } else {
                let number = value.as_f64().or(value.as_bool().map(f64::from));
                record.numbers.insert(key, number.unwrap_or(f64::NAN));
            }
        }
        Ok(record)
    }

    /// The records of a file, and a note about a line that was left out. A line that a killed run did not
    /// finish is the last one and has no line end; any other line that cannot be read is an error.
    pub fn parse_lines(text: &str, path: &str, keys: &str) -> Result<(Vec<Self>, Option<String>)> {
        let mut found = Vec::new();
        for (number, line) in (1..).zip(text.split_inclusive('\n')) {
            if line.trim().is_empty() {
                continue;
            }
            let json = without_nan(line);
            if !line.ends_with('\n') && serde_json::from_str::<IgnoredAny>(&json).is_err() {
                let note = format!(
                    "{path}: line {number}, the last one, is incomplete and was skipped; a resumed run \
                     writes it again"
                );
                return Ok((found, Some(note)));
            }
            found.push(Record::parse(&json, &format!("{path}, line {number}"), keys)?);
        }
        if found.is_empty() {
            bail!("{path} is empty: train.py adds a line at each measurement");
        }
        Ok((found, None))
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

/// Whether a key may hold a value, and the values that it may hold; the same in every file.
fn is_allowed(key: &str, value: &Value) -> (bool, &'static str) {
    let number = value.as_f64().unwrap_or(f64::NAN);
    match key {
        "model" | "loss" | "mode" => (value.is_string(), "a string"),
        "converged" => (value.is_boolean(), "true or false"),
        "step" | "samples" | "seed" => (value.is_u64(), "an integer, at least 0"),
        "batch" | "steps" => (value.is_u64() && number > 0.0, "a positive integer"),
        "threshold" | "median_norm" | "epochs" | "rate" => (number > 0.0, "a positive number"),
        // The first measurement is at epoch 0, before training.
        "epoch" | "momentum" => (number >= 0.0, "a number, at least 0"),
        "clip_fraction" => ((0.0..=1.0).contains(&number), "a number from 0 to 1"),
        // Null stands for a number that is not finite.
        _ => (value.is_number() || value.is_null(), "a number"),
    }
}

/// Null in place of NaN, Infinity and -Infinity, which Python writes although they are not JSON.
fn without_nan(line: &str) -> String {
    let null = |part: &str| {
        let words = ["-Infinity", "Infinity", "NaN"];
        words.iter().fold(part.to_owned(), |part, word| part.replace(word, "null"))
    };
    // Only outside of strings; the names and words of a record contain no \".
    let parts = line.split('"').enumerate();
    let parts = parts.map(|(i, part)| if i % 2 == 0 { null(part) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("\"")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, path: &str) -> Result<(Vec<Record>, Option<String>)> {
        Record::parse_lines(text, path, "step d")
    }

    #[test]
    fn numbers_that_are_not_finite_are_missing() {
        let text = "{\"step\": 1, \"d\": 2.5, \"name\": \"NaN\"}\n\n{\"step\": 2, \"d\": NaN}\n\
                    {\"step\": 3, \"d\": -Infinity}\n{\"step\": 4, \"d\": 7}";
        let (found, skipped) = read(text, "x").unwrap();
        assert_eq!(skipped, None, "a complete last line needs no line end");
        let number = |x: f64| Some(x).filter(|x| !x.is_nan());
        let numbers: Vec<(f64, Option<f64>)> =
            found.iter().map(|line| (line["step"], number(line["d"]))).collect();
        assert_eq!(numbers, [(1.0, Some(2.5)), (2.0, None), (3.0, None), (4.0, Some(7.0))]);
        assert_eq!(found[0].words["name"], "NaN");
    }

    #[test]
    fn only_an_incomplete_last_line_is_skipped() {
        let whole = "{\"step\": 1, \"d\": 1}\n";
        for cut in ["{\"step\": 2, \"d", "{\"step\": 2, \"d\": Na"] {
            let (found, note) = read(&format!("{whole}{cut}"), "x.jsonl").unwrap();
            assert_eq!((found.len(), note.is_some()), (1, true));
        }
        let errors: Vec<String> = [
            "{\"step\": 1, \"d\n{\"step\": 2, \"d\": 1}\n",
            "{\"step\": 1, \"d\": 1}\n{\"step\"\n",
            "{\"d\": 1}",
            "{\"step\": -9, \"d\": 1}\n",
            "{\"step\": \"one\", \"d\": 1}\n",
            "[1, 2\n",
            "",
            "\n \n",
        ]
        .map(|text| format!("{:#}", read(text, "x.jsonl").unwrap_err()))
        .into();
        insta::assert_snapshot!(errors.join("\n"));
    }
}
