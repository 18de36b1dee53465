//! `toclip man`: manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::output::{say, terminal};

/// Print the manual page, or write the pages of all commands into a folder
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/man.txt"))]
pub struct Args {
    /// Folder for the pages of all commands
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Runs the command; `cli` is the whole command line.
pub fn run(args: Args, cli: clap::Command) -> Result<ExitCode> {
    match args.folder {
        Some(folder) => {
            std::fs::create_dir_all(&folder)
                .and_then(|()| clap_mangen::generate_to(cli, &folder))
                .with_context(|| format!("cannot write the pages into {}", folder.display()))?;
            say!("Wrote the manual pages into {}", folder.display());
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(cli).render(&mut page)?;
            terminal::print_bytes(&page);
        }
    }
    Ok(ExitCode::SUCCESS)
}
