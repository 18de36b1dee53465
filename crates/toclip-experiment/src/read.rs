//! Reading an experiment. Errors name file, line and key, and the values that are allowed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use toclip::dynamics::Covariates;
use toclip::spectrum::Start;
use toclip_words::{short, unknown};
use toml::Value;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Result};
use crate::model::{METHODS, check_model};
use crate::value_forms::no_parameters;
use crate::{
    Criteria, Experiment, GroupsChoice, KeyError, LabelledNoise, Method, Mistake, NoiseChoice,
    RuleChoice, Runs, SavedTimes, from_value,
};

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

/// What a file asks for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ExperimentFile {
    /// Trajectories along time, and perhaps curves of the criteria.
    Trajectories {
        /// The title; the name of the file unless given.
        name: String,
        /// The problem, and what to compute of it.
        #[serde(flatten)]
        experiment: Box<Experiment>,
        /// Curves of the criteria.
        #[serde(skip_serializing_if = "Option::is_none")]
        criteria: Option<Criteria>,
    },
    /// Curves of the criteria alone.
    Criteria {
        /// The title; the name of the file unless given.
        name: String,
        /// The curves.
        criteria: Criteria,
    },
}

impl ExperimentFile {
    /// The title.
    pub fn name(&self) -> &str {
        match self {
            ExperimentFile::Trajectories { name, .. } | ExperimentFile::Criteria { name, .. } => {
                name
            }
        }
    }

    /// The trajectories, if it asks for any.
    pub fn experiment(&self) -> Option<&Experiment> {
        match self {
            ExperimentFile::Trajectories { experiment, .. } => Some(experiment),
            ExperimentFile::Criteria { .. } => None,
        }
    }

    /// The curves of the criteria, if it asks for any.
    pub fn criteria(&self) -> Option<&Criteria> {
        match self {
            ExperimentFile::Trajectories { criteria, .. } => criteria.as_ref(),
            ExperimentFile::Criteria { criteria, .. } => Some(criteria),
        }
    }

    /// The trajectories alone.
    ///
    /// # Errors
    /// [`Error::Wrong`] for a file without any.
    pub fn into_trajectories(self, origin: &Origin) -> Result<Experiment> {
        match self {
            ExperimentFile::Trajectories { experiment, .. } => Ok(*experiment),
            ExperimentFile::Criteria { .. } => {
                Err(origin.error("criteria", "the file defines no trajectories"))
            }
        }
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
        self.at(key, &Mistake::Said(what.to_string()))
    }

    /// An error that names file and line of its key.
    pub fn key_error(&self, KeyError { key, mistake }: KeyError) -> Error {
        self.at(key, &mistake)
    }

    fn at(&self, key: &str, mistake: &Mistake) -> Error {
        self.wrong(self.lines.get(key).copied(), mistake.about(key))
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
/// Files are read by the same function, so both have the same defaults and messages; only the place of a
/// mistake is left out.
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
    read_values(values.clone(), Origin { folder: folder.into(), ..Origin::default() })
}

/// Reads an experiment from the text of a file.
///
/// # Errors
/// [`Error::Wrong`] for a mistake in it.
pub fn parse_file(text: &str, file: &Path) -> Result<(ExperimentFile, Origin)> {
    let mut origin = Origin { file: Some(file.into()), ..Origin::default() };
    let table = DeTable::parse(text).map_err(|e| {
        let line = e.span().map(|span| line_of(text, span.start));
        origin.wrong(line, e.message().trim_end().replace('\n', ", "))
    })?;
    let lines = |at: usize| line_of(text, at);
    let values = plain_table(table.get_ref(), "", &lines, &mut origin.lines);
    read_values(values, origin)
}

/// Reads an experiment on trajectories from the text of a file.
///
/// # Errors
/// [`Error::Wrong`] for a mistake in it, and for a file without trajectories.
pub fn parse(text: &str, file: &Path) -> Result<(Experiment, Origin)> {
    let (asked, origin) = parse_file(text, file)?;
    Ok((asked.into_trajectories(&origin)?, origin))
}

/// The values of a table, and the lines of its keys and theirs.
fn plain_table(
    table: &DeTable<'_>,
    path: &str,
    line_of: &dyn Fn(usize) -> usize,
    lines: &mut BTreeMap<String, usize>,
) -> toml::Table {
    let mut plain = toml::Table::new();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        lines.insert(path.clone(), line_of(key.span().start));
        plain.insert(name.to_owned(), plain_value(value.get_ref(), &path, line_of, lines));
    }
    plain
}

fn plain_value(
    value: &DeValue<'_>,
    path: &str,
    line_of: &dyn Fn(usize) -> usize,
    lines: &mut BTreeMap<String, usize>,
) -> Value {
    match value {
        DeValue::String(string) => Value::String(string.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            // Larger than an integer of TOML can be; as a number it is refused where it does not fit.
            Err(_) => Value::Float(number.as_str().parse().unwrap_or(f64::INFINITY)),
        },
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(truth) => Value::Boolean(*truth),
        DeValue::Datetime(time) => Value::Datetime(*time),
        DeValue::Array(all) => {
            let each = all.iter().map(|value| plain_value(value.get_ref(), path, line_of, lines));
            Value::Array(each.collect())
        }
        DeValue::Table(table) => Value::Table(plain_table(table, path, line_of, lines)),
    }
}

fn read_values(values: toml::Table, origin: Origin) -> Result<(ExperimentFile, Origin)> {
    let keys = KEYS.map(|(key, _)| key);
    if let Some(key) = values.keys().find(|key| !keys.contains(&&***key)) {
        let line = origin.lines.get(key).copied();
        return Err(origin.wrong(line, unknown("key", key, &keys)));
    }
    let moving = keys[SHARED..].iter().any(|key| values.contains_key(*key));
    let mut fields = Fields { origin: &origin, values };
    let stem = origin.file.as_deref().and_then(Path::file_stem).unwrap_or_default();
    let name: String = fields.get("name")?.unwrap_or_else(|| stem.to_string_lossy().into_owned());
    if fields.values.contains_key("model") {
        let experiment = Box::new(model_experiment(&mut fields, &name)?);
        return Ok((ExperimentFile::Trajectories { name, experiment, criteria: None }, origin));
    }
    if fields.values.contains_key("teacher") {
        let what = "a teacher belongs to a model; add for example `model = { kind = \"logistic\" }`, or \
                    give `start` alone for least squares";
        return Err(origin.error("teacher", what));
    }
    let criteria: Option<Criteria> = fields.get("criteria")?;
    let experiment = match &criteria {
        Some(_) if !moving => None,
        _ => Some(Box::new(least_squares(&mut fields, &name)?)),
    };
    let (noise, batch, rule) = match &experiment {
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
    let file = match (experiment, criteria.transpose()?) {
        (Some(experiment), criteria) => ExperimentFile::Trajectories { name, experiment, criteria },
        (None, Some(criteria)) => ExperimentFile::Criteria { name, criteria },
        (None, None) => return Err(origin.error("criteria", "the file asks for nothing")),
    };
    Ok((file, origin))
}

fn least_squares(fields: &mut Fields<'_>, name: &str) -> Result<Experiment> {
    let noise = fields.need("noise")?;
    let start = fields.need("start")?;
    let experiment = Experiment {
        rule: fields.get("rule")?.unwrap_or_default(),
        groups: fields.get("groups")?.unwrap_or_default(),
        momentum: fields.get("momentum")?,
        privacy: fields.get("privacy")?,
        covariates: fields.covariates()?,
        margin: fields.get("margin")?,
        ..shared(fields, name, noise, start)?
    };
    check(&experiment).map_err(|e| fields.origin.key_error(e))?;
    Ok(experiment)
}

fn model_experiment(fields: &mut Fields<'_>, name: &str) -> Result<Experiment> {
    let model = fields.get("model")?;
    let Some(teacher) = fields.get("teacher")? else {
        let what = format!("the key `teacher` is missing; for example `teacher = {TEACHER}`");
        return Err(fields.origin.wrong(None, what));
    };
    let noise = fields.get("noise")?.unwrap_or(NoiseChoice::OfModel);
    let start = fields.get("start")?.unwrap_or(Start::Uniform { norm: 0.0 });
    let shared = shared(fields, name, noise, start)?;
    let experiment = Experiment { model, teacher: Some(teacher), ..shared };
    if let Some(key) = fields.values.keys().next() {
        let what =
            format!("{key} is for least squares and cannot be combined with `model`; leave it out");
        return Err(fields.origin.wrong(fields.origin.lines.get(key).copied(), what));
    }
    check(&experiment).map_err(|e| fields.origin.key_error(e))?;
    Ok(experiment)
}

/// What least squares and other models have in common.
fn shared(
    fields: &mut Fields<'_>,
    name: &str,
    noise: NoiseChoice,
    start: Start,
) -> Result<Experiment> {
    Ok(Experiment {
        name: name.to_owned(),
        model: None,
        teacher: None,
        start,
        noise,
        batch: fields.get("batch")?.unwrap_or_default(),
        rule: RuleChoice::default(),
        groups: GroupsChoice::default(),
        momentum: None,
        privacy: None,
        spectrum: fields.need("spectrum")?,
        covariates: Covariates::default(),
        time: fields.need("time")?,
        points: fields.get("points")?.unwrap_or_default(),
        learning_rate: fields.need("learning_rate")?,
        clip: fields.need("clip")?,
        margin: None,
        methods: fields.get("methods")?.unwrap_or(vec![Method::Ode, Method::Sgd]),
        ensemble: fields.get("ensemble")?.unwrap_or_default(),
        tolerance: fields.get("tolerance")?.unwrap_or(1e-8),
    })
}

fn check(experiment: &Experiment) -> Result<(), KeyError> {
    let Experiment { time, tolerance, points, ensemble, .. } = *experiment;
    check_numbers(time, tolerance, points, ensemble)?;
    let known = if experiment.model.is_some() { &METHODS[..] } else { &Method::ALL };
    check_methods(&experiment.methods, known)?;
    check_model(experiment)
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
        return Err(KeyError::new("time", Mistake::is(short(time), "a positive number")));
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
        let what = Mistake::is(short(tolerance), "a number from 1e-13 to 0.1");
        return Err(KeyError::new("tolerance", what));
    } else {
        return Ok(());
    };
    Err(KeyError::new(key, what))
}

/// The values of the keys, not yet read.
struct Fields<'a> {
    origin: &'a Origin,
    values: toml::Table,
}

impl Fields<'_> {
    fn get<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>> {
        let Some(value) = self.values.remove(key) else { return Ok(None) };
        from_value(value).map(Some).map_err(|error| {
            let lines = &self.origin.lines;
            let inner = error.key.as_ref().and_then(|inner| lines.get(&format!("{key}.{inner}")));
            let line = inner.or(lines.get(key)).copied();
            self.origin.wrong(line, error.whole().about(key))
        })
    }

    fn need<T: DeserializeOwned>(&mut self, key: &str) -> Result<T> {
        let found = self.get(key)?;
        found.ok_or_else(|| {
            let example = KEYS.iter().find(|(known, _)| *known == key).and_then(|(_, e)| *e);
            let example = example.unwrap_or_default();
            let what = format!("the key `{key}` is missing; for example `{key} = {example}`");
            self.origin.wrong(None, what)
        })
    }

    fn covariates(&mut self) -> Result<Covariates> {
        if let Some(value) = self.values.get("covariates") {
            no_parameters(value, &["gaussian", "rademacher", "uniform", "laplace"])
                .map_err(|mistake| self.origin.at("covariates", &mistake))?;
        }
        Ok(self.get("covariates")?.unwrap_or_default())
    }
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
            let experiment = file.experiment().unwrap();
            assert!(experiment.model.is_some() && file.criteria().is_none());
            crate::Prepared::new(experiment, &origin).unwrap();
            let text = toml::to_string(&file).unwrap();
            let (again, _) = parse_file(&text, Path::new("e.toml")).unwrap();
            assert_eq!(again, file, "{line}\n{text}");
        }
        let (file, origin) = parse_file(CLASSES, Path::new("e.toml")).unwrap();
        let experiment = file.into_trajectories(&origin).unwrap();
        assert_eq!(experiment.start, Start::Uniform { norm: 0.0 });
    }

    #[test]
    fn what_does_not_go_with_a_model_is_refused() {
        let mut said = String::new();
        for line in include_str!("model_mistakes.txt").lines() {
            let found = parse_file(&classes_with(line), Path::new("e.toml"));
            let error = found.and_then(|(file, origin)| {
                crate::Prepared::new(file.experiment().unwrap(), &origin)
            });
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
        assert!(file.experiment().is_none() && file.name() == "e");
        let criteria = file.criteria().unwrap().clone();
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
