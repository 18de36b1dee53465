//! JSON: numbers in it, and printing it.

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

/// A number for JSON, which has no infinity and no NaN: those are the strings `"inf"`, `"-inf"` and
/// `"NaN"`.
pub fn number(x: f64) -> Value {
    if x.is_finite() { x.into() } else { x.to_string().into() }
}

/// Prints a value, indented.
pub fn print(value: &impl Serialize) -> Result<()> {
    super::say!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}
