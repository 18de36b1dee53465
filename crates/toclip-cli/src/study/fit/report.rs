//! The report of a fit: one folder with the page, the plots and the tables.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Fit, figures, wording};
use crate::output::numbers::short;
use crate::output::{ReportFolder, Table, interrupt};
use crate::plot::Figure;
use crate::report::{Report, Section};
use crate::study::figure_section;

/// What a report of a fit shows, whatever was fitted.
pub struct Contents {
    /// The name of the samples.
    pub name: String,
    pub verdict: Vec<String>,
    /// Samples, features and runs in one line.
    pub settings: String,
    /// With the names of their files.
    pub figures: Vec<(&'static str, Figure)>,
    pub tables: Vec<(String, Table)>,
    pub notes: Vec<String>,
    pub facts: Vec<(String, String)>,
    pub json: Value,
}

impl Contents {
    pub fn new(fit: &Fit) -> Self {
        let gaps = wording::gaps(fit);
        let gaps = gaps.iter().map(|[label, end, said]| format!("{label}: R = {end}; {said}."));
        Contents {
            name: fit.data.name.clone(),
            verdict: wording::verdict(fit),
            settings: format!(
                "{} samples, d = {}, MSE = {}; {} passes",
                fit.data.rows,
                short(fit.data.dim),
                short(fit.residuals.mse),
                fit.band.runs
            ),
            figures: figures::all(fit),
            tables: wording::tables(fit),
            notes: std::iter::once(wording::GAPS.to_owned())
                .chain(gaps)
                .chain(fit.noise.notes.iter().map(|note| format!("Noise: {note}.")))
                .collect(),
            facts: wording::facts(fit),
            json: wording::json(fit),
        }
    }

    /// Writes the folder, whole or not at all.
    pub fn write(self, out: &Path, command: String, seconds: f64) -> Result<()> {
        interrupt::start_writing();
        let mut folder = ReportFolder::new(out)?;
        let (names, figures): (Vec<&str>, Vec<Figure>) = self.figures.into_iter().unzip();
        let named: Vec<(String, &Figure)> =
            names.into_iter().map(String::from).zip(&figures).collect();
        let files =
            figure_section::write(figure_section::files(&named, &self.tables)?, &mut folder)?;
        let section = Section {
            id: "fit".into(),
            title: "What the fit shows".into(),
            settings: self.settings,
            figures,
            notes: self.notes,
            files,
            command,
            ..Section::default()
        };
        let report = Report {
            title: format!("To clip or not to clip: {}", self.name),
            takeaway: self.verdict,
            sections: vec![section],
            facts: self
                .facts
                .into_iter()
                .chain([("toclip".into(), env!("CARGO_PKG_VERSION").into())])
                .collect(),
            timings: vec![("fit".into(), seconds)],
            ..Report::default()
        };
        folder.write("report.html", crate::report::html(&report).as_bytes())?;
        let json = serde_json::to_string_pretty(&self.json)? + "\n";
        folder.write("fit.json", json.as_bytes())?;
        folder.finish().context("the report")?;
        Ok(())
    }
}
