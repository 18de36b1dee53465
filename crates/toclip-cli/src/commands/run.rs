//! `toclip run`: an experiment from a file to tables, a plot and a summary.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use crate::arguments;
use crate::experiment::run::{MethodCurve, Plan};
use crate::experiment::{
    self, CriteriaReport, Experiment, ExperimentFile, ExperimentReport, FinishedRun, Method,
    ModelReport, Origin, Prepared, RunSink, criteria_figure, criteria_table, identity,
    model_figure, model_table, open_run_log, trajectory_table,
};
use crate::output::interrupt::{self, EXIT_INTERRUPTED, INTERRUPTED};
use crate::output::{ProgressLog, Table, files, plots, result, tell, terminal};
use crate::plot::Figure;
use toclip_words::duration;

/// Run an experiment: theory and simulation of clipped SGD side by side, or curves of the criteria
///
/// Writes into the folder given by --out, under the name of the experiment file: a table of all curves
/// as CSV and Parquet (with the whole experiment in its metadata), the experiment and its results as
/// JSON, and a plot as SVG and PNG. A build without the feature parquet or png (see toclip --version)
/// does not write those files. The tables do not depend on the number of threads or on interruptions.
///
/// Divergence is not an error: the tables contain a curve up to the time when it diverges, the
/// summary says when that is, and the exit code is 0.
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/run.txt"))]
pub struct Args {
    /// The experiment, a TOML file
    experiment: PathBuf,
    /// Folder for the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Continue an interrupted run; the tables will be the same, bit for bit
    #[arg(long)]
    resume: bool,
    /// Number of runs of the ensembles; overrides the file
    #[arg(long, value_name = "N", value_parser = arguments::count::<1>, allow_negative_numbers = true)]
    runs: Option<u64>,
    /// Seed of the ensembles; overrides the file
    #[arg(long, value_name = "S", value_parser = arguments::seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Methods; overrides the file
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = method_parser())]
    methods: Option<Vec<Method>>,
    /// Threads for the ensembles; all cores by default. Does not change the results
    #[arg(long, value_name = "N", value_parser = arguments::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Show no progress and no summary
    #[arg(long, short)]
    quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// The result of a file: trajectories, curves of the criteria, or both.
struct Results {
    trajectories: Option<TrajectoryResults>,
    criteria: Option<CriteriaResults>,
}

/// The result of the methods of an experiment, whatever its model.
struct TrajectoryResults {
    table: Table,
    figure: Figure,
    /// The summary for programs, and for the terminal.
    report: Value,
    summary: String,
    took: Vec<(Method, Duration)>,
    /// The form in which each ensemble was simulated.
    forms: Vec<String>,
    /// The runs of the ensembles, deleted once the results are written.
    log: Option<ProgressLog>,
}

struct CriteriaResults {
    table: Table,
    figure: Figure,
    report: CriteriaReport,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let begin = Instant::now();
    let (mut file, origin) =
        experiment::read(&args.experiment).map_err(|error| match is_sweep(&args.experiment) {
            true => anyhow::anyhow!(
                "{path} is a sweep; run it with `toclip sweep {path}`",
                path = args.experiment.display()
            ),
            false => error.into(),
        })?;
    args.override_file(&mut file)?;
    let stem = files::result_stem(&args.out, &args.experiment);
    let trajectories = match file.experiment() {
        Some(experiment) => Some(args.trajectories(experiment, &origin, &stem)?),
        None => None,
    };
    if matches!(trajectories, Some(None)) {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    let criteria = file.criteria().map(|criteria| -> Result<_> {
        let curves = criteria.curves(&origin)?;
        let report = CriteriaReport::new(file.name(), criteria, &curves);
        let figure = criteria_figure(file.name(), criteria, &curves);
        Ok(CriteriaResults { table: criteria_table(&curves), figure, report })
    });
    let mut results =
        Results { trajectories: trajectories.flatten(), criteria: criteria.transpose()? };
    let written = results.write(&file, &stem)?;
    if let Some(log) = results.trajectories.as_mut().and_then(|found| found.log.take()) {
        log.remove()?;
    }
    if args.json || !args.quiet {
        let total = begin.elapsed();
        result::show(args.json, results.timed_json(total)?, &results.text(total), &written)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a file has the keys of a sweep.
fn is_sweep(path: &Path) -> bool {
    let values =
        std::fs::read_to_string(path).ok().and_then(|text| text.parse::<toml::Table>().ok());
    values.is_some_and(|values| values.contains_key("vary") || values.contains_key("together"))
}

/// The names of the methods, each with a description.
fn method_parser() -> impl TypedValueParser<Value = Method> {
    let named = |method: Method| {
        PossibleValue::new(method.key()).help(match method {
            Method::Ode => "The ODE of the risk",
            Method::Unclipped => "The same ODE without clipping, for comparison",
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

impl Args {
    /// Options override the file.
    fn override_file(&self, file: &mut ExperimentFile) -> Result<()> {
        let experiment = match (file, self.overrides().first()) {
            (ExperimentFile::Trajectories { experiment, .. }, _) => experiment,
            (ExperimentFile::Criteria { .. }, None) => return Ok(()),
            (ExperimentFile::Criteria { .. }, Some((flag, _))) => {
                bail!("{flag} applies to trajectories, and this file defines none")
            }
        };
        let ensemble = &mut experiment.ensemble;
        ensemble.runs = self.runs.unwrap_or(ensemble.runs);
        ensemble.seed = self.seed.unwrap_or(ensemble.seed);
        if let Some(methods) = &self.methods {
            experiment::check_methods(methods, &Method::ALL)
                .map_err(|e| anyhow::anyhow!("--methods: {}", e.mistake))?;
            experiment.methods.clone_from(methods);
        }
        Ok(())
    }

    /// Runs the methods; `None` where Ctrl-C ended them early.
    fn trajectories(
        &self,
        experiment: &Experiment,
        origin: &Origin,
        stem: &Path,
    ) -> Result<Option<TrajectoryResults>> {
        let prepared = Prepared::new(experiment, origin)?;
        let Some((curves, log)) = self.curves(experiment, &prepared, stem)? else {
            return Ok(None);
        };
        let ensembles = curves.iter().filter(|c| c.method.is_ensemble());
        let took = curves.iter().map(|c| (c.method, c.took)).collect();
        let forms = ensembles.map(|c| format!("{} {}", c.method.key(), c.form)).collect();
        Ok(Some(if prepared.problem.model().is_some() {
            let report = ModelReport::new(experiment, &prepared, &curves);
            let (summary, report) = (report.to_string(), serde_json::to_value(report)?);
            let figure = model_figure(experiment, &prepared, &curves);
            TrajectoryResults {
                table: model_table(&curves),
                figure,
                summary,
                report,
                took,
                forms,
                log,
            }
        } else {
            let report = ExperimentReport::new(experiment, &prepared, &curves);
            let (summary, report) = (report.to_string(), serde_json::to_value(report)?);
            let figure = experiment::figure::figure(experiment, &prepared, &curves);
            let table = trajectory_table(&curves);
            TrajectoryResults { table, figure, summary, report, took, forms, log }
        }))
    }

    /// Runs the methods with a progress bar, and keeps the runs of ensembles on disk as they finish;
    /// `None` where Ctrl-C ended them early. The log of the runs is returned with the result.
    fn curves(
        &self,
        experiment: &Experiment,
        prepared: &Prepared,
        stem: &Path,
    ) -> Result<Option<(Vec<MethodCurve>, Option<ProgressLog>)>> {
        let (methods, runs) = (&experiment.methods, experiment.ensemble.runs);
        let ensembles = methods.iter().filter(|m| m.is_ensemble()).count() as u64;
        let (mut log, finished) = if ensembles > 0 {
            let path = files::with_ending(stem, "progress");
            let inputs = identity::of(experiment, prepared)?;
            let (log, finished) = open_run_log(&path, inputs, self.resume, &prepared.times)?;
            (Some(log), finished)
        } else {
            (None, Vec::new())
        };
        interrupt::listen(Some("runs"))?;
        let wanted = |f: &&FinishedRun| methods.contains(&f.method) && f.index < runs;
        let total = ensembles * runs;
        let done = finished.iter().filter(wanted).count() as u64;
        let bar = terminal::progress_bar(total, "runs", self.quiet).with_position(done);
        bar.reset_eta();
        let tick = |_| bar.inc(1);
        let plan = Plan { threads: self.threads, cancel: &INTERRUPTED, tick: &tick };
        let sink = log.as_mut().map(|log| log as &mut dyn RunSink);
        let result = experiment::run::run(experiment, prepared, &plan, sink, &finished);
        // Before the bar is cleared, which moves it to its end.
        let saved = bar.position();
        bar.finish_and_clear();
        let result = result?;
        if let (None, Some(log)) = (&result, &log) {
            log.sync()?;
            tell!(
                "interrupted: {saved} of {total} runs are saved in {}; to continue:\n  toclip run {} --out {} --resume{}",
                log.path().display(),
                self.experiment.display(),
                self.out.display(),
                self.overrides()
                    .iter()
                    .map(|(flag, value)| format!(" {flag} {value}"))
                    .collect::<String>(),
            );
        }
        Ok(result.map(|result| (result, log)))
    }

    /// The options that override the file; a continuation needs them too.
    fn overrides(&self) -> Vec<(&'static str, String)> {
        let list =
            |methods: &Vec<Method>| methods.iter().map(|m| m.key()).collect::<Vec<_>>().join(",");
        let all = [
            ("--runs", self.runs.map(|runs| runs.to_string())),
            ("--seed", self.seed.map(|seed| seed.to_string())),
            ("--methods", self.methods.as_ref().map(list)),
        ];
        all.into_iter().filter_map(|(flag, value)| Some((flag, value?))).collect()
    }
}

impl Results {
    /// How long each method took.
    fn took(&self) -> &[(Method, Duration)] {
        self.trajectories.as_ref().map_or(&[], |found| &found.took)
    }

    fn text(&self, total: Duration) -> String {
        let mut text = String::new();
        if let Some(TrajectoryResults { summary, .. }) = &self.trajectories {
            text += &format!("{summary}\n");
        }
        if let Some(CriteriaResults { report, .. }) = &self.criteria {
            text += &format!("{report}\n");
        }
        let each =
            |(method, took): &(Method, Duration)| format!("{} {}", method.key(), duration(*took));
        let methods = match &self.took().iter().map(each).collect::<Vec<_>>()[..] {
            [] => String::new(),
            times => format!(" ({})", times.join(", ")),
        };
        text += &format!("Time: {}{methods}\n", duration(total));
        let forms = self.trajectories.as_ref().map_or(&[][..], |found| &found.forms);
        if !forms.is_empty() {
            text += &format!("Simulated with: {}\n", forms.join("; "));
        }
        text
    }

    fn json(&self) -> Result<Value> {
        let mut value = json!({});
        if let Some(TrajectoryResults { report, .. }) = &self.trajectories {
            value["report"] = report.clone();
        }
        if let Some(CriteriaResults { report, .. }) = &self.criteria {
            value["criteria"] = serde_json::to_value(report)?;
        }
        Ok(value)
    }

    /// With the times, which are not part of the files: the same experiment gives the same files.
    fn timed_json(&self, total: Duration) -> Result<Value> {
        let mut value = self.json()?;
        value["seconds"] = json!({});
        for (method, took) in self.took() {
            value["seconds"][method.key()] = took.as_secs_f64().into();
        }
        value["seconds_in_all"] = total.as_secs_f64().into();
        Ok(value)
    }

    /// Writes tables, reports and plots as `STEM.…`; the files.
    fn write(&self, file: &ExperimentFile, stem: &Path) -> Result<Vec<PathBuf>> {
        let named = |ending: &str| files::with_ending(stem, ending);
        let version = env!("CARGO_PKG_VERSION");
        let config = toml::to_string(file).context("cannot write the experiment as TOML")?;
        let metadata =
            [("toclip.experiment", config.clone()), ("toclip.version", version.to_owned())];
        let mut written = Vec::new();
        if let Some(TrajectoryResults { table, .. }) = &self.trajectories {
            written.extend(table.write(&named("trajectory"), &metadata)?);
        }
        if let Some(CriteriaResults { table, .. }) = &self.criteria {
            written.extend(table.write(&named("criteria"), &metadata)?);
        }
        let mut about = self.json()?;
        about["toclip"] = version.into();
        about["experiment"] = serde_json::to_value(file)?;
        about["toml"] = config.into();
        files::write_json(&named("json"), &about)?;
        written.push(named("json"));
        if let Some(TrajectoryResults { figure, .. }) = &self.trajectories {
            written.extend(plots::write(figure, stem)?);
        }
        if let Some(CriteriaResults { figure, .. }) = &self.criteria {
            let alone = self.trajectories.is_none();
            let stem = if alone { stem.to_owned() } else { named("criteria") };
            written.extend(plots::write(figure, &stem)?);
        }
        Ok(written)
    }
}
