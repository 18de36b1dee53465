//! `toclip-trial`: compares clipping rules on problems with a known answer.

mod figure;
mod predictions;
mod results;
mod store;
mod table;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;
use indicatif::ProgressBar;
use serde_json::json;
use toclip_trial::{Contender, Effort, Measurement, Problem, measure_all};

use toclip_cli::output::interrupt::{self, EXIT_INTERRUPTED, INTERRUPTED};
use toclip_cli::output::terminal::print;
use toclip_cli::output::{files, plots, progress_bar, say, tell};

use results::Results;
use store::Store;

/// Compare clipping rules on problems with a known answer
///
/// The problems are streaming least squares under eight noise distributions and streaming logistic
/// regression with flipped labels, at batch sizes 1, 8 and 64. Every rule trains for the same number
/// of steps with its own best learning rate, tuned on separate runs. The result is the exact
/// population risk at the end of new runs.
///
/// Writes trial.csv, trial.json, trial.md, trial.svg and trial.png into the folder given by --out. The
/// numbers depend only on the options, not on the number of threads or on interruptions.
#[derive(Parser)]
#[command(name = "toclip-trial", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  toclip-trial --quick
  toclip-trial
  toclip-trial --full --out results/full
  toclip-trial --only cauchy,logistic --rules huber,zclip
  toclip-trial --held-out --out results/held-out
  toclip-trial --only logistic --predict
  toclip-trial --resume                  continue after Ctrl-C
  toclip-trial --quiet --markdown > table.md
  toclip-trial --quick --json | jq '.rows[].entries[] | {problem, rule, ratio}'")]
struct Args {
    /// Finish in a few seconds: few and short runs
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Five times as many runs
    #[arg(long)]
    full: bool,
    /// Use the second set of problems, which no rule was developed on
    #[arg(long)]
    held_out: bool,
    /// Only problems whose name contains one of these, such as cauchy or gaussian/8
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,
    /// Only rules whose name contains one of these; unclipped always takes part
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    rules: Vec<String>,
    /// Runs of each rule on each problem
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    runs: Option<u32>,
    /// Runs for each learning rate tried
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    tuning: Option<u32>,
    /// Steps of each run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    steps: Option<u32>,
    /// Seed of all runs
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Confidence of the intervals
    #[arg(long, value_name = "P", default_value_t = 0.99)]
    confidence: f64,
    /// Number of threads, by default all cores; does not change the results
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Folder for the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Continue an interrupted trial
    #[arg(long)]
    resume: bool,
    /// Also print the prediction of the theory for logistic regression beside the measurement
    #[arg(long, conflicts_with = "json")]
    predict: bool,
    /// Print the table as Markdown, with every interval
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
    /// Do not show progress or the list of files
    #[arg(long, short)]
    quiet: bool,
}

fn main() -> ExitCode {
    run(Args::parse()).unwrap_or_else(|error| {
        tell!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(args: Args) -> Result<ExitCode> {
    if !(args.confidence > 0.0 && args.confidence < 1.0) {
        bail!("invalid --confidence {}: expected a number between 0 and 1", args.confidence);
    }
    let begin = Instant::now();
    let (problems, rules) = (args.problems()?, args.chosen_rules()?);
    let effort = args.effort();
    let (store, before) = Store::open(&args.out.join("trial.progress"), &effort, args.resume)?;
    interrupt::listen(Some("cells"))?;
    let done: BTreeSet<(String, Contender)> =
        before.iter().map(|c| (c.problem.clone(), c.contender)).collect();
    let asked: Vec<(&Problem, Contender)> = problems
        .iter()
        .flat_map(|p| rules.iter().map(move |r| (p, *r)))
        .filter(|(p, r)| !done.contains(&(p.name(), *r)))
        .collect();
    let all = (problems.len() * rules.len()) as u64;
    let bar = progress_bar(all, "cells", args.quiet).with_position(all - asked.len() as u64);
    bar.reset_eta();
    let finished = before.len();
    let measured = measure(&asked, &effort, args.threads, store, before, &bar);
    bar.finish_and_clear();
    let (store, cells) = measured?;
    if cells.len() < finished + asked.len() {
        tell!(
            "interrupted: {} of {all} cells are saved in {}; the same command with --resume \
             continues",
            cells.len(),
            store.path().display()
        );
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    let results = Results::new(&problems, &rules, cells, effort, args.confidence)?;
    let written = args.write(&results)?;
    store.remove()?;
    if args.json {
        let seconds = begin.elapsed().as_secs_f64();
        let mut value = serde_json::to_value(&results)?;
        value["seconds"] = json!(seconds);
        say!("{}", serde_json::to_string_pretty(&value)?);
    } else if args.markdown {
        print(format_args!("{}", table::markdown(&results)));
    } else {
        print(format_args!("{}", table::terminal(&results)));
        if !args.quiet {
            say!("\nTime: {:.1} s", begin.elapsed().as_secs_f64());
            written.iter().for_each(|path| say!("{}", files::wrote(path)));
        }
    }
    if args.predict {
        let predictions = predictions::all(&problems, &results)?;
        let path = args.out.join("trial-predictions.csv");
        files::write(&path, &predictions::csv(&predictions).csv()?)?;
        print(format_args!("\n{}", predictions::markdown(&predictions)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures the cells asked for; with them come those from before.
fn measure(
    asked: &[(&Problem, Contender)],
    effort: &Effort,
    threads: Option<u16>,
    store: Store,
    before: Vec<Measurement>,
    bar: &ProgressBar,
) -> Result<(Store, Vec<Measurement>)> {
    let state = Mutex::new((store, before, None));
    let keep = |cell: Measurement| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = state.0.add(&cell) {
            // A run that cannot be saved would be lost.
            INTERRUPTED.store(true, Ordering::Relaxed);
            state.2.get_or_insert(error);
        }
        bar.inc(1);
        state.1.push(cell);
    };
    measure_all(asked, effort, threads.map(usize::from), &INTERRUPTED, &keep)?;
    let (store, cells, failure) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failure {
        Some(error) => Err(error),
        None => Ok((store, cells)),
    }
}

impl Args {
    fn effort(&self) -> Effort {
        let mut effort = match (self.quick, self.full) {
            (true, _) => Effort::quick(self.seed),
            (_, true) => Effort::full(self.seed),
            _ => Effort::standard(self.seed),
        };
        effort.runs = self.runs.unwrap_or(effort.runs);
        effort.tuning = self.tuning.unwrap_or(effort.tuning);
        effort.steps = self.steps.unwrap_or(effort.steps);
        effort
    }

    fn problems(&self) -> Result<Vec<Problem>> {
        let mut problems = if self.held_out { Problem::held_out()? } else { Problem::standard()? };
        let names: Vec<String> = problems.iter().map(Problem::name).collect();
        known("--only", &self.only, &names)?;
        if !self.only.is_empty() {
            problems.retain(|p| self.only.iter().any(|o| p.name().contains(o.as_str())));
        }
        Ok(problems)
    }

    fn chosen_rules(&self) -> Result<Vec<Contender>> {
        let mut rules = Contender::ALL.to_vec();
        known("--rules", &self.rules, &Contender::ALL.map(|r| r.name().to_owned()))?;
        if !self.rules.is_empty() {
            rules.retain(|r| {
                *r == Contender::Unclipped
                    || self.rules.iter().any(|o| r.name().contains(o.as_str()))
            });
        }
        Ok(rules)
    }

    fn write(&self, results: &Results) -> Result<Vec<PathBuf>> {
        let paths =
            ["csv", "json", "md", "svg", "png"].map(|e| self.out.join(format!("trial.{e}")));
        let [csv, json, md, svg, png] = &paths;
        files::write(csv, &table::csv(results).csv()?)?;
        files::write_json(json, results)?;
        files::write(md, table::markdown(results).as_bytes())?;
        let figure = figure::figure(results);
        plots::save(&figure, svg)?;
        plots::save(&figure, png)?;
        Ok(paths.into())
    }
}

/// Every part given must be part of some name.
fn known(option: &str, parts: &[String], names: &[String]) -> Result<()> {
    for part in parts {
        if part.is_empty() || !names.iter().any(|n| n.contains(part.as_str())) {
            bail!(
                "{option}: no name contains `{part}`; expected part of one of: {}",
                names.join(", ")
            );
        }
    }
    Ok(())
}
