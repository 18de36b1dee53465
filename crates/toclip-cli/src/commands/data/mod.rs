//! `toclip data`: data sets in the cache.

mod client;
mod get;
mod origins;
mod staging;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::json;
use toclip_data::DataSet;
use toclip_data::cifar10::Cifar10;
use toclip_data::wikitext::WikiText;

use crate::arguments::unknown;
use crate::output::{json, say};
use staging::StagingFolder;

/// Fetch, list and remove data sets
///
/// Data sets are kept in the platform's cache folder (~/.cache/toclip, ~/Library/Caches/toclip
/// or %LOCALAPPDATA%\toclip), or in the folder that TOCLIP_CACHE names.
#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/data.txt"))]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the data sets, and check those in the cache
    #[command(after_help = include_str!("../../help/data-list.txt"))]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    Get(get::Args),
    /// Print the folder of a data set in the cache
    #[command(after_help = include_str!("../../help/data-path.txt"))]
    Path {
        /// cifar10 or wikitext2
        #[arg(value_parser = data_set)]
        set: DataSet,
    },
    /// Delete a data set and its unfinished downloads from the cache
    #[command(after_help = include_str!("../../help/data-remove.txt"))]
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
    let found = DataSet::ALL.into_iter().find(|set| set.key() == plain);
    found.ok_or_else(|| unknown("data set", name, &DataSet::ALL.map(DataSet::key)))
}

fn list(json: bool) -> Result<()> {
    let mut rows = Vec::new();
    for set in DataSet::ALL {
        let folder = set.folder()?;
        let bytes = staging::size(&folder);
        // The files are read: one may have been cut short or replaced since it was fetched.
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
            None => say!(
                "{key:10} {title:11} not in the cache; download it with `toclip data get {key}`"
            ),
            Some(Ok(notes)) => {
                say!("{key:10} {title:11} {place}");
                notes.iter().for_each(|note| say!("{:22} note: {note}", ""));
            }
            Some(Err(error)) => {
                say!("{key:10} {title:11} DAMAGED, {place}");
                say!("{:22} {error:#}; download it again with `toclip data get {key}`", "");
            }
        }
    }
    if json {
        json::print(&rows)?;
    }
    Ok(())
}

fn remove(set: DataSet) -> Result<()> {
    let folder = set.folder()?;
    let there = folder.is_dir();
    StagingFolder::open(set)?.remove_all()?;
    match there {
        true => say!("Deleted {} from {}", set.title(), folder.display()),
        false => say!("{} was not in the cache", set.title()),
    }
    Ok(())
}

/// Reads a data set as `fit` does. The notes list what differs from the published files.
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
    fn names_of_data_sets() {
        for name in ["cifar10", "CIFAR-10", "cifar_10"] {
            assert_eq!(data_set(name), Ok(DataSet::Cifar10));
        }
        assert_eq!(data_set("wikitext-2"), Ok(DataSet::WikiText2));
        assert_eq!(
            data_set("mnist").unwrap_err(),
            "unknown data set `mnist`; expected one of: cifar10, wikitext2"
        );
    }
}
