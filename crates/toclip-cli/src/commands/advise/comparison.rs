//! Several logs side by side.

use toclip_logs::{Action, LogPoint, median};
use toclip_words::percent;

use super::LogReport;
use crate::plot::{Axis, Chart, Figure, Series};
use toclip_words::short;

/// The columns of the table.
pub const HEAD: [&str; 7] =
    ["log", "steps", "last loss", "median norm", "spikes", "clips now", "verdict"];

/// A log as a row of the table.
pub fn row(report: &LogReport) -> [String; 7] {
    let (advice, analysis) = (&report.advice, &report.advice.analysis);
    let unknown = || "?".to_owned();
    // Single losses are noise.
    let losses = report.log.points.iter().rev().filter_map(LogPoint::finite_loss);
    let last_loss = median(losses.take(25).collect());
    let median = analysis.distribution.as_ref().map(|d| short(d.quantiles[3]));
    let clips = analysis.current.as_ref().map(|now| match now.threshold.is_finite() {
        true => format!("{} at {}", percent(now.fires.value), short(now.threshold)),
        false => "none".into(),
    });
    let threshold = advice.recommendation.threshold.map_or_else(String::new, short);
    let verdict = match advice.recommendation.action {
        Action::Keep => "keep".into(),
        Action::Guard => format!("guard at {threshold}"),
        Action::Clip => format!("clip at {threshold}"),
        Action::Remove => "stop clipping".into(),
        Action::LowerRate => "lower the rate".into(),
        Action::RollBack => "roll back".into(),
        Action::FixLoss => "fix the loss".into(),
        Action::FixLogging => "fix the logging".into(),
        _ => "cannot tell".to_owned(),
    };
    // The end of a path is what tells logs apart.
    let skip = report.name.chars().count().saturating_sub(40);
    [
        report.name.chars().skip(skip).collect(),
        analysis.points.to_string(),
        last_loss.map_or_else(unknown, short),
        median.unwrap_or_else(unknown),
        advice.spikes().len().to_string(),
        clips.unwrap_or_else(unknown),
        verdict,
    ]
}

/// Points of a curve; longer logs are drawn by medians.
const POINTS: usize = 300;

/// Losses and norms of all logs.
pub fn figure(reports: &[LogReport]) -> Figure {
    let mut loss = Chart::new("Loss").x(Axis::linear("step")).y(Axis::log("loss"));
    let mut norm =
        Chart::new("Gradient norm").x(Axis::linear("step")).y(Axis::log("gradient norm"));
    for (i, report) in reports.iter().take(8).enumerate() {
        let (steps, losses, norms) = super::figures::medians(&report.log.points, POINTS);
        let name = &report.name;
        loss = loss.series(Series::line(name, &steps, &losses).slot(i));
        norm = norm.series(Series::line(name, &steps, &norms).slot(i));
    }
    Figure::new("").chart(loss).chart(norm)
}
