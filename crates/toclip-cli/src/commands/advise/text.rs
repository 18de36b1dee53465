//! The answers on a terminal.

use std::fmt::Write;

use toclip::monitor::Interval;
use toclip_logs::advise::Action;

use super::Read1;
use crate::words::short;

const WIDTH: usize = 96;

/// One log.
pub fn of(one: &Read1) -> String {
    let (log, advised) = (&one.log, &one.advised);
    let mut out = format!("{}\n", one.name);
    let (from, to) = advised.steps;
    let _ = writeln!(
        out,
        "  {}: {} norms, steps {} to {}",
        log.reading.format,
        advised.points,
        short(from),
        short(to)
    );
    wrap(&mut out, "  ", &columns(one));
    for finding in &advised.findings {
        wrap(&mut out, "  ! ", &finding.sentence());
    }
    for (i, answer) in advised.answers().iter().enumerate() {
        let _ = writeln!(out, "\n{}. {}", i + 1, answer.title);
        answer.text.iter().for_each(|text| wrap(&mut out, "   ", text));
    }
    for code in &advised.recommendation.code {
        let _ = writeln!(out, "   {:<13} {}", code.framework, code.line);
    }
    if !advised.comparison.is_empty() {
        out.push_str("\n5. What other rules would have done on this log\n");
        let _ = writeln!(
            out,
            "   {:<31} {:>7} {:>10} {:>24}",
            "rule", "fires", "mean step", "CCC (interval)"
        );
        for rule in &advised.comparison {
            let ccc = interval(&rule.ccc);
            let _ = writeln!(
                out,
                "   {:<31} {:>6.1}% {:>9.1}% {ccc:>24}",
                rule.rule,
                100.0 * rule.fires,
                100.0 * rule.step_factor
            );
        }
    }
    out.push('\n');
    out
}

/// A number with its interval: three decimals, or powers of ten where it is large.
pub fn interval(i: &Interval) -> String {
    let one = |x: f64| match x.is_finite() && x.abs() < 1e4 {
        true => format!("{x:.3}"),
        false => format!("{x:.2e}"),
    };
    format!("{} ({} to {})", one(i.value), one(i.low), one(i.high))
}

/// Which columns were taken, and which could have been.
pub fn columns(one: &Read1) -> String {
    let taken = one.log.reading.columns.iter().map(|column| {
        let others = match column.others.is_empty() {
            true => String::new(),
            false => format!(" (could also be `{}`)", column.others.join("`, `")),
        };
        format!("{} `{}`{others}", column.role.words(), column.name)
    });
    format!("Columns: {}.", taken.collect::<Vec<_>>().join(", "))
}

/// Several logs in a line each.
pub fn side_by_side(logs: &[Read1]) -> String {
    let mut out = String::from("Side by side\n");
    let width = logs.iter().map(|l| l.name.chars().count()).max().unwrap_or(0).min(44);
    for one in logs {
        let count = one.name.chars().count();
        let name: String = one.name.chars().skip(count.saturating_sub(width)).collect();
        let _ = writeln!(out, "  {name:<width$}  {}", line(one));
    }
    out.push('\n');
    out
}

/// One log in a line.
pub fn line(one: &Read1) -> String {
    let now = one.advised.current.as_ref().map_or("threshold unknown".into(), |now| {
        format!("{} fires at {:.1}%", short(now.threshold), 100.0 * now.fires.value)
    });
    let median = one.advised.law.as_ref().map_or("?".into(), |law| short(law.quantiles[3]));
    let advice = match one.advised.recommendation.action {
        Action::Clip => format!("clip at {}", threshold(one)),
        Action::Loosen => format!("clip less, at {}", threshold(one)),
        Action::Keep => "keep".into(),
        Action::LogBeforeClipping => "log before clipping".into(),
        _ => "not enough evidence".into(),
    };
    format!("median norm {median}, {now}: {advice}")
}

fn threshold(one: &Read1) -> String {
    one.advised.recommendation.threshold.map_or("?".into(), short)
}

/// Writes a paragraph, broken between words; lines after the first are set in as far.
fn wrap(out: &mut String, indent: &str, text: &str) {
    let mut column = indent.chars().count();
    let inner = " ".repeat(column);
    out.push_str(indent);
    let mut start = true;
    for word in text.split(' ') {
        let length = word.chars().count();
        if !start && column + 1 + length > WIDTH {
            let _ = write!(out, "\n{inner}");
            column = inner.len();
            start = true;
        }
        if !start {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        start = false;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_gains_are_powers_of_ten() {
        let i = Interval { value: 1.2e8, low: 1.5, high: f64::INFINITY };
        assert_eq!(interval(&i), "1.20e8 (1.500 to inf)");
    }

    #[test]
    fn paragraphs_are_broken_between_words() {
        let mut out = String::new();
        wrap(&mut out, "  ! ", &"word ".repeat(60));
        assert!(out.lines().count() >= 3);
        assert!(out.lines().all(|l| l.chars().count() <= WIDTH));
        assert!(out.lines().nth(1).is_some_and(|l| l.starts_with("    word")));
    }
}
