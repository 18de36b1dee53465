//! `toclip reproduce`: the paper made executable.

mod agreement;
pub mod claims;
mod corrections;
mod criteria;
mod effort;
mod finding;
pub mod networks;
pub mod part;
mod paths;
mod random;
mod rate;
mod real;
mod schedules;
mod setup;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rayon::prelude::*;

use crate::output::ReportFolder;
use crate::output::plots;
use crate::output::{say, tell};
use crate::report::{self, Report, Verdict};
use effort::Effort;
use networks::Networks;
use part::Part;
use real::Real;

/// Pixels of a PNG for one of the SVG.

/// Reproduce the paper: its figures, its claims by number, and a report
///
/// Draws the figures of the paper, those on real data where it is there, and checks what the paper says about each by number.
/// Writes a folder with the report (report.html, one file that needs no network), the plots (SVG and
/// PNG), the data (CSV) and the experiment files they were made from. A folder that holds a former
/// report is replaced once the new one is complete; anything else in the way is left alone and said.
///
/// The exit code is 1 if a claim fails. A claim that differs from the print for a known reason, which
/// the report gives, is no failure.
#[derive(clap::Args)]
#[command(after_help = "\
Figures: 1a, 1b, 1c, 1d, 2a, 2b, 3, 4a, 4b, 5, 6, 7, 8, theorem1, theorem4 (all unless given)
1c and 8 need CIFAR-10 (toclip data get cifar10), 1d and 8 an embedding of WikiText-2 (toclip embed);
where they are not there, the report says how to get them. 6 and 7 are drawn from networks measured
on a GPU, whose tables are part of the program; --networks draws others.

Examples:
  toclip reproduce                        everything, into toclip-out/
  toclip reproduce 4b --out figure-4b     one figure
  toclip reproduce --quick                a first look in seconds
  toclip reproduce --full --seed 7        more runs, larger dimensions
  toclip reproduce 6 7 --networks runs    your own networks, measured by python/experiments/train.py
  toclip reproduce 2a 2b --json | jq '.sections[].claims'")]
pub struct Args {
    /// Figures or theorems of the paper; all unless given
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,
    /// Folder for the report
    #[arg(long, value_name = "DIR", default_value = "toclip-out")]
    out: PathBuf,
    /// Fewer runs and smaller dimensions
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// More runs and larger dimensions; takes minutes
    #[arg(long)]
    full: bool,
    /// Seed of everything random
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: u64,
    /// Runs of networks to draw in figures 6 and 7: a folder of train.py, or one that holds several
    #[arg(long, value_name = "DIR")]
    networks: Option<PathBuf>,
    /// Print the report as JSON instead of the table
    #[arg(long)]
    json: bool,
}

/// What can be reproduced, in the order of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Theorem1,
    F1a,
    F1b,
    F1c,
    F1d,
    F2a,
    F2b,
    F3,
    Theorem4,
    F4a,
    F4b,
    F5,
    F6,
    F7,
    F8,
}

macro_rules! embedded {
    ($name:literal) => {
        include_str!(concat!("../../../../../experiments/", $name))
    };
}

impl Item {
    const ALL: [Item; 15] = [
        Item::F1a,
        Item::F1b,
        Item::F1c,
        Item::F1d,
        Item::Theorem1,
        Item::F2a,
        Item::F2b,
        Item::F3,
        Item::F4a,
        Item::F4b,
        Item::Theorem4,
        Item::F5,
        Item::F6,
        Item::F7,
        Item::F8,
    ];

    fn name(self) -> &'static str {
        match self {
            Item::Theorem1 => "theorem1",
            Item::F1a => "1a",
            Item::F1b => "1b",
            Item::F1c => "1c",
            Item::F1d => "1d",
            Item::F2a => "2a",
            Item::F2b => "2b",
            Item::F3 => "3",
            Item::Theorem4 => "theorem4",
            Item::F4a => "4a",
            Item::F4b => "4b",
            Item::F5 => "5",
            Item::F6 => "6",
            Item::F7 => "7",
            Item::F8 => "8",
        }
    }

    fn title(self) -> String {
        match self.name().strip_prefix("theorem") {
            Some(number) => format!("Theorem {number}"),
            None => format!("figure {}", self.name()),
        }
    }

    fn parse(name: &str) -> Result<Self> {
        let wanted = name.to_ascii_lowercase().replace([' ', '-', '_'], "");
        let short = wanted.trim_start_matches("figure").trim_start_matches("fig");
        if let Some(item) = Item::ALL.into_iter().find(|item| item.name() == short) {
            return Ok(item);
        }
        let known = Item::ALL.map(Item::name).join(", ");
        bail!("there is no figure `{name}`; there are {known}");
    }

    fn run(self, effort: &Effort, real: &mut Real, networks: &Networks) -> Result<Part> {
        match self {
            Item::F1a => paths::figure_1a(embedded!("figure-1a.toml"), effort),
            Item::F1b => paths::figure_1b(embedded!("figure-1b.toml"), effort),
            Item::F1c => real::figure_1c(real, effort),
            Item::F1d => real::figure_1d(real, effort),
            Item::F2a => criteria::figure_2a(embedded!("figure-2a.toml"), effort.points),
            Item::F2b => criteria::figure_2b(embedded!("figure-2b.toml"), effort.points),
            Item::F3 => criteria::figure_3(embedded!("figure-3.toml"), effort.points),
            Item::F4a => schedules::figure_4a(embedded!("figure-4a.toml"), effort),
            Item::F4b => schedules::figure_4b(embedded!("figure-4b.toml"), effort),
            Item::F5 => criteria::figure_5(embedded!("figure-5.toml"), effort.points),
            Item::F6 => networks::figure_6(networks),
            Item::F7 => networks::figure_7(networks),
            Item::F8 => real::figure_8(real, effort),
            Item::Theorem1 => rate::theorem_1(embedded!("theorem-1.toml"), effort),
            Item::Theorem4 => random::theorem_4(effort),
        }
        .with_context(|| self.title())
    }
}

/// Set once the report is being written, which takes a moment and is then finished.
pub static WRITING: AtomicBool = AtomicBool::new(false);

/// Ctrl-C before the report is written leaves nothing behind.
pub fn handle_interrupts() -> Result<()> {
    let handler = || {
        if !WRITING.load(Ordering::Relaxed) {
            tell!("\ninterrupted: nothing was written");
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler).context("cannot listen to Ctrl-C")
}

impl Args {
    /// The flags that make a command give these numbers again.
    fn again(&self) -> String {
        let effort = match (self.quick, self.full) {
            (true, _) => " --quick",
            (_, true) => " --full",
            _ => "",
        };
        format!("{effort} --seed {}", self.seed)
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let items = chosen(&args.figures)?;
    let effort = match (args.quick, args.full) {
        (true, _) => Effort::quick(args.seed),
        (_, true) => Effort::full(args.seed),
        _ => Effort::default(args.seed),
    };
    // First of all: files that cannot be read should not cost the run.
    let networks = wanted_networks(&items, args.networks.as_deref())?;
    handle_interrupts()?;
    // Before anything is computed: a folder that cannot be written should not cost the run.
    drop(ReportFolder::new(&args.out)?);
    let mut parts = Vec::new();
    let mut timings = Vec::new();
    let mut real = Real::new(!args.figures.is_empty());
    for item in items {
        let start = Instant::now();
        let part = item.run(&effort, &mut real, &networks)?;
        let took = start.elapsed();
        tell!("{}", progress(item, &part, took));
        timings.push((item.title(), took.as_secs_f64()));
        parts.push(part);
    }
    let (report, place) = write(&args, &effort, parts, timings)?;
    if args.json {
        say!("{}", serde_json::to_string_pretty(&report::json(&report))?);
    } else {
        say!("{}", report::terminal(&report).trim_end());
        say!("\nreport: {}", place.join("report.html").display());
    }
    let failed = report.count(Verdict::Fails) > 0;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The items asked for, each once and in the order of the paper.
fn chosen(names: &[String]) -> Result<Vec<Item>> {
    if names.is_empty() {
        return Ok(Item::ALL.to_vec());
    }
    let wanted = names.iter().map(|name| Item::parse(name)).collect::<Result<Vec<Item>>>()?;
    Ok(Item::ALL.into_iter().filter(|item| wanted.contains(item)).collect())
}

/// The runs of networks, where a figure needs them.
fn wanted_networks(items: &[Item], folder: Option<&Path>) -> Result<Networks> {
    let needed = items.iter().any(|item| matches!(item, Item::F6 | Item::F7));
    match (needed, folder) {
        (true, folder) => Networks::load(folder),
        (false, None) => Ok(Networks::default()),
        (false, Some(_)) => {
            bail!("--networks is for the figures 6 and 7, which were not asked for")
        }
    }
}

fn progress(item: Item, part: &Part, took: Duration) -> String {
    let marks: Vec<&str> = part.section.claims.iter().map(|c| c.verdict.mark()).collect();
    let said = match (&part.section.figures[..], part.section.notes.first()) {
        // Without its data a figure has nothing but the way to get it.
        ([], Some(why)) if marks.is_empty() => format!("not drawn: {why}"),
        _ => marks.join(" "),
    };
    format!("{:<10} {:>6.2} s  {said}", item.title(), took.as_secs_f64())
}

/// Writes the folder, and says where it is.
fn write(
    args: &Args,
    effort: &Effort,
    parts: Vec<Part>,
    mut timings: Vec<(String, f64)>,
) -> Result<(Report, PathBuf)> {
    WRITING.store(true, Ordering::Relaxed);
    let mut folder = ReportFolder::new(&args.out)?;
    let start = Instant::now();
    let again = args.again();
    let mut sections = Vec::new();
    let pictures = parts.par_iter().map(draw).collect::<Result<Vec<_>>>()?;
    for (mut part, pictures) in parts.into_iter().zip(pictures) {
        let mut files = Vec::new();
        for (name, formats) in pictures {
            for (extension, bytes) in formats {
                let name = format!("{name}.{extension}");
                folder.write(&name, &bytes)?;
                files.push(name);
            }
        }
        for (name, text) in &part.tables {
            let name = format!("{name}.csv");
            folder.write(&name, &text.csv()?)?;
            files.push(name);
        }
        let (name, text) = part.experiment;
        if !name.is_empty() {
            let name = format!("experiments/{name}");
            folder.write(&name, text.as_bytes())?;
            files.push(name);
        }
        part.section.files = files;
        part.section.command += &again;
        sections.push(part.section);
    }
    timings.push(("plots and tables".into(), start.elapsed().as_secs_f64()));
    let report = Report {
        title: "To clip or not to clip, reproduced".into(),
        intro: intro(),
        sections,
        corrections: corrections::corrections(),
        facts: vec![
            ("toclip".into(), env!("CARGO_PKG_VERSION").into()),
            ("effort".into(), effort.name.into()),
            ("seed".into(), effort.seed.to_string()),
            ("runs of an ensemble".into(), effort.runs.to_string()),
            ("tolerance of the ODE".into(), "1e-8, relative".into()),
        ],
        timings,
    };
    folder.write("report.html", report::html(&report).as_bytes())?;
    let json = serde_json::to_string_pretty(&report::json(&report))? + "\n";
    folder.write("report.json", json.as_bytes())?;
    folder.finish()?;
    Ok((report, args.out.clone()))
}

/// The plots of a part by name, in every format. Rendering takes longer than all else in writing.
#[allow(clippy::type_complexity, reason = "a list of names with files, used once")]
fn draw(part: &Part) -> Result<Vec<(String, Vec<(&'static str, Vec<u8>)>)>> {
    let figures: Vec<_> = part.figures().collect();
    let draw = |(name, figure)| Ok((name, plots::render(figure)?));
    figures.into_par_iter().map(draw).collect()
}

fn intro() -> Vec<String> {
    vec![
        "Clipping a gradient bounds how far one bad sample can move the weights; it also throws \
         descent away. The paper “To Clip or not to Clip” gives, for least squares with many \
         parameters, equations for the loss under clipping and from them a criterion for when it \
         pays. This page recomputes the figures of the paper and checks by number what \
         the paper says about it."
            .into(),
        "In short: μ is the share of the descent that clipping keeps, ν the share of the variance. \
         CSC = μ/ν > 1 means that larger learning rates are stable, CCC = μ²/ν > 1 that clipping \
         beats every unclipped schedule at its own rate. R is the risk, c the threshold, η the \
         learning rate, t = k/d the time after k steps in intrinsic dimension d."
            .into(),
        corrections::NUMERICS.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_people_write_them() {
        for (text, item) in [
            ("4b", Item::F4b),
            ("4B", Item::F4b),
            ("figure-3", Item::F3),
            ("Theorem 1", Item::Theorem1),
        ] {
            assert_eq!(Item::parse(text).unwrap(), item);
        }
        let wrong = Item::parse("9").unwrap_err().to_string();
        assert!(wrong.contains("`9`") && wrong.contains("1a, 1b, 1c, 1d, theorem1"), "{wrong}");
    }

    #[test]
    fn items_come_once_and_in_the_order_of_the_paper() {
        let names = ["3", "1a", "3"].map(String::from);
        assert_eq!(chosen(&names).unwrap(), [Item::F1a, Item::F3]);
        assert_eq!(chosen(&[]).unwrap().len(), Item::ALL.len());
    }

    #[test]
    fn every_name_and_title_is_known() {
        for item in Item::ALL {
            assert_eq!(Item::parse(item.name()).unwrap(), item);
            assert_eq!(Item::parse(&item.title()).unwrap(), item);
        }
    }
}
