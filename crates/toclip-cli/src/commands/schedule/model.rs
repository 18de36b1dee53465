//! Rates and thresholds for generalised linear models, tuned on the prediction.

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use toclip::Rule;
use toclip::dynamics::{Ode, Trajectory};
use toclip::model::Measures;
use toclip::policy::{Control, OpenLoop, Policy, Schedule, Shape};
use toclip::tuning::{RateShape, tune_clip, tune_rate};
use toclip::verdict::{Candidate, Comparison, End, JudgedBy, Rate, Threshold, Unclipped, Verdict};
use toclip_words::verdict::sentence;

use super::ScheduleComparison;
use crate::experiment::{Clip, Experiment, Method, Origin, Prepared};
use crate::output::Table;
use crate::output::terminal::columns;
use crate::plot::{Axis, Chart, Figure};
use toclip_words::percent;
use toclip_words::short;

/// A schedule and the path that it leads to.
struct Row {
    key: &'static str,
    label: String,
    policy: Arc<dyn Policy>,
    /// η and c at the start, in the coordinates of the theory; `None` for schedules of the file.
    start: Option<Control>,
    /// How the rate falls, where it is the best for its threshold.
    tuned: Option<RateShape>,
    path: Trajectory,
}

impl Row {
    fn measures(&self) -> &[Measures] {
        self.path.measures.as_deref().unwrap_or_default()
    }

    /// At the last time, if it got there.
    fn end(&self) -> Option<&Measures> {
        self.measures().last().filter(|_| self.path.stop.diverged_at().is_none())
    }

    fn verdict_end(&self) -> End {
        match self.end() {
            Some(end) => End::Risk(end.loss),
            None => End::Diverged(self.path.stop.diverged_at().unwrap_or(0.0)),
        }
    }
}

/// Compares the schedule of the file with the best constant and cosine rates, clipped and not.
pub fn comparison(mut experiment: Experiment, origin: &Origin) -> Result<ScheduleComparison> {
    // A method that is not checked: whether the batch has an ODE is checked below, with another message.
    experiment.methods = vec![Method::Unclipped];
    let problem = Prepared::new(&experiment, origin)?;
    let unknown = problem.averages_before_clipping();
    if unknown && experiment.clip.clips() {
        return Err(origin
            .error(
                "batch",
                "schedules are predicted by the ODE, which does not cover batches whose mean is clipped; \
                 use `toclip run` with methods = [\"sgd\"], rule = \"per_sample\" or clip = \"none\"",
            )
            .into());
    }
    let rows = compare(&experiment, &problem)?;
    let back = problem.rescaling().inverse();
    let (rate, threshold) = (|eta| back.learning_rate(eta), |c| back.threshold(c));
    let to_json = |row: &Row| {
        json!({
            "schedule": row.key,
            "label": row.label,
            "eta": row.start.map(|start| rate(start.eta)),
            "c": row.start.filter(|start| start.c.is_finite()).map(|start| threshold(start.c)),
            "final": row.end(),
            "stop": row.path.stop,
        })
    };
    let line = |row: &Row| {
        let or = |text: Option<String>| text.unwrap_or("–".into());
        let clip = |start: Control| {
            if start.c.is_finite() { short(threshold(start.c)) } else { "none".into() }
        };
        [
            row.label.clone(),
            or(row.start.map(|start| short(rate(start.eta)))),
            or(row.start.map(clip)),
            row.end().map_or("diverges".into(), |m| short(m.loss)),
            or(row.end().and_then(|m| m.error_rate).map(percent)),
            or(row.end().map(|m| format!("{:.1}°", m.angle.to_degrees()))),
        ]
    };
    let header = ["schedule", "η", "c", "final loss", "error rate", "angle"];
    let finished = rows.iter().filter(|row| row.end().is_some());
    let verdict = (!unknown).then(|| verdict(&rows, rate, threshold));
    let description = format!("{}, d = {}", describe(&problem), short(problem.problem.dim()));
    Ok(ScheduleComparison {
        lines: columns("llllll", header, rows.iter().map(line)),
        notes: Vec::new(),
        recommendation: verdict.as_ref().map_or_else(
            || {
                "No thresholds are compared: the ODE does not cover batches whose mean is clipped."
                    .into()
            },
            sentence,
        ),
        verdict,
        schedules: rows.iter().map(to_json).collect(),
        tables: finished.map(|row| (row.key, table(row, &problem))).collect(),
        figure: figure(&experiment.name, &description, &rows),
        name: experiment.name,
        problem: description,
    })
}

/// The model in words.
fn describe(problem: &Prepared) -> String {
    problem.problem.model().map_or("least squares".into(), |model| model.describe())
}

fn compare(experiment: &Experiment, prepared: &Prepared) -> Result<Vec<Row>> {
    let (problem, time) = (&prepared.compressed, experiment.time);
    let solve = |key, label: String, policy: Arc<dyn Policy>, shown: bool, tuned| -> Result<Row> {
        let ode = Ode::new(&problem.with_policy(policy.clone())?)?;
        let path = ode.tolerance(experiment.tolerance, 0.0).solve(&prepared.times)?;
        let start = shown.then(|| policy.at(0.0, 0.0));
        Ok(Row { key, label, policy, start, tuned, path })
    };
    let mut rows = Vec::new();
    for (shape, keys, name) in [
        (RateShape::Constant, ["unclipped", "clipped"], "best constant rate"),
        (RateShape::Cosine, ["unclipped_cosine", "clipped_cosine"], "best cosine rate"),
    ] {
        // Without clipping every rate may diverge.
        let open = tune_rate(problem, f64::INFINITY, shape, time).ok();
        let known = !prepared.averages_before_clipping();
        let clipped = known.then(|| tune_clip(problem, shape, time)).transpose()?;
        // An infinite threshold would repeat the row before.
        let clipped = clipped.filter(|tuned| tuned.c.is_finite());
        for (key, what, tuned) in
            [(keys[0], "unclipped", open), (keys[1], "best threshold", clipped)]
        {
            let Some(tuned) = tuned else { continue };
            let eta = shape.schedule(tuned.eta, time)?;
            let policy = OpenLoop::new(eta, Schedule::constant(tuned.c)?);
            rows.push(solve(key, format!("{what}, {name}"), Arc::new(policy), true, Some(shape))?);
        }
    }
    let constant = |schedule: &Schedule| matches!(schedule.shape(), Shape::Constant { .. });
    let clip = match &experiment.clip {
        Clip::Schedule(clip) => Some(clip),
        _ => None,
    };
    let constants = [experiment.learning_rate.schedule(), clip].into_iter().flatten().all(constant);
    rows.push(solve("file", "as in the file".into(), problem.shared_policy(), constants, None)?);
    Ok(rows)
}

/// Whether to clip and where, each at its best rate; rates and thresholds in the units of the user.
fn verdict(rows: &[Row], rate: impl Fn(f64) -> f64, threshold: impl Fn(f64) -> f64) -> Verdict {
    let tuned = rows.iter().filter_map(|row| {
        let (start, shape) = (row.start?, row.tuned?);
        let eta = rate(start.eta);
        let rate = match shape {
            RateShape::Constant => Rate::Best(eta),
            RateShape::Cosine => Rate::BestCosine(eta),
        };
        Some((row, start.c, rate))
    });
    let (clipped, open): (Vec<_>, Vec<_>) = tuned.partition(|(_, c, _)| c.is_finite());
    let loss = |row: &Row| row.end().map_or(f64::INFINITY, |end| end.loss);
    let open = open.into_iter().min_by(|a, b| loss(a.0).total_cmp(&loss(b.0)));
    let unclipped = match open {
        Some((row, _, rate)) => Unclipped { rate, end: row.verdict_end() },
        // Without clipping every rate diverges.
        None => Unclipped { rate: Rate::Best(0.0), end: End::Diverged(0.0) },
    };
    let candidate = |(row, c, rate): (&Row, f64, Rate)| Candidate {
        name: row.key,
        rule: Rule::Clip,
        threshold: Threshold::At(threshold(c)),
        rate,
        end: row.verdict_end(),
    };
    Comparison {
        judged_by: JudgedBy::Loss,
        start: rows.iter().find_map(|row| row.measures().first()).map_or(f64::INFINITY, |m| m.loss),
        unclipped: Some(unclipped),
        candidates: clipped.into_iter().map(candidate).collect(),
    }
    .verdict()
}

fn figure(name: &str, subtitle: &str, rows: &[Row]) -> Figure {
    let chart = |title: &str, of: &dyn Fn(&Measures) -> Option<f64>| {
        let empty = Chart::new(title).x(Axis::linear("time t = k/d")).y(Axis::linear(title));
        rows.iter().enumerate().fold(empty, |chart, (i, row)| {
            let pairs = row.path.times.iter().zip(row.measures());
            let (t, y): (Vec<f64>, Vec<f64>) =
                pairs.filter_map(|(t, m)| Some((*t, of(m)?))).unzip();
            let draw = if i % 2 == 0 { Chart::line } else { Chart::dashed };
            draw(chart, &row.label, &t, &y)
        })
    };
    Figure::new(name)
        .chart(chart("loss", &|m| Some(m.loss)).subtitle(subtitle))
        .chart(chart("angle to the teacher (degrees)", &|m| Some(m.angle.to_degrees())))
        .columns(2)
}

/// The table of a schedule.
fn table(row: &Row, prepared: &Prepared) -> Table {
    let (dim, back) = (prepared.problem.dim(), prepared.rescaling().inverse());
    let along = |of: &dyn Fn(Control) -> f64| -> Vec<f64> {
        row.path.times.iter().map(|t| of(row.policy.at(*t, 0.0))).collect()
    };
    let eta = along(&|control| back.learning_rate(control.eta));
    let c = along(&|control| back.threshold(control.c));
    super::table([row.path.times.clone(), eta, c], dim)
        .numbers("loss", row.measures().iter().map(|m| m.loss))
        .numbers("error_rate", row.measures().iter().map(|m| m.error_rate))
        .numbers("angle", row.measures().iter().map(|m| m.angle))
}
