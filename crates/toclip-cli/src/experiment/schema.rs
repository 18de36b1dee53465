//! The JSON Schema of an experiment, for editors.

/// The schema, as `toclip schema` prints it.
pub const SCHEMA: &str = include_str!("schema.json");
