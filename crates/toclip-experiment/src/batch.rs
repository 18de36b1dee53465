//! The size of a batch, and whether its mean or each sample is clipped.

use serde::{Deserialize, Serialize, Serializer};
use toml::Value;

use crate::Mistake;

use crate::value::read_value;
use crate::value_forms::{deserialize_by_parse, table_with};

/// `batch = 32`, or `batch = { size = 32, rule = "per_sample" }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct BatchChoice {
    size: u64,
    #[serde(default)]
    rule: Clipped,
}

/// The gradient that is clipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Clipped {
    /// The mean gradient.
    #[default]
    Mean,
    /// The gradient of each sample.
    PerSample,
}

impl Default for BatchChoice {
    fn default() -> Self {
        BatchChoice { size: 1, rule: Clipped::Mean }
    }
}

impl BatchChoice {
    /// Whether it is one sample.
    pub fn is_single(&self) -> bool {
        self.size == 1
    }

    /// The batch of the theory.
    ///
    /// # Errors
    /// [`toclip::Error::Parameter`] for an empty batch.
    pub fn to_core(self) -> toclip::Result<toclip::Batch> {
        match self.rule {
            Clipped::Mean => toclip::Batch::mean(self.size),
            Clipped::PerSample => toclip::Batch::per_sample(self.size),
        }
    }

    fn parse(value: Value) -> Result<Self, Mistake> {
        const EXPECTED: &str = "an integer, at least 1, or a table such as { size = 32, rule = \
                                \"per_sample\" }";
        if value.as_integer().is_some_and(|size| size < 1) {
            return Err(Mistake::is(value, EXPECTED));
        }
        let batch = read_value(
            table_with("size", value, Value::is_integer, EXPECTED)?,
            BatchChoice::deserialize,
        )?;
        batch.to_core()?;
        Ok(batch)
    }
}

impl Serialize for BatchChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.rule {
            Clipped::Mean => serializer.serialize_u64(self.size),
            Clipped::PerSample => BatchChoice::serialize(self, serializer),
        }
    }
}

deserialize_by_parse!(BatchChoice);
