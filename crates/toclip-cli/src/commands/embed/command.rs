//! `toclip embed` from its arguments to its files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use toclip_embed::{Batches, Embedder, next_tokens, relative};

use super::fetch::{self, MINILM};
use super::work::{EmbeddingJob, Embeddings, FinishedBatch, cores};
use super::{Args, TargetRule, npy, text};
use crate::output::interrupt::{self, EXIT_INTERRUPTED, INTERRUPTED};
use crate::output::{Identity, ProgressLog, files, fnv1a, progress_bar, result, tell};
use toclip_words::duration;

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let begin = Instant::now();
    let text = text::read(&args.text)?;
    let lines: Vec<&str> = text.lines().collect();
    let rows = args.lines.map_or(lines.len(), |n| lines.len().min(n as usize));
    let folder = if args.model == Path::new(MINILM) && !args.model.exists() {
        fetch::minilm()?
    } else {
        args.model.clone()
    };
    let embedder = Embedder::open(&folder, args.max_tokens as usize)?;
    let ids = lines[..rows].iter().map(|line| embedder.ids(line)).collect::<Result<Vec<_>, _>>()?;
    let inputs = inputs(&folder, &embedder, &ids)?;
    let cut = ids.iter().filter(|ids| ids.len() == embedder.max_tokens()).count();
    let batches = Batches::new(ids);

    let partial = PathBuf::from(format!("{}.partial", args.out.display()));
    let identity = Identity { command: "toclip embed", pieces: "batches", inputs };
    let (mut progress, done) = ProgressLog::open(&partial, &identity, true, FinishedBatch::decode)?;
    interrupt::listen(Some("batches"))?;
    let resumed = done.len();
    let mut embeddings = Embeddings::new(rows, embedder.width());
    let tokens: u64 = (0..batches.len()).map(|b| batches.tokens(b) as u64).sum();
    let computed = {
        let bar = progress_bar(tokens, "tokens", args.quiet);
        let tick = |batch: usize| bar.inc(batches.tokens(batch) as u64);
        let threads = args.threads.unwrap_or_else(cores);
        let job = EmbeddingJob {
            embedder: &embedder,
            batches: &batches,
            threads,
            cancel: &INTERRUPTED,
            tick: &tick,
        };
        let computed = job.run(&mut embeddings, &mut progress, done);
        bar.finish_and_clear();
        computed?
    };
    if let Some(finished) = computed {
        tell!(
            "interrupted: {finished} of {} batches are kept in {}; run the same command again to resume",
            batches.len(),
            progress.path().display()
        );
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    files::write(&args.out, &npy::rows(&embeddings.values, embeddings.width))?;
    let targets = args.write_targets(&lines, rows)?;
    progress.remove()?;
    if args.quiet && !args.json {
        return Ok(ExitCode::SUCCESS);
    }
    let took = begin.elapsed();
    let (all, different, most) = (lines.len(), batches.distinct(), embedder.max_tokens());
    let (width, rule) = (embeddings.width, embedder.describe());
    let value = json!({
        "model": folder.display().to_string(),
        "rule": rule,
        "text": args.text.display().to_string(),
        "lines": rows,
        "lines_in_text": all,
        "different_lines": different,
        "cut_lines": cut,
        "max_tokens": most,
        "tokens": tokens,
        "width": width,
        "embeddings": args.out.display().to_string(),
        "targets": targets,
        "batches": batches.len(),
        "batches_from_before": resumed,
        "seconds": took.as_secs_f64(),
    });
    let subset = match rows < all {
        true => format!("the first {rows} of {all}: a subset, as --lines asks"),
        false => format!("all {rows}, {different} different"),
    };
    let from_before = match resumed {
        0 => String::new(),
        n => format!(", {n} of {} batches from an earlier run", batches.len()),
    };
    let text = format!(
        "Lines    {subset}\nVectors  {width} numbers each: {rule}\n\
         Tokens   {tokens}, at most {most} a line ({cut} lines reach that)\n\
         Time     {}, {:.0} lines/s{from_before}\n",
        duration(took),
        rows as f64 / took.as_secs_f64()
    );
    let written: Vec<PathBuf> = std::iter::once(args.out).chain(targets).collect();
    result::show(args.json, value, &text, &written)?;
    Ok(ExitCode::SUCCESS)
}

/// Everything that the vectors depend on.
fn inputs(folder: &Path, embedder: &Embedder, ids: &[Vec<u32>]) -> Result<Value> {
    let mut tokens = Vec::new();
    for line in ids {
        tokens.extend((line.len() as u64).to_le_bytes());
        tokens.extend(line.iter().flat_map(|id| id.to_le_bytes()));
    }
    let mut model = Vec::new();
    for file in ["config.json", "model.safetensors"] {
        let path = folder.join(file);
        let bytes = std::fs::read(&path);
        model.extend(bytes.with_context(|| format!("cannot read {}", path.display()))?);
    }
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "rule": embedder.describe(),
        "model": format!("{:016x}", fnv1a(&model)),
        "lines": ids.len(),
        "max_tokens": embedder.max_tokens(),
        "text": format!("{:016x}", fnv1a(&tokens)),
    }))
}

impl Args {
    fn write_targets(&self, lines: &[&str], rows: usize) -> Result<Option<PathBuf>> {
        let ids = match self.target_rule {
            TargetRule::None => return Ok(None),
            TargetRule::NextToken | TargetRule::NextTokenId => next_tokens(lines, rows),
        };
        let targets = match self.target_rule {
            TargetRule::NextToken => relative(&ids)
                .context("every next line begins with token 0, so there is no mean to divide by")?,
            _ => ids.into_iter().map(f64::from).collect(),
        };
        let path = self.targets.clone().unwrap_or_else(|| self.out.with_file_name("targets.npy"));
        files::write(&path, &npy::list(&targets))?;
        Ok(Some(path))
    }
}
