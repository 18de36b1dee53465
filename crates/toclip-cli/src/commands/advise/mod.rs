//! `toclip advise`: advice about clipping from training logs.

mod comparison;
mod figures;
mod follow;
mod page;
mod text;

use std::io::stdin;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};
use toclip_logs::{
    Advice, AdviceOptions, Format, Framework, Hint, Log, LogFiles, OptimizerKind, ReadOptions,
    Verdict, advise, find_logs, join_event_files, load, load_files,
};

use crate::arguments;
use crate::output::terminal::{Screen, progress_bar};
use crate::output::{files, plots, result, tell};

/// Read training logs: what went wrong, whether to clip, and where
///
/// Says first what to do, then why, then what to write in your framework. Looks at loss, gradient norm
/// and learning rate: divergence, spikes, NaN steps, thresholds that always or never act, norms on the
/// wrong scale. Never advises a larger learning rate, except as a short experiment with SGD.
///
/// Reads Hugging Face trainer_state.json, JSON lines, CSV (W&B export, Lightning metrics.csv),
/// TensorBoard event files, W&B and MLflow runs, the text logs of Megatron, torchtitan, llm.c, nanoGPT,
/// DeepSpeed and fairseq, and dictionaries printed by a trainer; also compressed with gzip or zstd. A
/// folder means every run in it. The format is detected from the content and the columns from their names.
#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/advise.txt"))]
pub struct Args {
    /// Log files, or folders with runs in them; - for standard input
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Current threshold: a number, or none (or inf) if the run did not clip [default: from the log]
    #[arg(long, value_name = "C", value_parser = arguments::threshold, allow_negative_numbers = true)]
    clip: Option<f64>,
    /// Samples per gradient, over all workers and accumulation steps; for a language model the
    /// tokens whose loss is averaged
    #[arg(long, value_name = "B", value_parser = arguments::number, allow_negative_numbers = true)]
    batch_size: Option<f64>,
    /// Outputs of the model per sample, if more than one
    #[arg(long, value_name = "N", value_parser = arguments::number, allow_negative_numbers = true, requires = "batch_size")]
    outputs: Option<f64>,
    /// Optimizer: sgd, or adam (adamw) for any that divides by a running scale of the gradient
    #[arg(long, value_name = "NAME")]
    optimizer: Option<OptimizerKind>,
    /// Framework to write code for: pytorch, huggingface, lightning, deepspeed, axolotl, optax
    /// [default: from the log, else pytorch]
    #[arg(long, value_name = "NAME")]
    framework: Option<Framework>,
    /// Show everything: current threshold, spikes, distribution, criteria, other rules
    #[arg(long, short)]
    verbose: bool,
    /// Confidence of the intervals
    #[arg(long, value_name = "P", default_value_t = 0.95, value_parser = arguments::number, allow_negative_numbers = true)]
    confidence: f64,
    /// Column of the gradient norm, or a part of its name
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
    /// Format, if it is not detected: trainer-state, jsonl, csv, tensorboard, wandb, mlflow, megatron,
    /// torchtitan, llm.c, nanogpt, deepspeed, printed, text
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Divide the norms by the loss scale in the log
    #[arg(long)]
    unscale: bool,
    /// Write a page with plots (DIR/advise.html), its numbers (DIR/advise.json) and each plot as SVG
    /// and PNG
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
    /// Watch a log that is still being written, and print findings as they appear; Ctrl-C ends it
    #[arg(long, conflicts_with_all = ["out", "verbose"])]
    follow: bool,
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
    args.options().check()?;
    if args.follow {
        return follow::run(&args);
    }
    let (sources, mut failed) = sources(&args);
    let mut reports = Vec::new();
    for source in &sources {
        match report(source, &args) {
            Ok(report) => reports.push(report),
            Err(error) => failed.push((source.name(), error)),
        }
    }
    let all = reports.len() + failed.len();
    let mut errors = Vec::new();
    for (name, error) in failed {
        let error = error.context(name.clone());
        if all == 1 {
            return Err(error);
        }
        tell!("error: {error:#}");
        errors.push(json!({ "log": name, "error": format!("{error:#}") }));
    }
    if reports.is_empty() {
        bail!("none of the {all} logs could be read");
    }
    let numbers = json!({
        "logs": reports.iter().map(numbers).collect::<Vec<Value>>(),
        "failed": errors,
    });
    let written = match &args.out {
        Some(folder) => write(folder, &reports, &numbers),
        None => Ok(Vec::new()),
    };
    let text = text::of(&reports, args.verbose, &Screen::of_stdout()) + "\n";
    // Advice that cannot be written is still printed.
    result::show(args.json, numbers, &text, written.as_deref().unwrap_or_default())?;
    written?;
    Ok(if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where a log comes from.
enum LogSource {
    StandardInput,
    Files(LogFiles),
}

impl LogSource {
    fn name(&self) -> String {
        match self {
            LogSource::StandardInput => "standard input".into(),
            LogSource::Files(files) => files.name.clone(),
        }
    }
}

/// The logs at the given paths, and the paths without one.
fn sources(args: &Args) -> (Vec<LogSource>, Vec<(String, anyhow::Error)>) {
    let (mut files, mut sources, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for path in &args.logs {
        if path == Path::new("-") {
            sources.push(LogSource::StandardInput);
            continue;
        }
        match find_logs(path, &args.read_options()) {
            Ok(found) => files.extend(found),
            // The message already includes the cause.
            Err(error) => missing.push((path.display().to_string(), anyhow!("{error}"))),
        }
    }
    sources.extend(join_event_files(files).into_iter().map(LogSource::Files));
    (sources, missing)
}

/// Reads a log and gives advice about it.
fn report(source: &LogSource, args: &Args) -> Result<LogReport> {
    let options = args.read_options();
    let log = match source {
        LogSource::StandardInput => load(stdin().lock(), &options),
        LogSource::Files(files) => {
            let size = files.size();
            let bar = progress_bar(size, "bytes", args.quiet || size < 50_000_000);
            let log = load_files(files, &options, &mut |bytes| bar.inc(bytes));
            bar.finish_and_clear();
            log
        }
    };
    let log = log.map_err(|error| match error.hint() {
        Some(hint) => anyhow!("{error} ({})", option(hint)),
        None => error.into(),
    })?;
    let advice = advise(&log, &args.options())?;
    let verdict = advice.verdict(args.framework.unwrap_or_else(|| Framework::of(&log)));
    Ok(LogReport { name: source.name(), log, advice, verdict })
}

impl Args {
    fn options(&self) -> AdviceOptions {
        AdviceOptions {
            clip: self.clip,
            batch_size: self.batch_size,
            outputs: self.outputs,
            optimizer: self.optimizer,
            confidence: self.confidence,
        }
    }

    fn read_options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            norm: self.norm.clone(),
            step: self.step.clone(),
            loss: self.loss.clone(),
            learning_rate: self.lr.clone(),
            unscale: self.unscale,
        }
    }
}

/// Writes the page, its numbers and each plot; the page and the numbers are what a user opens.
fn write(folder: &Path, reports: &[LogReport], numbers: &Value) -> Result<Vec<PathBuf>> {
    let (html, json) = (folder.join("advise.html"), folder.join("advise.json"));
    files::write(&html, page::of(reports).as_bytes())?;
    files::write_json(&json, numbers)?;
    for (i, report) in reports.iter().enumerate() {
        let log = if reports.len() > 1 { format!("log-{}-", i + 1) } else { String::new() };
        for (name, figure) in figures::NAMES.iter().zip(figures::of(report)) {
            plots::write(&figure, &folder.join(format!("{log}{name}")))?;
        }
    }
    Ok(vec![html, json])
}

/// The option that supplies the missing information.
fn option(hint: Hint) -> &'static str {
    match hint {
        Hint::NormColumn => "--norm NAME",
        Hint::Unscale => "--unscale",
        Hint::Threshold => "--clip C (or --clip none)",
        Hint::BatchSize => "--batch-size B and --outputs N",
        Hint::Optimizer => "--optimizer NAME",
        _ => "--help",
    }
}

/// The options that would improve the advice, if any, in a sentence.
fn options_to_add(report: &LogReport) -> Option<String> {
    let options: Vec<&str> = report.advice.hints().into_iter().map(option).collect();
    (!options.is_empty()).then(|| format!("To improve this answer, add {}.", options.join(", ")))
}

/// Everything, for programs.
fn numbers(report: &LogReport) -> Value {
    let mut numbers = report.advice.to_json(&report.log, &report.verdict);
    numbers["log"] = report.name.as_str().into();
    numbers
}
