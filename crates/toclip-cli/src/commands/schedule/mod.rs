//! `toclip schedule`: whether to clip on one problem, and how, as a table for training code.

mod candidates;
mod glm;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::arguments;
use crate::experiment::{self, Experiment, Problem};
use crate::output::terminal::columns;
use crate::output::{Table, files, json as json_output, plots, say, terminal};
use crate::plot::{Axis, Figure};
use crate::study::schedule_run::{ScheduleRun, risk_chart, threshold_chart};
use crate::words::short;
use candidates::compare;
use verdict::{reaches, verdict};

/// The risk axis is logarithmic from this ratio on.
const LOG_FROM: f64 = 20.0;

/// Compare clipping schedules on one problem, and write them for training code
///
/// Predicts the risk without clipping, with the rule in the file, with max-CCC, and with thresholds
/// proportional to the residual (κ tuned on the prediction, and Huber's 1.345). All run at the
/// learning rate of the file divided by μ, so that their effective rates are equal. If the rule in the
/// file does not compensate in this way, unclipped SGD at its smaller effective rate is shown too.
///
/// A rule other than clipping is also compared with clipping. For private SGD, finds the best constant
/// learning rate and threshold, and shows the schedule of fastest descent.
///
/// For a generalised linear model (key `model`), finds the best constant and the best cosine learning
/// rate, without clipping and with the best constant threshold.
///
/// Recommends one schedule, and writes a table for each: the time, the step k = t·d, η and c of the
/// theory, the step size η/d, the gradient norm c·√d to clip at, and the predicted risk.
#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/schedule.txt"))]
pub struct Args {
    /// The experiment, a TOML file
    experiment: PathBuf,
    /// Folder for the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Also simulate N runs of clipped SGD for each schedule
    #[arg(long, value_name = "N", value_parser = arguments::count::<1>, allow_negative_numbers = true)]
    runs: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let (file, origin) = experiment::read(&args.experiment)?;
    if let Some(experiment) = &file.glm {
        return glm::run(&args, experiment, &origin);
    }
    let mut experiment = file.into_trajectories(&origin)?;
    experiment.ensemble.runs = args.runs.unwrap_or(experiment.ensemble.runs);
    let problem = Problem::new(&experiment, &origin)?;
    let found = compare(&experiment, &origin, &problem, args.runs.is_some())?;
    let verdict = verdict(&found.schedules, experiment.privacy.is_some(), experiment.time);
    let finished = found.schedules.iter().filter(|run| run.end().is_some());
    let tables: Vec<_> = finished.map(|run| (run.key, table(run, problem.modes.dim()))).collect();
    let written = write(&args, &tables, &figure(&experiment, &problem, &found.schedules))?;
    if args.json {
        json_output::print(&json!({
            "name": experiment.name,
            "verdict": verdict,
            "schedules": found.schedules.iter().map(|s| to_json(s, &found.schedules)).collect::<Vec<_>>(),
            "notes": found.notes,
            "files": written,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    say!("{}: {}, d = {:.2}\n", experiment.name, problem.step.describe(), problem.modes.dim());
    terminal::print(format_args!("{}", lines(&found.schedules)));
    found.notes.iter().for_each(|note| say!("{note}"));
    say!("\n{verdict}\n");
    written.iter().for_each(|file| say!("{}", files::wrote(file)));
    Ok(ExitCode::SUCCESS)
}

/// When a schedule reaches the final risk of unclipped SGD.
fn catches_up(run: &ScheduleRun, all: &[ScheduleRun]) -> Option<f64> {
    let level = all.first().filter(|_| run.key != "unclipped")?.end()?;
    reaches(run, level)
}

fn lines(schedules: &[ScheduleRun]) -> String {
    let rows = schedules.iter().map(|run| {
        let runs = run.runs.as_ref().map_or(String::new(), |runs| {
            let mean = short(runs.risk.mean.last().copied().unwrap_or(f64::NAN));
            let lost = match runs.diverged.len() {
                0 => String::new(),
                lost => format!(", {lost} diverged"),
            };
            format!("mean {mean} of {} runs{lost}", runs.runs)
        });
        let end = run.end().map_or_else(|| "diverges".into(), short);
        let when = catches_up(run, schedules).map_or("–".into(), |t| format!("t = {t:.2}"));
        [run.label.clone(), end, when, runs]
    });
    let simulated = schedules.iter().any(|run| run.runs.is_some());
    let last = if simulated { "C-SGD" } else { "" };
    columns("lrrl", ["schedule", "final risk", "reaches unclipped at", last], rows)
}

fn to_json(run: &ScheduleRun, all: &[ScheduleRun]) -> Value {
    json!({
        "schedule": run.key,
        "label": run.label,
        "final_risk": run.end(),
        "stop": run.path.stop,
        "reaches_unclipped_at": catches_up(run, all),
        "simulated_mean": run.runs.as_ref().and_then(|runs| runs.risk.mean.last()),
    })
}

fn figure(experiment: &Experiment, problem: &Problem, schedules: &[ScheduleRun]) -> Figure {
    let finished = schedules.iter().filter(|run| run.end().is_some());
    let risks = finished.flat_map(|run| run.path.risk.iter().copied());
    let (low, high) = risks.fold((f64::INFINITY, 0.0f64), |(a, b), r| (a.min(r), b.max(r)));
    let y = if low > 0.0 && high > LOG_FROM * low { Axis::log } else { Axis::linear };
    let subtitle = format!("{}, d = {:.1}", problem.step.describe(), problem.modes.dim());
    Figure::new(&experiment.name)
        .chart(risk_chart(schedules, &subtitle, y("risk R(t)")))
        .chart(threshold_chart(schedules))
        .columns(2)
}

fn table(run: &ScheduleRun, dim: f64) -> Table {
    Table::default()
        .numbers("t", run.path.times.iter().copied())
        .numbers("step", run.path.times.iter().map(|t| t * dim))
        .numbers("eta", run.along(|p| p.eta))
        .numbers("c", run.along(|p| p.c))
        .numbers("step_size", run.along(|p| p.eta / dim))
        .numbers("clip_norm", run.along(|p| p.c * dim.sqrt()))
        .numbers("risk", run.path.risk.iter().copied())
}

/// Writes a table for each schedule that reaches the end, and the plot; returns the paths.
fn write(args: &Args, tables: &[(&str, Table)], figure: &Figure) -> Result<Vec<String>> {
    let stem = args.experiment.file_stem().unwrap_or_default().to_string_lossy();
    let mut written = Vec::new();
    let mut write = |ending: &str, bytes: &[u8]| {
        let path = args.out.join(format!("{stem}.schedule.{ending}"));
        written.push(path.display().to_string());
        files::write(&path, bytes)
    };
    for (key, table) in tables {
        write(&format!("{key}.csv"), &table.csv()?)?;
    }
    for (extension, bytes) in plots::render(figure)? {
        write(extension, &bytes)?;
    }
    Ok(written)
}
