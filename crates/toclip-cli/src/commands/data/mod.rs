//! `toclip data`: data sets in the cache.

mod client;
mod get;
mod sources;
mod workshop;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::json;
use toclip_data::DataSet;
use toclip_data::cifar10::Cifar10;
use toclip_data::wikitext::WikiText;

use crate::output::say;
use workshop::Workshop;

/// Fetch, list and remove data sets
///
/// Data sets are kept in the platform's folder for caches (~/.cache/toclip, ~/Library/Caches/toclip
/// or %LOCALAPPDATA%\toclip), or in the folder that TOCLIP_CACHE names.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toclip data list
  toclip data get cifar10
  toclip data get cifar10 --from cifar-10-binary.tar.gz
  toclip data get wikitext2 --from wikitext-2-raw-v1.zip
  TOCLIP_CACHE=/big/disk toclip data get cifar10
  ls \"$(toclip data path cifar10)\"")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Say which data sets there are, and which are in the cache and whole
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    Get(get::Args),
    /// Print the folder of a data set in the cache
    Path {
        /// cifar10 or wikitext2
        #[arg(value_parser = data_set)]
        set: DataSet,
    },
    /// Delete a data set from the cache, and what was left of fetching it
    Remove {
        /// cifar10 or wikitext2
        #[arg(value_parser = data_set)]
        set: DataSet,
    },
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::List { json } => list(json)?,
        Command::Get(args) => return get::run(args),
        Command::Path { set } => say!("{}", set.locate()?.display()),
        Command::Remove { set } => remove(set)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A data set by its name, with or without a hyphen.
fn data_set(name: &str) -> Result<DataSet, String> {
    let plain = name.to_ascii_lowercase().replace(['-', '_'], "");
    let known = DataSet::ALL.map(DataSet::key);
    DataSet::ALL
        .into_iter()
        .find(|set| set.key() == plain)
        .ok_or_else(|| format!("there are {}", known.join(" and ")))
}

fn list(json: bool) -> Result<()> {
    let mut rows = Vec::new();
    for set in DataSet::ALL {
        let folder = set.folder()?;
        let bytes = workshop::size(&folder);
        // Read, not looked at: a file may have been cut short or exchanged since it came.
        let found = folder.is_dir().then(|| check(set, &folder));
        if json {
            let (error, notes) = match &found {
                Some(Err(error)) => (Some(format!("{error:#}")), &[][..]),
                Some(Ok(notes)) => (None, &notes[..]),
                None => (None, &[][..]),
            };
            rows.push(json!({
                "name": set.key(),
                "title": set.title(),
                "folder": folder,
                "cached": found.is_some(),
                "usable": matches!(found, Some(Ok(_))),
                "error": error,
                "notes": notes,
                "bytes": bytes,
            }));
            continue;
        }
        let place = format!("{} MB in {}", bytes / 1_000_000, folder.display());
        let (key, title) = (set.key(), set.title());
        match found {
            None => say!("{key:10} {title:11} not in the cache; toclip data get {key}"),
            Some(Ok(notes)) => {
                say!("{key:10} {title:11} {place}");
                notes.iter().for_each(|note| say!("{:22} note: {note}", ""));
            }
            Some(Err(error)) => {
                say!("{key:10} {title:11} DAMAGED, {place}");
                say!("{:22} {error:#}; toclip data get {key}", "");
            }
        }
    }
    if json {
        say!("{}", serde_json::to_string_pretty(&rows)?);
    }
    Ok(())
}

fn remove(set: DataSet) -> Result<()> {
    let folder = set.folder()?;
    let there = folder.is_dir();
    Workshop::open(set)?.remove_all()?;
    match there {
        true => say!("{} is deleted from {}", set.title(), folder.display()),
        false => say!("{} was not in the cache", set.title()),
    }
    Ok(())
}

/// Reads a data set as a user would; what is not as published is told, what is wrong is an error.
fn check(set: DataSet, path: &Path) -> Result<Vec<String>> {
    let notes = match set {
        DataSet::Cifar10 => Cifar10::read(path).map(|data| data.notes),
        DataSet::WikiText2 => WikiText::read(path).map(|data| data.notes),
    };
    notes.with_context(|| format!("this is not {}", set.title()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_forgiving_and_others_are_told_the_right_ones() {
        for name in ["cifar10", "CIFAR-10", "cifar_10"] {
            assert_eq!(data_set(name), Ok(DataSet::Cifar10));
        }
        assert_eq!(data_set("wikitext-2"), Ok(DataSet::WikiText2));
        assert_eq!(data_set("mnist").unwrap_err(), "there are cifar10 and wikitext2");
    }
}
