//! The report as a table for the terminal.
use super::Report;

/// Claims, measured figures and verdicts.
pub fn render(report: &Report) -> String {
    report.tally()
}
