//! The command `toclip`: whether to clip gradients, where to clip, and what the loss will do.
//!
//! `commands` has one module for each command. [`output`] has everything they need to show and
//! keep their results; it is public for the commands that live outside this crate.

pub mod output;

mod arguments;
mod commands;
mod experiment;
mod study;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;
use std::sync::LazyLock;
use toclip_plot as plot;
use toclip_report as report;

/// `0.1.0 (abc1234; features: parquet, png)`; without a commit where it is not known.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let features = [
        ("embed", cfg!(feature = "embed")),
        ("parquet", cfg!(feature = "parquet")),
        ("png", cfg!(feature = "png")),
    ];
    let on: Vec<&str> = features.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
    let on = if on.is_empty() { "none".into() } else { on.join(", ") };
    let commit = match env!("TOCLIP_COMMIT") {
        "" => String::new(),
        commit => format!("{commit}; "),
    };
    format!("{} ({commit}features: {on})", env!("CARGO_PKG_VERSION"))
});

/// Whether to clip gradients, where to clip, and what the loss will do
#[derive(Parser)]
#[command(name = "toclip", version = VERSION.as_str(), propagate_version = true, max_term_width = 100)]
#[command(after_help = include_str!("help/toclip.txt"))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Advise(commands::advise::Args),
    Explore(commands::explore::Args),
    Factors(commands::factors::Args),
    Fit(commands::fit::Args),
    Run(commands::run::Args),
    Reproduce(commands::reproduce::Args),
    Residuals(commands::residuals::Args),
    Schedule(commands::schedule::Args),
    Schema(commands::schema::Args),
    Sweep(commands::sweep::Args),
    Convergence(commands::convergence::Args),
    Data(commands::data::Args),
    Embed(commands::embed::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
}

/// Reads the arguments of the process, runs the command they name, and reports an error on standard
/// error.
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Advise(args) => commands::advise::run(args),
        Command::Explore(args) => commands::explore::run(args),
        Command::Factors(args) => commands::factors::run(args),
        Command::Fit(args) => commands::fit::run(args),
        Command::Run(args) => commands::run::run(args),
        Command::Reproduce(args) => commands::reproduce::run(args),
        Command::Residuals(args) => commands::residuals::run(args),
        Command::Schedule(args) => commands::schedule::run(args),
        Command::Schema(args) => commands::schema::run(args),
        Command::Sweep(args) => commands::sweep::run(args),
        Command::Convergence(args) => commands::convergence::run(args),
        Command::Data(args) => commands::data::run(args),
        Command::Embed(args) => commands::embed::run(args),
        Command::Completions(args) => commands::completions::run(args, Cli::command()),
        Command::Man(args) => commands::man::run(args, Cli::command()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            // Causes on one line: a message a person can read and a script can match.
            // Nobody may be there to read it: `2>&1 | head` closes both.
            tell!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise clap says "unexpected argument '-1'" where it should say what is expected.
    #[test]
    fn numeric_options_take_negative_numbers() {
        let numbers: [clap::builder::ValueParser; 3] = [
            clap::value_parser!(f64).into(),
            clap::value_parser!(u64).into(),
            clap::value_parser!(usize).into(),
        ];
        let numbers = numbers.map(|parser| parser.type_id());
        let mut checked = 0;
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
                let numeric = numbers.contains(&arg.get_value_parser().type_id());
                let allowed =
                    arg.is_allow_negative_numbers_set() || arg.is_allow_hyphen_values_set();
                assert!(!numeric || allowed, "{} {}", command.get_name(), arg.get_id());
                checked += usize::from(numeric);
            }
            let own = command.get_subcommands().filter(|own| own.get_name() != "sweep");
            commands.extend(own.cloned());
        }
        assert!(checked > 20, "{checked}");
    }
}
