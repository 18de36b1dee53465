//! How many samples a step averages, and what of them is clipped.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use toml::de::Error;

use crate::choice::{Value, plain};

/// `batch = 32`, or `batch = { size = 32, rule = "per_sample" }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    size: u64,
    #[serde(default)]
    rule: Clipped,
}

/// What is clipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Clipped {
    /// The mean gradient.
    #[default]
    Mean,
    /// The gradient of each sample.
    PerSample,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { size: 1, rule: Clipped::Mean }
    }
}

impl Batch {
    /// Whether it is one sample.
    pub fn is_single(&self) -> bool {
        self.size == 1
    }

    /// As the theory has it.
    ///
    /// # Errors
    /// [`toclip::Error::Parameter`] for an empty batch.
    pub fn to_core(self) -> toclip::Result<toclip::Batch> {
        match self.rule {
            Clipped::Mean => toclip::Batch::mean(self.size),
            Clipped::PerSample => toclip::Batch::per_sample(self.size),
        }
    }
}

impl Serialize for Batch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.rule == Clipped::Mean {
            return serializer.serialize_u64(self.size);
        }
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("size", &self.size)?;
        map.serialize_entry("rule", &self.rule)?;
        map.end()
    }
}

/// A whole number, or a table.
pub(crate) fn batch(value: Value<'_>) -> Result<Batch, Error> {
    let number = value.get_ref().as_integer().map(|number| number.to_string());
    let batch = if let Some(number) = number {
        if number.starts_with('-') {
            let what = format!("{number} is not allowed: a batch has at least one sample");
            return Err(Error::custom(what));
        }
        Batch { size: plain(value)?, ..Batch::default() }
    } else if value.get_ref().is_table() {
        plain(value)?
    } else {
        return Err(Error::custom(
            "give a whole number, or a table such as { size = 32, rule = \"per_sample\" }",
        ));
    };
    batch.to_core().map_err(Error::custom)?;
    Ok(batch)
}
