//! `toclip advise`: what a training log says about clipping.

mod figures;
mod page;
mod text;

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use toclip_logs::advise::{Advised, Ask, Optimizer, advise};
use toclip_logs::{Format, Log, Options, load};

use crate::output::files;
use crate::output::plots::save;
use crate::output::{say, tell};

/// Read a training log and say whether to clip gradients, where, and why
///
/// Reads Hugging Face trainer_state.json, JSON lines, CSV (W&B export, Lightning metrics.csv),
/// TensorBoard event files, the text of Megatron, torchtitan and llm.c, and dictionaries printed by
/// a trainer. The format is found from the content and the columns from their names. What it cannot
/// tell from a log it says.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toclip advise trainer_state.json
  toclip advise lightning_logs/version_0/metrics.csv --clip 0.5 --batch-size 32 --optimizer sgd
  toclip advise runs/*/events.out.tfevents.* --out advice
  toclip advise wandb_export.csv --norm 'run-7 - train/grad_norm'
  toclip advise train.log --json
  ssh host cat train.log | toclip advise -

Exit status: 0 if every log was read, 1 if one was not.")]
pub struct Args {
    /// Log files; - for the standard input
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// The threshold in force (inf: none); found in the log where it says so
    #[arg(long, value_name = "C")]
    clip: Option<f64>,
    /// Samples behind one gradient, over all workers and accumulated steps; without it clipping is
    /// advised only where it would be for a single sample too
    #[arg(long, value_name = "B")]
    batch_size: Option<f64>,
    /// Outputs of the model for one sample (tokens, classes)
    #[arg(long, value_name = "N", requires = "batch_size")]
    outputs: Option<f64>,
    /// What takes the step: sgd, or adam for all that divide by their own scale; the learning rate is
    /// left alone unless it is sgd
    #[arg(long, value_name = "NAME", value_parser = |name: &str| name.parse::<Optimizer>())]
    optimizer: Option<Optimizer>,
    /// Confidence of the intervals
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    confidence: f64,
    /// Column of the gradient norm
    #[arg(long, value_name = "NAME")]
    norm: Option<String>,
    /// Column of the step
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
    /// Column of the loss
    #[arg(long, value_name = "NAME")]
    loss: Option<String>,
    /// Column of the learning rate
    #[arg(long, value_name = "NAME")]
    lr: Option<String>,
    /// Format, where the content misleads: trainer-state, jsonl, csv, tensorboard, megatron,
    /// torchtitan, llm.c, printed, text
    #[arg(long, value_name = "FORMAT", value_parser = |name: &str| name.parse::<Format>())]
    format: Option<Format>,
    /// Divide the norms by the loss scale that the log has beside them
    #[arg(long)]
    unscale: bool,
    /// Write a report with plots, DIR/advise.html, its numbers, DIR/advise.json, and its plots as PNG
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// One log with its answers.
struct Read1 {
    name: String,
    log: Log,
    advised: Advised,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    if args.logs.iter().filter(|path| *path == Path::new("-")).count() > 1 {
        bail!("the standard input (-) can be read only once");
    }
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for path in &args.logs {
        match read(path, &args) {
            Ok(one) => done.push(one),
            Err(error) if args.logs.len() == 1 => return Err(error),
            Err(error) => {
                tell!("error: {error:#}");
                failed.push(
                    json!({ "log": path.display().to_string(), "error": format!("{error:#}") }),
                );
            }
        }
    }
    if done.is_empty() {
        bail!("none of the {} logs could be read", args.logs.len());
    }
    let whole = json!({
        "logs": done.iter().map(numbers).collect::<Vec<Value>>(),
        "failed": failed,
    });
    if args.json {
        say!("{}", serde_json::to_string_pretty(&whole)?);
    } else {
        for one in &done {
            crate::output::terminal::print(format_args!("{}", text::of(one)));
        }
        if done.len() > 1 {
            crate::output::terminal::print(format_args!("{}", text::side_by_side(&done)));
        }
    }
    if let Some(folder) = &args.out {
        let (html, numbers) = (folder.join("advise.html"), folder.join("advise.json"));
        files::write(&html, page::of(&done).as_bytes())?;
        files::write(&numbers, serde_json::to_string_pretty(&whole)?.as_bytes())?;
        for (i, one) in done.iter().enumerate() {
            let log = if done.len() > 1 { format!("log-{}-", i + 1) } else { String::new() };
            for (name, figure) in ["norms", "law", "criteria"].iter().zip(figures::of(one)) {
                save(&figure, &folder.join(format!("{log}{name}.png")))?;
            }
        }
        if !args.json {
            say!("Written: {}", html.display());
            say!("Written: {}", numbers.display());
        }
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(path: &Path, args: &Args) -> Result<Read1> {
    let name = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let options = Options {
        format: args.format,
        norm: args.norm.clone(),
        step: args.step.clone(),
        loss: args.loss.clone(),
        learning_rate: args.lr.clone(),
        unscale: args.unscale,
    };
    let log = match path == Path::new("-") {
        true => load(std::io::stdin().lock(), &options),
        false => {
            let file = File::open(path).with_context(|| name.clone())?;
            let about = file.metadata().with_context(|| name.clone())?;
            if about.is_dir() {
                bail!("{name}: this is a folder; name the log file in it");
            }
            load(watched(file, about.len(), args.quiet), &options)
        }
    };
    let log = log.with_context(|| name.clone())?;
    let ask = Ask {
        clip: args.clip,
        batch_size: args.batch_size,
        outputs: args.outputs,
        optimizer: args.optimizer,
        confidence: args.confidence,
    };
    let advised = advise(&log, &ask).with_context(|| name.clone())?;
    Ok(Read1 { name, log, advised })
}

/// The file, with a bar where it is long and someone looks.
fn watched(file: File, length: u64, quiet: bool) -> impl Read {
    let shown = !quiet && length > 50_000_000 && std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes}, {eta} left")
    {
        bar.set_style(style);
    }
    bar.wrap_read(file)
}

/// Everything, for programs.
fn numbers(one: &Read1) -> Value {
    let findings: Vec<Value> = one
        .advised
        .findings
        .iter()
        .map(|f| {
            let mut value = serde_json::to_value(f).unwrap_or_default();
            value["sentence"] = f.sentence().into();
            value
        })
        .collect();
    let mut value = serde_json::to_value(&one.advised).unwrap_or_default();
    value["findings"] = findings.into();
    json!({
        "log": one.name,
        "format": one.log.reading.format,
        "columns": one.log.reading.columns,
        "advice": value,
        "answers": one.advised.answers(),
    })
}
