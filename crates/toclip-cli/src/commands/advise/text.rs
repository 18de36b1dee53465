//! The advice on a terminal.

use std::fmt::Write;

use toclip_logs::Action;

use super::{LogReport, options_to_add};
use crate::output::numbers::short;
use crate::report::wrap;

const WIDTH: usize = 96;

/// All logs one after another, and one line each if there are several.
pub fn of(reports: &[LogReport]) -> String {
    let mut out: Vec<String> = reports.iter().map(one).collect();
    if reports.len() > 1 {
        let width = reports.iter().map(|l| l.name.chars().count()).max().unwrap_or(0).min(44);
        let line = |report: &LogReport| {
            let skip = report.name.chars().count().saturating_sub(width);
            let name: String = report.name.chars().skip(skip).collect();
            format!("  {name:<width$}  {}\n", summary(report))
        };
        out.push(format!("Summary\n{}", reports.iter().map(line).collect::<String>()));
    }
    out.join("\n")
}

fn one(report: &LogReport) -> String {
    let (log, advice) = (&report.log, &report.advice);
    let (from, to) = (short(advice.steps.0), short(advice.steps.1));
    let mut out = format!(
        "{}\n  {}: {} norms, steps {from} to {to}\n",
        report.name, log.summary.format, advice.points
    );
    paragraph(&mut out, "  ", &columns(report));
    for finding in &advice.findings {
        paragraph(&mut out, "  ! ", &finding.sentence());
    }
    for (i, answer) in advice.answers().iter().enumerate() {
        let _ = writeln!(out, "\n{}. {}", i + 1, answer.title);
        answer.text.iter().for_each(|text| paragraph(&mut out, "   ", text));
    }
    for code in &advice.recommendation.wording.code {
        let _ = writeln!(out, "   {:<13} {}", code.framework, code.line);
    }
    if let Some(options) = options_to_add(report) {
        paragraph(&mut out, "   ", &options);
    }
    if !advice.comparison.is_empty() {
        out.push_str("\n5. What other rules would have done on this log\n");
        let _ = writeln!(out, "   {:<31} {:>7} {:>10}   CCC", "rule", "clips", "mean step");
        for rule in &advice.comparison {
            let (clips, step) = (100.0 * rule.fires, 100.0 * rule.step_factor);
            let ccc = advice.interval(&rule.ccc);
            let _ = writeln!(out, "   {:<31} {clips:>6.1}% {step:>9.1}%   {ccc}", rule.rule);
        }
    }
    out
}

/// The columns in use, and the alternatives.
pub fn columns(report: &LogReport) -> String {
    let used = report.log.summary.columns.iter().map(|column| {
        let others = match column.others.is_empty() {
            true => String::new(),
            false => format!(" (or `{}`)", column.others.join("`, `")),
        };
        format!("{} `{}`{others}", column.role.name(), column.name)
    });
    format!("Columns: {}.", used.collect::<Vec<_>>().join(", "))
}

/// A log in one line.
pub fn summary(report: &LogReport) -> String {
    let (advice, recommendation) = (&report.advice, &report.advice.recommendation);
    let now = advice.current.as_ref().map_or("threshold unknown".into(), |now| {
        format!("{} clips {}", short(now.threshold), toclip::percent(now.fires.value))
    });
    let median = advice.distribution.as_ref().map_or("?".into(), |d| short(d.quantiles[3]));
    let threshold = recommendation.threshold.map_or("?".into(), short);
    let action = match recommendation.action {
        Action::Clip => format!("clip at {threshold}"),
        Action::Loosen => format!("clip less, at {threshold}"),
        Action::Keep => "keep".into(),
        Action::LogBeforeClipping => "log before clipping".into(),
        _ => "not enough evidence".into(),
    };
    format!("median norm {median}, {now}: {action}")
}

/// Writes a paragraph; further lines are indented as far as the first.
fn paragraph(out: &mut String, indent: &str, text: &str) {
    let hanging = " ".repeat(indent.chars().count());
    for (i, line) in wrap(text, WIDTH - hanging.len()).iter().enumerate() {
        let _ = writeln!(out, "{}{line}", if i == 0 { indent } else { &hanging });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_between_words() {
        let mut out = String::new();
        paragraph(&mut out, "  ! ", &"word ".repeat(60));
        assert!(out.lines().count() >= 3);
        assert!(out.lines().all(|l| l.chars().count() <= WIDTH));
        assert!(out.lines().nth(1).is_some_and(|l| l.starts_with("    word")));
    }
}
