//! Samples in a table.

use super::format::FileFormat;
use super::source::Source;
use super::table::Table;
use super::{npz, read_column};
use crate::Result;
use crate::error::bail;
use crate::samples::{BlockVisitor, SampleBlock, SampleSource};
use std::path::{Path, PathBuf};

/// Where the targets $b_k$ are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Target {
    /// The last column; in an NPZ file the array `y` (or a similar name), if there is one.
    #[default]
    Last,
    /// The column of this name or, if no column has this name, of this position from 1; in an NPZ
    /// file also the array of this name.
    Column(String),
    /// A separate CSV, NPY or Parquet file with one number for each sample.
    File(PathBuf),
}

impl Target {
    /// The target that a user's string means: a file if it exists, else a column.
    ///
    /// ```
    /// use toclip_data::Target;
    /// assert_eq!(Target::from_word("price"), Target::Column("price".into()));
    /// ```
    pub fn from_word(word: &str) -> Self {
        if Path::new(word).is_file() {
            Target::File(word.into())
        } else {
            Target::Column(word.into())
        }
    }
}

/// Samples $(x_k, b_k)$ from a CSV, NPY, NPZ or Parquet file, by its content, not its name. They are
/// read in blocks: the file may be larger than the memory.
///
/// - CSV: as in [`Matrix::read`](crate::Matrix::read); column names in the first line are optional.
/// - NPY: one or two dimensions, any type of number; booleans are 0 and 1.
/// - NPZ: the features `X` and the targets `y`, or the array that `target` names; compressed or
///   not. The last column is the target only if the file has no other array.
/// - Parquet: columns of numbers or booleans, uncompressed or with Snappy or gzip.
///
/// The file is read once here to find errors, which name row and column.
///
/// ```no_run
/// use toclip_data::{SampleSource, Target, open_samples};
/// let samples = open_samples("houses.csv", &Target::Column("price".into()))?;
/// println!("{}: {} x {}", samples.name(), samples.rows(), samples.cols());
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`](crate::Error::Io), [`Error::File`](crate::Error::File) or, with line and column,
/// [`Error::Cell`](crate::Error::Cell).
pub fn open_samples(path: impl AsRef<Path>, target: &Target) -> Result<Box<dyn SampleSource>> {
    let path = path.as_ref();
    let source = Source::file(path);
    let (table, array) = match FileFormat::of_table(&source.first_bytes()?) {
        FileFormat::Zip => npz::open(source, target)?,
        _ => (Table::open(source)?, None),
    };
    let targets = match (array, target) {
        (Some(array), _) => Targets::Values(array),
        (None, Target::Last) => Targets::Column(table.width - 1),
        (None, Target::Column(name)) => {
            if !table.names.contains(name) && looks_like_a_file(name) {
                bail!(in Path::new(name), "no such file, and no column of {} has this name",
                    path.display());
            }
            Targets::Column(table.column(name)?)
        }
        (None, Target::File(file)) => Targets::Values(read_column(file, None)?),
    };
    Ok(Box::new(TableSamples::new(table, targets)?))
}

/// Whether a string that is not a column was meant as a file.
pub(super) fn looks_like_a_file(word: &str) -> bool {
    let known = ["csv", "tsv", "txt", "npy", "npz", "parquet"];
    let ending = Path::new(word).extension().map(|ending| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| known.iter().any(|known| ending == *known)) || word.contains('/')
}

/// Where the targets of a table are.
pub(super) enum Targets {
    /// In this column, from 0.
    Column(usize),
    /// In memory.
    Values(Vec<f64>),
}

/// A table with targets.
pub(super) struct TableSamples {
    table: Table<'static>,
    targets: Targets,
    rows: usize,
    cols: usize,
}

impl TableSamples {
    /// Reads the table once to check it and to count its rows.
    pub fn new(table: Table<'static>, targets: Targets) -> Result<Self> {
        let path = &table.source.path;
        let cols = table.width - usize::from(matches!(targets, Targets::Column(_)));
        if cols == 0 {
            bail!(in path, "the only column is the target; samples also need features");
        }
        let mut rows = 0;
        table.each_row(&mut |_| {
            rows += 1;
            Ok(())
        })?;
        if let Targets::Values(targets) = &targets
            && targets.len() != rows
        {
            bail!(in path, "{rows} rows of features but {} targets", targets.len());
        }
        Ok(Self { table, targets, rows, cols })
    }
}

impl SampleSource for TableSamples {
    fn rows(&self) -> usize {
        self.rows
    }

    fn cols(&self) -> usize {
        self.cols
    }

    fn name(&self) -> String {
        self.table.source.path.display().to_string()
    }

    fn visit(&self, size: usize, visit: BlockVisitor<'_>) -> Result<()> {
        let (size, cols) = (size.clamp(1, self.rows), self.cols);
        let (mut features, mut targets) = (Vec::with_capacity(size * cols), Vec::new());
        let mut done = 0;
        self.table.each_row(&mut |row| {
            match &self.targets {
                _ if done == self.rows => return Err(self.table.changed()),
                Targets::Column(at) => {
                    features.extend_from_slice(&row[..*at]);
                    features.extend_from_slice(&row[at + 1..]);
                    targets.push(row[*at]);
                }
                Targets::Values(all) => {
                    features.extend_from_slice(row);
                    targets.push(all[done]);
                }
            }
            done += 1;
            if targets.len() == size || done == self.rows {
                visit(SampleBlock { features: &features, targets: &targets, cols })?;
                features.clear();
                targets.clear();
            }
            Ok(())
        })?;
        if done < self.rows { Err(self.table.changed()) } else { Ok(()) }
    }
}
