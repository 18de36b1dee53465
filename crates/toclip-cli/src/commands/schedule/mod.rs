//! `toclip schedule`: whether to clip on one problem, and how, as a table for training code.

mod candidates;
mod model;
mod recommendation;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use toclip::verdict::Verdict;

use crate::arguments;
use crate::experiment::{self, Experiment, Origin, Prepared};
use crate::output::terminal::columns;
use crate::output::{Table, files, plots, result};
use crate::plot::{Axis, Figure};
use crate::study::schedule_run::{ScheduleRun, risk_chart, threshold_chart};
use candidates::Candidates;
use recommendation::{reaches, recommendation, verdict};
use toclip_words::short;

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

/// Schedules compared on one problem, whatever its model.
struct ScheduleComparison {
    name: String,
    /// The noise or the model, and d.
    problem: String,
    /// The table for the terminal.
    lines: String,
    notes: Vec<String>,
    /// Whether to clip; `None` where no threshold could be compared.
    verdict: Option<Verdict>,
    recommendation: String,
    /// Each schedule for programs.
    schedules: Vec<Value>,
    /// A table for each schedule that reaches the end.
    tables: Vec<(&'static str, Table)>,
    figure: Figure,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let (file, origin) = experiment::read(&args.experiment)?;
    let experiment = file.into_trajectories(&origin)?;
    let found = match experiment.model {
        Some(_) if args.runs.is_some() => bail!(
            "--runs is for least squares; schedules of generalised linear models are predicted, not simulated"
        ),
        Some(_) => model::comparison(experiment, &origin)?,
        None => comparison(experiment, &origin, args.runs)?,
    };
    let stem = files::result_stem(&args.out, &args.experiment);
    let mut written = Vec::new();
    for (key, table) in &found.tables {
        let path = files::with_ending(&stem, &format!("schedule.{key}.csv"));
        files::write(&path, &table.csv()?)?;
        written.push(path);
    }
    written.extend(plots::write(&found.figure, &files::with_ending(&stem, "schedule"))?);
    let ScheduleComparison { name, problem, lines, notes, verdict, recommendation, .. } = found;
    let note_lines: String = notes.iter().map(|note| format!("{note}\n")).collect();
    let text = format!("{name}: {problem}\n\n{lines}{note_lines}\n{recommendation}\n\n");
    let value = json!({
        "name": name, "verdict": recommendation, "decision": verdict, "schedules": found.schedules,
        "notes": notes,
    });
    result::show(args.json, value, &text, &written)?;
    Ok(ExitCode::SUCCESS)
}

fn comparison(
    mut experiment: Experiment,
    origin: &Origin,
    runs: Option<u64>,
) -> Result<ScheduleComparison> {
    experiment.ensemble.runs = runs.unwrap_or(experiment.ensemble.runs);
    let problem = Prepared::new(&experiment, origin)?;
    let found = Candidates::compare(&experiment, origin, &problem, runs.is_some())?;
    let (schedules, notes) = (&found.schedules, found.notes);
    let finished = schedules.iter().filter(|run| run.end().is_some());
    let (dim, private) = (problem.problem.modes().dim(), experiment.privacy.is_some());
    let verdict = verdict(schedules, private, problem.problem.modes().risk());
    let table = |run: &ScheduleRun| {
        let columns = [run.path.times.clone(), run.along(|p| p.eta), run.along(|p| p.c)];
        table(columns, dim).numbers("risk", run.path.risk.iter().copied())
    };
    Ok(ScheduleComparison {
        problem: format!("{}, d = {dim:.2}", problem.problem.step().describe()),
        lines: lines(schedules),
        notes,
        recommendation: recommendation(&verdict, schedules, private, experiment.time),
        verdict: Some(verdict),
        schedules: schedules.iter().map(|run| to_json(run, schedules)).collect(),
        tables: finished.map(|run| (run.key, table(run))).collect(),
        figure: figure(&experiment, &problem, schedules),
        name: experiment.name,
    })
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

fn figure(experiment: &Experiment, problem: &Prepared, schedules: &[ScheduleRun]) -> Figure {
    let finished = schedules.iter().filter(|run| run.end().is_some());
    let risks = finished.flat_map(|run| run.path.risk.iter().copied());
    let (low, high) = risks.fold((f64::INFINITY, 0.0f64), |(a, b), r| (a.min(r), b.max(r)));
    let y = if low > 0.0 && high > LOG_FROM * low { Axis::log } else { Axis::linear };
    let subtitle =
        format!("{}, d = {:.1}", problem.problem.step().describe(), problem.problem.modes().dim());
    Figure::new(&experiment.name)
        .chart(risk_chart(schedules, &subtitle, y("risk R(t)")))
        .chart(threshold_chart(schedules))
        .columns(2)
}

/// The columns of any schedule, from its times, η and c.
fn table([times, eta, c]: [Vec<f64>; 3], dim: f64) -> Table {
    Table::default()
        .numbers("t", times.iter().copied())
        .numbers("step", times.iter().map(|t| t * dim))
        .numbers("eta", eta.iter().copied())
        .numbers("c", c.iter().copied())
        .numbers("step_size", eta.iter().map(|eta| eta / dim))
        .numbers("clip_norm", c.iter().map(|c| c * dim.sqrt()))
}
