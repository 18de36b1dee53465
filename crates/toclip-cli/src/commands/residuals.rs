//! `toclip residuals`: which noise distribution residuals follow.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use toclip_data::noise_fit::{
    Components, NoiseComparison, NoiseFit, NoiseFitOptions, NoiseModel, fit_all,
};

use crate::arguments;
use crate::output::{plots, result, terminal};
use crate::plot::Figure;
use crate::study::noise_fit_figure;
use toclip_words::short;

/// Fit noise distributions to residuals and compare them by cross-validation
///
/// The file is CSV, NPY or Parquet. Gaussian, Laplace, Student-t and Gaussian mixtures are fitted by maximum
/// likelihood. Each fold is scored under the fit to the other folds. Of the distributions at most
/// two standard errors behind the best, the one with the fewest parameters is recommended.
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/residuals.txt"))]
pub struct Args {
    /// Residuals: .csv, .npy or .parquet
    file: PathBuf,
    /// Column of the file, by its name or its position from 1; needed if there are several
    #[arg(long, value_name = "COLUMN")]
    column: Option<String>,
    /// Components of the Gaussian mixture; by default up to 6, chosen by BIC
    #[arg(long, value_name = "K", value_parser = arguments::count::<1>, allow_negative_numbers = true)]
    components: Option<u64>,
    /// Folds of the cross-validation
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = arguments::count::<2>, allow_negative_numbers = true)]
    folds: u64,
    /// Seed that assigns residuals to folds
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = arguments::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Plot the histogram with the fitted densities, as .svg or .png
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
        Some(k) => Components::Exactly(k as usize),
        None => NoiseFitOptions::default().components,
    };
    let options = NoiseFitOptions { components, folds: args.folds as usize, seed: args.seed };
    let comparison =
        fit_all(&residuals, &options).with_context(|| args.file.display().to_string())?;
    if let Some(path) = &args.plot {
        let title = format!("Noise in {}", name(&args.file));
        let [whole, tails] = noise_fit_figure::charts(&residuals, &comparison, None);
        plots::save(&Figure::new(&title).chart(whole).chart(tails), path)?;
    }
    let written: Vec<PathBuf> = args.plot.into_iter().collect();
    let value = noise_fit_figure::json(&comparison);
    result::show(args.json, value, &text(&comparison), &written)?;
    Ok(ExitCode::SUCCESS)
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into())
}

/// The comparison as a table, the recommended distribution and notes.
fn text(comparison: &NoiseComparison) -> String {
    let NoiseComparison { count, mean, std, .. } = comparison;
    let label = |fit: &NoiseFit| match fit.model {
        NoiseModel::Empirical => "residuals, smoothed".to_owned(),
        _ => fit.describe(),
    };
    let row = |fit: &NoiseFit| {
        let behind = match fit.behind.mean {
            0.0 => "–".to_owned(),
            mean => format!("{mean:.5} ± {:.5}", fit.behind.standard_error),
        };
        let (bic, parameters) = match fit.bic {
            Some(bic) => (format!("{bic:.1}"), fit.parameters.to_string()),
            None => ("–".into(), "–".into()),
        };
        [label(fit), format!("{:.5}", fit.held_out), behind, bic, parameters]
    };
    let header = ["distribution", "held-out", "behind the best", "BIC", "parameters"];
    let best = comparison.best();
    let mut text = format!(
        "{count} residuals: mean {}, standard deviation {}\n\n{}\n\
         Held-out: mean log-likelihood of a residual under the fit to the other folds, in nats.\n\
         Recommended: {}. In an experiment file:\n  {}\n",
        short(*mean),
        short(*std),
        terminal::columns("lrrrr", header, comparison.fits.iter().map(row)),
        best.describe(),
        toml(best)
    );
    let of_fit = |fit: &NoiseFit| Some(format!("{}: {}", fit.describe(), fit.note.as_ref()?));
    let notes = comparison.notes.iter().cloned().chain(comparison.fits.iter().filter_map(of_fit));
    notes.for_each(|note| text.push_str(&format!("Note: {note}.\n")));
    text
}

/// The noise as a line of an experiment file.
fn toml(fit: &NoiseFit) -> String {
    // A table of numbers, lists and one string reads the same in both languages but for the colon.
    let fields = match serde_json::to_value(&fit.family) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => return String::new(),
    };
    let (family, rest): (Vec<_>, Vec<_>) = fields.iter().partition(|(key, _)| *key == "family");
    let fields: Vec<String> =
        family.iter().chain(&rest).map(|(key, value)| format!("{key} = {value}")).collect();
    format!("noise = {{ {} }}", fields.join(", "))
}
