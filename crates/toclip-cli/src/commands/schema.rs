//! `toclip schema`: the JSON Schema of an experiment, for editors.

use std::process::ExitCode;

use crate::experiment::schema::SCHEMA;

/// Print the JSON Schema of experiment files
///
/// Editors with a TOML language server complete the keys of an experiment and mark mistakes when
/// they know the schema.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toclip schema > experiment.schema.json

and as the first line of an experiment, for Even Better TOML and taplo:
  #:schema ./experiment.schema.json")]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    crate::output::terminal::print(format_args!("{SCHEMA}"));
    Ok(ExitCode::SUCCESS)
}
