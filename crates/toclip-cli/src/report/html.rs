//! The report as one HTML file.
use super::Report;

/// One self-contained page.
pub fn render(report: &Report) -> String {
    format!("<!doctype html><title>{}</title>", report.title)
}
