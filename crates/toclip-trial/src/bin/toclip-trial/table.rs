//! The results as text: for the terminal, as Markdown, as CSV.

use std::fmt::Write;

use toclip_cli::output::Table;
use toclip_trial::Contender;
use toclip_words::short;

use crate::results::{Difference, Entry, Results, Row};

/// A ratio in two or three digits, and in more near one, where they tell better from worse.
fn ratio(x: f64) -> String {
    match x {
        x if x < 1e-3 => format!("{x:.0e}"),
        x if x < 0.1 || (0.95..1.05).contains(&x) => format!("{x:.3}"),
        x if x < 10.0 => format!("{x:.2}"),
        x if x < 1000.0 => format!("{x:.0}"),
        x => format!("{x:.0e}"),
    }
}

fn mark(entry: &Entry) -> char {
    match entry.difference() {
        Difference::Better => '+',
        Difference::Worse => '-',
        Difference::Same => ' ',
    }
}

/// Explains the numbers.
fn caption(results: &Results) -> String {
    let effort = &results.effort;
    format!(
        "Final excess risk over that of unclipped SGD on the same runs (geometric mean of {} runs of \
         {} steps, {:.0}% intervals; learning rates tuned for each rule on {} other runs each).",
        effort.runs,
        effort.steps,
        100.0 * results.confidence,
        effort.tuning
    )
}

/// For the terminal: `+` better than unclipped, `-` worse, nothing where the interval holds one.
pub fn terminal(results: &Results) -> String {
    let rules = results.rules();
    let mut text =
        caption(results) + "\nBelow one is better; + and - where the interval leaves one out.\n\n";
    // Names in two lines, so that the table fits a terminal.
    let halves = |rule: &Contender| rule.name().split_once(' ').unwrap_or((rule.name(), ""));
    let mut heading = |first: [&str; 2], part: &dyn Fn(&Contender) -> &'static str| {
        let _ = write!(text, "{:<16}{:>10}", first[0], first[1]);
        for rule in rules.iter().skip(1) {
            let _ = write!(text, "{:>10}", part(rule));
        }
        text.push('\n');
    };
    heading(["", "unclipped"], &|rule| halves(rule).0);
    heading(["problem / B", "risk"], &|rule| halves(rule).1);
    for row in &results.rows {
        let risk = row.entries.first().map(|e| short(e.risk.mean)).unwrap_or_default();
        let _ = write!(text, "{:<16}{risk:>10}", row.problem);
        for entry in row.entries.iter().skip(1) {
            let _ = write!(text, "{:>8} {}", ratio(entry.ratio.mean), mark(entry));
        }
        text.push('\n');
    }
    let mut line = |name: &str, cell: &dyn Fn([usize; 3], f64) -> String| {
        let _ = write!(text, "{name:<26}");
        for rule in rules.iter().skip(1) {
            let (counts, mean) = results.score(*rule);
            let _ = write!(text, "{:>8}  ", cell(counts, mean));
        }
        text.push('\n');
    };
    line("better / worse", &|c, _| format!("{}/{}", c[0], c[2]));
    line("geometric mean", &|_, mean| ratio(mean));
    text + &remarks(results)
}

/// Where tuning ended at the edge of its grid, and where runs diverged.
fn remarks(results: &Results) -> String {
    let mut text = String::new();
    for row in &results.rows {
        for entry in &row.entries {
            let (name, rule) = (&row.problem, entry.cell.contender.name());
            if entry.cell.at_edge {
                let _ = writeln!(
                    text,
                    "{name}, {rule}: the best learning rate, {}, is at the edge of the grid",
                    short(entry.cell.eta)
                );
            }
            if entry.cell.diverged > 0 {
                let runs = entry.cell.log_risk.len();
                let _ = writeln!(
                    text,
                    "{name}, {rule}: {} of {runs} runs diverged",
                    entry.cell.diverged
                );
            }
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// A Markdown table with every interval; bold where it leaves one out on the good side, italic on
/// the bad.
pub fn markdown(results: &Results) -> String {
    let rules = results.rules();
    let mut text = caption(results)
        + "\n**Bold**: better than unclipped; *italic*: worse.\n\n| problem | B | unclipped risk |";
    for rule in rules.iter().skip(1) {
        let _ = write!(text, " {} |", rule.name());
    }
    text += "\n|---|--:|--:|";
    text += &"--:|".repeat(rules.len().saturating_sub(1));
    text.push('\n');
    for row in &results.rows {
        let risk = row.entries.first().map(|e| e.risk);
        let risk = risk.map(|r| format!("{} ({}–{})", short(r.mean), short(r.low), short(r.high)));
        let _ = write!(text, "| {} | {} | {} |", row.group, row.batch, risk.unwrap_or_default());
        for entry in row.entries.iter().skip(1) {
            let r = entry.ratio;
            let around = match entry.difference() {
                Difference::Better => "**",
                Difference::Worse => "*",
                Difference::Same => "",
            };
            let mean = ratio(r.mean);
            // A rule that never acted did the same to the last bit.
            let ends = match r.low == r.high {
                true => String::new(),
                false => format!(" ({}–{})", ratio(r.low), ratio(r.high)),
            };
            let _ = write!(text, " {around}{mean}{around}{ends} |");
        }
        text.push('\n');
    }
    let mut line = |name: &str, cell: &dyn Fn([usize; 3], f64) -> String| {
        let _ = write!(text, "| {name} | | |");
        for rule in rules.iter().skip(1) {
            let (counts, mean) = results.score(*rule);
            let _ = write!(text, " {} |", cell(counts, mean));
        }
        text.push('\n');
    };
    line("better / no difference / worse", &|c, _| format!("{} / {} / {}", c[0], c[1], c[2]));
    line("geometric mean", &|_, mean| ratio(mean));
    text
}

/// One row for each problem and rule.
pub fn csv(results: &Results) -> Table {
    let all: Vec<(&Row, &Entry)> = results
        .rows
        .iter()
        .flat_map(|row| row.entries.iter().map(move |entry| (row, entry)))
        .collect();
    let number = |of: fn(&Entry) -> f64| all.iter().map(|(_, e)| of(e)).collect::<Vec<f64>>();
    let count = |of: fn(&Entry) -> u64| all.iter().map(|(_, e)| of(e)).collect::<Vec<u64>>();
    let mean = |e: &Entry| e.cell.log_risk.iter().map(|x| x.exp()).sum::<f64>();
    Table::default()
        .text("problem", all.iter().map(|(row, _)| row.group))
        .counts("batch", all.iter().map(|(row, _)| row.batch as u64))
        .text("rule", all.iter().map(|(_, e)| e.cell.contender.name()))
        .numbers("eta", number(|e| e.cell.eta))
        .text("at_edge", all.iter().map(|(_, e)| e.cell.at_edge.to_string()))
        .numbers("risk", number(|e| e.risk.mean))
        .numbers("risk_low", number(|e| e.risk.low))
        .numbers("risk_high", number(|e| e.risk.high))
        .numbers("ratio", number(|e| e.ratio.mean))
        .numbers("ratio_low", number(|e| e.ratio.low))
        .numbers("ratio_high", number(|e| e.ratio.high))
        .numbers("mean_risk", all.iter().map(|(_, e)| mean(e) / e.cell.log_risk.len() as f64))
        .counts("runs", count(|e| e.cell.log_risk.len() as u64))
        .counts("diverged", count(|e| e.cell.diverged as u64))
        .numbers("clipped", number(|e| e.cell.clipped))
        .numbers("acted", number(|e| e.cell.acted))
        .numbers("began", all.iter().map(|(_, e)| e.cell.began))
        .numbers("shrunk", number(|e| e.cell.shrunk))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toclip_trial::{Effort, Measurement, Problem};

    fn cell(rule: Contender, log_risk: [f64; 3]) -> Measurement {
        serde_json::from_value(json!({
            "problem": "gaussian/8", "rule": rule, "eta": 0.5, "at_edge": rule == Contender::Fixed,
            "log_risk": log_risk, "diverged": u8::from(rule == Contender::Huber), "clipped": 0.5,
            "acted": 1.0, "began": null, "shrunk": 0.9,
        }))
        .unwrap()
    }

    fn results() -> Results {
        let mut problems = Problem::standard().unwrap();
        problems.retain(|p| p.name() == "gaussian/8");
        let rules = [Contender::Unclipped, Contender::Fixed, Contender::Huber, Contender::ZClip];
        let cells = vec![
            cell(Contender::ZClip, [0.0, 1.0, 2.0]),
            cell(Contender::Fixed, [0.7, 1.71, 2.69]),
            cell(Contender::Unclipped, [0.0, 1.0, 2.0]),
            cell(Contender::Huber, [-0.7, 0.31, 1.31]),
        ];
        Results::new(&problems, &rules, cells, Effort::quick(1), 0.9).unwrap()
    }

    #[test]
    fn better_worse_and_the_same_are_marked() {
        let results = results();
        let text = terminal(&results);
        let row = text.lines().find(|l| l.starts_with("gaussian/8")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["gaussian/8", "2.718", "2.01", "-", "0.50", "+", "1.000"]);
        assert!(text.contains("gaussian/8, fixed 1: the best learning rate, 0.5, is at the edge"));
        assert!(text.contains("gaussian/8, huber: 1 of 3 runs diverged"));
        let text = markdown(&results);
        let row = text.lines().find(|l| l.starts_with("| gaussian")).unwrap();
        assert!(row.contains("| *2.01* (1.98–2.05) | **0.50** (0.50–0.50) | 1.000 |"), "{row}");
        assert!(text.contains("| 0 / 0 / 1 | 1 / 0 / 0 | 0 / 1 / 0 |"), "{text}");
    }

    #[test]
    fn a_missing_cell_is_named() {
        let problems = Problem::standard().unwrap();
        let effort = Effort::quick(1);
        let error = Results::new(&problems, &[Contender::Unclipped], Vec::new(), effort, 0.9);
        assert!(error.unwrap_err().to_string().contains("unclipped on none/1 is missing"));
    }

    #[test]
    fn ratios_have_the_digits_that_matter() {
        let said = [3e-5, 0.0123, 0.456, 0.996, 1.2, 45.6, 3e6].map(ratio);
        assert_eq!(said, ["3e-5", "0.012", "0.46", "0.996", "1.20", "46", "3e6"]);
    }
}
