//! The advice on a terminal: the verdict, three reasons and the code; everything else with --verbose.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use toclip_logs::{Because, Tone};

use super::{LogReport, comparison, options_to_add};
use crate::output::terminal::{Screen, columns};
use crate::report::wrap;
use toclip_words::{percent, short};

/// All logs one after another, and a table that compares them if there are several.
pub fn of(reports: &[LogReport], verbose: bool, screen: &Screen) -> String {
    let mut out: Vec<String> = reports.iter().map(|report| one(report, verbose, screen)).collect();
    if reports.len() > 1 {
        let rows = reports.iter().map(comparison::row);
        out.push(format!("Comparison\n{}", columns("lrrrrrl", comparison::HEAD, rows)));
    }
    out.join("\n")
}

fn one(report: &LogReport, verbose: bool, screen: &Screen) -> String {
    let verdict = &report.verdict;
    let mut page = TextPage { text: String::new(), width: screen.width };
    page.line(&screen.paint(Style::new().bold(), &report.name));
    page.paragraph("", &source(report));
    page.line("");
    let (tag, colour) = match verdict.tone {
        Tone::Act => ("DO THIS", AnsiColor::Yellow),
        Tone::Leave => ("LEAVE IT", AnsiColor::Green),
        _ => ("CANNOT TELL", AnsiColor::Blue),
    };
    let style = colour.on_default().bold();
    let headline = wrap(&format!("{tag}: {}", verdict.headline), screen.width);
    headline.iter().for_each(|line| page.line(&screen.paint(style, line)));
    for reason in &verdict.reasons {
        page.paragraph("  • ", reason);
    }
    if let Some(code) = &verdict.code {
        page.line("");
        page.line(&format!("{}:", code.framework.name()));
        code.lines.iter().for_each(|line| page.line(&format!("    {line}")));
    }
    if let Some((text, runs)) = verdict.experiment.split_first() {
        page.line("");
        page.paragraph("", text);
        runs.iter().for_each(|run| page.paragraph("  • ", run));
    }
    let others = other_findings(report);
    if !others.is_empty() {
        page.line("");
        page.line("Also found:");
        others.iter().for_each(|sentence| page.paragraph("  • ", sentence));
    }
    if verbose {
        page.details(report);
    }
    let options = options_to_add(report);
    let more = (!verbose).then_some("--verbose shows the numbers behind this.");
    let last: Vec<&str> = options.as_deref().into_iter().chain(more).collect();
    if !last.is_empty() {
        page.line("");
        page.paragraph("", &last.join(" "));
    }
    page.text
}

/// Findings that are not among the reasons.
pub fn other_findings(report: &LogReport) -> Vec<String> {
    let advice = &report.advice;
    let shown = &advice.recommendation.because[..];
    let shown: Vec<usize> = shown
        .iter()
        .take(report.verdict.reasons.len())
        .filter_map(|because| match because {
            Because::Finding(index) => Some(*index),
            _ => None,
        })
        .collect();
    let others = advice.findings.iter().enumerate().filter(|(i, _)| !shown.contains(i));
    others.map(|(_, finding)| finding.sentence()).collect()
}

/// How the log was read, in a line.
pub fn source(report: &LogReport) -> String {
    let (log, analysis) = (&report.log, &report.advice.analysis);
    let (from, to) = (short(analysis.steps.0), short(analysis.steps.1));
    let used = log.summary.columns.iter().map(|column| {
        let others = match column.others.is_empty() {
            true => String::new(),
            false => format!(" (or `{}`)", column.others.join("`, `")),
        };
        format!("{} `{}`{others}", column.role.name(), column.name)
    });
    let used = used.collect::<Vec<_>>().join(", ");
    match analysis.points {
        0 => format!("{}, no finite norm; {used}", log.summary.format),
        n => format!("{}, {n} norms, steps {from} to {to}; {used}", log.summary.format),
    }
}

/// Lines of limited width.
struct TextPage {
    text: String,
    width: usize,
}

impl TextPage {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{line}");
    }

    /// Writes a paragraph; further lines are indented as far as the first.
    fn paragraph(&mut self, indent: &str, text: &str) {
        let hanging = " ".repeat(indent.chars().count());
        for (i, line) in wrap(text, self.width - hanging.len()).iter().enumerate() {
            self.line(&format!("{}{line}", if i == 0 { indent } else { &hanging }));
        }
    }

    fn details(&mut self, report: &LogReport) {
        for section in report.advice.details() {
            self.line("");
            self.line(section.title);
            section.text.iter().for_each(|text| self.paragraph("  ", text));
        }
        let rules = &report.advice.analysis.comparison;
        if rules.is_empty() {
            return;
        }
        self.line("");
        self.line("What other rules would have done to these norms");
        let rows = rules
            .iter()
            .map(|rule| [rule.rule.clone(), percent(rule.fires), percent(rule.step_factor)]);
        self.text += &columns("lrr", ["rule", "clips", "mean step"], rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_between_words() {
        let mut page = TextPage { text: String::new(), width: 70 };
        page.paragraph("  • ", &"word ".repeat(60));
        assert!(page.text.lines().count() >= 3);
        assert!(page.text.lines().all(|l| l.chars().count() <= 70));
        assert!(page.text.lines().nth(1).is_some_and(|l| l.starts_with("    word")));
    }
}
