//! The report of a fit: one folder with the page, the plots and the tables.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Fit, figures, wording};
use crate::output::numbers::short;
use crate::output::{ReportFolder, interrupt};
use crate::plot::Figure;
use crate::report::{Report, Section};
use crate::study::part;

/// Writes the folder, whole or not at all.
pub fn write(out: &Path, fit: &Fit, command: String, seconds: f64) -> Result<()> {
    interrupt::start_writing();
    let mut folder = ReportFolder::new(out)?;
    let (names, figures): (Vec<&str>, Vec<Figure>) = figures::all(fit).into_iter().unzip();
    let named: Vec<(String, &Figure)> = names.into_iter().map(String::from).zip(&figures).collect();
    let files = part::write(part::files(&named, &wording::tables(fit))?, &mut folder)?;
    let gaps = wording::gaps(fit);
    let gaps = gaps.iter().map(|[label, end, said]| format!("{label}: R = {end}; {said}."));
    let section = Section {
        id: "fit".into(),
        title: "What the fit shows".into(),
        settings: format!(
            "{} samples, d = {}, MSE = {}; {} passes",
            fit.rows,
            short(fit.dim),
            short(fit.residuals.mse),
            fit.band.runs
        ),
        figures,
        notes: std::iter::once(wording::GAPS.to_owned())
            .chain(gaps)
            .chain(fit.noise.notes.iter().map(|note| format!("Noise: {note}.")))
            .collect(),
        files,
        command,
        ..Section::default()
    };
    let report = Report {
        title: format!("To clip or not to clip: {}", fit.name),
        intro: wording::verdict(fit),
        sections: vec![section],
        corrections: Vec::new(),
        facts: wording::facts(fit)
            .into_iter()
            .chain([("toclip".into(), env!("CARGO_PKG_VERSION").into())])
            .collect(),
        timings: vec![("fit".into(), seconds)],
    };
    folder.write("report.html", crate::report::html(&report).as_bytes())?;
    let json = serde_json::to_string_pretty(&wording::json(fit))? + "\n";
    folder.write("fit.json", json.as_bytes())?;
    folder.finish().context("the report")?;
    Ok(())
}
