//! Which numbers of a file are the targets.

use super::table::Table;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// Where the targets $b_k$ are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Target {
    /// The last column; of an NPZ file the array `y` (or the like), where there is one.
    #[default]
    Last,
    /// The column of this name or, where no column has it and it is a number, of this position,
    /// from 1; of an NPZ file also the array of this name.
    Column(String),
    /// The array of this name in an NPZ file.
    Array(String),
    /// A CSV or NPY file of their own, one number a sample.
    File(PathBuf),
}

impl Target {
    /// What a user means by a word: a file where there is one of this name, else a column.
    ///
    /// ```
    /// use toclip_data::Target;
    /// assert_eq!(Target::from_word("price"), Target::Column("price".into()));
    /// ```
    pub fn from_word(word: &str) -> Self {
        match Path::new(word).is_file() {
            true => Target::File(word.into()),
            false => Target::Column(word.into()),
        }
    }
}

/// Whether a word that is no column was meant as a file.
pub(super) fn looks_like_a_file(word: &str) -> bool {
    let known = ["csv", "tsv", "txt", "npy", "npz", "parquet"];
    let ending = Path::new(word).extension().map(|ending| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| known.iter().any(|known| ending == *known)) || word.contains('/')
}

/// The column, from 0, that `name` means.
pub(super) fn find(path: &Path, table: &dyn Table, name: &str) -> Result<usize> {
    let names = table.names().unwrap_or_default();
    let mut having = (0..names.len()).filter(|i| names[*i] == name);
    match (having.next(), having.next()) {
        (Some(first), Some(second)) => {
            let message = format!(
                "two columns are called {name:?}, {} and {}; give the target by its number",
                first + 1,
                second + 1
            );
            return Err(Error::file(path, message));
        }
        (Some(only), None) => return Ok(only),
        (None, _) => {}
    }
    let width = table.width();
    if looks_like_a_file(name) {
        let message = format!("there is no such file, and no column of {}", path.display());
        return Err(Error::file(Path::new(name), message + " is called so"));
    }
    match name.parse::<usize>() {
        Ok(position) if (1..=width).contains(&position) => Ok(position - 1),
        Ok(position) => Err(Error::file(
            path,
            format!("there is no column {position}; the columns are 1 to {width}"),
        )),
        Err(_) if names.is_empty() => Err(Error::file(
            path,
            format!("the columns have no names; give the target by its number, 1 to {width}"),
        )),
        Err(_) => {
            let shown: Vec<&str> = names.iter().take(12).map(String::as_str).collect();
            let more = if names.len() > shown.len() { ", ..." } else { "" };
            let shown = shown.join(", ");
            Err(Error::file(path, format!("no column is called {name:?}; there are {shown}{more}")))
        }
    }
}
