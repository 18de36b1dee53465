//! The cache of data sets: one folder each, in the platform's folder for caches.
//!
//! A data set's folder is complete: it is renamed to its place once all files are written.

use crate::error::bail;
use crate::{Error, Result};
use etcetera::BaseStrategy;
use std::path::PathBuf;

/// A data set that `toclip data get` can download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataSet {
    /// CIFAR-10, for [`crate::cifar10::Cifar10::read`].
    Cifar10,
    /// WikiText-2, for [`crate::wikitext::WikiText::read`].
    WikiText2,
}

impl DataSet {
    /// All data sets.
    pub const ALL: [DataSet; 2] = [DataSet::Cifar10, DataSet::WikiText2];

    /// The name in commands and in the cache.
    pub fn key(self) -> &'static str {
        match self {
            DataSet::Cifar10 => "cifar10",
            DataSet::WikiText2 => "wikitext2",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            DataSet::Cifar10 => "CIFAR-10",
            DataSet::WikiText2 => "WikiText-2",
        }
    }

    /// Its folder in the cache, whether it exists or not.
    ///
    /// # Errors
    /// Those of [`cache_folder`].
    pub fn folder(self) -> Result<PathBuf> {
        Ok(cache_folder()?.join(self.key()))
    }

    /// Its folder in the cache.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it does not exist, with the command that downloads it.
    pub fn locate(self) -> Result<PathBuf> {
        let folder = self.folder()?;
        if !folder.is_dir() {
            bail!(
                "{} is not in the cache ({}); download it with `toclip data get {}`",
                self.title(),
                folder.display(),
                self.key()
            );
        }
        Ok(folder)
    }
}

/// The folder for cached data: `TOCLIP_CACHE`, or `toclip` in the platform's folder for caches
/// (`~/.cache` or `XDG_CACHE_HOME`, `~/Library/Caches`, `%LOCALAPPDATA%`).
///
/// # Errors
/// [`Error::Invalid`] if the system names no home folder.
pub fn cache_folder() -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("TOCLIP_CACHE").filter(|value| !value.is_empty()) {
        return Ok(chosen.into());
    }
    let strategy = etcetera::base_strategy::choose_native_strategy().map_err(|e| {
        Error::Invalid(format!(
            "no folder for cached data: {e}; set the environment variable TOCLIP_CACHE to one"
        ))
    })?;
    Ok(strategy.cache_dir().join("toclip"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_set_has_its_own_folder() {
        let [cifar, wiki] = DataSet::ALL.map(|set| set.folder().unwrap());
        assert_eq!(cifar.parent(), wiki.parent());
        assert!(cifar.ends_with("cifar10") && wiki.ends_with("wikitext2"));
        assert!(cifar.is_absolute() || std::env::var_os("TOCLIP_CACHE").is_some());
    }
}
