//! `toclip explore`: the theory in the browser.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use toclip::spectrum::SpectrumSpec;
use toml::{Table, Value};

use crate::experiment::{self, NoiseChoice, Prepared};
use crate::output::{files, say};
use crate::study::explorer;

/// Explore the theory in the browser, with sliders for noise, data and schedule
///
/// Writes one HTML page that needs no network and opens it. With an experiment file the page opens
/// with that experiment; residuals and eigenvalues that it names are written into the page. Nothing
/// leaves your machine.
#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/explore.txt"))]
pub struct Args {
    /// The experiment to open with, a TOML file for `toclip run`
    experiment: Option<PathBuf>,
    /// Where to write the page; a temporary file by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the page without opening a browser
    #[arg(long)]
    no_open: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let page = match &args.experiment {
        Some(file) => explorer::opening_with(&self_contained(file)?)?,
        None => explorer::PAGE.to_owned(),
    };
    let path = args.out.unwrap_or_else(|| std::env::temp_dir().join("toclip-explore.html"));
    if path.is_dir() {
        bail!("{} is a folder; expected the name of a file, such as explore.html", path.display());
    }
    files::write(&path, page.as_bytes())
        .with_context(|| format!("cannot write the page to {}", path.display()))?;
    say!("{}", files::wrote(&path));
    if !args.no_open && !open(&path) {
        say!("Could not start a browser; open the file in one");
    }
    Ok(ExitCode::SUCCESS)
}

/// The experiment as TOML that names no other file.
fn self_contained(file: &Path) -> Result<String> {
    let (read, origin) = experiment::read(file)?;
    let asked = read.into_trajectories(&origin)?;
    let spectrum = Prepared::new(&asked, &origin)?.spectrum;
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the experiment {}", file.display()))?;
    let mut table: Table = text.parse()?;
    table.remove("criteria");
    if let noise @ NoiseChoice::File(_) = &asked.noise {
        let family = noise.family(origin.folder()).map_err(anyhow::Error::msg)?;
        table.insert("noise".into(), Value::try_from(&family)?);
    }
    if let SpectrumSpec::File { .. } = asked.spectrum {
        let norm = spectrum.norm();
        let each = spectrum.blocks().iter();
        let values: Vec<f64> = each
            .flat_map(|block| std::iter::repeat_n(block.value * norm, block.multiplicity as usize))
            .collect();
        let spectrum = SpectrumSpec::Eigenvalues { values };
        table.insert("spectrum".into(), Value::try_from(spectrum)?);
    }
    Ok(toml::to_string(&table)?)
}

/// Opens a file with the program of the system for it.
fn open(path: &Path) -> bool {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut start = Command::new("cmd");
        start.args(["/C", "start", ""]);
        start
    } else {
        Command::new("xdg-open")
    };
    let quiet = command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_an_experiment_names_are_written_into_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("r.csv"), "1\n-1\n0.5\n").unwrap();
        std::fs::write(folder.path().join("k.csv"), "4\n1\n").unwrap();
        let file = folder.path().join("e.toml");
        let text = "noise = { family = 'empirical', file = 'r.csv' }\ntime = 3\nclip = 1\n\
                    spectrum = { kind = 'file', path = 'k.csv' }\nlearning_rate = 0.1\n\
                    start = { kind = 'uniform', norm = 1.0 }\n";
        std::fs::write(&file, text).unwrap();
        let table: Table = self_contained(&file).unwrap().parse().unwrap();
        let numbers = |value: &Value| -> Vec<f64> {
            value.as_array().unwrap().iter().map(|x| x.as_float().unwrap()).collect()
        };
        let mut residuals = numbers(&table["noise"]["values"]);
        residuals.sort_by(f64::total_cmp);
        assert_eq!(residuals, [-1.0, 0.5, 1.0]);
        assert_eq!(numbers(&table["spectrum"]["values"]), [4.0, 1.0]);
    }
}
