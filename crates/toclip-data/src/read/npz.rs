//! Arrays of a NumPy archive (NPZ), streamed out of the zip file.

use super::npy::Header;
use super::samples::{Target, looks_like_a_file};
use super::source::{ReadSeek, Source};
use super::table::{RowVisitor, Table};
use crate::error::bail;
use crate::{Error, Matrix, Result};
use std::io::{BufReader, Read};
use std::path::Path;
use toclip_words::did_you_mean;

/// Usual names of features and targets; `arr_0` and `arr_1` are NumPy's own.
const FEATURES: [&str; 7] = ["X", "x", "features", "data", "X_train", "x_train", "arr_0"];
const TARGETS: [&str; 9] =
    ["y", "Y", "b", "targets", "target", "labels", "y_train", "Y_train", "arr_1"];
/// A damaged header can claim any width, and a row must fit in memory.
const WIDEST: usize = 1 << 26;

/// An array in the archive.
#[derive(Clone)]
struct Array {
    /// The member and its name without `.npy`.
    index: usize,
    name: String,
    header: Header,
}

/// Chooses the arrays by their names: the features, and the targets if they are a separate array.
pub(super) fn open(
    source: Source<'static>,
    target: &Target,
) -> Result<(Table<'static>, Option<Vec<f64>>)> {
    let (arrays, others) = arrays(&source)?;
    let path = &source.path;
    let names = arrays.iter().map(|a| &a.name[..]).chain(others.iter().map(|a| &a[..]));
    let (count, listed) = (arrays.len() + others.len(), names.collect::<Vec<_>>().join(", "));
    let at = |name: &str| arrays.iter().position(|a| a.name == name);
    let known = |names: &[&str]| names.iter().find_map(|name| at(name));
    let named = match target {
        Target::Last => known(&TARGETS),
        Target::File(_) => None,
        Target::Column(name) if at(name).is_some() => at(name),
        // Columns of an array have positions, not names.
        Target::Column(name) if name.parse::<usize>().is_ok() || looks_like_a_file(name) => None,
        Target::Column(name) => {
            let hint = did_you_mean(name, arrays.iter().map(|a| &a.name[..]));
            bail!(in path, "unknown array `{name}`; the archive has {listed}{hint}");
        }
    };
    let matrices: Vec<usize> = (0..arrays.len())
        .filter(|i| arrays[*i].header.dimensions == 2 && Some(*i) != named)
        .collect();
    let features = match (known(&FEATURES).filter(|i| Some(*i) != named), &matrices[..]) {
        (Some(i), _) => i,
        (None, [only]) => *only,
        _ => bail!(in path, "which array has the features? Name it X; the archive has {listed}"),
    };
    // To take the last column of one array while there is another would be a guess.
    if named.is_none() && *target == Target::Last && count > 1 {
        bail!(in path, "which array has the targets? Give its name, or the position of a column of \
              {}; the archive has {listed}", arrays[features].name);
    }
    let targets = named.map(|i| arrays[i].only_row_or_column(&source)).transpose()?;
    let features = &arrays[features];
    if features.header.by_column {
        bail!(in path, "{} is stored column by column; save numpy.ascontiguousarray of it",
            features.name);
    }
    Ok((features.table(source), targets))
}

type Archive<'a> = zip::ZipArchive<BufReader<Box<dyn ReadSeek + 'a>>>;

fn archive<'a>(source: &Source<'a>) -> Result<Archive<'a>> {
    let reader = BufReader::new(source.open()?);
    zip::ZipArchive::new(reader).map_err(|e| damaged(&source.path, &e))
}

fn damaged(path: &Path, e: &dyn std::fmt::Display) -> Error {
    Error::file(path, format!("the zip archive is damaged or cut short ({e})"))
}

/// The arrays that can be read, and the names of the others.
fn arrays(source: &Source<'_>) -> Result<(Vec<Array>, Vec<String>)> {
    let (path, mut zip) = (&source.path, archive(source)?);
    let (mut arrays, mut others) = (Vec::new(), Vec::new());
    for index in 0..zip.len() {
        let mut member = zip.by_index(index).map_err(|e| damaged(path, &e))?;
        let name = member.name().map_err(|e| damaged(path, &e))?.into_owned();
        if let Some(name) = name.strip_suffix(".npy").map(str::to_owned) {
            // Arrays of other shapes and types may serve other purposes.
            match Header::read(path, &name, &mut member) {
                Ok(header) if header.width <= WIDEST => arrays.push(Array { index, name, header }),
                _ => others.push(format!("{name} (not a table of numbers)")),
            }
        }
    }
    if arrays.is_empty() {
        bail!(in path, "the zip archive has no NumPy array of numbers");
    }
    Ok((arrays, others))
}

impl Array {
    fn table<'a>(&self, source: Source<'a>) -> Table<'a> {
        let (array, width) = (self.clone(), self.header.width);
        let read_rows = Box::new(move |source: &Source<'_>, visit: RowVisitor<'_>| {
            array.each_row(source, visit)
        });
        Table { source, width, names: Vec::new(), rounding: f64::EPSILON, read_rows }
    }

    /// All numbers of an array that is one row or one column.
    fn only_row_or_column(&self, source: &Source<'_>) -> Result<Vec<f64>> {
        let Header { rows, width, .. } = self.header;
        if rows > 1 && width > 1 {
            bail!(in &source.path, "the targets {} must be one row or one column, not {rows} x \
                  {width}", self.name);
        }
        Ok(Matrix::from_table(&self.table(source.clone()))?.into_data())
    }

    fn each_row(&self, source: &Source<'_>, visit: RowVisitor<'_>) -> Result<()> {
        let (path, mut zip) = (&source.path, archive(source)?);
        let member = zip.by_index(self.index).map_err(|e| damaged(path, &e))?;
        let mut reader = BufReader::with_capacity(1 << 16, member);
        Header::read(path, &self.name, &mut reader)?;
        self.header.each_row(path, &self.name, &mut reader, visit)?;
        // The checksum is compared at the end of the member.
        std::io::copy(&mut reader.take(1), &mut std::io::sink()).map_err(|e| damaged(path, &e))?;
        Ok(())
    }
}
