//! How many samples a step averages and what of them is clipped, in words.

use anyhow::{Result, bail};
use toclip::Batch;

/// The columns of a table that say it, each of which may be missing.
pub const COLUMNS: [&str; 3] = ["batch", "rule", "outputs"];

/// $B$, what is clipped, and $C$.
#[derive(Clone, Copy)]
pub struct Words {
    pub batch: u64,
    pub per_sample: bool,
    pub outputs: u64,
}

impl Words {
    /// From the columns of a row.
    pub fn from_columns([batch, rule, outputs]: [Option<&str>; 3]) -> Result<Self> {
        let number = |text: Option<&str>, name: &str| match text.map(whole) {
            None => Ok(1),
            Some(Ok(number)) => Ok(number),
            Some(Err(what)) => bail!("{name} = {what}"),
        };
        let per_sample = match rule.map(str::trim) {
            None | Some("mean") => false,
            Some("per_sample") => true,
            Some(other) => bail!("rule = `{other}` is not one: give mean or per_sample"),
        };
        let (batch, outputs) = (number(batch, "batch")?, number(outputs, "outputs")?);
        Ok(Words { batch, per_sample, outputs })
    }

    pub fn batch(self) -> toclip::Result<Batch> {
        let batch = if self.per_sample { Batch::per_sample } else { Batch::mean };
        batch(self.batch)?.outputs(self.outputs)
    }

    /// The columns that say it; none of them for single samples.
    pub fn columns(self) -> Vec<(&'static str, String)> {
        if self.batch == 1 && self.outputs == 1 {
            return Vec::new();
        }
        let rule = if self.per_sample { "per_sample" } else { "mean" };
        let words = [self.batch.to_string(), rule.to_string(), self.outputs.to_string()];
        COLUMNS.into_iter().zip(words).collect()
    }
}

/// A whole number from 1 to 1e9, also as 1e3.
pub fn whole(text: &str) -> Result<u64, String> {
    let number = text.trim().parse::<f64>().ok();
    match number.filter(|x| x.fract() == 0.0 && (1.0..=1e9).contains(x)) {
        Some(number) => Ok(number as u64),
        None => Err(format!("`{text}` is not a whole number from 1 to 1e9")),
    }
}
