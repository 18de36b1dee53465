//! `toclip run`: an experiment from a file to tables, a plot and a summary.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::experiment::run::{Curve, Plan};
use crate::experiment::trajectory_table;
use crate::experiment::{self, Experiment, Finished, Keep, Method, Problem, Report, Store};
use crate::output::files;
use crate::output::interrupt::{self, EXIT_INTERRUPTED, INTERRUPTED};
use crate::output::plots;
use crate::output::{say, tell};

/// Run an experiment: theory and simulation of clipped SGD side by side
///
/// Writes into the folder given by --out, named after the file: a table of all curves as CSV and
/// Parquet (with the whole experiment in its metadata), the experiment and what it showed as JSON,
/// and a plot as SVG and PNG. The tables depend on the experiment alone, not on the number of
/// threads or on interruptions.
///
/// Curves that diverge are no failure: the tables hold them as far as they go, the summary says
/// when they diverged, and the exit code is 0.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toclip run experiments/figure-1b.toml
  toclip run experiments/figure-1b.toml --methods ode,sgd --runs 1000 --out results/many
  toclip run long.toml --resume          continue after Ctrl-C or a crash
  toclip run long.toml --quiet --json | jq .report.largest_gap

An experiment is a TOML file:
  spectrum      = { kind = \"power_law\", dim = 500, exponent = 0.2 }
  start         = { kind = \"uniform\", norm = 1.0 }
  noise         = { family = \"student_t\", df = 1.0, scale = 0.5 }
  time          = 15.0
  learning_rate = 0.6
  clip          = 0.4
  methods       = [\"ode\", \"hsgd\", \"sgd\"]
  ensemble      = { runs = 100, seed = 1, confidence = 0.8 }

All keys are in the JSON Schema that `toclip schema` prints; editors complete and check by it.")]
pub struct Args {
    /// The experiment, a TOML file
    experiment: PathBuf,
    /// Folder for what is written
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Continue an interrupted run; the tables come out the same, bit for bit
    #[arg(long)]
    resume: bool,
    /// Number of runs of the ensembles, instead of what the file says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// Seed of the ensembles, instead of what the file says
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Methods, instead of what the file says
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = method_parser())]
    methods: Option<Vec<Method>>,
    /// Threads for the ensembles; all cores unless given. Changes no bit of the results
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// No progress and no summary
    #[arg(long, short)]
    quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let begin = Instant::now();
    let (mut experiment, source) = experiment::read(&args.experiment)?;
    args.change(&mut experiment)?;
    let problem = Problem::new(&experiment, &source)?;
    let files = Files::new(&args.out, &args.experiment);
    let Some(curves) = args.curves(&experiment, &problem, &files)? else {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    };
    let report = Report::new(&experiment, &problem, &curves);
    let written = files.write(&experiment, &problem, &curves, &report)?;
    if has_ensembles(&experiment) {
        files.remove_progress()?;
    }
    args.print(&report, &curves, &written, begin.elapsed())?;
    Ok(ExitCode::SUCCESS)
}

/// The names of the methods, each with what it is.
fn method_parser() -> impl TypedValueParser<Value = Method> {
    let named = |method: Method| {
        PossibleValue::new(method.key()).help(match method {
            Method::Ode => "The ODE of the risk",
            Method::Unclipped => "The same ODE without clipping, to compare with",
            Method::Volterra => "The integral equation",
            Method::Hsgd => "Homogenised SGD: the stochastic differential equation, an ensemble",
            Method::Sgd => "Clipped SGD itself, an ensemble",
        })
    };
    PossibleValuesParser::new(Method::ALL.map(named)).try_map(|key| {
        let found = Method::ALL.into_iter().find(|method| method.key() == key);
        found.ok_or("not a method")
    })
}

fn has_ensembles(experiment: &Experiment) -> bool {
    experiment.methods.iter().any(|m| m.is_ensemble())
}

impl Args {
    /// What the command line says goes before what the file says.
    fn change(&self, experiment: &mut Experiment) -> Result<()> {
        if let Some(runs) = self.runs {
            experiment.ensemble.runs = runs;
        }
        if let Some(seed) = self.seed {
            experiment.ensemble.seed = seed;
        }
        if let Some(methods) = &self.methods {
            experiment::check_methods(methods).map_err(|e| anyhow::anyhow!("--methods: {e}"))?;
            experiment.methods.clone_from(methods);
        }
        Ok(())
    }

    fn curves(
        &self,
        experiment: &Experiment,
        problem: &Problem,
        files: &Files,
    ) -> Result<Option<Vec<Curve>>> {
        let (mut store, finished) = if has_ensembles(experiment) {
            let (store, finished) =
                Store::for_run(&files.progress(), experiment, problem, self.resume)?;
            (Some(store), finished)
        } else {
            (None, Vec::new())
        };
        interrupt::listen(Some("runs"))?;
        let ensembles = experiment.methods.iter().filter(|m| m.is_ensemble()).count() as u64;
        let wanted = |f: &&Finished| {
            experiment.methods.contains(&f.method) && f.index < experiment.ensemble.runs
        };
        let done = finished.iter().filter(wanted).count() as u64;
        let bar = self.bar(ensembles * experiment.ensemble.runs, done);
        let tick = |method: Method| {
            bar.set_message(method.title(experiment.clip.clips()));
            bar.inc(1);
        };
        let threads = self.threads.map(usize::from);
        let plan = Plan { threads, cancel: &INTERRUPTED, tick: &tick };
        let keep = store.as_mut().map(|store| store as &mut dyn Keep);
        let curves = experiment::run::run(experiment, problem, &plan, keep, finished);
        // Before the bar is cleared, which moves it to its end.
        let saved = bar.position();
        bar.finish_and_clear();
        let curves = curves?;
        if let (None, Some(store)) = (&curves, &store) {
            store.sync()?;
            tell!(
                "interrupted: {} of {} runs are saved in {}; to continue:\n  toclip run {} --out {} --resume{}",
                saved,
                ensembles * experiment.ensemble.runs,
                store.path().display(),
                self.experiment.display(),
                self.out.display(),
                self.changes(),
            );
        }
        Ok(curves)
    }

    /// The options that a continuation needs too.
    fn changes(&self) -> String {
        let mut text = String::new();
        if let Some(runs) = self.runs {
            text += &format!(" --runs {runs}");
        }
        if let Some(seed) = self.seed {
            text += &format!(" --seed {seed}");
        }
        if let Some(methods) = &self.methods {
            let list: Vec<&str> = methods.iter().map(|m| m.key()).collect();
            text += &format!(" --methods {}", list.join(","));
        }
        text
    }

    fn bar(&self, total: u64, done: u64) -> ProgressBar {
        let target = if self.quiet || !std::io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(total), target).with_position(done.min(total));
        let style = ProgressStyle::with_template("{msg:8} {wide_bar} {pos}/{len} runs, {eta} left");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.reset_eta();
        bar
    }

    fn print(
        &self,
        report: &Report,
        curves: &[Curve],
        written: &[PathBuf],
        all: Duration,
    ) -> Result<()> {
        if self.json {
            let seconds: serde_json::Map<_, _> = curves
                .iter()
                .map(|c| (c.method.key().into(), c.took.as_secs_f64().into()))
                .collect();
            let text = json!({
                "report": report,
                "seconds": seconds,
                "seconds_in_all": all.as_secs_f64(),
                "files": written,
            });
            say!("{}", serde_json::to_string_pretty(&text)?);
        } else if !self.quiet {
            crate::output::terminal::print(format_args!("{report}"));
            let times: Vec<String> =
                curves.iter().map(|c| format!("{} {}", c.method.key(), duration(c.took))).collect();
            say!("\nTime: {} ({})", duration(all), times.join(", "));
            let forms: Vec<String> = curves
                .iter()
                .filter(|c| c.method.is_ensemble())
                .map(|c| format!("{} {}", c.method.key(), c.form))
                .collect();
            if !forms.is_empty() {
                say!("Form: {}", forms.join("; "));
            }
            say!("Written:");
            written.iter().for_each(|path| say!("  {}", path.display()));
        }
        Ok(())
    }
}

fn duration(d: Duration) -> String {
    match d.as_secs_f64() {
        s if s < 1e-3 => format!("{:.0} us", 1e6 * s),
        s if s < 1.0 => format!("{:.0} ms", 1e3 * s),
        s if s < 100.0 => format!("{s:.1} s"),
        s => format!("{:.1} min", s / 60.0),
    }
}

/// The names of what is written.
struct Files {
    folder: PathBuf,
    stem: String,
}

impl Files {
    fn new(folder: &Path, experiment: &Path) -> Self {
        let stem = experiment.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Files { folder: folder.into(), stem }
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", self.stem))
    }

    fn progress(&self) -> PathBuf {
        self.path("progress")
    }

    fn remove_progress(&self) -> Result<()> {
        let path = self.progress();
        std::fs::remove_file(&path).with_context(|| format!("cannot delete {}", path.display()))
    }

    fn write(
        &self,
        experiment: &Experiment,
        problem: &Problem,
        curves: &[Curve],
        report: &Report,
    ) -> Result<Vec<PathBuf>> {
        let version = env!("CARGO_PKG_VERSION");
        let config = toml::to_string(experiment).context("writing the experiment as TOML")?;
        let table = trajectory_table(curves);
        let metadata =
            [("toclip.experiment", config.clone()), ("toclip.version", version.to_owned())];
        let about = json!({
            "toclip": version,
            "experiment": experiment,
            "toml": config,
            "report": report,
        });
        let figure = experiment::figure::figure(experiment, problem, curves);
        let paths = ["trajectory.csv", "trajectory.parquet", "json", "svg", "png"]
            .map(|extension| self.path(extension));
        let [csv, parquet, json, svg, png] = &paths;
        files::write(csv, &table.csv()?)?;
        files::write(parquet, &table.parquet(&metadata)?)?;
        files::write_json(json, &about)?;
        plots::save(&figure, svg)?;
        plots::save(&figure, png)?;
        Ok(paths.into())
    }
}
