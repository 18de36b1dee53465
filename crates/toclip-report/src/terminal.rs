//! The report as a table for the terminal.

use super::Report;
use super::math::plain;
use std::time::Duration;
use toclip_words::duration;

/// Wide enough to read, narrow enough for the usual terminal and for a mail.
const WIDTH: usize = 80;
const GAP: usize = 2;

/// Claims, measured figures and verdicts, and the tally.
pub fn render(report: &Report) -> String {
    let mut out = wrap(&report.title, WIDTH).join("\n") + "\n";
    if report.claims().next().is_some() {
        out.push('\n');
        out.push_str(&table(report));
    }
    out.push_str(&format!("\n{}", report.tally()));
    if !report.timings.is_empty() {
        let total = report.timings.iter().map(|t| t.1).sum();
        out.push_str(&format!(" Time: {}.", duration(Duration::from_secs_f64(total))));
    }
    out.push('\n');
    out
}

fn table(report: &Report) -> String {
    let ids = report.claims().map(|(section, _)| section.id.chars().count());
    let first = ids.max().unwrap_or(0).clamp("figure".len(), 16);
    let verdict = "✓ differs".chars().count();
    let rest = WIDTH - first - verdict - 3 * GAP;
    // The claim is a sentence, the measurement mostly numbers.
    let widths = [first, verdict, rest * 6 / 11, rest - rest * 6 / 11];
    let mut out = row(widths, ["figure", "", "claim", "measured"]);
    out.push_str(&format!("{}\n", "─".repeat(WIDTH)));
    let mut last = None;
    for (section, claim) in report.claims() {
        // A section is named once.
        let id = if last == Some(&section.id) { "" } else { &section.id };
        last = Some(&section.id);
        let outcome = format!("{} {}", claim.verdict.mark(), claim.verdict.word());
        out.push_str(&row(widths, [id, &outcome, &plain(&claim.paper), &plain(&claim.measured)]));
    }
    out
}

/// One row, as many lines high as its highest cell.
fn row(widths: [usize; 4], cells: [&str; 4]) -> String {
    let mut columns = widths.iter().zip(cells).map(|(width, cell)| wrap(cell, *width));
    let columns: [Vec<String>; 4] = std::array::from_fn(|_| columns.next().unwrap_or_default());
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut out = String::new();
    for i in 0..height {
        let line: String = columns
            .iter()
            .zip(widths)
            .map(|(lines, width)| {
                let text = lines.get(i).map_or("", String::as_str);
                format!("{text:<0$}", width + GAP)
            })
            .collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Breaks between words, and inside a word that is wider than the column. Control characters,
/// which could move the cursor, are shown as a blank.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + letters.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.extend(letters.chunks(width).map(String::from_iter)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample;

    #[test]
    fn every_claim_stands_in_the_table_within_its_width() {
        for report in [sample::report(), sample::hostile(), Report::default()] {
            let text = render(&report);
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
            assert!(!text.contains('\u{1b}'), "no escape reaches the terminal");
            assert!(text.contains(&report.tally()));
            let outcomes = text.matches("✓ holds").count() + text.matches("✗ fails").count();
            assert_eq!(outcomes + text.matches("≠ differs").count(), report.claims().count());
        }
        let text = render(&sample::report());
        for measured in ["inside at 97 % of times", "2.52 at c = 2.03", "slope −0.31 ± 0.02"] {
            assert!(text.contains(measured), "{text}");
        }
    }

    #[test]
    fn words_are_kept_whole_where_they_fit() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert!(wrap(" ", 3).is_empty());
    }
}
