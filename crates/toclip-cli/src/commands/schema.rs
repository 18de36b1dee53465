//! `toclip schema`: the JSON Schema of an experiment, for editors.

use std::process::ExitCode;

use crate::experiment::schema::SCHEMA;

/// Print the JSON Schema of experiment files
///
/// Editors with a TOML language server use it to complete keys and mark mistakes.
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/schema.txt"))]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    crate::output::terminal::print(format_args!("{SCHEMA}"));
    Ok(ExitCode::SUCCESS)
}
