//! `toclip residuals`: which law of noise residuals follow.

pub mod figure;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use toclip_data::noise_fit::{Comparison, Components, NoiseFit, NoiseModel, Options, fit_all};

use crate::output::plots;
use crate::output::say;
use crate::plot::Figure;
use crate::words::short;

/// Fit laws of noise to residuals and compare them on residuals the fit has not seen
///
/// The file is CSV, NPY or Parquet. Gaussian, Laplace, Student-t and Gaussian mixtures are fitted by maximum
/// likelihood. Residuals are dealt into folds; each fold is scored by the fit to the others. Of the
/// laws that are at most two standard errors behind the first, the one with the fewest parameters
/// is advised.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toclip residuals residuals.npy
  toclip residuals residuals.csv --column 3 --plot noise.svg
  toclip residuals residuals.npy --components 3 --json")]
pub struct Args {
    /// Residuals, as .csv, .npy or .parquet
    file: PathBuf,
    /// Column of the file: its name, or its position from 1; needed if there is more than one
    #[arg(long, value_name = "NAME|N")]
    column: Option<String>,
    /// Components of the Gaussian mixture; unless given, up to 6 by BIC
    #[arg(long, value_name = "K")]
    components: Option<usize>,
    /// Parts into which residuals are dealt
    #[arg(long, value_name = "N", default_value_t = 5)]
    folds: usize,
    /// Seed that deals them
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Draw the histogram with the fitted densities, as .svg or .png
    #[arg(long, value_name = "FILE", visible_alias = "out")]
    plot: Option<PathBuf>,
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let residuals = toclip_data::read_column(&args.file, args.column.as_deref())?;
    let components = match args.components {
        Some(k) => Components::Exactly(k),
        None => Options::default().components,
    };
    let options = Options { components, folds: args.folds, seed: args.seed };
    let comparison =
        fit_all(&residuals, &options).with_context(|| args.file.display().to_string())?;
    if let Some(path) = &args.plot {
        let title = format!("Noise in {}", name(&args.file));
        let [whole, tails] = figure::charts(&residuals, &comparison);
        plots::save(&Figure::new(&title).chart(whole).chart(tails), path)?;
    }
    if args.json {
        say!("{}", serde_json::to_string_pretty(&json(&comparison))?);
    } else {
        crate::output::terminal::print(format_args!("{}", text(&comparison)));
        if let Some(path) = &args.plot {
            say!("Written: {}", path.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into())
}

/// The comparison as a table, the advised law and what else there is to say.
pub fn text(comparison: &Comparison) -> String {
    let Comparison { count, mean, std, .. } = comparison;
    let mut text =
        format!("{count} residuals: mean {}, standard deviation {}\n\n", short(*mean), short(*std));
    let label = |fit: &NoiseFit| match fit.model {
        NoiseModel::Empirical => "the residuals, smoothed".to_owned(),
        _ => fit.describe(),
    };
    let width = comparison.fits.iter().map(|fit| label(fit).chars().count()).max().unwrap_or(0);
    let _ = writeln!(
        text,
        "  {:width$}  {:>10}  {:>19}  {:>12}  {:>10}",
        "law", "held-out", "behind the first", "BIC", "parameters"
    );
    for fit in &comparison.fits {
        let behind = match fit.behind.mean {
            0.0 => "–".to_owned(),
            mean => format!("{mean:.5} ± {:.5}", fit.behind.standard_error),
        };
        let (bic, parameters) = match fit.bic {
            Some(bic) => (format!("{bic:.1}"), fit.parameters.to_string()),
            None => ("–".into(), "–".into()),
        };
        let _ = writeln!(
            text,
            "  {:width$}  {:>10.5}  {behind:>19}  {bic:>12}  {parameters:>10}",
            label(fit),
            fit.held_out
        );
    }
    text.push_str(
        "\nHeld-out: mean log-likelihood of a residual under the fit to the other folds, in nats.\n",
    );
    let best = comparison.best();
    let _ =
        writeln!(text, "Advised: {}. In an experiment file:\n  {}", best.describe(), toml(best));
    let fit_notes = comparison
        .fits
        .iter()
        .filter_map(|fit| fit.note.as_ref().map(|note| format!("{}: {note}", fit.describe())));
    for note in comparison.notes.iter().cloned().chain(fit_notes) {
        let _ = writeln!(text, "Note: {note}.");
    }
    text
}

/// The law as a line of an experiment file.
fn toml(fit: &NoiseFit) -> String {
    // A table of numbers, lists and one string reads the same in both languages but for the colon.
    let fields = match serde_json::to_value(&fit.family) {
        Ok(Value::Object(fields)) => fields,
        _ => return String::new(),
    };
    let (family, rest): (Vec<_>, Vec<_>) = fields.iter().partition(|(key, _)| *key == "family");
    let fields: Vec<String> =
        family.iter().chain(&rest).map(|(key, value)| format!("{key} = {value}")).collect();
    format!("noise = {{ {} }}", fields.join(", "))
}

/// The comparison for scripts. The residuals themselves are not repeated.
pub fn json(comparison: &Comparison) -> Value {
    let fit = |fit: &NoiseFit| {
        let noise = (fit.model != NoiseModel::Empirical).then_some(&fit.family);
        json!({
            "kind": fit.model.name(),
            "noise": noise,
            "parameters": fit.parameters,
            "log_likelihood": fit.log_likelihood,
            "held_out": fit.held_out,
            "behind": fit.behind.mean,
            "behind_standard_error": fit.behind.standard_error,
            "bic": fit.bic,
            "note": fit.note,
        })
    };
    json!({
        "count": comparison.count,
        "mean": comparison.mean,
        "std": comparison.std,
        "best": comparison.best().model.name(),
        "fits": comparison.fits.iter().map(fit).collect::<Vec<_>>(),
        "notes": comparison.notes,
    })
}
