//! Which cells a picture shows, and the number at each of its places.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use anyhow::{Context, Result, bail};
use toclip_sweep::{KeyValues, Row, Sweep, SweepAxis, number, text};

use super::super::log::SavedCells;
use super::super::results;
use super::Args;
use crate::arguments::unknown;
use toclip_words::short;

/// The cells and the column that a picture shows.
pub struct Selection {
    /// The key on the horizontal axis.
    pub x: DrawnKey,
    /// The key on the vertical axis, or of the lines.
    pub by: Option<DrawnKey>,
    /// Whether it is a heat map.
    pub map: bool,
    /// Whether other keys change along the horizontal axis as well, without order: points instead of lines.
    pub points: bool,
    /// The column.
    pub value: String,
    /// The keys that the smallest value is taken over.
    pub minimized: Vec<String>,
    /// The setting that values are divided by.
    pub relative_to: Option<KeySetting>,
    /// The settings that are fixed.
    pub fixed: Vec<KeySetting>,
    column: usize,
}

/// A key with its values as they are drawn.
pub struct DrawnKey {
    /// The key, its values in the order of the picture.
    pub shown: KeyValues,
    axis: usize,
    /// For each place on the axis of the sweep, that in the picture.
    places: Vec<usize>,
}

/// A key that has one of its values.
pub struct KeySetting {
    key: String,
    value: toml::Value,
    axis: usize,
    /// For each place on the axis, whether the key has the value there.
    holds: Vec<bool>,
}

/// The numbers of a picture.
pub struct PictureValues {
    /// A row for each value of the second key; not finite where there is nothing to draw.
    pub values: Vec<Vec<f64>>,
    /// Why there is nothing to draw at some places.
    pub reasons: Vec<String>,
}

impl Selection {
    pub fn new(args: &Args, sweep: &Sweep) -> Result<Self> {
        let axes = sweep.axes().iter().enumerate();
        let keys: Vec<(usize, &KeyValues)> =
            axes.flat_map(|(at, axis)| axis.keys.iter().map(move |key| (at, key))).collect();
        let find = |flag: &str, name: &str| -> Result<(usize, &KeyValues)> {
            let known: Vec<&str> = keys.iter().map(|(_, key)| &*key.key).collect();
            match keys.iter().find(|(_, key)| key.key == name) {
                Some(found) => Ok(*found),
                None => bail!("{flag}: {}", unknown("key", name, &known)),
            }
        };
        let setting = |flag: &str, given: &str| -> Result<KeySetting> {
            let Some((name, wanted)) = given.split_once('=') else {
                bail!("{flag} is {given:?}; expected a key and a value, such as clip=none");
            };
            let (axis, key) = find(flag, name.trim())?;
            let wanted = wanted.trim();
            match key.values.iter().find(|value| says(value, wanted)) {
                Some(value) => {
                    let holds = key.values.iter().map(|other| other == value).collect();
                    Ok(KeySetting { key: key.key.clone(), value: value.clone(), axis, holds })
                }
                None => {
                    let mut known: Vec<String> = key.values.iter().take(20).map(text).collect();
                    if key.values.len() > known.len() {
                        known.push("…".into());
                    }
                    bail!(
                        "{flag}: {} is never {wanted}; it is one of: {}",
                        key.key,
                        known.join(", ")
                    )
                }
            }
        };
        let fixed: Vec<_> =
            args.only.iter().map(|given| setting("--where", given)).collect::<Result<_>>()?;
        let relative_to =
            args.relative_to.as_ref().map(|given| setting("--relative-to", given)).transpose()?;
        for name in &args.minimize {
            find("--minimize", name)?;
        }
        let roles = [&args.x, &args.y, &args.lines].into_iter().flatten();
        let roles: Vec<&String> =
            roles.chain(&args.minimize).chain(fixed.iter().map(|setting| &setting.key)).collect();
        if let Some((_, twice)) =
            roles.iter().enumerate().find(|(i, name)| roles[..*i].contains(name))
        {
            bail!("`{twice}` is given twice; a key is on an axis, fixed or minimised over");
        }
        let columns = sweep.columns();
        let value = args.value.clone().unwrap_or_else(|| columns[0].clone());
        let Some(column) = columns.iter().position(|column| *column == value) else {
            let known: Vec<&str> = columns.iter().map(String::as_str).collect();
            bail!("--value: {}", unknown("column", &value, &known));
        };
        // The first key of each axis that has no role yet; the others change with it.
        let free = |axis: &SweepAxis| {
            axis.len() > 1 && !axis.keys.iter().any(|key| roles.contains(&&key.key))
        };
        let axes = sweep.axes().iter().enumerate().filter(|(_, axis)| free(axis));
        let mut unused = axes.map(|(at, axis)| (at, &axis.keys[0]));
        let x = match &args.x {
            Some(name) => find("--x", name)?,
            None => unused.next().context("nothing varies that could be drawn; give --x")?,
        };
        let by = match (&args.y, &args.lines) {
            (Some(name), _) => Some(find("--y", name)?),
            (_, Some(name)) => Some(find("--lines", name)?),
            (None, None) => unused.next(),
        };
        if let Some((_, by)) = by.filter(|(axis, _)| *axis == x.0) {
            bail!("`{}` and `{}` change together; expected keys of two axes", x.1.key, by.key);
        }
        if let Some(KeySetting { key, .. }) = &relative_to
            && (*key == x.1.key || by.is_some_and(|(_, by)| by.key == *key))
        {
            bail!("--relative-to {key}: it is on an axis of the picture; minimise over it instead");
        }
        let map = args.lines.is_none() && by.is_some();
        let drawn = |(at, key): (usize, &KeyValues)| {
            let others = &sweep.axes()[at].keys;
            let grouped = others.iter().any(|other| args.minimize.contains(&other.key));
            DrawnKey::new(key, at, grouped)
        };
        let (x, by) = (drawn(x), by.map(drawn));
        // Points may lie above each other; columns and lines would hide one another.
        let mut told_apart = map.then_some(&x).into_iter().chain(&by);
        if let Some(DrawnKey { shown: key, axis, .. }) =
            told_apart.find(|key| key.repeated().is_some())
        {
            let mut others = sweep.axes()[*axis].keys.iter().filter(|other| other.key != key.key);
            let hint = others.next().map(|KeyValues { key: other, .. }| {
                format!("; add --minimize {other}, or draw over {other} instead")
            });
            bail!("`{}` has the same value more than once{}", key.key, hint.unwrap_or_default());
        }
        let with_x = &sweep.axes()[x.axis].keys;
        let unordered = with_x.iter().any(|key| key.random) || x.repeated().is_some();
        let points = !map && with_x.len() > 1 && unordered;
        let minimized = args.minimize.clone();
        // Several cells would share a place.
        if let Some((_, KeyValues { key, values, .. })) = unused.next() {
            let first = text(&values[0]);
            bail!("`{key}` varies too; fix it with --where {key}={first}, or add --minimize {key}");
        }
        Ok(Selection { x, by, map, points, value, minimized, relative_to, fixed, column })
    }

    /// The number at each place: a row for each value of the second key.
    pub fn values(&self, saved: &mut SavedCells) -> Result<PictureValues> {
        let rows = self.by.as_ref().map_or(1, |by| by.shown.values.len());
        let columns = self.x.shown.values.len();
        let names = saved.sweep.columns();
        let mut found = vec![vec![Place::default(); columns]; rows];
        for cell in 0..saved.sweep.cells() {
            let places = saved.sweep.places(cell);
            if !self.fixed.iter().all(|setting| setting.holds(&places)) {
                continue;
            }
            let i = self.x.places[places[self.x.axis]];
            let j = self.by.as_ref().map_or(0, |by| by.places[places[by.axis]]);
            let place = &mut found[j][i];
            let Some(row) = saved.row(cell)? else {
                place.reasons.insert("not finished".into());
                continue;
            };
            let value = row.values[self.column];
            place.value = place.value.min(value);
            if self.relative_to.as_ref().is_some_and(|setting| setting.holds(&places)) {
                place.reference = place.reference.min(value);
            }
            if !value.is_finite() {
                place.reasons.insert(self.reason(&row, results::diverged(&names, &row)));
            }
        }
        let reference = self.relative_to.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut reasons = Vec::new();
        let mut shown = |place: Place| {
            let value = match self.relative_to {
                Some(_) => place.value / place.reference,
                None => place.value,
            };
            // A ratio of 0 is that to a risk which diverged.
            if value.is_finite() && !(value == 0.0 && self.relative_to.is_some()) {
                return value;
            }
            let why = match (place.value.is_finite(), place.reference.is_nan()) {
                (true, true) => [format!("no finished cell with {reference}")].into(),
                (true, false) => [format!("every cell with {reference} diverges")].into(),
                (false, _) if place.reasons.is_empty() => ["excluded".into()].into(),
                (false, _) => place.reasons,
            };
            for reason in why {
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
            value
        };
        let values =
            found.into_iter().map(|row| row.into_iter().map(&mut shown).collect()).collect();
        Ok(PictureValues { values, reasons })
    }

    /// Why a finished cell has no finite number.
    fn reason(&self, row: &Row, diverged: bool) -> String {
        if row.error.is_some() {
            "failed".into()
        } else if self.value.ends_with("_diverged_at") {
            "did not diverge".into()
        } else if self.value.contains("_time_to_") {
            format!("never reached {}", self.value.rsplit('_').next().unwrap_or_default())
        } else if diverged {
            "diverged".into()
        } else {
            "no value".into()
        }
    }
}

/// The cells at one place of the picture.
#[derive(Clone)]
struct Place {
    /// The smallest value.
    value: f64,
    /// The smallest among the cells that values are divided by.
    reference: f64,
    /// Why cells have no finite value.
    reasons: BTreeSet<String>,
}

impl Default for Place {
    fn default() -> Self {
        Place { value: f64::NAN, reference: f64::NAN, reasons: BTreeSet::new() }
    }
}

impl KeySetting {
    fn holds(&self, places: &[usize]) -> bool {
        self.holds[places[self.axis]]
    }
}

impl fmt::Display for KeySetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.key, shown(&self.value))
    }
}

impl DrawnKey {
    /// A key with its values in the order of their size where they are numbers. With `grouped`, equal values
    /// are at one place.
    fn new(key: &KeyValues, axis: usize, grouped: bool) -> Self {
        let mut order: Vec<usize> = (0..key.values.len()).collect();
        if let Some(numbers) = key.numbers() {
            order.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b]));
        }
        let mut seen = HashMap::new();
        let (mut values, mut places) = (Vec::new(), vec![0; order.len()]);
        for at in order {
            let value = &key.values[at];
            places[at] = match seen.get(&spelling(value)) {
                Some(place) if grouped => *place,
                _ => {
                    seen.insert(spelling(value), values.len());
                    values.push(value.clone());
                    values.len() - 1
                }
            };
        }
        DrawnKey { shown: KeyValues { values, ..key.clone() }, axis, places }
    }

    /// A value that is at several places.
    fn repeated(&self) -> Option<&toml::Value> {
        let mut seen = HashSet::new();
        self.shown.values.iter().find(|value| !seen.insert(spelling(value)))
    }
}

/// Equal for equal values, 1 and 1.0 included.
fn spelling(value: &toml::Value) -> String {
    number(value).map_or_else(|| value.to_string(), |x| x.to_string())
}

/// A value of a key for people.
pub fn shown(value: &toml::Value) -> String {
    value.as_float().map_or_else(|| text(value), short)
}

/// Whether a value is the one written on the command line.
fn says(value: &toml::Value, wanted: &str) -> bool {
    match (number(value), wanted) {
        (Some(x), "none" | "inf") => x.is_infinite(),
        (Some(x), wanted) => {
            short(x) == wanted
                || wanted.parse::<f64>().is_ok_and(|y| (x - y).abs() <= 1e-6 * x.abs())
        }
        (None, wanted) => text(value) == wanted,
    }
}
