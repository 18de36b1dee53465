//! `toclip fit`: data in, the predicted and the measured risk out, and the verdict.

pub mod check;
pub mod figures;
mod gap;
pub mod input;
pub mod study;
pub mod words;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use toclip_data::Features;
use toclip_data::noise_fit::NoiseModel;

use crate::commands::reproduce;
use crate::output::ReportFolder;
use crate::output::plots;
use crate::output::{say, tell};
use crate::report::{self, Report, Section};
use crate::words::short;
pub use gap::Gap;
use input::{Defaults, Input, Known, quoted};
use study::{Settings, Study};

/// Pixels of a PNG for one of the SVG.

/// Fit your data, predict the risk of clipped SGD on it, and measure it
///
/// Takes samples from a CSV, NPY, NPZ or Parquet file, or a data set of the paper. Makes random
/// features, finds θ* by least squares without intercept, fits the law of the residuals, predicts
/// the risk of one pass of clipped SGD, runs that pass in many orders, and says whether to clip and
/// where.
///
/// Predicted are three curves: the ODE of the paper with the fitted law, the same with the residuals
/// themselves, and one that is corrected for what real data do: clipping moves the point that SGD
/// tends to, and one pass draws without replacement (docs/real-data.md).
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toclip fit data.csv --target y --features none
  toclip fit data.parquet --target price --eta 0.2 --clip 1 --out report
  toclip fit x.npy --target y.npy --features relu:300 --held-out
  toclip fit --dataset cifar10 --out cifar          figure 1c of the paper (its settings are the defaults)
  toclip fit --dataset wikitext2 --from embeddings.npy
  toclip fit --dataset cifar10 --json | jq .predicted
  toclip fit --dataset cifar10 --check              does the data give the paper's numbers?

Inputs and targets are centred; features are scaled to ‖K‖ = 1. Steps are η/d and thresholds c√d,
d = Tr K/‖K‖. With --out, the report (report.html), the plots (SVG, PNG) and the tables (CSV: risk,
spectrum, theta, residuals) are written into one folder.")]
pub struct Args {
    /// Samples: .csv, .npy, .npz or .parquet
    #[arg(value_name = "FILE", conflicts_with = "dataset")]
    file: Option<PathBuf>,
    /// The target: a column by name or number, or a file of its own; the last column unless given
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// A data set of the paper instead of a file
    #[arg(long, value_name = "NAME")]
    dataset: Option<Known>,
    /// Where the data set is, if not in the cache
    #[arg(long, value_name = "PATH", requires = "dataset")]
    from: Option<PathBuf>,
    /// Features: tanh:500, relu:500 (any number) or none [default: tanh:500]
    #[arg(long, value_name = "KIND")]
    features: Option<Features>,
    /// Learning rate η; a step is η/d [default: 0.1]
    #[arg(long, value_name = "ETA", allow_negative_numbers = true)]
    eta: Option<f64>,
    /// Threshold c, or none; gradients are clipped at c√d [default: 0.5]
    #[arg(long, value_name = "C", value_parser = threshold, allow_negative_numbers = true)]
    clip: Option<f64>,
    /// Spread of the start, θ0 = θ* + spread·N(0, I) [default: 0.4]
    #[arg(long, value_name = "SPREAD", allow_negative_numbers = true)]
    start_noise: Option<f64>,
    /// Law of the first curve: best, gaussian, laplace, student_t or gaussian_mixture [default: best]
    #[arg(long, value_name = "LAW", value_parser = law)]
    noise: Option<Law>,
    /// Components of the Gaussian mixture; up to 6 by BIC unless given
    #[arg(long, value_name = "K")]
    components: Option<usize>,
    /// Ridge of least squares, as a share of ‖K‖; one of 1e-6 where K is singular unless given
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    ridge: Option<f64>,
    /// Fit θ* on one half of the samples; residuals, risk and SGD on the other
    #[arg(long)]
    held_out: bool,
    /// Passes, each in an order of its own
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Seed of features, start and orders
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: u64,
    /// Folder for the report, the plots and the tables
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Compare d, MSE, accuracy and σ of three draws of the features with those of other draws and
    /// with the paper's one, and stop; the exit code is 1 if they are off
    #[arg(long, requires = "dataset")]
    check: bool,
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
}

/// A threshold from the command line.
fn threshold(text: &str) -> Result<f64, String> {
    match text {
        "none" | "inf" => Ok(f64::INFINITY),
        _ => match text.parse::<f64>() {
            Ok(c) if c > 0.0 && c.is_finite() => Ok(c),
            _ => Err("give a positive number, or none".into()),
        },
    }
}

/// The law whose curve is drawn; `None` is the advised one.
#[derive(Debug, Clone, Copy)]
struct Law(Option<NoiseModel>);

fn law(text: &str) -> Result<Law, String> {
    if text == "best" {
        return Ok(Law(None));
    }
    let fitted = NoiseModel::ALL.into_iter().filter(|kind| *kind != NoiseModel::Empirical);
    match fitted.clone().find(|kind| kind.name() == text) {
        Some(kind) => Ok(Law(Some(kind))),
        None => {
            let names: Vec<&str> = fitted.map(NoiseModel::name).collect();
            Err(format!("give best, {}", names.join(", ")))
        }
    }
}

impl Args {
    fn features(&self) -> Features {
        self.features.unwrap_or(Defaults::of(self.dataset).features)
    }

    fn settings(&self) -> Result<Settings> {
        let defaults = Defaults::of(self.dataset);
        let positive = |name: &str, x: f64| match x > 0.0 && x.is_finite() {
            true => Ok(x),
            false => bail!("--{name} {} is not allowed: give a positive number", number(x)),
        };
        Ok(Settings {
            features: self.features().to_string(),
            eta: positive("eta", self.eta.unwrap_or(defaults.eta))?,
            clip: self.clip.unwrap_or(defaults.clip),
            runs: self.runs,
            seed: self.seed,
            start_noise: positive("start-noise", self.start_noise.unwrap_or(defaults.start_noise))?,
            held_out: self.held_out,
            noise: self.noise.map_or(defaults.noise, |law| law.0),
            components: self.components.or(defaults.components),
            ridge: self.ridge,
        })
    }

    /// The command that gives the same again.
    fn again(&self, settings: &Settings) -> String {
        let mut words = vec!["toclip".to_owned(), "fit".into()];
        let path = |path: &PathBuf| path.display().to_string();
        words.extend(self.file.as_ref().map(path));
        let mut flag = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| [format!("--{name}"), value]).into_iter().flatten());
        };
        let name = |known: Known| if known == Known::Cifar10 { "cifar10" } else { "wikitext2" };
        flag("dataset", self.dataset.map(|known| name(known).into()));
        flag("from", self.from.as_ref().map(path));
        flag("target", self.target.clone());
        flag("features", Some(settings.features.clone()));
        flag("eta", Some(number(settings.eta)));
        let clip = settings.clip.is_finite().then(|| number(settings.clip));
        flag("clip", Some(clip.unwrap_or_else(|| "none".into())));
        flag("start-noise", Some(number(settings.start_noise)));
        flag("noise", Some(settings.noise.map_or("best", NoiseModel::name).into()));
        flag("components", settings.components.map(|k| k.to_string()));
        flag("ridge", settings.ridge.map(number));
        flag("runs", Some(settings.runs.to_string()));
        flag("seed", Some(settings.seed.to_string()));
        if self.held_out {
            words.push("--held-out".into());
        }
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// With every digit, and without a hundred zeros.
fn number(x: f64) -> String {
    if x == 0.0 || (1e-4..1e7).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let begin = Instant::now();
    let settings = args.settings()?;
    reproduce::handle_interrupts()?;
    // Before anything is computed: a folder that cannot be written should not cost the run.
    if let Some(out) = &args.out {
        drop(ReportFolder::new(out)?);
    }
    let input =
        Input::open(args.dataset, args.file.as_ref(), args.target.as_deref(), args.from.as_ref())?;
    input.notes.iter().for_each(|note| tell!("note: {note}"));
    if args.check {
        return check::run(&input, args.dataset, args.features(), args.seed, args.json);
    }
    let bar = bar(settings.runs);
    bar.set_message("features");
    let design = input.design(args.features(), settings.seed)?;
    drop(input);
    bar.set_message("passes");
    let study = Study::new(design, &settings, &|done| bar.set_position(done))?;
    bar.finish_and_clear();
    let seconds = begin.elapsed().as_secs_f64();
    if let Some(out) = &args.out {
        write(out, &study, args.again(&settings), seconds)?;
    }
    if args.json {
        let mut value = words::json(&study);
        value["seconds"] = seconds.into();
        say!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        say!("{}", words::text(&study).trim_end());
        say!("\nTime: {seconds:.1} s");
        if let Some(out) = &args.out {
            say!("Report: {}", out.join("report.html").display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn bar(runs: u64) -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(Some(runs), target);
    if let Ok(style) =
        ProgressStyle::with_template("{msg:8} {wide_bar} {pos}/{len} runs, {elapsed}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}

/// Writes the folder, whole or not at all.
fn write(out: &Path, study: &Study, command: String, seconds: f64) -> Result<()> {
    reproduce::WRITING.store(true, Ordering::Relaxed);
    let mut folder = ReportFolder::new(out)?;
    let mut files = Vec::new();
    let mut figures = Vec::new();
    for (name, figure) in figures::all(study) {
        for (extension, bytes) in plots::render(&figure)? {
            let name = format!("{name}.{extension}");
            folder.write(&name, &bytes)?;
            files.push(name);
        }
        figures.push(figure);
    }
    for (name, text) in words::tables(study) {
        let name = format!("{name}.csv");
        folder.write(&name, &text.csv()?)?;
        files.push(name);
    }
    let gaps = words::gaps(study);
    let gaps = gaps.iter().map(|[label, end, said]| format!("{label}: R = {end}; {said}."));
    let section = Section {
        id: "fit".into(),
        title: "What the fit shows".into(),
        settings: format!(
            "{} samples, d = {}, MSE = {}; {} passes",
            study.rows,
            short(study.dim),
            short(study.residuals.mse),
            study.band.runs
        ),
        figures,
        notes: std::iter::once(words::GAPS.to_owned())
            .chain(gaps)
            .chain(study.noise.notes.iter().map(|note| format!("Of the noise: {note}.")))
            .collect(),
        files,
        command,
        ..Section::default()
    };
    let report = Report {
        title: format!("To clip or not to clip: {}", study.name),
        intro: words::verdict(study),
        sections: vec![section],
        corrections: Vec::new(),
        facts: words::facts(study)
            .into_iter()
            .chain([("toclip".into(), env!("CARGO_PKG_VERSION").into())])
            .collect(),
        timings: vec![("in all".into(), seconds)],
    };
    folder.write("report.html", report::html(&report).as_bytes())?;
    let json = serde_json::to_string_pretty(&words::json(study))? + "\n";
    folder.write("fit.json", json.as_bytes())?;
    folder.finish().context("the report")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_and_laws_are_read_or_refused_in_words() {
        assert_eq!(threshold("none"), Ok(f64::INFINITY));
        assert_eq!(threshold("0.5"), Ok(0.5));
        for text in ["0", "-1", "nan", "x"] {
            assert!(threshold(text).unwrap_err().contains("positive number, or none"));
        }
        assert!(matches!(law("best"), Ok(Law(None))));
        assert!(matches!(law("laplace"), Ok(Law(Some(NoiseModel::Laplace)))));
        assert!(law("empirical").unwrap_err().contains("gaussian_mixture"));
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_command_gives_the_same_again() {
        use clap::Parser;
        let again = |words: &[&str]| {
            let line = Line::try_parse_from(words).unwrap_or_else(|e| panic!("{e}"));
            let settings = line.args.settings().unwrap();
            line.args.again(&settings)
        };
        let said = again(&[
            "fit",
            "my data.csv",
            "--target",
            "the price",
            "--noise",
            "laplace",
            "--ridge",
            "1e-9",
            "--components",
            "2",
            "--eta",
            "1e180",
            "--held-out",
        ]);
        assert_eq!(
            said,
            "toclip fit 'my data.csv' --target 'the price' --features tanh:500 --eta 1e180 --clip 0.5 \
             --start-noise 0.4 --noise laplace --components 2 --ridge 1e-9 --runs 50 --seed 1 --held-out"
        );
        let said = again(&["fit", "--dataset", "wikitext2", "--from", "e.npy", "--noise", "best"]);
        assert!(said.contains("--from e.npy") && said.contains("--noise best --components 3"));
        // Said twice it is the same.
        let words: Vec<&str> = said.split(' ').skip(1).collect();
        assert_eq!(again(&words), said);
    }
}
