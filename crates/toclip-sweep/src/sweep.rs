//! Reading a sweep, and the cells it has.

use std::path::{Path, PathBuf};

use toclip_experiment::{ExperimentFile, Method, Origin, of_values};
use toclip_words::short;
use toml::{Table, Value};

use crate::axis::{self, SweepAxis};
use crate::dotted_keys;
use crate::error::{Error, Result};
use crate::exclude::Exclude;
use crate::keep::{Keep, divergence_column};

/// The largest number of cells: more would not end in a week.
pub const MOST_CELLS: u64 = 10_000_000;

/// The keys that make a sweep of an experiment.
const OWN_KEYS: [&str; 4] = ["vary", "together", "exclude", "keep"];

/// An experiment whose keys take several values.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The title; the name of the file unless given.
    pub name: String,
    /// The quantities kept of each cell.
    pub keep: Vec<Keep>,
    /// The methods that every cell runs.
    pub methods: Vec<Method>,
    /// Whether the cells are generalised linear models.
    pub model: bool,
    source: Table,
    base: Table,
    axes: Vec<SweepAxis>,
    /// The places in the product that are not excluded; `None` for all of them.
    included: Option<Vec<u64>>,
    cells: u64,
    file: Option<PathBuf>,
    folder: PathBuf,
}

impl Sweep {
    /// Reads a sweep from a file.
    ///
    /// # Errors
    /// [`Error::Read`] for a file that cannot be read, [`Error::Wrong`] for a mistake in it.
    pub fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| Error::Read { file: file.into(), source })?;
        Sweep::parse(&text, file)
    }

    /// Reads a sweep from the text of a file.
    ///
    /// # Errors
    /// [`Error::Wrong`] for a mistake in it.
    pub fn parse(text: &str, file: &Path) -> Result<Self> {
        let table: Table = toml::from_str(text).map_err(|e: toml::de::Error| {
            let start = e.span().map_or(0, |span| span.start);
            let line = 1 + text.bytes().take(start).filter(|byte| *byte == b'\n').count();
            Error::Wrong(format!(
                "{}, line {line}: {}",
                file.display(),
                e.message().trim_end().replace('\n', ", ")
            ))
        })?;
        let folder = file.parent().unwrap_or(Path::new(""));
        Sweep::new(table, Some(file), folder)
    }

    /// A sweep from values of a program, such as a dictionary; files that it names are looked for in
    /// `folder`.
    ///
    /// # Errors
    /// [`Error::Wrong`] for values that are no sweep.
    pub fn of_values(values: Table, folder: &Path) -> Result<Self> {
        Sweep::new(values, None, folder)
    }

    fn new(mut source: Table, file: Option<&Path>, folder: &Path) -> Result<Self> {
        let place = file.map(|file| format!("{}: ", file.display())).unwrap_or_default();
        let wrong = |what: String| Error::Wrong(format!("{place}{what}"));
        let mut base = source.clone();
        let [vary, together, exclude, keep] = OWN_KEYS.map(|key| base.remove(key));
        let axes = axes(vary, together).map_err(wrong)?;
        check_keys(&base, &axes).map_err(wrong)?;
        base.entry("methods").or_insert(Value::Array(vec!["ode".into()]));
        let stem = file.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
        let name = match base.get("name").and_then(Value::as_str) {
            Some(name) => name.to_owned(),
            None => stem.unwrap_or_else(|| "sweep".into()),
        };
        // The saved sweep knows its name.
        source.entry("name").or_insert_with(|| name.clone().into());
        let product = axes.iter().map(|axis| axis.len() as f64).product::<f64>();
        if product > MOST_CELLS as f64 {
            let what = format!(
                "the sweep has {} cells; expected at most {MOST_CELLS}: use fewer values, or several files",
                short(product)
            );
            return Err(wrong(what));
        }
        let product = product as u64;
        let excludes = excludes(exclude, &axes).map_err(wrong)?;
        let included = (!excludes.is_empty()).then(|| {
            let stays = |at: &u64| {
                let places = places(&axes, *at);
                !excludes.iter().any(|exclude| exclude.matches(&places))
            };
            (0..product).filter(stays).collect::<Vec<u64>>()
        });
        let cells = included.as_ref().map_or(product, |included| included.len() as u64);
        if cells == 0 {
            return Err(wrong("exclude: no cells are left".into()));
        }
        let mut sweep = Sweep {
            name,
            keep: Vec::new(),
            methods: Vec::new(),
            model: false,
            source,
            base,
            axes,
            included,
            cells,
            file: file.map(Path::to_owned),
            folder: folder.into(),
        };
        // All cells have the methods and the kind of model of the first.
        let (first, _) = sweep.experiment(0)?;
        let Some(experiment) = first.experiment() else {
            return Err(wrong("a sweep runs trajectories, and the file has none".into()));
        };
        (sweep.methods, sweep.model) = (experiment.methods.clone(), experiment.model.is_some());
        sweep.keep = match keep {
            None => Keep::usual(sweep.model),
            Some(keep) => Keep::parse_list(&keep, sweep.model).map_err(wrong)?,
        };
        Ok(sweep)
    }

    /// The number of cells.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// The axes; cells count like digits, the last axis fastest.
    pub fn axes(&self) -> &[SweepAxis] {
        &self.axes
    }

    /// The file as TOML: everything that the cells depend on, except the files it names.
    pub fn to_toml(&self) -> String {
        self.source.to_string()
    }

    /// The folder in which files are looked for.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The files that it names, as they are written.
    pub fn named_files(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.source.iter().for_each(|(key, value)| named_files(key, value, &mut found));
        found
    }

    /// The names of the numbers in [`Row::values`](crate::Row::values).
    pub fn columns(&self) -> Vec<String> {
        let mut columns = Vec::new();
        for &method in &self.methods {
            columns.extend(self.keep.iter().flat_map(|keep| keep.columns_of(method)));
            columns.push(divergence_column(method));
        }
        columns.extend(self.keep.iter().flat_map(|keep| keep.columns_of_cell()));
        columns
    }

    /// The place of a cell on each axis, from 0.
    pub fn places(&self, cell: u64) -> Vec<usize> {
        places(&self.axes, self.place(cell))
    }

    /// The keys that vary, each with its value in a cell.
    pub fn settings(&self, cell: u64) -> Vec<(&str, &Value)> {
        let pairs = self.axes.iter().zip(self.places(cell));
        pairs
            .flat_map(|(axis, at)| axis.keys.iter().map(move |key| (&*key.key, &key.values[at])))
            .collect()
    }

    /// A cell in words: `cell 4 (clip = 0.1, noise.df = 3)`.
    pub fn describe(&self, cell: u64) -> String {
        let settings = self.settings(cell);
        let shown = settings.iter().map(|(key, value)| match value.as_float() {
            Some(x) => format!("{key} = {}", short(x)),
            None => format!("{key} = {value}"),
        });
        format!("cell {cell} ({})", shown.collect::<Vec<_>>().join(", "))
    }

    /// A cell as values of an experiment.
    pub fn values(&self, cell: u64) -> Table {
        let mut settings = self.settings(cell);
        // A table before its keys: `noise` and then `noise.df`.
        settings.sort_by_key(|(key, _)| key.matches('.').count());
        let mut values = self.base.clone();
        for (key, value) in settings {
            dotted_keys::set(&mut values, key, value.clone());
        }
        values.insert("name".into(), format!("{}, cell {cell}", self.name).into());
        values
    }

    /// A cell as an experiment.
    ///
    /// # Errors
    /// [`Error::Wrong`] for a cell that is no experiment.
    pub fn experiment(&self, cell: u64) -> Result<(ExperimentFile, Origin)> {
        of_values(&self.values(cell), &self.folder).map_err(|e| self.wrong(cell, &e.sentence()))
    }

    /// An error about a cell, with the place.
    pub(crate) fn wrong(&self, cell: u64, what: &str) -> Error {
        let file = self.file.as_ref().map(|file| format!("{}, ", file.display()));
        Error::Wrong(format!("{}{}: {what}", file.unwrap_or_default(), self.describe(cell)))
    }

    /// The place of a cell in the product.
    fn place(&self, cell: u64) -> u64 {
        self.included.as_ref().map_or(cell, |included| included[cell as usize])
    }
}

/// The strings below the keys `file` and `path`, in lists too.
fn named_files(key: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Table(table) => table.iter().for_each(|(key, value)| named_files(key, value, found)),
        Value::Array(list) => list.iter().for_each(|value| named_files(key, value, found)),
        Value::String(name) if matches!(key.rsplit('.').next(), Some("file" | "path")) => {
            found.push(name.clone());
        }
        _ => {}
    }
}

fn axes(vary: Option<Value>, together: Option<Value>) -> Result<Vec<SweepAxis>, String> {
    let mut axes = match vary {
        None => Vec::new(),
        Some(Value::Table(table)) => axis::vary(&table)?,
        Some(other) => {
            return Err(format!(
                "vary is {other}; expected a table such as `[vary]` and below it `clip = [0.5, 0.9]`"
            ));
        }
    };
    for table in tables("together", together)? {
        axes.push(axis::together(&table)?);
    }
    if axes.is_empty() {
        return Err("the sweep varies nothing; add for example `[vary]` and below it \
                    `clip = [0.5, 0.9]`"
            .into());
    }
    Ok(axes)
}

fn excludes(exclude: Option<Value>, axes: &[SweepAxis]) -> Result<Vec<Exclude>, String> {
    tables("exclude", exclude)?.iter().map(|table| Exclude::parse(table, axes)).collect()
}

/// A list of tables, or one.
fn tables(key: &str, value: Option<Value>) -> Result<Vec<Table>, String> {
    let wrong =
        |value: &Value| format!("{key} is {value}; expected tables, each below `[[{key}]]`");
    match value {
        None => Ok(Vec::new()),
        Some(Value::Table(table)) => Ok(vec![table]),
        Some(Value::Array(list)) => list
            .into_iter()
            .map(|item| match item {
                Value::Table(table) => Ok(table),
                other => Err(wrong(&other)),
            })
            .collect(),
        Some(other) => Err(wrong(&other)),
    }
}

/// Refuses a key that varies twice, that cannot vary, or that lies inside a value which is no table.
fn check_keys(base: &Table, axes: &[SweepAxis]) -> Result<(), String> {
    if base.contains_key("criteria") {
        return Err("criteria: a sweep runs trajectories; leave this key out".into());
    }
    let keys: Vec<&str> = axes.iter().flat_map(|a| &a.keys).map(|key| &*key.key).collect();
    for (i, &key) in keys.iter().enumerate() {
        let first = key.split('.').next().unwrap_or_default();
        if keys[..i].contains(&key) {
            return Err(format!("`{key}` varies twice; expected each key once"));
        }
        if ["methods", "name", "criteria"].contains(&first) {
            return Err(format!("`{first}` cannot vary; it is the same for the whole sweep"));
        }
        let mut inner = base;
        for part in key.split('.').collect::<Vec<_>>().split_last().map_or(&[][..], |(_, up)| up) {
            match inner.get(*part) {
                None => break,
                Some(Value::Table(table)) => inner = table,
                Some(other) => {
                    return Err(format!(
                        "`{key}` varies, and `{part}` is {other} in the experiment; expected a table"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The digits of a place in the product: one for each axis, the last fastest.
fn places(axes: &[SweepAxis], mut at: u64) -> Vec<usize> {
    let mut places = vec![0; axes.len()];
    for (place, axis) in places.iter_mut().zip(axes).rev() {
        let len = axis.len() as u64;
        *place = (at % len) as usize;
        at /= len;
    }
    places
}
