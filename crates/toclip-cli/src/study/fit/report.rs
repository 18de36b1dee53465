//! The report of a fit: on the terminal, or one folder with the page, the plots and the tables.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::output::terminal::columns;
use crate::output::{ReportFolder, Table, interrupt};
use crate::plot::Figure;
use crate::report::{Report, Section};
use crate::study::figure_section;

/// The result of a fit of any model, in words, plots, tables and JSON.
pub struct FitReport {
    /// The name of the samples.
    pub name: String,
    pub verdict: Vec<String>,
    /// Samples, features and runs in one line.
    pub settings: String,
    /// Names and values.
    pub facts: Vec<[String; 2]>,
    /// The end of the pass as lines for the terminal, where there is more than one number.
    pub ends: Option<String>,
    /// How far the runs are from the predictions: a heading, and three columns.
    pub gaps: (&'static str, Vec<[String; 3]>),
    pub notes: Vec<String>,
    /// With the names of their files.
    pub figures: Vec<(&'static str, Figure)>,
    pub tables: Vec<(String, Table)>,
    pub json: Value,
}

impl FitReport {
    /// The lines for the terminal.
    pub fn text(&self) -> String {
        let (heading, gaps) = &self.gaps;
        let facts = columns("ll", [""; 2], self.facts.clone());
        let ends = self.ends.as_ref();
        let ends = ends.map_or(String::new(), |ends| format!("\nAt the end of the pass:\n{ends}"));
        let gaps = columns("lll", [""; 3], gaps.clone());
        let verdict = self.verdict.join("\n");
        format!("{}\n\n{facts}{ends}\n{heading}\n{gaps}\n{verdict}\n", self.name)
    }

    /// Writes the folder, whole or not at all.
    pub fn write(self, out: &Path, command: String, seconds: f64) -> Result<()> {
        interrupt::start_writing();
        let mut folder = ReportFolder::new(out)?;
        let (names, figures): (Vec<&str>, Vec<Figure>) = self.figures.into_iter().unzip();
        let named: Vec<(String, &Figure)> =
            names.into_iter().map(String::from).zip(&figures).collect();
        let files = figure_section::files(&named, &self.tables)?;
        let gaps =
            self.gaps.1.iter().map(|[name, first, second]| format!("{name}: {first}; {second}."));
        let section = Section {
            id: "fit".into(),
            title: "What the fit shows".into(),
            title_has_id: true,
            settings: self.settings,
            figures,
            notes: std::iter::once(self.gaps.0.into()).chain(gaps).chain(self.notes).collect(),
            files: figure_section::write(files, &mut folder)?,
            command,
            ..Section::default()
        };
        let version = ["toclip", env!("CARGO_PKG_VERSION")].map(String::from);
        let report = Report {
            title: format!("To clip or not to clip: {}", self.name),
            takeaway: self.verdict,
            sections: vec![section],
            facts: self.facts.into_iter().chain([version]).map(|[a, b]| (a, b)).collect(),
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
