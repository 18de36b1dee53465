//! The values that keys take: lists, ranges and random draws.

use std::collections::HashSet;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use toclip_words::{short, unknown};
use toml::{Table, Value};

use crate::dotted_keys;

/// More values of one key than any sweep may have cells.
const MOST_VALUES: i64 = 10_000_000;
const EXAMPLE: &str =
    "expected a list such as [0.5, 0.9] or a range such as { log = [0.01, 10.0], count = 20 }";
/// The kinds of ranges, each the key of its two ends.
const RANGES: [&str; 4] = ["linear", "log", "uniform", "log_uniform"];

/// A key of the experiment and the values that it takes.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyValues {
    /// The key with dots, such as `noise.df`.
    pub key: String,
    /// Its values in order.
    pub values: Vec<Value>,
    /// Whether the values are random draws.
    pub random: bool,
}

/// The kind of all values of a key, and so of its column in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Integers, at least 0.
    Counts,
    /// Numbers.
    Numbers,
    /// Anything else, as [`text`].
    Text,
}

impl KeyValues {
    /// The kind of all values.
    pub fn kind(&self) -> KeyKind {
        let count = |value: &Value| value.as_integer().is_some_and(|n| n >= 0);
        match self.numbers() {
            _ if self.values.iter().all(count) => KeyKind::Counts,
            Some(_) => KeyKind::Numbers,
            None => KeyKind::Text,
        }
    }

    /// The values as numbers, if all are.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        self.values.iter().map(number).collect()
    }
}

/// Keys that change together; a sweep is the product of its axes.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepAxis {
    /// The keys, all with the same number of values.
    pub keys: Vec<KeyValues>,
}

impl SweepAxis {
    /// The number of values of every key.
    pub fn len(&self) -> usize {
        self.keys.first().map_or(0, |key| key.values.len())
    }

    /// Whether it has no values; the reader refuses such an axis.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A value as a number, if it is one: "none" and "inf" are infinite, as for a threshold.
///
/// ```
/// use toclip_sweep::number;
/// assert_eq!(number(&2.into()), Some(2.0));
/// assert_eq!(number(&"none".into()), Some(f64::INFINITY));
/// assert_eq!(number(&"skip".into()), None);
/// ```
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(x) => Some(*x),
        Value::Integer(x) => Some(*x as f64),
        Value::String(text) if text == "none" || text == "inf" => Some(f64::INFINITY),
        _ => None,
    }
}

/// A value as tables show it: a string without quotes, anything else as TOML.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One axis for each key of `[vary]`.
pub(crate) fn vary(table: &Table) -> Result<Vec<SweepAxis>, String> {
    let keys = key_values("vary", table)?;
    Ok(keys.into_iter().map(|key| SweepAxis { keys: vec![key] }).collect())
}

/// One axis for all keys of a `[[together]]`.
pub(crate) fn together(table: &Table) -> Result<SweepAxis, String> {
    let keys = key_values("together", table)?;
    let Some(first) = keys.first() else {
        return Err(
            "together: the table is empty; expected at least two keys with their values".into()
        );
    };
    if let Some(other) = keys.iter().find(|other| other.values.len() != first.values.len()) {
        return Err(format!(
            "together: `{}` has {} values and `{}` has {}; expected the same number for every key",
            first.key,
            first.values.len(),
            other.key,
            other.values.len()
        ));
    }
    Ok(SweepAxis { keys })
}

/// The keys of a section with their lists and ranges.
fn key_values(section: &str, table: &Table) -> Result<Vec<KeyValues>, String> {
    let is_range = |table: &Table| table.keys().any(|key| RANGES.contains(&key.as_str()));
    let is_value =
        |_: &str, table: &Table| is_range(table) || table.contains_key("count") || table.is_empty();
    let each = |(key, value): (String, &Value)| {
        let name = format!("{section}.{key}");
        match value {
            Value::Array(list) if list.is_empty() => {
                Err(format!("{name}: the list is empty; expected at least one value"))
            }
            Value::Array(list) => {
                let mut seen = HashSet::new();
                // 1 and 1.0 are the same, and so are "none" and inf.
                let spelling = |value: &Value| {
                    number(value).map_or_else(|| value.to_string(), |x| x.to_string())
                };
                let twice = list.iter().find(|value| !seen.insert(spelling(value)));
                // Keys that change together may repeat a value.
                if let (Some(twice), "vary") = (twice, section) {
                    return Err(format!("{name}: the value {twice} is given twice"));
                }
                Ok(KeyValues { key, values: list.clone(), random: false })
            }
            Value::Table(inner) if is_range(inner) => {
                let mut values = range(&key, inner).map_err(|what| format!("{name}: {what}"))?;
                if section == "vary" {
                    // Integers may be drawn more than once; the cells would be the same.
                    let mut seen = HashSet::new();
                    values.retain(|value| value.as_integer().is_none_or(|n| seen.insert(n)));
                }
                let random = inner.keys().any(|key| key.ends_with("uniform"));
                Ok(KeyValues { key, values, random })
            }
            _ => Err(format!("{name} is {value}; {EXAMPLE}")),
        }
    };
    dotted_keys::values(table, &is_value).into_iter().map(each).collect()
}

/// `{ log = [0.01, 10.0], count = 20 }` and its kin.
fn range(key: &str, table: &Table) -> Result<Vec<Value>, String> {
    let kinds: Vec<&str> = RANGES.into_iter().filter(|kind| table.contains_key(*kind)).collect();
    let &[kind] = &kinds[..] else {
        return Err(format!("has both `{}` and `{}`; expected one of them", kinds[0], kinds[1]));
    };
    let random = kind.ends_with("uniform");
    let known: &[&str] =
        if random { &[kind, "count", "seed", "integer"] } else { &[kind, "count"] };
    if let Some(other) = table.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(unknown("key", other, known));
    }
    let ends = table[kind].as_array().map_or(&[][..], Vec::as_slice);
    let numbers: Vec<f64> = ends
        .iter()
        .filter(|end| !end.is_str())
        .filter_map(number)
        .filter(|end| end.is_finite())
        .collect();
    let (2, &[from, to]) = (ends.len(), &numbers[..]) else {
        return Err(format!(
            "`{kind}` is {}; expected two numbers such as [0.1, 10.0]",
            table[kind]
        ));
    };
    let logarithmic = kind.starts_with("log");
    if logarithmic && !(from > 0.0 && to > 0.0) {
        let wrong = short(if from > 0.0 { to } else { from });
        return Err(format!("`{kind}` has the end {wrong}; expected positive numbers"));
    }
    if from == to {
        return Err(format!("`{kind}` starts and ends at {}; expected two numbers", short(from)));
    }
    let count = match table.get("count") {
        None => return Err("the key `count` is missing; for example `count = 20`".into()),
        Some(value) => {
            value.as_integer().filter(|n| (1..=MOST_VALUES).contains(n)).ok_or_else(|| {
                format!("`count` is {value}; expected an integer from 1 to {MOST_VALUES}")
            })? as usize
        }
    };
    let between = |from: f64, to: f64, share: f64| match (logarithmic, share) {
        // The ends as they are written.
        (_, 0.0) => from,
        (_, 1.0) => to,
        (true, share) => from * (to / from).powf(share),
        (false, share) => from + (to - from) * share,
    };
    let whole = ends.iter().all(Value::is_integer);
    let seed = match table.get("seed") {
        None => 1,
        Some(value) => value
            .as_integer()
            .and_then(|seed| u64::try_from(seed).ok())
            .ok_or_else(|| format!("`seed` is {value}; expected an integer, at least 0"))?,
    };
    if random {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // Keys with the same seed draw different numbers.
        rng.set_stream(stream(key));
        let draws = (0..count).map(|_| rng.random::<f64>());
        return match table.get("integer") {
            None | Some(Value::Boolean(false)) => {
                Ok(draws.map(|share| Value::Float(between(from, to, share))).collect())
            }
            Some(Value::Boolean(true)) if whole => {
                // The ends get their full share of the draws.
                let (least, most) = (from.min(to), from.max(to));
                let draw = |share| between(least - 0.5, most + 0.5, share).round();
                Ok(draws
                    .map(|share| draw(share).clamp(least, most) as i64)
                    .map(Value::Integer)
                    .collect())
            }
            Some(Value::Boolean(true)) => Err(format!(
                "`{kind}` is {}; expected two integers, because `integer` is true",
                table[kind]
            )),
            Some(other) => Err(format!("`integer` is {other}; expected true or false")),
        };
    }
    if count == 1 {
        return Err("`count` is 1; expected at least 2: the two ends".into());
    }
    let at = |k: usize| between(from, to, k as f64 / (count - 1) as f64);
    Ok((0..count).map(|k| if whole { integer(at(k)) } else { Value::Float(at(k)) }).collect())
}

/// Between integer ends, a value that is an integer up to rounding is written as one.
fn integer(x: f64) -> Value {
    match (x - x.round()).abs() <= 1e-9 * x.abs().max(1.0) {
        true => Value::Integer(x.round() as i64),
        false => Value::Float(x),
    }
}

/// FNV-1a of the key.
fn stream(key: &str) -> u64 {
    key.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Result<Vec<Value>, String> {
        let table: Table = toml::from_str(text).unwrap();
        Ok(vary(&table)?.remove(0).keys.remove(0).values)
    }

    fn numbers(text: &str) -> Vec<f64> {
        values(text).unwrap().iter().map(|value| number(value).unwrap()).collect()
    }

    #[test]
    fn ranges_reach_both_ends() {
        assert_eq!(numbers("x = { linear = [0.0, 1.0], count = 5 }"), [0.0, 0.25, 0.5, 0.75, 1.0]);
        let log = numbers("x = { log = [0.1, 10.0], count = 3 }");
        assert_eq!((log[0], log[2]), (0.1, 10.0));
        assert_eq!(log[1], 1.0);
        assert_eq!(numbers("x = { linear = [3.0, 1.0], count = 3 }"), [3.0, 2.0, 1.0]);
    }

    #[test]
    fn ranges_between_integers_give_integers_where_they_can() {
        let batch = values("batch = { log = [1, 64], count = 7 }").unwrap();
        let powers: Vec<Value> = (0..7).map(|k| Value::Integer(1 << k)).collect();
        assert_eq!(batch, powers);
        let halves = values("x = { linear = [1, 2], count = 3 }").unwrap();
        assert_eq!(halves[1], Value::Float(1.5));
    }

    #[test]
    fn draws_stay_inside_and_depend_on_seed_and_key_only() {
        let text = "clip = { log_uniform = [0.01, 10.0], count = 1000, seed = 3 }";
        let draws = numbers(text);
        assert!(draws.iter().all(|x| (0.01..=10.0).contains(x)));
        assert_eq!(draws, numbers(text));
        assert_ne!(draws, numbers(&text.replace("seed = 3", "seed = 4")));
        assert_ne!(draws, numbers(&text.replace("clip", "time")));
        // Half are below the geometric mean: 500 ± 4 standard errors of 15.8.
        let below = draws.iter().filter(|x| **x < 0.1f64.sqrt()).count();
        assert!((437..=563).contains(&below), "{below}");
        // A longer list begins with the shorter one.
        assert_eq!(numbers(&text.replace("1000", "10")), draws[..10]);
    }

    #[test]
    fn integers_are_drawn_with_both_ends() {
        let text = "batch = { uniform = [1, 4], count = 4000, integer = true }";
        let draw = |text: &str| {
            let table: Table = toml::from_str(text).unwrap();
            together(&table).unwrap().keys.remove(0).values
        };
        let draws = draw(text);
        for n in 1..=4 {
            // 1000 ± 4 standard errors of 27.4.
            let count = draws.iter().filter(|value| value.as_integer() == Some(n)).count();
            assert!((890..=1110).contains(&count), "{n}: {count}");
        }
        let log = draw("batch = { log_uniform = [1, 64], count = 1000, integer = true }");
        assert!(log.iter().all(|value| (1..=64).contains(&value.as_integer().unwrap())));
        assert!(log.contains(&Value::Integer(1)) && log.iter().any(|n| n.as_integer() > Some(50)));
        // Each value of a product once.
        assert_eq!(values(text).unwrap().len(), 4);
        for (text, said) in [
            ("x = { uniform = [1, 4.5], count = 3, integer = true }", "expected two integers"),
            ("x = { uniform = [1, 4], count = 3, integer = 1 }", "expected true or false"),
            ("x = { linear = [1, 4], count = 3, integer = true }", "unknown key `integer`"),
        ] {
            let error = values(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn dots_and_tables_name_the_same_key() {
        let table: Table = toml::from_str("noise.df = [1, 2]\n[noise.inner]\nx = ['a']").unwrap();
        let keys: Vec<String> =
            vary(&table).unwrap().iter().map(|a| a.keys[0].key.clone()).collect();
        assert_eq!(keys, ["noise.df", "noise.inner.x"]);
    }
}
