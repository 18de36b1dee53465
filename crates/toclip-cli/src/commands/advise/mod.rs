//! `toclip advise`: advice about clipping from training logs.

mod comparison;
mod figures;
mod page;
mod text;

use std::fs::File;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use toclip_logs::{
    Advice, AdviceOptions, Format, Framework, Hint, Log, Optimizer, ReadOptions, Verdict, advise,
    load,
};

use crate::output::files;
use crate::output::plots::save;
use crate::output::terminal::{Screen, progress_bar};
use crate::output::{say, tell};

/// Read training logs: what went wrong, whether to clip, and where
///
/// Says first what to do, then why, then what to write in your framework. Looks at loss, gradient norm
/// and learning rate: divergence, spikes, NaN steps, thresholds that always or never act, norms on the
/// wrong scale. Never advises to raise the learning rate.
///
/// Reads Hugging Face trainer_state.json, JSON lines, CSV (W&B export, Lightning metrics.csv),
/// TensorBoard event files, the text logs of Megatron, torchtitan and llm.c, and dictionaries printed
/// by a trainer. The format is detected from the content and the columns from their names.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toclip advise trainer_state.json
  toclip advise train.jsonl --clip none --optimizer adamw
  toclip advise lightning_logs/version_0/metrics.csv --clip 0.5 --optimizer sgd --verbose
  toclip advise runs/*/events.out.tfevents.* --out advice
  toclip advise wandb_export.csv --norm 'run-7 - train/grad_norm'
  toclip advise train.log --json
  ssh host cat train.log | toclip advise -

Exit status: 0 if every log was read, 1 otherwise.")]
pub struct Args {
    /// Log files; - for standard input
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Threshold in force: a number, or none (or inf) if the run did not clip [default: from the log]
    #[arg(long, value_name = "C", value_parser = crate::arguments::threshold)]
    clip: Option<f64>,
    /// Samples per gradient, over all workers and accumulation steps; for a language model the
    /// tokens whose loss is averaged
    #[arg(long, value_name = "B")]
    batch_size: Option<f64>,
    /// Outputs of the model per sample, if more than one
    #[arg(long, value_name = "N", requires = "batch_size")]
    outputs: Option<f64>,
    /// Optimizer: sgd, or adam (adamw) for all that divide by a running scale of the gradient
    #[arg(long, value_name = "NAME")]
    optimizer: Option<Optimizer>,
    /// Framework to write code for: pytorch, huggingface, lightning, deepspeed, axolotl, optax
    /// [default: from the log, else pytorch]
    #[arg(long, value_name = "NAME")]
    framework: Option<Framework>,
    /// Show everything: threshold in force, spikes, distribution, criteria, other rules
    #[arg(long, short)]
    verbose: bool,
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
    /// Format, if it is not detected: trainer-state, jsonl, csv, tensorboard, megatron, torchtitan,
    /// llm.c, printed, text
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Divide the norms by the loss scale in the log
    #[arg(long)]
    unscale: bool,
    /// Write a report with plots (DIR/advise.html), its numbers (DIR/advise.json) and the plots as PNG
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// A log and the advice from it.
struct LogReport {
    name: String,
    log: Log,
    advice: Advice,
    verdict: Verdict,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    if args.logs.iter().filter(|path| *path == Path::new("-")).count() > 1 {
        bail!("standard input (-) can be read only once");
    }
    let options = AdviceOptions {
        clip: args.clip,
        batch_size: args.batch_size,
        outputs: args.outputs,
        optimizer: args.optimizer,
        confidence: args.confidence,
    };
    options.check()?;
    let (mut reports, mut failed) = (Vec::new(), Vec::new());
    for path in &args.logs {
        let name = match path == Path::new("-") {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let log = read(path, &args).and_then(|log| Ok((advise(&log, &options)?, log)));
        match log.with_context(|| name.clone()) {
            Ok((advice, log)) => {
                let framework = args.framework.unwrap_or_else(|| Framework::of(&log));
                let verdict = advice.verdict(framework);
                reports.push(LogReport { name, log, advice, verdict });
            }
            Err(error) if args.logs.len() == 1 => return Err(error),
            Err(error) => {
                tell!("error: {error:#}");
                failed.push(json!({ "log": name, "error": format!("{error:#}") }));
            }
        }
    }
    if reports.is_empty() {
        bail!("none of the {} logs could be read", args.logs.len());
    }
    let numbers = json!({
        "logs": reports.iter().map(numbers).collect::<Vec<Value>>(),
        "failed": failed,
    });
    match args.json {
        true => say!("{}", serde_json::to_string_pretty(&numbers)?),
        false => say!("{}", text::of(&reports, args.verbose, &Screen::of_stdout())),
    }
    if let Some(folder) = &args.out {
        write(folder, &reports, &numbers, args.json)?;
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(folder: &Path, reports: &[LogReport], numbers: &Value, quiet: bool) -> Result<()> {
    let (html, json) = (folder.join("advise.html"), folder.join("advise.json"));
    files::write(&html, page::of(reports).as_bytes())?;
    files::write_json(&json, numbers)?;
    for (i, report) in reports.iter().enumerate() {
        let log = if reports.len() > 1 { format!("log-{}-", i + 1) } else { String::new() };
        for (name, figure) in figures::NAMES.iter().zip(figures::of(report)) {
            save(&figure, &folder.join(format!("{log}{name}.png")))?;
        }
    }
    if !quiet {
        say!("Written: {}", html.display());
        say!("Written: {}", json.display());
    }
    Ok(())
}

fn read(path: &Path, args: &Args) -> Result<Log> {
    let options = ReadOptions {
        format: args.format,
        norm: args.norm.clone(),
        step: args.step.clone(),
        loss: args.loss.clone(),
        learning_rate: args.lr.clone(),
        unscale: args.unscale,
    };
    let log = if path == Path::new("-") {
        load(stdin().lock(), &options)
    } else {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            bail!("this is a folder; give the log file in it");
        }
        load(with_progress(file, metadata.len(), args.quiet), &options)
    };
    log.map_err(|error| match error.hint() {
        Some(hint) => anyhow!("{error} ({})", option(hint)),
        None => error.into(),
    })
}

/// The option that supplies what is missing.
fn option(hint: Hint) -> &'static str {
    match hint {
        Hint::NormColumn => "--norm NAME",
        Hint::Unscale => "--unscale",
        Hint::Threshold => "--clip C or none",
        Hint::BatchSize => "--batch-size B and --outputs N",
        Hint::Optimizer => "--optimizer NAME",
        _ => "--help",
    }
}

/// The options that would improve the advice, if any, in a sentence.
fn options_to_add(report: &LogReport) -> Option<String> {
    let options: Vec<&str> = report.advice.hints().into_iter().map(option).collect();
    (!options.is_empty()).then(|| format!("To improve this answer, add {}.", options.join("; ")))
}

/// The file, with a progress bar if it is long.
fn with_progress(file: File, length: u64, quiet: bool) -> impl Read {
    progress_bar(length, "bytes", quiet || length < 50_000_000).wrap_read(file)
}

/// Everything, for programs.
fn numbers(report: &LogReport) -> Value {
    let LogReport { name, log, advice, verdict } = report;
    let mut findings = serde_json::to_value(&advice.findings).unwrap_or_default();
    let values = findings.as_array_mut().into_iter().flatten();
    for (value, finding) in values.zip(&advice.findings) {
        value["sentence"] = finding.sentence().into();
    }
    json!({
        "log": name,
        "format": log.summary.format,
        "columns": log.summary.columns,
        "findings": findings,
        "recommendation": advice.recommendation,
        "verdict": verdict,
        "analysis": advice.analysis,
        "details": advice.details(),
    })
}
