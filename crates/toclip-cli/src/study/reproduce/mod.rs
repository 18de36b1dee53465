//! The figures and theorems of the paper, their claims and the report.

mod agreement;
mod beyond;
mod convergence_rate;
mod criteria;

mod one_pass_claims;
mod paper_experiment;
mod random_problems;
mod real_data;
mod report_text;
mod run_sizes;
mod schedules;
mod sgd_and_ode;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rayon::prelude::*;

use super::claims::{check, differs, near};
use super::figure_section::{self, BEYOND, FigureSection, is_beyond, shell_quoted, stem};
use super::{explorer, fit, networks};
use crate::output::{ReportFolder, interrupt, tell};
use crate::report::{self, Report};
use real_data::RealData;
use report_text::ReportText;
pub use run_sizes::RunSizes;

/// The figures to reproduce, and where to write the report.
pub struct Request<'a> {
    /// Figures and theorems as a user writes them; all if there are none.
    pub figures: &'a [String],
    pub sizes: RunSizes,
    /// The folder of the report.
    pub out: &'a Path,
}

impl Request<'_> {
    /// The command that gives the same report.
    fn command(&self) -> String {
        let mut command = String::from("toclip reproduce");
        for figure in self.figures {
            command += &format!(" {}", shell_quoted(figure));
        }
        command + &self.sizes.flags()
    }
}

/// The inputs of the figures.
struct Inputs {
    sizes: RunSizes,
    real: RealData,
}

macro_rules! embedded {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/", $name))
    };
}

/// A figure or theorem: its name, and how it is made.
type FigureEntry = (&'static str, fn(&mut Inputs) -> Result<FigureSection>);

/// In the order of the paper.
const FIGURES: [FigureEntry; 15] = [
    ("1a", |i| sgd_and_ode::figure_1a(embedded!("figure-1a.toml"), &i.sizes)),
    ("1b", |i| sgd_and_ode::figure_1b(embedded!("figure-1b.toml"), &i.sizes)),
    ("1c", |i| real_data::figure_1c(&mut i.real, &i.sizes)),
    ("1d", |i| real_data::figure_1d(&mut i.real, &i.sizes)),
    ("theorem1", |i| convergence_rate::theorem_1(embedded!("theorem-1.toml"), &i.sizes)),
    ("2a", |i| criteria::figure_2a(embedded!("figure-2a.toml"), i.sizes.points)),
    ("2b", |i| criteria::figure_2b(embedded!("figure-2b.toml"), i.sizes.points)),
    ("3", |i| criteria::figure_3(embedded!("figure-3.toml"), i.sizes.points)),
    ("4a", |i| schedules::figure_4a(embedded!("figure-4a.toml"), &i.sizes)),
    ("4b", |i| schedules::figure_4b(embedded!("figure-4b.toml"), &i.sizes)),
    ("theorem4", |i| random_problems::theorem_4(&i.sizes)),
    ("5", |i| criteria::figure_5(embedded!("figure-5.toml"), i.sizes.points)),
    ("6", |_| networks::figure_6()),
    ("7", |_| networks::figure_7()),
    ("8", |i| real_data::figure_8(&mut i.real, &i.sizes)),
];

/// "figure 1a", "Theorem 4"; a section beyond the paper keeps its name.
fn title(name: &str) -> String {
    match name.strip_prefix("theorem") {
        Some(number) => format!("Theorem {number}"),
        None if is_beyond(name) => name.into(),
        None => format!("figure {name}"),
    }
}

/// The items asked for, each once and in the order of the paper; the paper itself if none are.
fn chosen(names: &[String]) -> Result<Vec<FigureEntry>> {
    if names.is_empty() {
        return Ok(FIGURES.to_vec());
    }
    let wanted = names.iter().map(|name| known(name)).collect::<Result<Vec<&str>>>()?;
    let all_beyond = wanted.contains(&BEYOND);
    let is_wanted =
        |(name, _): &FigureEntry| wanted.contains(name) || all_beyond && is_beyond(name);
    Ok(FIGURES.into_iter().chain(beyond::FIGURES).filter(is_wanted).collect())
}

/// The name of a figure that a user may have written in another way.
fn known(name: &str) -> Result<&'static str> {
    let plain = |name: &str| name.to_ascii_lowercase().replace([' ', '-', '_'], "");
    let short = plain(name);
    let short = short.trim_start_matches("figure").trim_start_matches("fig");
    let paper = FIGURES.into_iter().map(|(name, _)| name);
    let beyond = beyond::FIGURES.into_iter().map(|(name, _)| name);
    let names: Vec<&'static str> = paper.chain([BEYOND]).chain(beyond).collect();
    match names.iter().find(|known| plain(known) == short) {
        Some(known) => Ok(*known),
        None => bail!("unknown figure `{name}`; expected one of: {}", names.join(", ")),
    }
}

/// Makes the figures and writes the report.
pub fn reproduce(request: &Request) -> Result<Report> {
    let items = chosen(request.figures)?;
    interrupt::exit_unless_writing()?;
    // Before anything is computed: a folder that cannot be written should not cost the run.
    drop(ReportFolder::new(request.out)?);
    let real = RealData::new(!request.figures.is_empty());
    let mut inputs = Inputs { sizes: request.sizes.clone(), real };
    let (mut figures, mut timings) = (Vec::new(), Vec::new());
    for (name, make) in items {
        let start = Instant::now();
        let figure = make(&mut inputs).with_context(|| title(name))?;
        let took = start.elapsed();
        tell!("{}", progress(name, &figure, took));
        timings.push((title(name), took.as_secs_f64()));
        figures.push(figure);
    }
    write(request, figures, timings)
}

fn progress(name: &str, figure: &FigureSection, took: Duration) -> String {
    let marks: Vec<&str> = figure.section.claims.iter().map(|c| c.verdict.mark()).collect();
    let outcome = match figure.section.notes.first() {
        // Without its data a figure has nothing but the way to get it.
        Some(why) if figure.section.figures.is_empty() => format!("skipped: {why}"),
        _ => marks.join(" "),
    };
    format!("{:<15} {:>6.2} s  {outcome}", title(name), took.as_secs_f64())
}

/// Writes the folder.
fn write(
    request: &Request,
    figures: Vec<FigureSection>,
    mut timings: Vec<(String, f64)>,
) -> Result<Report> {
    interrupt::start_writing();
    let sizes = &request.sizes;
    let mut folder = ReportFolder::new(request.out)?;
    let start = Instant::now();
    let mut sections = Vec::new();
    // Rendering takes longer than everything else in writing.
    let files = figures.par_iter().map(FigureSection::files).collect::<Result<Vec<_>>>()?;
    let text = ReportText::read()?;
    let mut opening = None;
    for (figure, files) in figures.into_iter().zip(files) {
        let FigureSection { mut section, experiment, .. } = figure;
        opening = opening.or(figure.opening);
        section.explore = experiment.and_then(|text| explorer::link(&text));
        for claim in &mut section.claims {
            let missing = || format!("report_text.toml has no claim {}", claim.paper);
            claim.paper = text.claims.get(&claim.paper).with_context(missing)?.clone();
        }
        section.notes.extend(text.notes.get(&section.id).into_iter().flatten().cloned());
        section.files = figure_section::write(files, &mut folder)?;
        section.command += &sizes.flags();
        sections.push(section);
    }
    timings.push(("plots and tables".into(), start.elapsed().as_secs_f64()));
    let only_beyond = sections.iter().all(|section| is_beyond(&section.id));
    let report = Report {
        title: "To clip or not to clip, reproduced".into(),
        takeaway: if only_beyond { &text.takeaway_beyond } else { &text.takeaway }.clone(),
        opening,
        about: text.about.clone(),
        sections,
        remarks: text.remarks(),
        command: request.command(),
        corrections: text.corrections,
        facts: vec![
            ("toclip".into(), env!("CARGO_PKG_VERSION").into()),
            ("effort".into(), sizes.name.into()),
            ("seed".into(), sizes.seed.to_string()),
            ("runs per ensemble".into(), sizes.runs.to_string()),
            ("relative tolerance of the ODE".into(), "1e-8".into()),
        ],
        timings,
    };
    if report.sections.iter().any(|section| section.explore.is_some()) {
        folder.write(explorer::FILE, explorer::PAGE.as_bytes())?;
    }
    folder.write("report.html", report::html(&report).as_bytes())?;
    let json = serde_json::to_string_pretty(&report::json(&report))? + "\n";
    folder.write("report.json", json.as_bytes())?;
    folder.finish()?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_accepted_in_several_spellings() {
        for (name, _) in FIGURES {
            assert_eq!(known(name).unwrap(), name);
            assert_eq!(known(&title(name)).unwrap(), name);
        }
        for (text, name) in [("4B", "4b"), ("figure-3", "3"), ("Theorem 1", "theorem1")] {
            assert_eq!(known(text).unwrap(), name);
        }
        insta::assert_snapshot!(
            known("9").unwrap_err(),
            @"unknown figure `9`; expected one of: 1a, 1b, 1c, 1d, theorem1, 2a, 2b, 3, 4a, 4b, theorem4, 5, 6, 7, 8, beyond, beyond-rules, beyond-skip, beyond-paths, beyond-by-value, beyond-groups, beyond-momentum, beyond-privacy, beyond-classification"
        );
    }

    #[test]
    fn items_come_once_and_in_the_order_of_the_paper() {
        let names = ["3", "1a", "3"].map(String::from);
        let chosen_names: Vec<&str> = chosen(&names).unwrap().iter().map(|item| item.0).collect();
        assert_eq!(chosen_names, ["1a", "3"]);
        assert_eq!(chosen(&[]).unwrap().len(), FIGURES.len());
    }
}
