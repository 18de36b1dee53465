//! `toclip schedule`: whether to clip on one problem, and how, as a table for training code.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};
use toclip::schedule::{Compensation, Proportional, Shape, tune_kappa};

use crate::arguments;
use crate::experiment::{self, Clip, Experiment, LearningRate, Origin, Problem};
use crate::output::numbers::percent;
use crate::output::terminal::columns;
use crate::output::{Table, files, json as json_output, plots, say, terminal};
use crate::plot::{Axis, Figure};
use crate::study::schedule_run::{ScheduleRun, risk_chart, threshold_chart};
use crate::words::short;

/// Below this gain in the final risk it is not worth a sentence.
const WORTH: f64 = 0.01;
/// The risk axis is logarithmic from this ratio on.
const LOG_FROM: f64 = 20.0;

/// Compare clipping schedules on one problem, and write them for training code
///
/// Predicts the risk without clipping, with the rule in the file, with max-CCC, and with thresholds
/// proportional to the residual (κ tuned on the prediction, and Huber's 1.345). All run at the
/// learning rate of the file divided by μ, so that their effective rates are equal. If the rule in the
/// file does not compensate in this way, unclipped SGD at its smaller effective rate is shown too.
///
/// Recommends one schedule, and writes a table for each: the time, the step k = t·d, η and c of the
/// theory, the step size η/d, the gradient norm c·√d to clip at, and the predicted risk.
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/schedule.txt"))]
pub struct Args {
    /// The experiment, a TOML file
    experiment: PathBuf,
    /// Folder for the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Also simulate N runs of clipped SGD for each schedule
    #[arg(long, value_name = "N", value_parser = arguments::count::<1>)]
    runs: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// All schedules, unclipped SGD first, and what is to be known about them.
struct Comparison {
    schedules: Vec<ScheduleRun>,
    notes: Vec<String>,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let (file, origin) = experiment::read(&args.experiment)?;
    let mut experiment = file.into_trajectories(&origin)?;
    experiment.ensemble.runs = args.runs.unwrap_or(experiment.ensemble.runs);
    let problem = Problem::new(&experiment, &origin)?;
    let found = compare(&experiment, &origin, &problem, args.runs.is_some())?;
    let verdict = verdict(&found.schedules, experiment.time);
    let files = write(&args, &experiment, &problem, &found.schedules)?;
    if args.json {
        json_output::print(&json!({
            "name": experiment.name,
            "verdict": verdict,
            "schedules": found.schedules.iter().map(|s| to_json(s, &found.schedules)).collect::<Vec<_>>(),
            "notes": found.notes,
            "files": files,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    say!("{}: {}, d = {:.2}\n", experiment.name, problem.step.describe(), problem.modes.dim());
    terminal::print(format_args!("{}", lines(&found.schedules)));
    found.notes.iter().for_each(|note| say!("{note}"));
    say!("\n{verdict}\n\nWritten:");
    files.iter().for_each(|file| say!("  {file}"));
    Ok(ExitCode::SUCCESS)
}

/// The rule of a file: its label, and whether it has the effective rate of unclipped SGD.
fn own_rule(clip: &Clip) -> Option<(String, bool)> {
    let (kappa, compensation, online) = match clip {
        Clip::Schedule(schedule) => {
            return Some(match schedule.shape() {
                Shape::Constant { value } => (format!("constant c = {value}"), false),
                _ => ("threshold of the file".into(), false),
            });
        }
        Clip::Proportional { kappa, compensation } => (kappa, compensation, ""),
        Clip::Online { kappa, compensation, .. } => (kappa, compensation, ", online"),
        _ => return None,
    };
    let label = format!("κ = {}{online} (file)", short(*kappa));
    Some((label, *compensation == Compensation::Exact))
}

fn compare(
    experiment: &Experiment,
    origin: &Origin,
    problem: &Problem,
    simulate: bool,
) -> Result<Comparison> {
    let at_rate = |key, label: String, clip: Clip, rate: LearningRate| {
        ScheduleRun::new((key, label), experiment, origin, (clip, rate), simulate)
    };
    let with = |key, label, clip| at_rate(key, label, clip, experiment.learning_rate.clone());
    let finite = problem.step.noise().second_moment().is_finite();
    let mut notes: Vec<String> = Vec::new();
    let mut note = |text: &str| notes.push(text.into());
    let mut schedules = vec![with("unclipped", "unclipped".into(), Clip::None)?];
    if let Some((label, same_rate)) = own_rule(&experiment.clip) {
        let own = ScheduleRun { same_rate, ..with("file", label, experiment.clip.clone())? };
        if !same_rate {
            if own.end().is_some() && finite {
                let (label, rate) = ("unclipped at rate ημ".into(), own.effective_rate()?);
                let slower = at_rate("unclipped_slower", label, Clip::None, rate.into())?;
                schedules.push(ScheduleRun { same_rate, ..slower });
            }
            note(
                "The rule in the file does not compensate for clipping: its effective learning rate ημ is \
                 smaller than that of the others, which alone may lower the risk.",
            );
        }
        schedules.push(own);
    } else if experiment.clip == Clip::None {
        note("The file does not clip, so it adds no rule to the comparison.");
    }
    let label = if experiment.clip == Clip::MaxCcc { "max-CCC (file)" } else { "max-CCC" };
    let best = with("max_ccc", label.into(), Clip::MaxCcc)?;
    if best.end().is_some_and(|end| end > problem.modes.risk()) {
        note(
            "With max-CCC at the compensated rate η/μ the risk grows: the learning rate in the file is too \
             large for this noise.",
        );
    }
    schedules.push(best);
    let rate = match experiment.learning_rate.schedule() {
        _ if !finite => {
            note(
                "Thresholds in proportion to the residual are not defined here: the noise has no finite \
                 variance. Max-CCC needs none.",
            );
            return Ok(Comparison { schedules, notes });
        }
        None => {
            note(
                "Thresholds in proportion to the residual need a learning rate that is not greedy.",
            );
            return Ok(Comparison { schedules, notes });
        }
        Some(rate) => rate.scaled(problem.spectrum.rescaling().learning_rate(1.0))?,
    };
    let rule = |kappa| Clip::Proportional { kappa, compensation: Compensation::Exact };
    let step = problem.step.clone();
    match tune_kappa(&problem.few_modes, step, rate, Compensation::Exact, experiment.time) {
        Ok(tuned) if tuned.kappa.is_finite() => {
            let label = format!("κ = {} (tuned)", short(tuned.kappa));
            schedules.push(with("proportional_tuned", label, rule(tuned.kappa))?);
        }
        Ok(_) => note("The tuned κ is ∞: no clipping is better than any κ."),
        Err(error) => note(&format!("κ could not be tuned: {error}.")),
    }
    let huber = Proportional::HUBER;
    schedules.push(with("proportional_huber", format!("κ = {huber} (Huber)"), rule(huber))?);
    Ok(Comparison { schedules, notes })
}

/// The recommendation.
fn verdict(schedules: &[ScheduleRun], time: f64) -> String {
    let [free, others @ ..] = schedules else { return "Nothing was compared.".into() };
    // Only at the effective rate of unclipped SGD: otherwise a smaller rate would count as a gain.
    // Where unclipped SGD diverges, any schedule that does not is eligible.
    let fair = |run: &&ScheduleRun| free.end().is_none() || run.same_rate;
    let ended = others.iter().filter(fair).filter_map(|run| Some((run, run.end()?)));
    let best = ended.min_by(|a, b| a.1.total_cmp(&b.1));
    let end_of = |key: &str| others.iter().find(|run| run.key == key)?.end();
    let name = |run: &ScheduleRun| match run.key {
        "max_ccc" => "the threshold with the largest CCC (max-CCC)".to_owned(),
        _ => run.label.clone(),
    };
    let ((run, end), free_end) = match (best, free.end()) {
        (None, None) => return "Use a smaller learning rate: every schedule diverges.".into(),
        (None, Some(end)) => {
            return format!(
                "Do not clip: unclipped SGD ends at a risk of {}, every other schedule diverges.",
                short(end)
            );
        }
        (Some((run, end)), None) => {
            let name = name(run);
            if run.path.risk.first().is_some_and(|&start| end > start) {
                return format!(
                    "Use a smaller learning rate: unclipped SGD diverges, and clipped at {name} its risk \
                     still grows, to {}.",
                    short(end)
                );
            }
            let when = match free.path.stop.diverged_at() {
                Some(t) if t > 0.0 => format!("diverges at t = {}", short(t)),
                _ => "diverges at once".into(),
            };
            let end = short(end);
            return format!("Clip: unclipped SGD {when}; with {name} it ends at a risk of {end}.");
        }
        (Some(best), Some(free_end)) => (best, free_end),
    };
    if end >= (1.0 - WORTH) * free_end {
        let text = "Clipping gains nothing here at equal effective rate";
        let huber = end_of("proportional_huber").map_or(String::new(), |end| {
            let change = 100.0 * (end / free_end - 1.0);
            format!(" Huber's κ = 1.345 would change it by {change:+.1}%.")
        });
        return format!("{text}: the final risk is {} without clipping.{huber}", short(free_end));
    }
    let time = short(time);
    let sooner = reaches(run, free_end).map_or(String::new(), |t| {
        format!(" reaches at t = {t:.1} the risk that unclipped SGD has at t = {time}, and")
    });
    let (name, ends) = (name(run), [end, free_end].map(short));
    let mut text =
        format!("Clip at {name}: it{sooner} ends at {} instead of {}.", ends[0], ends[1]);
    if let Some(tuned) = others.iter().find(|other| other.key == "proportional_tuned")
        && let (Some(its), true) = (tuned.end(), tuned.key != run.key)
    {
        let above = percent(its / end - 1.0);
        text += &format!(" The simpler rule {} ends {above} higher.", tuned.label);
    }
    text
}

/// When the risk first falls to a level, by straight lines between the saved times.
fn reaches(run: &ScheduleRun, level: f64) -> Option<f64> {
    let (t, r) = (&run.path.times, &run.path.risk);
    // A risk that starts below the level does not reach it.
    let k = (1..r.len()).find(|&k| r[k] <= level).filter(|_| r[0] > level)?;
    let share = if r[k - 1] > r[k] { (r[k - 1] - level) / (r[k - 1] - r[k]) } else { 0.0 };
    Some(t[k - 1] + (t[k] - t[k - 1]) * share.clamp(0.0, 1.0))
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

/// Writes a table for each schedule that reaches the end, and the plot.
fn write(
    args: &Args,
    experiment: &Experiment,
    problem: &Problem,
    schedules: &[ScheduleRun],
) -> Result<Vec<String>> {
    let stem = args.experiment.file_stem().unwrap_or_default().to_string_lossy();
    let mut written = Vec::new();
    let mut write = |ending: &str, bytes: &[u8]| {
        let path = args.out.join(format!("{stem}.schedule.{ending}"));
        written.push(path.display().to_string());
        files::write(&path, bytes)
    };
    for run in schedules.iter().filter(|run| run.end().is_some()) {
        write(&format!("{}.csv", run.key), &table(run, problem.modes.dim()).csv()?)?;
    }
    for (extension, bytes) in plots::render(&figure(experiment, problem, schedules))? {
        write(extension, &bytes)?;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use toclip::dynamics::{Counts, Stop, Trajectory};

    fn way(key: &'static str, label: &str, risk: &[f64], stop: Stop) -> ScheduleRun {
        let path = Trajectory {
            times: (0..risk.len()).map(|k| k as f64).collect(),
            risk: risk.to_vec(),
            distance: risk.to_vec(),
            path: None,
            stop,
            counts: Counts::default(),
        };
        let same_rate = !matches!(key, "file" | "unclipped_slower");
        ScheduleRun { key, label: label.into(), path, runs: None, same_rate }
    }

    #[test]
    fn the_verdict_follows_the_numbers() {
        let free = || way("unclipped", "unclipped", &[1.0, 0.6, 0.4], Stop::Finished);
        let best = way("max_ccc", "max-CCC", &[1.0, 0.0625, 0.1], Stop::Finished);
        let kappa = way("proportional_tuned", "κ = 0.3 (tuned)", &[1.0, 0.3, 0.11], Stop::Finished);
        let said = verdict(&[free(), best, kappa], 2.0);
        assert!(said.contains("at t = 0.6 the risk that unclipped SGD has at t = 2, and ends at 0.1 instead of 0.4"), "{said}");
        assert!(said.contains("κ = 0.3 (tuned) ends 10% higher"), "{said}");
        let same = way("max_ccc", "max-CCC", &[1.0, 0.6, 0.4], Stop::Finished);
        assert!(verdict(&[free(), same], 2.0).starts_with("Clipping gains nothing"));
        // A constant threshold ends lower by its smaller rate: no reason to clip.
        let same = way("max_ccc", "max-CCC", &[1.0, 0.6, 0.4], Stop::Finished);
        let slow = way("file", "constant c = 1", &[1.0, 0.6, 0.2], Stop::Finished);
        assert!(verdict(&[free(), slow, same], 2.0).starts_with("Clipping gains nothing"));
        let gone = way("unclipped", "unclipped", &[], Stop::Diverged { t: 0.0 });
        let best = way("max_ccc", "max-CCC", &[1.0, 0.2], Stop::Finished);
        let said = verdict(&[gone, best], 2.0);
        assert!(said.starts_with("Clip: unclipped SGD diverges at once"), "{said}");
        let worse = way("max_ccc", "max-CCC", &[1.0], Stop::Diverged { t: 1.0 });
        assert!(verdict(&[free(), worse], 2.0).starts_with("Do not clip"));
    }

    #[test]
    fn a_tuned_rule_sees_the_scale_of_the_data() {
        // x' = 2x, θ' = θ/2 and η' = η/4 are the same problem: κ and the final risk must agree.
        let text = |values: &str, norm: f64, eta: f64| {
            format!(
                "spectrum = {{ kind = 'eigenvalues', values = {values} }}\ntime = 5\n\
                 start = {{ kind = 'uniform', norm = {norm} }}\nlearning_rate = {eta}\nclip = 'none'\n\
                 noise = {{ family = 'rademacher', sigma = 0.8, p = 0.2 }}\n"
            )
        };
        let end = |text: &str| {
            let (experiment, origin) = experiment::parse(text, Path::new("e.toml")).unwrap();
            let problem = Problem::new(&experiment, &origin).unwrap();
            let found = compare(&experiment, &origin, &problem, false).unwrap();
            let way = found.schedules.into_iter().find(|w| w.key == "proportional_tuned").unwrap();
            (way.end().unwrap(), way.label)
        };
        let unit = end(&text("[1.0, 0.5, 0.25]", 1.0, 0.2));
        let double = end(&text("[4.0, 2.0, 1.0]", 0.5, 0.05));
        assert!((unit.0 / double.0 - 1.0).abs() < 1e-6, "{unit:?} {double:?}");
        assert_eq!(unit.1, double.1);
    }
}
