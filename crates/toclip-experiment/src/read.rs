//! Reading an experiment. Errors name file, line and key, and the values that are allowed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toclip::dynamics::Covariates;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::error::{Error, Result};
use crate::glm::METHODS as GLM_METHODS;
use crate::value_forms::no_parameters;
use crate::words::{about, deserialize, plain};
use crate::{
    Criteria, Experiment, GlmExperiment, KeyError, LabelledNoise, Method, Runs, SavedTimes,
};
use toclip_words::{short, unknown};

/// Every key, and what to write for one that is missing; `None` for those that may be missing.
pub(crate) const KEYS: [(&str, Option<&str>); 21] = [
    ("name", None),
    ("noise", Some("{ family = \"gaussian\", sigma = 0.5 }")),
    ("batch", None),
    ("rule", None),
    ("criteria", None),
    ("spectrum", Some("{ kind = \"power_law\", dim = 500, exponent = 0.2 }")),
    ("start", Some("{ kind = \"uniform\", norm = 1.0 }")),
    ("groups", None),
    ("momentum", None),
    ("privacy", None),
    ("covariates", None),
    ("time", Some("15.0")),
    ("points", None),
    ("learning_rate", Some("0.7")),
    ("clip", Some("0.9")),
    ("margin", None),
    ("methods", None),
    ("ensemble", None),
    ("tolerance", None),
    ("model", None),
    ("teacher", None),
];
/// An example of a teacher, for files that give a model without one.
const TEACHER: &str = "{ kind = \"uniform\", norm = 3.0 }";
/// The first keys, up to this number, are not about trajectories alone.
const SHARED: usize = 5;

/// An experiment file: trajectories, curves of the criteria, or both; or a generalised linear model.
/// Written as TOML, it is a file with the same content.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentFile {
    /// The title; the name of the file unless given.
    pub name: String,
    /// Theory and simulation along time.
    #[serde(flatten)]
    pub trajectories: Option<Experiment>,
    /// Curves of the criteria.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criteria: Option<Criteria>,
    /// Classification and other generalised linear models along time.
    #[serde(flatten)]
    pub glm: Option<GlmExperiment>,
}

impl ExperimentFile {
    /// The trajectories alone.
    ///
    /// # Errors
    /// [`Error::Wrong`] for a file without any.
    pub fn into_trajectories(self, origin: &Origin) -> Result<Experiment> {
        if self.glm.is_some() {
            let what = "expected least squares, but the file describes a generalised linear model";
            return Err(origin.error("model", what));
        }
        let missing = || origin.error("criteria", "the file defines no trajectories");
        self.trajectories.ok_or_else(missing)
    }
}

/// Where an experiment came from, for errors that are found after it was read.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// None for the values of a program.
    file: Option<PathBuf>,
    /// Where the values of a program look for files.
    folder: PathBuf,
    lines: BTreeMap<String, usize>,
}

impl Origin {
    /// An error that names file, line and key.
    pub fn error(&self, key: &str, what: impl std::fmt::Display) -> Error {
        self.wrong(self.lines.get(key).copied(), about(key, &what.to_string()))
    }

    /// An error that names file and line of its key.
    pub(crate) fn at(&self, error: KeyError) -> Error {
        self.error(error.key, error.what)
    }

    /// The folder that relative paths start from: that of the file, or the one given with the values.
    pub fn folder(&self) -> &Path {
        self.file.as_deref().and_then(Path::parent).unwrap_or(&self.folder)
    }

    fn wrong(&self, line: Option<usize>, what: String) -> Error {
        let file = self.file.as_ref().map(|file| file.display());
        Error::Wrong(match (file, line) {
            (Some(file), Some(line)) => format!("{file}, line {line}: {what}"),
            (Some(file), None) => format!("{file}: {what}"),
            (None, _) => what,
        })
    }
}

/// Reads an experiment from a file.
///
/// # Errors
/// [`Error::Read`] for a file that cannot be read, [`Error::Wrong`] for a mistake in it.
pub fn read(file: &Path) -> Result<(ExperimentFile, Origin)> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| Error::Read { file: file.into(), source })?;
    parse_file(&text, file)
}

/// An experiment from values of a program, such as a dictionary; files that it names are looked for
/// in `folder`.
///
/// The values are written as TOML and read like a file, so both have the same defaults and messages; only
/// the place of a mistake is left out.
///
/// ```
/// let values: toml::Table = toml::from_str("time = -1").unwrap();
/// let error = toclip_experiment::of_values(&values, "".as_ref()).unwrap_err();
/// assert!(error.to_string().starts_with("the key `noise` is missing; for example"));
/// ```
///
/// # Errors
/// [`Error::Wrong`] for values that are no experiment.
pub fn of_values(values: &toml::Table, folder: &Path) -> Result<(ExperimentFile, Origin)> {
    let origin = Origin { folder: folder.into(), ..Origin::default() };
    let text = toml::to_string(values).map_err(|e| origin.wrong(None, e.to_string()))?;
    parse_from(&text, origin)
}

/// Reads an experiment from the text of a file.
///
/// # Errors
/// [`Error::Wrong`] for a mistake in it.
pub fn parse_file(text: &str, file: &Path) -> Result<(ExperimentFile, Origin)> {
    parse_from(text, Origin { file: Some(file.into()), ..Origin::default() })
}

/// Reads an experiment on trajectories from the text of a file.
///
/// # Errors
/// [`Error::Wrong`] for a mistake in it, and for a file without trajectories.
pub fn parse(text: &str, file: &Path) -> Result<(Experiment, Origin)> {
    let (asked, origin) = parse_file(text, file)?;
    Ok((asked.into_trajectories(&origin)?, origin))
}

fn parse_from(text: &str, mut origin: Origin) -> Result<(ExperimentFile, Origin)> {
    let table = DeTable::parse(text).map_err(|e| {
        origin.wrong(e.span().map(|span| line_of(text, span.start)), plain(e.message()))
    })?;
    let keys = KEYS.map(|(key, _)| key);
    let mut values = BTreeMap::new();
    for (key, value) in table.into_inner() {
        let line = line_of(text, key.span().start);
        let key = key.into_inner().into_owned();
        if !keys.contains(&&*key) {
            return Err(origin.wrong(Some(line), unknown("key", &key, &keys)));
        }
        origin.lines.insert(key.clone(), line);
        values.insert(key, value);
    }
    let moving = keys[SHARED..].iter().any(|key| values.contains_key(*key));
    let mut fields = Fields { text, origin: &origin, values };
    let stem = origin.file.as_deref().and_then(Path::file_stem).unwrap_or_default();
    let name: String = fields.get("name")?.unwrap_or_else(|| stem.to_string_lossy().into_owned());
    if fields.values.contains_key("model") {
        let glm = Some(glm(&mut fields, &name)?);
        return Ok((ExperimentFile { name, trajectories: None, criteria: None, glm }, origin));
    }
    if fields.values.contains_key("teacher") {
        let what = "a teacher belongs to a model; add for example `model = { kind = \"logistic\" }`, or \
                    give `start` alone for least squares";
        return Err(origin.error("teacher", what));
    }
    let criteria: Option<Criteria> = fields.get("criteria")?;
    let trajectories =
        if moving || criteria.is_none() { Some(trajectories(&mut fields, &name)?) } else { None };
    let (noise, batch, rule) = match &trajectories {
        Some(e) => (Some(e.noise.clone()), e.batch, e.rule.clone()),
        None => (
            fields.get("noise")?,
            fields.get("batch")?.unwrap_or_default(),
            fields.get("rule")?.unwrap_or_default(),
        ),
    };
    let criteria = criteria.map(|mut criteria| {
        if let (true, Some(noise)) = (criteria.noises.is_empty(), noise) {
            criteria.noises.push(LabelledNoise { label: None, noise });
        }
        (criteria.batch, criteria.rule) = (batch, rule);
        criteria.check().map_err(|what| origin.error("criteria", what)).map(|()| criteria)
    });
    let criteria = criteria.transpose()?;
    Ok((ExperimentFile { name, trajectories, criteria, glm: None }, origin))
}

fn trajectories(fields: &mut Fields<'_>, name: &str) -> Result<Experiment> {
    let experiment = Experiment {
        name: name.to_owned(),
        noise: fields.need("noise")?,
        batch: fields.get("batch")?.unwrap_or_default(),
        rule: fields.get("rule")?.unwrap_or_default(),
        groups: fields.get("groups")?.unwrap_or_default(),
        momentum: fields.get("momentum")?,
        privacy: fields.get("privacy")?,
        spectrum: fields.need("spectrum")?,
        start: fields.need("start")?,
        covariates: fields.covariates()?,
        time: fields.need("time")?,
        points: fields.get("points")?.unwrap_or_default(),
        learning_rate: fields.need("learning_rate")?,
        clip: fields.need("clip")?,
        margin: fields.get("margin")?,
        methods: fields.get("methods")?.unwrap_or(vec![Method::Ode, Method::Sgd]),
        ensemble: fields.get("ensemble")?.unwrap_or_default(),
        tolerance: fields.get("tolerance")?.unwrap_or(1e-8),
    };
    let Experiment { time, tolerance, points, ensemble, .. } = experiment;
    check_numbers(time, tolerance, points, ensemble)
        .and_then(|()| check_methods(&experiment.methods, &Method::ALL))
        .map_err(|e| fields.origin.at(e))?;
    Ok(experiment)
}

fn glm(fields: &mut Fields<'_>, name: &str) -> Result<GlmExperiment> {
    let model = fields.get("model")?;
    let teacher = fields.get("teacher")?;
    let (Some(model), Some(teacher)) = (model, teacher) else {
        let what = format!("the key `teacher` is missing; for example `teacher = {TEACHER}`");
        return Err(fields.origin.wrong(None, what));
    };
    let experiment = GlmExperiment {
        name: name.to_owned(),
        model,
        teacher,
        start: fields.get("start")?.unwrap_or_else(crate::glm::zero),
        spectrum: fields.need("spectrum")?,
        noise: fields.get("noise")?,
        batch: fields.get("batch")?.unwrap_or_default(),
        time: fields.need("time")?,
        points: fields.get("points")?.unwrap_or_default(),
        learning_rate: fields.need("learning_rate")?,
        clip: fields.need("clip")?,
        methods: fields.get("methods")?.unwrap_or(vec![Method::Ode, Method::Sgd]),
        ensemble: fields.get("ensemble")?.unwrap_or_default(),
        tolerance: fields.get("tolerance")?.unwrap_or(1e-8),
    };
    if let Some(key) = fields.values.keys().next() {
        let what = "is for least squares and cannot be combined with `model`; leave it out";
        return Err(fields.origin.error(key, what));
    }
    let GlmExperiment { time, tolerance, points, ensemble, .. } = experiment;
    check_numbers(time, tolerance, points, ensemble)
        .and_then(|()| check_methods(&experiment.methods, &GLM_METHODS))
        .and_then(|()| experiment.check())
        .map_err(|e| fields.origin.at(e))?;
    Ok(experiment)
}

/// Refuses numbers that no experiment along time can have.
fn check_numbers(
    time: f64,
    tolerance: f64,
    points: SavedTimes,
    runs: Runs,
) -> Result<(), KeyError> {
    let Runs { runs, seed, confidence } = runs;
    let (key, what) = if !(time > 0.0 && time.is_finite()) {
        ("time", format!("is {}; expected a positive number", short(time)))
    } else if points.count < 2 {
        let what = format!("the number of points is {}; expected at least 2", points.count);
        ("points", what)
    } else if let Some(first) = points.first.filter(|first| !(*first > 0.0 && *first < time)) {
        let first = short(first);
        ("points", format!("`first` is {first}; expected a number between 0 and the time"))
    } else if runs == 0 {
        ("ensemble", "`runs` is 0; expected at least 1".into())
    } else if i64::try_from(seed).is_err() {
        ("ensemble", "`seed` is too large; expected at most 2^63 - 1".into())
    } else if !(confidence > 0.0 && confidence < 1.0) {
        let given = short(confidence);
        let what =
            format!("`confidence` is {given}; expected a share between 0 and 1, such as 0.8");
        ("ensemble", what)
    } else if !(1e-13..=0.1).contains(&tolerance) {
        let given = short(tolerance);
        ("tolerance", format!("is {given}; expected a number from 1e-13 to 0.1"))
    } else {
        return Ok(());
    };
    Err(KeyError::new(key, what))
}

/// The values of the keys, not yet read.
struct Fields<'a> {
    text: &'a str,
    origin: &'a Origin,
    values: BTreeMap<String, Spanned<DeValue<'a>>>,
}

impl<'a> Fields<'a> {
    fn get<T: Deserialize<'a>>(&mut self, key: &str) -> Result<Option<T>> {
        let Some(value) = self.values.remove(key) else { return Ok(None) };
        let (whole, table) = (value.span(), value.get_ref().is_table());
        T::deserialize(ValueDeserializer::from(value)).map(Some).map_err(|e| {
            // Buffered values have lost their place; that of the key they belong to is known.
            let at = e.span().filter(|s| !s.is_empty()).unwrap_or(whole.clone());
            let line = line_of(self.text, at.start);
            let mut said = plain(e.message());
            if table && said.starts_with("is ") {
                let inner = self.text.get(whole.start..at.start).and_then(key_before);
                said = inner.map_or("a value".into(), |key| format!("`{key}`")) + " " + &said;
            }
            self.origin.wrong(Some(line), about(key, &said))
        })
    }

    fn need<T: Deserialize<'a>>(&mut self, key: &str) -> Result<T> {
        let found = self.get(key)?;
        found.ok_or_else(|| {
            let example = KEYS.iter().find(|(known, _)| *known == key).and_then(|(_, e)| *e);
            let example = example.unwrap_or_default();
            let what = format!("the key `{key}` is missing; for example `{key} = {example}`");
            self.origin.wrong(None, what)
        })
    }

    fn covariates(&mut self) -> Result<Covariates> {
        let Some(value) = self.get::<toml::Value>("covariates")? else {
            return Ok(Covariates::default());
        };
        no_parameters(&value, &["gaussian", "rademacher", "uniform", "laplace"])
            .and_then(|()| deserialize(value, Covariates::deserialize))
            .map_err(|what| self.origin.error("covariates", what))
    }
}

/// The key of a table that ends a text, as in `{ runs = 5, seed =`.
fn key_before(text: &str) -> Option<&str> {
    text.trim_end().strip_suffix('=')?.trim_end().rsplit([' ', ',', '{', '\n']).next()
}

/// The line of a place in the text, from 1.
fn line_of(text: &str, place: usize) -> usize {
    1 + text.bytes().take(place).filter(|byte| *byte == b'\n').count()
}

/// Refuses an empty list and a method given twice; `all` is the list of those that exist.
///
/// # Errors
/// [`KeyError`] that says what is wrong with the list.
pub fn check_methods(methods: &[Method], all: &[Method]) -> Result<(), KeyError> {
    let twice = methods.iter().enumerate().find(|(i, method)| methods[..*i].contains(method));
    let what = match twice {
        _ if methods.is_empty() => {
            let all: Vec<&str> = all.iter().map(|method| method.key()).collect();
            format!("the list is empty; expected at least one of: {}", all.join(", "))
        }
        Some((_, method)) => format!("\"{}\" is given twice", method.key()),
        None => return Ok(()),
    };
    Err(KeyError::new("methods", what))
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
    fn an_experiment_is_read_with_its_defaults() {
        let e = read(WHOLE).unwrap();
        assert_eq!((e.time, e.points.count, e.tolerance), (15.0, 201, 1e-8));
        assert_eq!(e.methods, [Method::Ode, Method::Hsgd, Method::Sgd]);
        assert_eq!(e.learning_rate.schedule().unwrap().at(3.0), 0.6);
        assert!(matches!(e.clip, Clip::Schedule(ref c) if c.at(0.0) == 0.4));
    }

    #[test]
    fn every_form_reads_back_from_its_own_toml() {
        for line in [
            "clip = 'none'",
            "clip = inf",
            "clip = 'inf'",
            "clip = { kind = 'none' }",
            "clip = 'proportional'",
            "clip = { kind = 'online', memory = 100 }",
            "clip = { kind = 'online', memory = 100, scale = 'mean_square', kappa = 2 }",
            "learning_rate = 'greedy'",
            "learning_rate = { kind = 'greedy' }",
            "margin = 0.9",
            "margin = { kind = 'predicted', margin = 0.5, time = 3 }",
            "criteria = { curves = ['csc'], risk = 3, threshold = [0.1, 5] }",
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
            "rule = 'skip'",
            "rule = 'root'",
            "rule = 'by_value'",
            "groups = [{ size = 100 }, { size = 400, ratio = 0.5 }]",
            "momentum = 0.9",
            "momentum = { kind = 'average', delta = 2, on_skip = 'zero_gradient' }",
            "momentum = { beta = 0.9, dampening = 0.9 }",
            "privacy = { noise_multiplier = 1.0 }",
            "methods = ['unclipped', 'volterra']",
            "ensemble = { runs = 7 }",
            "tolerance = 1e-6",
        ] {
            let (file, _) = parse_file(&with(line), Path::new("e.toml")).unwrap();
            let text = toml::to_string(&file).unwrap();
            let (again, _) = parse_file(&text, Path::new("e.toml")).unwrap();
            assert_eq!(again, file, "{line}\n{text}");
        }
        for none in ["inf", "'inf'", "{ kind = 'none' }"] {
            assert_eq!(read(&with(&format!("clip = {none}"))).unwrap().clip, Clip::None);
        }
        let log = read(&with("points = { spacing = 'log', count = 5 }")).unwrap().points;
        assert_eq!((log.spacing, log.first), (Spacing::Log, None));
        let file = read(&with("noise = { family = 'empirical', file = 'r.csv' }")).unwrap().noise;
        assert!(matches!(file, NoiseChoice::File(_)));
    }

    #[test]
    fn a_mistake_is_reported_with_file_line_and_key() {
        let mut said = String::new();
        for line in include_str!("mistakes.txt").lines() {
            let error = read(&with(line)).unwrap_err().to_string();
            assert!(!error.contains('\n'), "{line} says: {error}");
            said += &format!("{line}\n    {error}\n");
            // The same as values of a program: the same sentence, without the place.
            if let Ok(values) = toml::from_str(&with(line)) {
                let values = of_values(&values, Path::new("")).unwrap_err().to_string();
                assert!(error.ends_with(&values), "{line}: {error} but {values}");
            }
        }
        said += &read("name = 'x'").unwrap_err().to_string();
        insta::assert_snapshot!(said);
    }

    const CLASSES: &str = r#"
model    = { kind = "logistic", flips = 0.1 }
teacher  = { kind = "uniform", norm = 3.0 }
spectrum = { kind = "power_law", dim = 500, exponent = 0.2 }
time     = 10
learning_rate = 2.0
clip          = 0.4
"#;

    /// The example of a classification with one line replaced or added.
    fn classes_with(line: &str) -> String {
        let key = line.split('=').next().unwrap().trim();
        let kept = CLASSES.lines().filter(|l| l.split('=').next().unwrap().trim() != key);
        kept.chain([line]).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_model_makes_it_a_generalised_linear_model() {
        for line in [
            "time = 10",
            "model = 'logistic'",
            "model = { kind = 'huber', delta = 1.5 }\nnoise = { family = 'gaussian', sigma = 0.5 }",
            "start = { kind = 'random', norm = 2.0, seed = 1 }",
            "teacher = { kind = 'power_law', norm = 3.0, exponent = 0.5 }",
            "batch = { size = 8, rule = 'per_sample' }",
            "learning_rate = { kind = 'cosine', from = 2.0, over = 10.0 }",
            "methods = ['ode', 'unclipped']",
        ] {
            let (file, origin) = parse_file(&classes_with(line), Path::new("e.toml")).unwrap();
            let glm = file.glm.clone().unwrap();
            assert!(file.trajectories.is_none() && file.criteria.is_none());
            crate::GlmProblem::new(&glm, &origin).unwrap();
            let text = toml::to_string(&file).unwrap();
            let (again, _) = parse_file(&text, Path::new("e.toml")).unwrap();
            assert_eq!(again, file, "{line}\n{text}");
        }
        let (file, origin) = parse_file(CLASSES, Path::new("e.toml")).unwrap();
        let start = file.glm.as_ref().unwrap().start.clone();
        assert_eq!(start, toclip::spectrum::Start::Uniform { norm: 0.0 });
        let error = file.into_trajectories(&origin).unwrap_err().to_string();
        assert!(error.starts_with("e.toml, line 2: model: expected least squares"), "{error}");
    }

    #[test]
    fn what_does_not_go_with_a_model_is_refused() {
        let mut said = String::new();
        for line in include_str!("model_mistakes.txt").lines() {
            let found = parse_file(&classes_with(line), Path::new("e.toml"));
            let error = found
                .and_then(|(file, origin)| crate::GlmProblem::new(&file.glm.unwrap(), &origin));
            let error = error.map(|_| ()).unwrap_err().to_string();
            assert!(!error.contains('\n'), "{line} says: {error}");
            said += &format!("{line}\n    {error}\n");
        }
        let teacher = with("teacher = { kind = 'uniform', norm = 3.0 }");
        said += &read(&teacher).unwrap_err().to_string();
        let alone = CLASSES.replace("teacher", "#");
        said += &format!("\n{}", parse_file(&alone, Path::new("e.toml")).unwrap_err());
        insta::assert_snapshot!(said);
    }

    #[test]
    fn a_file_may_ask_for_criteria_alone() {
        let text = "criteria = { curves = ['ccc'], risk = 3, threshold = [0.1, 5], points = 3 }\n\
                    noise = { family = 'gaussian', sigma = 1.0 }\nbatch = 4";
        let (file, origin) = parse_file(text, Path::new("x/e.toml")).unwrap();
        assert!(file.trajectories.is_none() && file.name == "e");
        let criteria = file.criteria.clone().unwrap();
        assert!(!criteria.batch.is_single());
        let found = criteria.curves(&origin).unwrap();
        assert_eq!((found.against, found.x[0], found.x[2]), ("c", 0.1, 5.0));
        assert_eq!(found.curves.len(), 1);
        let error = file.into_trajectories(&origin).unwrap_err().to_string();
        assert_eq!(error, "x/e.toml, line 1: criteria: the file defines no trajectories");
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
