//! `toclip schedule`: whether to clip on one problem, and how, as a table for training code.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use toclip::dynamics::{Stop, Trajectory};
use toclip::ensemble::Summary;
use toclip::schedule::{Compensation, Proportional, Schedule, Shape, tune_kappa};

use crate::arguments;
use crate::experiment::run::{Outcome, Plan, run as run_methods};
use crate::experiment::{self, Clip, Experiment, LearningRate, Method, Origin, Problem};
use crate::output::terminal::{Align, columns};
use crate::output::{Table, files, json as json_output, plots, say, terminal};
use crate::plot::{Axis, Chart, Figure, Series};
use crate::words::short;

/// Below this gain in the final risk it is not worth a sentence.
const WORTH: f64 = 0.01;
/// The risk axis is logarithmic from this ratio on.
const LOG_FROM: f64 = 20.0;

/// Compare clipping schedules on one problem, and write them for training code
///
/// Predicts the risk without clipping, with the rule of the file, with max-CCC and with thresholds in
/// proportion to the residual (κ tuned on the prediction, and Huber's 1.345). These rules run at the
/// learning rate of the file compensated by η/μ, so that all have the same effective rate. Where the
/// rule of the file does not compensate, it is shown beside unclipped SGD at its smaller effective
/// rate. Recommends one of them, and writes a table for each: the time, the step k = t·d, η and c of
/// the theory, the step size η/d, the gradient norm c·√d to clip at, and the predicted risk.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toclip schedule experiments/figure-4b.toml
  toclip schedule experiments/figure-1b.toml --runs 100     noise without variance, checked by C-SGD
  toclip schedule mine.toml --json | jq -r .verdict

In the tables, step_size is the learning rate of an SGD step and clip_norm the norm of a gradient to
clip at, `inf` for no clipping.")]
pub struct Args {
    /// The experiment, a TOML file
    experiment: PathBuf,
    /// Folder for the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Simulate so many runs of C-SGD for each schedule
    #[arg(long, value_name = "N", value_parser = arguments::count::<1>)]
    runs: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A schedule, and the risk it leads to.
struct Candidate {
    key: &'static str,
    label: String,
    path: Trajectory,
    runs: Option<Summary>,
    /// Whether it has the effective rate of unclipped SGD.
    same_rate: bool,
}

impl Candidate {
    /// R at the end, if the path got there.
    fn end(&self) -> Option<f64> {
        match self.path.stop {
            Stop::Finished => self.path.risk.last().copied(),
            _ => None,
        }
    }

    /// When the risk first falls to a level, by straight lines between the saved times.
    fn reaches(&self, level: f64) -> Option<f64> {
        let (t, r) = (&self.path.times, &self.path.risk);
        // A risk that starts below the level does not reach it.
        let k = (1..r.len()).find(|&k| r[k] <= level).filter(|_| r[0] > level)?;
        let share = if r[k - 1] > r[k] { (r[k - 1] - level) / (r[k - 1] - r[k]) } else { 0.0 };
        Some(t[k - 1] + (t[k] - t[k - 1]) * share.clamp(0.0, 1.0))
    }

    /// η·μ along the path: the rate of unclipped SGD with the same descent.
    fn effective_rate(&self) -> toclip::Result<Schedule> {
        let values = self.path.path.iter().flatten().map(|p| p.eta * p.mu).collect();
        Schedule::new(Shape::Table { times: self.path.times.clone(), values })
    }

    fn table(&self, dim: f64) -> Table {
        let along = |of: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
            self.path.path.iter().flatten().map(|p| of(p.eta, p.c)).collect()
        };
        Table::default()
            .numbers("t", self.path.times.iter().copied())
            .numbers("step", self.path.times.iter().map(|t| t * dim))
            .numbers("eta", along(&|eta, _| eta))
            .numbers("c", along(&|_, c| c))
            .numbers("step_size", along(&|eta, _| eta / dim))
            .numbers("clip_norm", along(&|_, c| c * dim.sqrt()))
            .numbers("risk", self.path.risk.iter().copied())
    }
}

/// All schedules, and what is to be known about them.
struct Comparison {
    ways: Vec<Candidate>,
    notes: Vec<String>,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let (file, origin) = experiment::read(&args.experiment)?;
    let mut experiment = file.into_trajectories(&origin)?;
    if let Some(runs) = args.runs {
        experiment.ensemble.runs = runs;
    }
    let problem = Problem::new(&experiment, &origin)?;
    let found = compare(&experiment, &origin, &problem, args.runs.is_some())?;
    let verdict = verdict(&found.ways, experiment.time);
    let files = write(&args, &experiment, &problem, &found)?;
    if args.json {
        json_output::print(&to_json(&experiment, &found, &verdict, &files))?;
        return Ok(ExitCode::SUCCESS);
    }
    say!("{}: {}, d = {:.2}\n", experiment.name, problem.step.describe(), problem.modes.dim());
    terminal::print(format_args!("{}", lines(&found.ways)));
    for note in &found.notes {
        say!("{note}");
    }
    say!("\n{verdict}\n");
    for file in files {
        say!("wrote {file}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The rule of a file: its label, and whether it has the effective rate of unclipped SGD.
fn own_rule(clip: &Clip) -> Option<(String, bool)> {
    let of_file = |kappa: f64, how: Compensation, online: &str| {
        (format!("κ = {}{online} (file)", short(kappa)), how == Compensation::Exact)
    };
    match clip {
        Clip::Schedule(schedule) => Some(match schedule.shape() {
            Shape::Constant { value } => (format!("constant c = {value}"), false),
            _ => ("threshold of the file".into(), false),
        }),
        Clip::Proportional { kappa, compensation } => Some(of_file(*kappa, *compensation, "")),
        Clip::Online { kappa, compensation, .. } => {
            Some(of_file(*kappa, *compensation, ", online"))
        }
        _ => None,
    }
}

fn compare(
    experiment: &Experiment,
    origin: &Origin,
    problem: &Problem,
    simulate: bool,
) -> Result<Comparison> {
    let at_rate = |key, label: String, clip: Clip, learning_rate: LearningRate| {
        let methods = if simulate { vec![Method::Ode, Method::Sgd] } else { vec![Method::Ode] };
        let experiment = Experiment { clip, methods, learning_rate, ..experiment.clone() };
        let problem = Problem::new(&experiment, origin)?;
        let cancel = AtomicBool::new(false);
        let plan = Plan { threads: None, cancel: &cancel, tick: &|_| {} };
        let curves = run_methods(&experiment, &problem, &plan, None, Vec::new())?
            .context("a run was cancelled")?;
        let (mut path, mut runs) = (None, None);
        for curve in curves {
            match curve.outcome {
                Outcome::Path { path: found, .. } => path = Some(found),
                Outcome::Band(band) => runs = Some(*band),
            }
        }
        let path = path.context("the ODE gave no path")?;
        anyhow::Ok(Candidate { key, label, path, runs, same_rate: true })
    };
    let way = |key, label, clip| at_rate(key, label, clip, experiment.learning_rate.clone());
    let finite = problem.step.noise().second_moment().is_finite();
    let mut notes: Vec<String> = Vec::new();
    let mut ways = vec![way("unclipped", "unclipped".into(), Clip::None)?];
    if let Some((label, same_rate)) = own_rule(&experiment.clip) {
        let own = Candidate { same_rate, ..way("file", label, experiment.clip.clone())? };
        if !same_rate {
            if own.end().is_some() && finite {
                let (label, rate) = ("unclipped, its rate ημ".into(), own.effective_rate()?);
                let slower = at_rate("unclipped_slower", label, Clip::None, rate.into())?;
                ways.push(Candidate { same_rate, ..slower });
            }
            notes.push(
                "The rule of the file runs at the learning rate η, so at a smaller effective rate \
                 ημ than the others: a lower risk may come from the smaller rate."
                    .into(),
            );
        }
        ways.push(own);
    } else if experiment.clip == Clip::None {
        notes.push("The file does not clip, so it adds no rule to the comparison.".into());
    }
    let label = if experiment.clip == Clip::MaxCcc { "max-CCC (file)" } else { "max-CCC" };
    let best = way("max_ccc", label.into(), Clip::MaxCcc)?;
    if best.end().is_some_and(|end| end > problem.modes.risk()) {
        notes.push(
            "With max-CCC at the compensated rate η/μ the risk grows: the learning rate of the file \
             is too large for this noise at full descent."
                .into(),
        );
    }
    ways.push(best);
    if !finite {
        notes.push(
            "Thresholds in proportion to the residual are not defined here: the noise has no finite \
             variance. Max-CCC needs none."
                .into(),
        );
        return Ok(Comparison { ways, notes });
    }
    let Some(rate) = experiment.learning_rate.schedule() else {
        notes.push(
            "Thresholds in proportion to the residual need a learning rate that is not greedy."
                .into(),
        );
        return Ok(Comparison { ways, notes });
    };
    let rule = |kappa| Clip::Proportional { kappa, compensation: Compensation::Exact };
    let rate = rate.scaled(problem.spectrum.rescaling().learning_rate(1.0))?;
    let noise = problem.step.clone();
    match tune_kappa(&problem.few_modes, noise, rate, Compensation::Exact, experiment.time) {
        Ok(tuned) if tuned.kappa.is_finite() => {
            let label = format!("κ = {} (tuned)", short(tuned.kappa));
            ways.push(way("proportional_tuned", label, rule(tuned.kappa))?);
        }
        Ok(_) => notes.push("The tuned κ is ∞: no clipping is better than any κ.".into()),
        Err(error) => notes.push(format!("κ could not be tuned: {error}.")),
    }
    let huber = Proportional::HUBER;
    ways.push(way("proportional_huber", format!("κ = {huber} (Huber)"), rule(huber))?);
    Ok(Comparison { ways, notes })
}

/// The recommendation.
fn verdict(ways: &[Candidate], time: f64) -> String {
    let Some(free) = ways.first() else { return "Nothing was compared.".into() };
    // Only at the effective rate of unclipped SGD: otherwise a smaller rate would count as a gain.
    // Where unclipped SGD diverges, any schedule that does not is eligible.
    let fair = |way: &&Candidate| free.end().is_none() || way.same_rate;
    let best = ways[1..]
        .iter()
        .filter(fair)
        .filter_map(|way| Some((way, way.end()?)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let name = |way: &Candidate| match way.key {
        "max_ccc" => "clipping where CCC is largest".to_owned(),
        _ => format!("clipping at {}", way.label),
    };
    match (free.end(), best) {
        (None, None) => "Every schedule diverges: take a smaller learning rate.".into(),
        (None, Some((way, end))) if way.path.risk.first().is_some_and(|&start| end > start) => {
            format!(
                "Take a smaller learning rate: unclipped SGD diverges, and with {} the risk still \
                 grows, to {}.",
                name(way),
                short(end)
            )
        }
        (None, Some((way, end))) => {
            let when = match free.path.stop.diverged_at() {
                Some(t) if t > 0.0 => format!("diverges at t = {}", short(t)),
                _ => "diverges at once".into(),
            };
            format!("Clip. Unclipped SGD {when}; {} ends at a risk of {}.", name(way), short(end))
        }
        (Some(end), None) => {
            format!("Do not clip: unclipped SGD ends at {}, all else diverges.", short(end))
        }
        (Some(free_end), Some((way, end))) if end < (1.0 - WORTH) * free_end => {
            let mut text = match way.reaches(free_end) {
                Some(t) => format!(
                    "Clip: {} reaches the risk of unclipped SGD at t = {} already at t = {:.1}; final \
                     risk {} against {}.",
                    name(way),
                    short(time),
                    t,
                    short(end),
                    short(free_end)
                ),
                None => {
                    format!(
                        "Clip: {}, final risk {} against {}.",
                        name(way),
                        short(end),
                        short(free_end)
                    )
                }
            };
            let simple = ways.iter().find(|w| w.key == "proportional_tuned" && w.key != way.key);
            if let Some((simple, its)) = simple.and_then(|w| Some((w, w.end()?))) {
                text += &format!(
                    " The one number {} ends {:.1}% above that.",
                    simple.label,
                    100.0 * (its / end - 1.0)
                );
            }
            text
        }
        (Some(free_end), Some(_)) => {
            let cost = ways.iter().find(|w| w.key == "proportional_huber").and_then(Candidate::end);
            let cost = cost.map_or(String::new(), |end| {
                format!(
                    " Huber's κ = 1.345 would change it by {:+.1}%.",
                    100.0 * (end / free_end - 1.0)
                )
            });
            format!(
                "Clipping gains nothing here at equal effective rate: final risk {} without it.{cost}",
                short(free_end)
            )
        }
    }
}

fn lines(ways: &[Candidate]) -> String {
    let level = ways.first().and_then(Candidate::end);
    let simulated = ways.iter().any(|way| way.runs.is_some());
    let header =
        ["schedule", "final risk", "at unclipped's end", if simulated { "C-SGD" } else { "" }];
    let rows = ways.iter().map(|way| {
        let when = level.filter(|_| way.key != "unclipped").and_then(|level| way.reaches(level));
        let runs = way.runs.as_ref().map_or(String::new(), |runs| {
            let mean = runs.risk.mean.last().copied().unwrap_or(f64::NAN);
            match runs.diverged.len() {
                0 => format!("mean {} of {} runs", short(mean), runs.runs),
                lost => format!("mean {} of {} runs, {lost} diverged", short(mean), runs.runs),
            }
        });
        [
            way.label.clone(),
            way.end().map_or_else(|| "diverges".into(), short),
            when.map_or("–".into(), |t| format!("t = {t:.2}")),
            runs,
        ]
    });
    let align = [Align::Left, Align::Right, Align::Right, Align::Left];
    columns(align, [header.map(String::from)].into_iter().chain(rows))
}

fn figure(experiment: &Experiment, problem: &Problem, ways: &[Candidate]) -> Figure {
    let ends =
        || ways.iter().filter(|w| w.end().is_some()).flat_map(|w| w.path.risk.iter().copied());
    let (low, high) = ends().fold((f64::INFINITY, 0.0f64), |(a, b), r| (a.min(r), b.max(r)));
    let y = if low > 0.0 && high > LOG_FROM * low { Axis::log } else { Axis::linear };
    let time = || Axis::linear("time t = k/d");
    let mut risk = Chart::new("Risk")
        .subtitle(&format!("{}, d = {:.1}", problem.step.describe(), problem.modes.dim()))
        .x(time())
        .y(y("risk R(t)"));
    let mut clip = Chart::new("Threshold").x(time()).y(Axis::linear("threshold c(t)"));
    for (slot, way) in ways.iter().enumerate() {
        if let Some(runs) = way.runs.as_ref().filter(|_| way.end().is_some()) {
            let q = &runs.risk.quantiles;
            risk = risk.series(Series::band("", &runs.times, &q[0], &q[1]).slot(slot));
        }
    }
    for (slot, way) in ways.iter().enumerate().filter(|(_, way)| way.end().is_some()) {
        risk = risk.series(Series::line(&way.label, &way.path.times, &way.path.risk).slot(slot));
        let c: Vec<f64> = way.path.path.iter().flatten().map(|p| p.c).collect();
        if c.iter().any(|c| c.is_finite()) {
            clip = clip.series(Series::line(&way.label, &way.path.times, &c).slot(slot));
        }
    }
    Figure::new(&experiment.name).chart(risk).chart(clip).columns(2)
}

fn write(
    args: &Args,
    experiment: &Experiment,
    problem: &Problem,
    found: &Comparison,
) -> Result<Vec<String>> {
    let stem = args.experiment.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut files = Vec::new();
    for way in found.ways.iter().filter(|way| way.end().is_some()) {
        let path = args.out.join(format!("{stem}.schedule.{}.csv", way.key));
        files::write(&path, &way.table(problem.modes.dim()).csv()?)?;
        files.push(path.display().to_string());
    }
    let figure = figure(experiment, problem, &found.ways);
    for (extension, bytes) in plots::render(&figure)? {
        let path = args.out.join(format!("{stem}.schedule.{extension}"));
        files::write(&path, &bytes)?;
        files.push(path.display().to_string());
    }
    Ok(files)
}

fn to_json(experiment: &Experiment, found: &Comparison, verdict: &str, files: &[String]) -> Value {
    let level = found.ways.first().and_then(Candidate::end);
    let ways: Vec<Value> = found
        .ways
        .iter()
        .map(|way| {
            json!({
                "schedule": way.key,
                "label": way.label,
                "final_risk": way.end(),
                "stop": way.path.stop,
                "reaches_unclipped_at": level.filter(|_| way.key != "unclipped").and_then(|l| way.reaches(l)),
                "simulated_mean": way.runs.as_ref().and_then(|r| r.risk.mean.last()),
            })
        })
        .collect();
    json!({
        "name": experiment.name, "verdict": verdict, "schedules": ways, "notes": found.notes,
        "files": files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use toclip::dynamics::Counts;

    fn way(key: &'static str, label: &str, risk: &[f64], stop: Stop) -> Candidate {
        let path = Trajectory {
            times: (0..risk.len()).map(|k| k as f64).collect(),
            risk: risk.to_vec(),
            distance: risk.to_vec(),
            path: None,
            stop,
            counts: Counts::default(),
        };
        let same_rate = !matches!(key, "file" | "unclipped_slower");
        Candidate { key, label: label.into(), path, runs: None, same_rate }
    }

    #[test]
    fn the_verdict_follows_the_numbers() {
        let free = || way("unclipped", "unclipped", &[1.0, 0.6, 0.4], Stop::Finished);
        let best = way("max_ccc", "max-CCC", &[1.0, 0.0625, 0.1], Stop::Finished);
        let kappa = way("proportional_tuned", "κ = 0.3 (tuned)", &[1.0, 0.3, 0.11], Stop::Finished);
        let said = verdict(&[free(), best, kappa], 2.0);
        assert!(said.contains("at t = 2 already at t = 0.6; final risk 0.1 against 0.4"), "{said}");
        assert!(said.contains("κ = 0.3 (tuned) ends 10.0% above"), "{said}");
        let same = way("max_ccc", "max-CCC", &[1.0, 0.6, 0.4], Stop::Finished);
        assert!(verdict(&[free(), same], 2.0).starts_with("Clipping gains nothing"));
        // A constant threshold ends lower by its smaller rate: no reason to clip.
        let same = way("max_ccc", "max-CCC", &[1.0, 0.6, 0.4], Stop::Finished);
        let slow = way("file", "constant c = 1", &[1.0, 0.6, 0.2], Stop::Finished);
        assert!(verdict(&[free(), slow, same], 2.0).starts_with("Clipping gains nothing"));
        let gone = way("unclipped", "unclipped", &[], Stop::Diverged { t: 0.0 });
        let best = way("max_ccc", "max-CCC", &[1.0, 0.2], Stop::Finished);
        let said = verdict(&[gone, best], 2.0);
        assert!(said.starts_with("Clip. Unclipped SGD diverges at once"), "{said}");
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
            let way = found.ways.into_iter().find(|w| w.key == "proportional_tuned").unwrap();
            (way.end().unwrap(), way.label)
        };
        let unit = end(&text("[1.0, 0.5, 0.25]", 1.0, 0.2));
        let double = end(&text("[4.0, 2.0, 1.0]", 0.5, 0.05));
        assert!((unit.0 / double.0 - 1.0).abs() < 1e-6, "{unit:?} {double:?}");
        assert_eq!(unit.1, double.1);
    }
}
