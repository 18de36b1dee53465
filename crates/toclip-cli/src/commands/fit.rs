//! `toclip fit`: samples in, predicted and measured risk out, and whether to clip.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use toclip_data::Features;
use toclip_data::noise_fit::NoiseModel;

use crate::arguments;
use crate::output::{ReportFolder, interrupt, progress_bar, result, tell};
use crate::study::figure_section::shell_quoted;
use crate::study::fit::input::{Input, PaperDataSet};
use crate::study::fit::{Fit, FitSettings, check, wording};
use crate::study::logistic_fit::{self, LogisticFit};
use toclip_words::{duration, exact};

/// Fit your data, predict the risk of clipped SGD on it, and measure it
///
/// Reads samples from a CSV, NPY, NPZ or Parquet file, or a data set of the paper. Makes random
/// features, finds θ* by least squares without intercept, fits a distribution to the residuals,
/// predicts the risk of one pass of clipped SGD, runs that pass in many random orders, and says
/// whether to clip and where.
///
/// There are four predictions: the ODE of the paper with the fitted distribution, the ODE with the
/// measured residuals, and that ODE corrected for effects of real data: clipping biases the point to
/// which SGD converges (alone, and together with one pass drawing without replacement;
/// docs/real-data.md).
///
/// With --model logistic the target has two values and θ* is that of logistic regression. Predicts and
/// measures cross-entropy, error rate and calibration, from θ0 = 0. Four ensembles of runs show how
/// much each cause adds to the gap between theory and data.
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/fit.txt"))]
pub struct Args {
    /// Samples: .csv, .npy, .npz or .parquet
    #[arg(value_name = "FILE", conflicts_with = "dataset")]
    file: Option<PathBuf>,
    /// Target: a column by name or number, or a separate file [default: the last column]
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// A data set of the paper instead of a file
    #[arg(long, value_name = "NAME")]
    dataset: Option<PaperDataSet>,
    /// Location of the data set, if not in the cache
    #[arg(long, value_name = "PATH", requires = "dataset")]
    from: Option<PathBuf>,
    /// The model to fit; logistic regression needs a target with exactly two values
    #[arg(long, value_name = "MODEL", default_value = "least-squares")]
    model: FitModel,
    /// Features: tanh:N or relu:N for N random features, or none [default: tanh:500]
    #[arg(long, value_name = "KIND")]
    features: Option<Features>,
    /// Learning rate η; a step is η/d [default: 0.1]
    #[arg(long, value_name = "η", value_parser = arguments::positive, allow_negative_numbers = true)]
    eta: Option<f64>,
    /// Threshold c, or none; gradients are clipped at c√d [default: 0.5]
    #[arg(long, value_name = "C", value_parser = arguments::threshold, allow_negative_numbers = true)]
    clip: Option<f64>,
    /// Spread of the start, θ0 = θ* + spread·N(0, I) [default: 0.4; logistic: θ0 = 0]
    #[arg(long, value_name = "SPREAD", value_parser = arguments::positive, allow_negative_numbers = true)]
    start_noise: Option<f64>,
    /// Distribution of the first prediction: best, gaussian, gaussian_with_mean, laplace, student_t or
    /// gaussian_mixture [default: best]
    #[arg(long, value_name = "FAMILY", value_parser = first_noise)]
    noise: Option<FirstNoise>,
    /// Components of the Gaussian mixture [default: up to 6, chosen by BIC]
    #[arg(long, value_name = "K", value_parser = arguments::count::<1>, allow_negative_numbers = true)]
    components: Option<u64>,
    /// Ridge of the fit, as a share of ‖K‖ [default: 1e-6 if K is singular, 1/n for separable classes,
    /// else none]
    #[arg(long, value_name = "SHARE", value_parser = arguments::number, allow_negative_numbers = true)]
    ridge: Option<f64>,
    /// Fit θ* on one half of the samples; use the other for residuals, risk and SGD
    #[arg(long)]
    held_out: bool,
    /// Number of passes, each in its own order
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = arguments::count::<1>, allow_negative_numbers = true)]
    runs: u64,
    /// Seed of features, start and orders
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = arguments::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Folder for the report, the plots and the tables
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only compare d, MSE, accuracy and σ of three draws of the features with reference values; the
    /// exit code is 1 if they differ
    #[arg(long, requires = "dataset")]
    check: bool,
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
}

/// The model to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FitModel {
    /// A linear model of the target
    LeastSquares,
    /// Two classes
    Logistic,
}

/// The distribution of the first prediction; `None` is the best fit.
#[derive(Debug, Clone, Copy)]
struct FirstNoise(Option<NoiseModel>);

fn first_noise(text: &str) -> Result<FirstNoise, String> {
    let parametric = NoiseModel::ALL.into_iter().filter(|model| *model != NoiseModel::Empirical);
    let best = [("best", FirstNoise(None))];
    let all: Vec<(&str, FirstNoise)> =
        best.into_iter().chain(parametric.map(|m| (m.name(), FirstNoise(Some(m))))).collect();
    let found = all.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice);
    let names = || all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("expected one of: {}", names()))
}

impl Args {
    fn settings(&self) -> FitSettings {
        let defaults = FitSettings::of(self.dataset);
        let start_noise = match self.model {
            FitModel::LeastSquares => defaults.start_noise,
            FitModel::Logistic => None,
        };
        FitSettings {
            features: self.features.unwrap_or(defaults.features),
            eta: self.eta.unwrap_or(defaults.eta),
            clip: self.clip.unwrap_or(defaults.clip),
            runs: self.runs,
            seed: self.seed,
            start_noise: self.start_noise.or(start_noise),
            held_out: self.held_out,
            noise: self.noise.map_or(defaults.noise, |choice| choice.0),
            components: self.components.map(|k| k as usize).or(defaults.components),
            ridge: self.ridge,
        }
    }

    /// Refuses options that logistic regression does not use.
    fn check_logistic(&self) -> Result<()> {
        let given = [
            ("noise", self.noise.is_some()),
            ("components", self.components.is_some()),
            ("check", self.check),
        ];
        if let Some((name, _)) = given.into_iter().find(|(_, given)| *given) {
            bail!("--{name} is for least squares; --model logistic does not use it");
        }
        Ok(())
    }

    /// The command that reproduces the result.
    fn command(&self, settings: &FitSettings) -> String {
        let mut words = vec!["toclip".to_owned(), "fit".into()];
        let path = |path: &PathBuf| path.display().to_string();
        words.extend(self.file.as_ref().map(path));
        let mut flag = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| [format!("--{name}"), value]).into_iter().flatten());
        };
        let name = |known: PaperDataSet| {
            if known == PaperDataSet::Cifar10 { "cifar10" } else { "wikitext2" }
        };
        flag("dataset", self.dataset.map(|known| name(known).into()));
        flag("from", self.from.as_ref().map(path));
        flag("target", self.target.clone());
        let logistic = self.model == FitModel::Logistic;
        flag("model", logistic.then(|| "logistic".into()));
        flag("features", Some(settings.features.to_string()));
        flag("eta", Some(exact(settings.eta)));
        let clip = settings.clip.is_finite().then(|| exact(settings.clip));
        flag("clip", Some(clip.unwrap_or_else(|| "none".into())));
        flag("start-noise", settings.start_noise.map(exact));
        if !logistic {
            flag("noise", Some(settings.noise.map_or("best", NoiseModel::name).into()));
            flag("components", settings.components.map(|k| k.to_string()));
        }
        flag("ridge", settings.ridge.map(exact));
        flag("runs", Some(settings.runs.to_string()));
        flag("seed", Some(settings.seed.to_string()));
        if self.held_out {
            words.push("--held-out".into());
        }
        words.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let begin = Instant::now();
    let settings = args.settings();
    let logistic = args.model == FitModel::Logistic;
    if logistic {
        args.check_logistic()?;
    }
    interrupt::exit_unless_writing()?;
    // Before anything is computed: a folder that cannot be written should not cost the run.
    if let Some(out) = &args.out {
        drop(ReportFolder::new(out)?);
    }
    let input =
        Input::open(args.dataset, args.file.as_ref(), args.target.as_deref(), args.from.as_ref())?;
    input.notes.iter().for_each(|note| tell!("note: {note}"));
    if args.check {
        return check::run(&input, args.dataset, settings.features, args.seed, args.json);
    }
    // Logistic regression has four ensembles.
    let passes = if logistic { 4 * settings.runs } else { settings.runs };
    let bar = progress_bar(passes, "runs", false);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.set_message("features ");
    let design = input.design(settings.features, settings.seed)?;
    drop(input);
    bar.set_message("passes ");
    let tick = || bar.inc(1);
    let report = if logistic {
        logistic_fit::wording::report(&LogisticFit::new(design, &settings, &tick)?)
    } else {
        wording::report(&Fit::new(design, &settings, &tick)?)
    };
    bar.finish_and_clear();
    let took = begin.elapsed();
    let (mut value, text) = (report.json.clone(), report.text());
    value["seconds"] = took.as_secs_f64().into();
    let mut written = Vec::new();
    if let Some(out) = &args.out {
        report.write(out, args.command(&settings), took.as_secs_f64())?;
        written.push(out.join("report.html"));
    }
    let text = format!("{}\n\nTime: {}\n", text.trim_end(), duration(took));
    result::show(args.json, value, &text, &written)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_parsed() {
        assert!(matches!(first_noise("best"), Ok(FirstNoise(None))));
        assert!(matches!(first_noise("laplace"), Ok(FirstNoise(Some(NoiseModel::Laplace)))));
        assert_eq!(
            first_noise("empirical").unwrap_err(),
            "expected one of: best, gaussian, gaussian_with_mean, laplace, student_t, gaussian_mixture"
        );
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
            let settings = line.args.settings();
            line.args.command(&settings)
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
        let logistic = again(&["fit", "a.csv", "--model", "logistic", "--ridge", "0.5"]);
        assert_eq!(
            logistic,
            "toclip fit a.csv --model logistic --features tanh:500 --eta 0.1 --clip 0.5 --ridge 0.5 \
             --runs 50 --seed 1"
        );
        // The printed command prints itself.
        let words: Vec<&str> = said.split(' ').skip(1).collect();
        assert_eq!(again(&words), said);
    }
}
