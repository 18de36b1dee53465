//! Arrays of a NumPy archive, streamed out of the zip.

use super::npy::Layout;
use super::table::Table;
use super::target::{Target, looks_like_a_file};
use crate::{Error, Result};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Names that people give to features and to targets; `arr_0` and `arr_1` are NumPy's own.
const FEATURES: [&str; 7] = ["X", "x", "features", "data", "X_train", "x_train", "arr_0"];
const TARGETS: [&str; 9] =
    ["y", "Y", "b", "targets", "target", "labels", "y_train", "Y_train", "arr_1"];

type Archive = zip::ZipArchive<BufReader<File>>;

/// An array in the archive.
struct Array {
    path: PathBuf,
    /// The member and its name without `.npy`.
    index: usize,
    name: String,
    layout: Layout,
}

/// The features, and the targets where they are an array of their own.
type Opened = (Box<dyn Table>, Option<Vec<f64>>);

/// Chooses the arrays by their names.
pub(super) fn open(path: &Path, target: &Target) -> Result<Opened> {
    let (mut arrays, others) = arrays(path)?;
    let there = arrays.iter().map(|a| &a.name[..]).chain(others.iter().map(|a| &a[..]));
    let (count, there) = (arrays.len() + others.len(), there.collect::<Vec<_>>().join(", "));
    let at = |name: &str| arrays.iter().position(|a| a.name == name);
    let known = |names: &[&str]| names.iter().find_map(|name| at(name));
    let none = |name: &str| {
        let message = format!("there is no array {name:?} in the archive; there are {there}");
        Error::file(path, message)
    };
    let targets = match target {
        Target::Array(name) => Some(at(name).ok_or_else(|| none(name))?),
        Target::Column(name) => {
            let found = at(name);
            // Columns of an array have numbers, never names.
            if found.is_none() && name.parse::<usize>().is_err() && !looks_like_a_file(name) {
                return Err(none(name));
            }
            found
        }
        Target::Last => known(&TARGETS),
        Target::File(_) => None,
    };
    let matrices: Vec<usize> = (0..arrays.len())
        .filter(|i| arrays[*i].layout.dimensions == 2 && Some(*i) != targets)
        .collect();
    let features = match (known(&FEATURES).filter(|i| Some(*i) != targets), &matrices[..]) {
        (Some(i), _) => i,
        (None, [only]) => *only,
        _ => {
            let message = format!("which array holds the features? call it X; there are {there}");
            return Err(Error::file(path, message));
        }
    };
    // The last column of one array while another stands by would be a guess.
    if targets.is_none() && *target == Target::Last && count > 1 {
        let message = format!(
            "which array holds the targets? give its name, or the number of a column of {}; there \
             are {there}",
            arrays[features].name
        );
        return Err(Error::file(path, message));
    }
    let targets = targets.map(|i| arrays[i].column()).transpose()?;
    let features = arrays.swap_remove(features);
    if features.layout.fortran && features.layout.width > 1 {
        let message = format!(
            "{} is stored column by column; save numpy.ascontiguousarray of it",
            features.name
        );
        return Err(Error::file(path, message));
    }
    Ok((Box::new(features), targets))
}

fn archive(path: &Path) -> Result<Archive> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    zip::ZipArchive::new(BufReader::new(file)).map_err(|e| broken(path, &e))
}

fn broken(path: &Path, e: &dyn std::fmt::Display) -> Error {
    Error::file(path, format!("the zip archive is damaged or cut short ({e})"))
}

/// The arrays that can be read, and the names of the others, each with the reason.
fn arrays(path: &Path) -> Result<(Vec<Array>, Vec<String>)> {
    let mut zip = archive(path)?;
    let (mut arrays, mut others) = (Vec::new(), Vec::new());
    for index in 0..zip.len() {
        let mut member = zip.by_index(index).map_err(|e| broken(path, &e))?;
        let name = member.name().map_err(|e| broken(path, &e))?.into_owned();
        if let Some(name) = name.strip_suffix(".npy").map(str::to_owned) {
            // Arrays of other shapes and types may be there for other purposes.
            match Layout::read(path, &name, &mut member) {
                Ok((layout, _)) => arrays.push(Array { path: path.into(), index, name, layout }),
                Err(_) => others.push(format!("{name} (no table of numbers)")),
            }
        }
    }
    match arrays.is_empty() {
        true => Err(Error::file(path, "this zip archive holds no NumPy array of numbers")),
        false => Ok((arrays, others)),
    }
}

impl Array {
    /// All numbers of an array that is one row or one column.
    fn column(&self) -> Result<Vec<f64>> {
        let Layout { rows, width, .. } = self.layout;
        if rows > 1 && width > 1 {
            let name = &self.name;
            let message =
                format!("the targets {name} are one row or one column, not {rows} x {width}");
            return Err(Error::file(&self.path, message));
        }
        let mut all = Vec::new();
        self.each(&mut |row| {
            all.extend_from_slice(row);
            Ok(())
        })?;
        Ok(all)
    }
}

impl Table for Array {
    fn path(&self) -> &Path {
        &self.path
    }

    fn width(&self) -> usize {
        self.layout.width
    }

    fn each(&self, row: &mut dyn FnMut(&[f64]) -> Result<()>) -> Result<()> {
        let mut zip = archive(&self.path)?;
        let member = zip.by_index(self.index).map_err(|e| broken(&self.path, &e))?;
        let mut reader = BufReader::with_capacity(1 << 16, member);
        Layout::read(&self.path, &self.name, &mut reader)?;
        self.layout.each(&self.path, &self.name, &mut reader, row)?;
        // The checksum is compared where the member ends.
        std::io::copy(&mut reader.take(1), &mut std::io::sink())
            .map_err(|e| broken(&self.path, &e))?;
        Ok(())
    }
}
