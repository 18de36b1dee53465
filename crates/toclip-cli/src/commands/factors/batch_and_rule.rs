//! The batch and the rule of a step, as flags and as table columns.

use anyhow::{Result, bail};
use serde_json::Value;
use toclip::{Batch, Rule, Step};

use crate::arguments::{count, rule};

/// The columns of a table that describe it, each of which may be missing.
pub const COLUMNS: [&str; 4] = ["batch", "rule", "outputs", "per_sample"];

/// $B$ samples with $C$ outputs, and the rule for the gradient of each sample or of their mean.
#[derive(Clone)]
pub struct BatchAndRule {
    pub batch: u64,
    pub per_sample: bool,
    pub outputs: u64,
    pub rule: Rule,
}

impl BatchAndRule {
    /// From the cells of a row. `rule` may also be `mean` or `per_sample`, for clipping.
    pub fn from_cells([batch, name, outputs, each]: [Option<&str>; 4]) -> Result<Self> {
        let number =
            |cell: Option<&str>, name: &str| match cell.map(|text| (text, count::<1>(text))) {
                None => Ok(1),
                Some((_, Ok(number))) => Ok(number),
                Some((text, Err(expected))) => bail!("{name} = `{text}`: {expected}"),
            };
        let (rule, told) = match name.map(str::trim) {
            None | Some("mean") => (Rule::Clip, false),
            Some("per_sample") => (Rule::Clip, true),
            Some(name) => (rule(name)?, false),
        };
        let per_sample = match each.map(str::trim) {
            None | Some("") => told,
            Some("true") => true,
            Some("false") => told,
            Some(other) => bail!("per_sample = `{other}`: expected true or false"),
        };
        let (batch, outputs) = (number(batch, "batch")?, number(outputs, "outputs")?);
        Ok(BatchAndRule { batch, per_sample, outputs, rule })
    }

    /// The step that it makes of a noise.
    pub fn step<'a>(&self, noise: impl Into<Step<'a>>) -> toclip::Result<Step<'a>> {
        let batch = if self.per_sample { Batch::per_sample } else { Batch::mean };
        let batch = batch(self.batch)?.outputs(self.outputs)?;
        Step::new(noise).with_batch(batch)?.with_rule(self.rule.clone())
    }

    /// The columns that describe it and their cells; none for single samples that are clipped.
    pub fn cells(&self) -> Vec<(&'static str, Value)> {
        let clips = self.rule == Rule::Clip;
        let shown = match (clips, self.batch == 1 && self.outputs == 1) {
            (true, true) => 0,
            (false, _) if self.per_sample => 4,
            _ => 3,
        };
        COLUMNS.into_iter().take(shown).map(|name| (name, self.cell(name))).collect()
    }

    /// The cell of one of the [`COLUMNS`].
    pub fn cell(&self, column: &str) -> Value {
        let single = self.batch == 1 && self.outputs == 1;
        match (column, &self.rule) {
            ("batch", _) => self.batch.into(),
            ("outputs", _) => self.outputs.into(),
            ("per_sample", _) => self.per_sample.into(),
            (_, Rule::Clip) if !single && self.per_sample => "per_sample".into(),
            (_, Rule::Clip) if !single => "mean".into(),
            (_, rule) => rule.name().into(),
        }
    }
}
