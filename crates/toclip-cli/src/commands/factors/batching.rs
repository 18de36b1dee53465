//! How many samples a step averages and what of them is clipped, as flags and as table columns.

use anyhow::{Result, bail};
use toclip::Batch;

use crate::arguments::count;

/// The columns of a table that describe it, each of which may be missing.
pub const COLUMNS: [&str; 3] = ["batch", "rule", "outputs"];

/// $B$, what is clipped, and $C$.
#[derive(Clone, Copy)]
pub struct Batching {
    pub batch: u64,
    pub per_sample: bool,
    pub outputs: u64,
}

impl Batching {
    /// From the cells of a row.
    pub fn from_cells([batch, rule, outputs]: [Option<&str>; 3]) -> Result<Self> {
        let number =
            |cell: Option<&str>, name: &str| match cell.map(|text| (text, count::<1>(text))) {
                None => Ok(1),
                Some((_, Ok(number))) => Ok(number),
                Some((text, Err(expected))) => bail!("{name} = `{text}`: {expected}"),
            };
        let per_sample = match rule.map(str::trim) {
            None | Some("mean") => false,
            Some("per_sample") => true,
            Some(other) => bail!("rule = `{other}`: expected mean or per_sample"),
        };
        let (batch, outputs) = (number(batch, "batch")?, number(outputs, "outputs")?);
        Ok(Batching { batch, per_sample, outputs })
    }

    pub fn to_core(self) -> toclip::Result<Batch> {
        let rule = if self.per_sample { Batch::per_sample } else { Batch::mean };
        rule(self.batch)?.outputs(self.outputs)
    }

    /// The columns that describe it and their cells; none for single samples.
    pub fn cells(self) -> Vec<(&'static str, String)> {
        if self.batch == 1 && self.outputs == 1 {
            return Vec::new();
        }
        let rule = if self.per_sample { "per_sample" } else { "mean" };
        let cells = [self.batch.to_string(), rule.to_string(), self.outputs.to_string()];
        COLUMNS.into_iter().zip(cells).collect()
    }
}
