//! `toclip run`: an experiment from a file to tables, a plot and a summary.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Map, Value, json};

use crate::arguments;
use crate::experiment::run::Plan;
use crate::experiment::{
    self, CriteriaReport, Experiment, ExperimentFile, ExperimentReport, FinishedRun, GlmExperiment,
    GlmProblem, GlmReport, LoggedRun, Method, Origin, Problem, RunLog, RunSink, criteria_figure,
    criteria_table, glm_figure, glm_table, identity, trajectory_table,
};
use crate::output::interrupt::{self, EXIT_INTERRUPTED, INTERRUPTED};
use crate::output::numbers::duration;
use crate::output::{Table, files, json, plots, say, tell, terminal};
use crate::plot::Figure;

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

/// What the methods of an experiment gave, whatever its model.
struct Trajectories {
    table: Table,
    figure: Figure,
    /// The summary for programs, and for the terminal.
    report: Value,
    summary: String,
    took: Vec<(Method, Duration)>,
    /// The form in which each ensemble was simulated.
    forms: Vec<String>,
}

/// What a file asked for.
struct Results {
    trajectories: Option<Trajectories>,
    criteria: Option<Criteria>,
}

/// Curves of the criteria.
struct Criteria {
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
    args.change(&mut file)?;
    let files = Files::new(&args.out, &args.experiment);
    let mut results = Results { trajectories: None, criteria: None };
    if let Some(experiment) = &file.trajectories {
        results.trajectories = args.trajectories(experiment, &origin, &files)?;
    } else if let Some(experiment) = &file.glm {
        results.trajectories = args.glm(experiment, &origin, &files)?;
    }
    if results.trajectories.is_none() && (file.trajectories.is_some() || file.glm.is_some()) {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    if let Some(criteria) = &file.criteria {
        let curves = criteria.curves(&origin)?;
        let report = CriteriaReport::new(&file.name, criteria, &curves);
        let figure = criteria_figure(&file.name, criteria, &curves);
        results.criteria = Some(Criteria { table: criteria_table(&curves), figure, report });
    }
    let written = files.write(&file, &results)?;
    let took = results.trajectories.as_ref().map_or(&[][..], |t| &t.took);
    if took.iter().any(|(method, _)| method.is_ensemble()) {
        files.remove_progress()?;
    }
    args.print(&results, &written, begin.elapsed())?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a file has the keys of a sweep.
fn is_sweep(path: &Path) -> bool {
    let values =
        std::fs::read_to_string(path).ok().and_then(|text| text.parse::<toml::Table>().ok());
    values.is_some_and(|values| values.contains_key("vary") || values.contains_key("together"))
}

/// The names of the methods, each with what it is.
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

/// The methods to run, and what their runs depend on.
struct Work<'a> {
    methods: &'a [Method],
    runs: u64,
    inputs: Value,
    times: &'a [f64],
}

impl Args {
    /// Options override the file.
    fn change(&self, file: &mut ExperimentFile) -> Result<()> {
        let (ensemble, own_methods) = match (&mut file.trajectories, &mut file.glm) {
            (Some(experiment), _) => (&mut experiment.ensemble, &mut experiment.methods),
            (None, Some(experiment)) => (&mut experiment.ensemble, &mut experiment.methods),
            (None, None) => match self.overrides().first() {
                Some((flag, _)) => {
                    bail!("{flag} applies to trajectories, and this file defines none")
                }
                None => return Ok(()),
            },
        };
        ensemble.runs = self.runs.unwrap_or(ensemble.runs);
        ensemble.seed = self.seed.unwrap_or(ensemble.seed);
        if let Some(methods) = &self.methods {
            experiment::check_methods(methods, &Method::ALL)
                .map_err(|e| anyhow::anyhow!("--methods: {}", e.what))?;
            own_methods.clone_from(methods);
        }
        Ok(())
    }

    /// Runs the methods; `None` where Ctrl-C ended them early.
    fn trajectories(
        &self,
        experiment: &Experiment,
        origin: &Origin,
        files: &Files,
    ) -> Result<Option<Trajectories>> {
        let problem = Problem::new(experiment, origin)?;
        let work = Work {
            methods: &experiment.methods,
            runs: experiment.ensemble.runs,
            inputs: identity::of(experiment, &problem)?,
            times: &problem.times,
        };
        let curves = self.kept(&work, files, |plan, sink, finished| {
            experiment::run::run(experiment, &problem, plan, sink, &finished)
        })?;
        let Some(curves) = curves else { return Ok(None) };
        let report = ExperimentReport::new(experiment, &problem, &curves);
        let ensembles = curves.iter().filter(|c| c.method.is_ensemble());
        Ok(Some(Trajectories {
            table: trajectory_table(&curves),
            figure: experiment::figure::figure(experiment, &problem, &curves),
            summary: report.to_string(),
            report: serde_json::to_value(report)?,
            took: curves.iter().map(|c| (c.method, c.took)).collect(),
            forms: ensembles.map(|c| format!("{} {}", c.method.key(), c.form)).collect(),
        }))
    }

    /// The same for a generalised linear model.
    fn glm(
        &self,
        experiment: &GlmExperiment,
        origin: &Origin,
        files: &Files,
    ) -> Result<Option<Trajectories>> {
        let problem = GlmProblem::new(experiment, origin)?;
        let work = Work {
            methods: &experiment.methods,
            runs: experiment.ensemble.runs,
            inputs: identity::of_glm(experiment, &problem)?,
            times: &problem.times,
        };
        let curves = self.kept(&work, files, |plan, sink, finished| {
            experiment::run_glm(experiment, &problem, plan, sink, &finished)
        })?;
        let Some(curves) = curves else { return Ok(None) };
        let report = GlmReport::new(experiment, &problem, &curves);
        Ok(Some(Trajectories {
            table: glm_table(&curves),
            figure: glm_figure(experiment, &problem, &curves),
            summary: report.to_string(),
            report: serde_json::to_value(report)?,
            took: curves.iter().map(|c| (c.method, c.took)).collect(),
            forms: Vec::new(),
        }))
    }

    /// Runs the methods with a progress bar, and keeps the runs of ensembles on disk as they finish;
    /// `None` where Ctrl-C ended them early.
    fn kept<R: LoggedRun, T>(
        &self,
        work: &Work<'_>,
        files: &Files,
        run: impl FnOnce(
            &Plan<'_>,
            Option<&mut dyn RunSink<R>>,
            Vec<FinishedRun<R>>,
        ) -> experiment::Result<Option<T>>,
    ) -> Result<Option<T>> {
        let ensembles = work.methods.iter().filter(|m| m.is_ensemble()).count() as u64;
        let (mut log, finished) = if ensembles > 0 {
            let path = files.path("progress");
            let (log, finished) =
                RunLog::open(&path, work.inputs.clone(), self.resume, work.times)?;
            (Some(log), finished)
        } else {
            (None, Vec::new())
        };
        interrupt::listen(Some("runs"))?;
        let wanted = |f: &&FinishedRun<R>| work.methods.contains(&f.method) && f.index < work.runs;
        let total = ensembles * work.runs;
        let done = finished.iter().filter(wanted).count() as u64;
        let bar = terminal::progress_bar(total, "runs", self.quiet).with_position(done);
        bar.reset_eta();
        let tick = |_| bar.inc(1);
        let plan = Plan { threads: self.threads, cancel: &INTERRUPTED, tick: &tick };
        let sink = log.as_mut().map(|log| log as &mut dyn RunSink<R>);
        let result = run(&plan, sink, finished);
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
        Ok(result)
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

    fn print(&self, results: &Results, written: &[PathBuf], total: Duration) -> Result<()> {
        let trajectories = results.trajectories.as_ref();
        let took = trajectories.map_or(&[][..], |t| &t.took);
        if self.json {
            let seconds: Map<_, _> = took
                .iter()
                .map(|(method, took)| (method.key().into(), took.as_secs_f64().into()))
                .collect();
            let mut value = results.json()?;
            value.insert("seconds".into(), seconds.into());
            value.insert("seconds_in_all".into(), total.as_secs_f64().into());
            value.insert("files".into(), json!(written));
            return json::print(&value);
        }
        if self.quiet {
            return Ok(());
        }
        if let Some(Trajectories { summary, .. }) = trajectories {
            terminal::print(format_args!("{summary}\n"));
        }
        if let Some(Criteria { report, .. }) = &results.criteria {
            terminal::print(format_args!("{report}\n"));
        }
        let times: Vec<String> = took
            .iter()
            .map(|(method, took)| format!("{} {}", method.key(), duration(*took)))
            .collect();
        match &times[..] {
            [] => say!("Time: {}", duration(total)),
            times => say!("Time: {} ({})", duration(total), times.join(", ")),
        }
        let forms = trajectories.map_or(&[][..], |t| &t.forms);
        if !forms.is_empty() {
            say!("Simulated with: {}", forms.join("; "));
        }
        written.iter().for_each(|path| say!("{}", files::wrote(path)));
        Ok(())
    }
}

impl Results {
    /// The reports of what was asked for.
    fn json(&self) -> Result<Map<String, Value>> {
        let mut value = Map::new();
        if let Some(trajectories) = &self.trajectories {
            value.insert("report".into(), trajectories.report.clone());
        }
        if let Some(Criteria { report, .. }) = &self.criteria {
            value.insert("criteria".into(), serde_json::to_value(report)?);
        }
        Ok(value)
    }
}

/// The names of the files.
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

    fn remove_progress(&self) -> Result<()> {
        let path = self.path("progress");
        std::fs::remove_file(&path).with_context(|| format!("cannot delete {}", path.display()))
    }

    fn write(&self, file: &ExperimentFile, results: &Results) -> Result<Vec<PathBuf>> {
        let version = env!("CARGO_PKG_VERSION");
        let config = toml::to_string(file).context("cannot write the experiment as TOML")?;
        let metadata =
            [("toclip.experiment", config.clone()), ("toclip.version", version.to_owned())];
        let mut about = results.json()?;
        about.insert("toclip".into(), version.into());
        about.insert("experiment".into(), serde_json::to_value(file)?);
        about.insert("toml".into(), config.into());
        let mut written = Vec::new();
        let mut write = |extension: &str, bytes: &[u8]| {
            written.push(self.path(extension));
            files::write(&self.path(extension), bytes)
        };
        let mut tables: Vec<(&str, &Table)> = Vec::new();
        let mut plots: Vec<(&str, &Figure)> = Vec::new();
        if let Some(Trajectories { table, figure, .. }) = &results.trajectories {
            tables.push(("trajectory.", table));
            plots.push(("", figure));
        }
        if let Some(Criteria { table, figure, .. }) = &results.criteria {
            tables.push(("criteria.", table));
            plots.push((if plots.is_empty() { "" } else { "criteria." }, figure));
        }
        for (name, table) in tables {
            for (extension, bytes) in table.render(&metadata)? {
                write(&format!("{name}{extension}"), &bytes)?;
            }
        }
        write("json", (serde_json::to_string_pretty(&about)? + "\n").as_bytes())?;
        for (name, figure) in plots {
            for (extension, bytes) in plots::render(figure)? {
                write(&format!("{name}{extension}"), &bytes)?;
            }
        }
        Ok(written)
    }
}
