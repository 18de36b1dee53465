//! Reading an experiment, and saying where it is wrong: file, line, key, and what would be right.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use toml::de::{DeTable, Error as TomlError};

use crate::batch;
use crate::choice::{self, Value, plain};
use crate::error::{Error, Place, Result};
use crate::{Experiment, Method, Points, Runs, words};

/// Every key, and what to write for one that is missing; `None` for those that may be missing.
pub(crate) const KEYS: [(&str, Option<&str>); 13] = [
    ("name", None),
    ("spectrum", Some("{ kind = \"power_law\", dim = 500, exponent = 0.2 }")),
    ("start", Some("{ kind = \"uniform\", norm = 1.0 }")),
    ("noise", Some("{ family = \"gaussian\", sigma = 0.5 }")),
    ("batch", None),
    ("covariates", None),
    ("time", Some("15.0")),
    ("points", None),
    ("learning_rate", Some("0.7")),
    ("clip", Some("0.9")),
    ("methods", None),
    ("ensemble", None),
    ("tolerance", None),
];

/// Where an experiment came from, to name the place of what turns out wrong later.
#[derive(Debug, Clone)]
pub struct Source {
    /// None for the values of a program.
    file: Option<PathBuf>,
    lines: BTreeMap<String, usize>,
}

impl Source {
    /// An error that names file, line and key.
    pub fn error(&self, key: &str, what: impl std::fmt::Display) -> Error {
        self.wrong(self.lines.get(key).copied(), format!("{key}: {what}"))
    }

    /// The folder that relative paths start from: that of the file, or the present one.
    pub fn folder(&self) -> &Path {
        self.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""))
    }

    fn wrong(&self, line: Option<usize>, what: String) -> Error {
        Error::Wrong { place: Place { file: self.file.clone(), line }, what }
    }
}

/// Reads an experiment from a file.
pub fn read(file: &Path) -> Result<(Experiment, Source)> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| Error::Read { file: file.into(), source })?;
    parse(&text, file)
}

/// An experiment from values of a program, such as a dictionary; files that it names are looked for
/// in the present folder.
///
/// The values are written as TOML and read like a file, so that both are understood alike; only the
/// place of a mistake is left out.
///
/// ```
/// let values: toml::Table = toml::from_str("time = -1").unwrap();
/// let error = toclip_experiment::of_values(&values).unwrap_err();
/// assert!(error.to_string().starts_with("the key `spectrum` is missing; for example"));
/// ```
pub fn of_values(values: &toml::Table) -> Result<(Experiment, Source)> {
    let source = Source { file: None, lines: BTreeMap::new() };
    let text = toml::to_string(values).map_err(|e| source.wrong(None, e.to_string()))?;
    parse_from(&text, source)
}

/// Reads an experiment from the text of a file.
pub fn parse(text: &str, file: &Path) -> Result<(Experiment, Source)> {
    parse_from(text, Source { file: Some(file.into()), lines: BTreeMap::new() })
}

fn parse_from(text: &str, mut source: Source) -> Result<(Experiment, Source)> {
    let table = DeTable::parse(text)
        .map_err(|e| source.wrong(e.span().map(|span| line_of(text, span.start)), one_line(&e)))?;
    let mut values = BTreeMap::new();
    for (key, value) in table.into_inner() {
        let line = line_of(text, key.span().start);
        let key = key.into_inner().into_owned();
        if !KEYS.iter().any(|(known, _)| *known == key) {
            let keys = KEYS.map(|(key, _)| key).join("`, `");
            let what = format!("unknown key `{key}`; the keys are `{keys}`");
            return Err(source.wrong(Some(line), what));
        }
        source.lines.insert(key.clone(), line);
        values.insert(key, value);
    }
    for (key, example) in KEYS {
        if let Some(example) = example.filter(|_| !values.contains_key(key)) {
            let what = format!("the key `{key}` is missing; for example `{key} = {example}`");
            return Err(source.wrong(None, what));
        }
    }
    let experiment = {
        let mut fields = Fields { text, source: &source, values };
        let stem = source.file.as_deref().and_then(Path::file_stem).unwrap_or_default();
        let stem = stem.to_string_lossy().into_owned();
        Experiment {
            name: fields.get("name", plain)?.unwrap_or(stem),
            spectrum: fields.need("spectrum", plain)?,
            start: fields.need("start", plain)?,
            noise: fields.need("noise", choice::noise)?,
            batch: fields.get("batch", batch::batch)?.unwrap_or_default(),
            covariates: fields.get("covariates", choice::covariates)?.unwrap_or_default(),
            time: fields.need("time", time)?,
            points: fields.get("points", choice::points)?.unwrap_or_default(),
            learning_rate: fields.need("learning_rate", choice::learning_rate)?,
            clip: fields.need("clip", choice::clip)?,
            methods: fields.get("methods", methods)?.unwrap_or(vec![Method::Ode, Method::Sgd]),
            ensemble: fields.get("ensemble", runs)?.unwrap_or_default(),
            tolerance: fields.get("tolerance", tolerance)?.unwrap_or(1e-8),
        }
    };
    if let Points { first: Some(first), .. } = experiment.points
        && !(first > 0.0 && first < experiment.time)
    {
        let what = format!("first = {first} is not allowed: must lie between 0 and the time");
        return Err(source.error("points", what));
    }
    Ok((experiment, source))
}

/// The values of the keys, not yet read.
struct Fields<'a> {
    text: &'a str,
    source: &'a Source,
    values: BTreeMap<String, Value<'a>>,
}

impl<'a> Fields<'a> {
    fn get<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Value<'a>) -> Result<T, TomlError>,
    ) -> Result<Option<T>> {
        let Some(value) = self.values.remove(key) else { return Ok(None) };
        let whole = value.span();
        read(value).map(Some).map_err(|e| {
            // Buffered values have lost their place; that of the key they belong to is known.
            let at = e.span().filter(|s| !s.is_empty()).unwrap_or(whole);
            let line = line_of(self.text, at.start);
            self.source.wrong(Some(line), format!("{key}: {}", one_line(&e)))
        })
    }

    fn need<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Value<'a>) -> Result<T, TomlError>,
    ) -> Result<T> {
        let missing = || self.source.wrong(None, format!("the key `{key}` is missing"));
        self.get(key, read)?.ok_or_else(missing)
    }
}

fn one_line(error: &TomlError) -> String {
    words::plain(error.message())
}

/// The line of a place in the text, from 1.
fn line_of(text: &str, place: usize) -> usize {
    1 + text.bytes().take(place).filter(|byte| *byte == b'\n').count()
}

fn time(value: Value<'_>) -> Result<f64, TomlError> {
    let time: f64 = plain(value)?;
    if time > 0.0 && time.is_finite() {
        return Ok(time);
    }
    Err(TomlError::custom(format!("{time} is not allowed: must be positive and finite")))
}

fn tolerance(value: Value<'_>) -> Result<f64, TomlError> {
    let tolerance: f64 = plain(value)?;
    if (1e-13..=0.1).contains(&tolerance) {
        return Ok(tolerance);
    }
    Err(TomlError::custom(format!("{tolerance} is not allowed: give between 1e-13 and 0.1")))
}

fn methods(value: Value<'_>) -> Result<Vec<Method>, TomlError> {
    let methods: Vec<Method> = plain(value)?;
    check_methods(&methods).map_err(TomlError::custom)?;
    Ok(methods)
}

/// Refuses an empty list and a method given twice.
pub fn check_methods(methods: &[Method]) -> Result<(), String> {
    if methods.is_empty() {
        let all = Method::ALL.map(Method::key).join("\", \"");
        return Err(format!("the list is empty; give at least one of \"{all}\""));
    }
    match methods.iter().enumerate().find(|(i, method)| methods[..*i].contains(method)) {
        Some((_, method)) => Err(format!("\"{}\" is given twice", method.key())),
        None => Ok(()),
    }
}

fn runs(value: Value<'_>) -> Result<Runs, TomlError> {
    let runs: Runs = plain(value)?;
    if runs.runs == 0 {
        return Err(TomlError::custom("runs = 0 is not allowed: give at least 1"));
    }
    if i64::try_from(runs.seed).is_err() {
        return Err(TomlError::custom("the seed is too large: give at most 2^63 - 1"));
    }
    if !(runs.confidence > 0.0 && runs.confidence < 1.0) {
        return Err(TomlError::custom(format!(
            "confidence = {} is not allowed: give a share between 0 and 1, such as 0.8",
            runs.confidence
        )));
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clip, NoiseChoice, Spacing};

    const WHOLE: &str = r#"
name = "Clipped SGD under Cauchy noise"
spectrum = { kind = "power_law", dim = 500, exponent = 0.2 }
start    = { kind = "uniform", norm = 1.0 }
noise    = { family = "student_t", df = 1.0, scale = 0.5 }
time     = 15
learning_rate = 0.6
clip          = 0.4
methods  = ["ode", "hsgd", "sgd"]
ensemble = { runs = 100, seed = 1, confidence = 0.8 }
"#;

    fn read(text: &str) -> Result<Experiment> {
        parse(text, Path::new("x/e.toml")).map(|(experiment, _)| experiment)
    }

    /// The example with one line replaced.
    fn with(line: &str) -> String {
        let key = line.split('=').next().unwrap().trim();
        let mut lines: Vec<&str> = WHOLE.lines().collect();
        match lines.iter().position(|l| l.split('=').next().unwrap().trim() == key) {
            Some(i) => lines[i] = line,
            None => lines.push(line),
        }
        lines.join("\n")
    }

    #[test]
    fn the_example_of_the_design_is_read() {
        let e = read(WHOLE).unwrap();
        assert_eq!((e.time, e.points.count, e.tolerance), (15.0, 201, 1e-8));
        assert_eq!(e.methods, [Method::Ode, Method::Hsgd, Method::Sgd]);
        assert_eq!(e.learning_rate.at(3.0), 0.6);
        assert!(matches!(e.clip, Clip::Schedule(ref c) if c.at(0.0) == 0.4));
    }

    #[test]
    fn every_way_to_say_it_comes_back_from_its_own_toml() {
        for line in [
            "clip = 'none'",
            "clip = inf",
            "clip = { kind = 'max_ccc' }",
            "clip = { kind = 'proportional', kappa = 0.3, compensation = 'printed' }",
            "clip = { kind = 'proportional' }",
            "clip = { kind = 'warmup', value = 2, over = 3, from = 1 }",
            "learning_rate = { kind = 'cosine', from = 0.7, over = 15.0 }",
            "learning_rate = { kind = 'table', times = [0, 1], values = [0.1, 0.2] }",
            "points = 50",
            "points = { spacing = 'log', count = 50, first = 0.1 }",
            "noise = { family = 'empirical', file = 'r.csv' }",
            "noise = { family = 'empirical', values = [1.0, -1.0] }",
            "spectrum = { kind = 'file', path = 'k.npy' }",
            "spectrum = { kind = 'blocks', blocks = [{ value = 1.0, multiplicity = 4 }] }",
            "covariates = { kind = 'student_t', df = 5.0 }",
            "batch = 32",
            "batch = { size = 8, rule = 'per_sample' }",
            "methods = ['unclipped', 'volterra']",
            "ensemble = { runs = 7 }",
            "tolerance = 1e-6",
        ] {
            let experiment = read(&with(line)).unwrap();
            let text = toml::to_string(&experiment).unwrap();
            assert_eq!(read(&text).unwrap(), experiment, "{line}\n{text}");
        }
        let log = read(&with("points = { spacing = 'log', count = 5 }")).unwrap().points;
        assert_eq!((log.spacing, log.first), (Spacing::Log, None));
        let file = read(&with("noise = { family = 'empirical', file = 'r.csv' }")).unwrap().noise;
        assert!(matches!(file, NoiseChoice::File(_)));
    }

    #[test]
    fn a_mistake_is_told_with_file_line_and_key() {
        for (line, number, says) in [
            ("colour = 1", 11, "unknown key `colour`; the keys are `name`, `spectrum`"),
            ("time = -1", 6, "time: -1 is not allowed: must be positive"),
            ("time = 'long'", 6, "time: invalid type: string \"long\""),
            ("spectrum = { kind = 'power_law', dims = 5 }", 3, "spectrum: unknown field `dims`"),
            (
                "spectrum = { kind = 'flat' }",
                3,
                "unknown variant `flat`, expected one of `isotropic`",
            ),
            ("start = { kind = 'uniform' }", 4, "start: missing field `norm`"),
            ("noise = { family = 'gaussian', sigma = -1 }", 5, "sigma = -1 is not allowed"),
            ("noise = { family = 'empirical' }", 5, "needs `values`"),
            ("noise = { family = 'empirical', file = 'r', p = 1 }", 5, "unknown field `p`"),
            ("batch = 0", 11, "batch = 0 is not allowed"),
            ("batch = 'large'", 11, "give a whole number, or a table"),
            ("batch = { size = 4, rule = 'each' }", 11, "unknown variant `each`"),
            ("learning_rate = -0.1", 7, "learning_rate: value = -0.1 is not allowed"),
            ("learning_rate = inf", 7, "a learning rate is finite"),
            ("learning_rate = 'fast'", 7, "give a number, or a table"),
            ("learning_rate = { kind = 'cosine', from = 1 }", 7, "missing field `over`"),
            ("clip = 0", 8, "clip: 0 is not allowed: a threshold is positive"),
            ("clip = 'never'", 8, "\"never\" is not known"),
            ("clip = { kind = 'best' }", 8, "unknown kind `best`, expected one of `max_ccc`"),
            ("clip = { kind = 'proportional', kapa = 1 }", 8, "unknown field `kapa`"),
            ("clip = { kind = 'proportional', kappa = 0 }", 8, "kappa = 0 is not allowed"),
            ("methods = []", 9, "the list is empty"),
            ("methods = ['ode', 'ode']", 9, "\"ode\" is given twice"),
            ("methods = ['euler']", 9, "unknown variant `euler`, expected one of `ode`"),
            ("ensemble = { runs = 0 }", 10, "runs = 0 is not allowed"),
            ("ensemble = { confidence = 80 }", 10, "confidence = 80 is not allowed"),
            ("ensemble = { seeds = 1 }", 10, "unknown field `seeds`"),
            ("points = 1", 11, "points: 1 is too few"),
            (
                "points = { count = 5, spacing = 'log', first = 20 }",
                11,
                "first = 20 is not allowed",
            ),
            ("tolerance = 0", 11, "tolerance: 0 is not allowed: give between"),
            ("time = 15 15", 6, "x/e.toml, line 6: "),
        ] {
            let error = read(&with(line)).unwrap_err().to_string();
            let place = format!("x/e.toml, line {number}: ");
            assert!(error.starts_with(&place), "{line} says: {error}");
            assert!(error.contains(says) && !error.contains('\n'), "{line} says: {error}");
            // The same as values of a program: the same sentence, and no place.
            if let Ok(values) = toml::from_str(&with(line)) {
                let said = of_values(&values).unwrap_err().to_string();
                assert_eq!(Some(&*said), error.strip_prefix(&place), "{line}");
            }
        }
        let missing = read("name = 'x'").unwrap_err().to_string();
        assert!(missing.contains("`spectrum` is missing; for example `spectrum = {"), "{missing}");
    }

    #[test]
    fn a_mistake_inside_a_long_table_has_its_own_line() {
        let text = with("spectrum = { kind = 'power_law',\n dim = 5,\n exponent = 'x' }");
        let error = read(&text).unwrap_err().to_string();
        assert!(error.starts_with("x/e.toml, line "), "{error}");
        let runs = with("ensemble = {\n runs = 5,\n seed = -1 }");
        let error = read(&runs).unwrap_err().to_string();
        assert!(error.starts_with("x/e.toml, line 12: ensemble: "), "{error}");
    }

    #[test]
    fn the_name_of_the_file_is_the_name_if_there_is_none() {
        assert_eq!(read(&WHOLE.replace("name", "#")).unwrap().name, "e");
    }
}
