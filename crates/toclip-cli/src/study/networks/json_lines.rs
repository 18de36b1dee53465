//! Records of JSON as Python writes them, with errors that name the file, the line and the key.

use anyhow::{Context, Result, bail};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

/// Whether a value is allowed, and what is.
pub type Allowed = (fn(&Value) -> bool, &'static str);

pub const STRING: Allowed = (Value::is_string, "a string");
pub const BOOLEAN: Allowed = (Value::is_boolean, "true or false");
/// Null stands for a number that is not finite.
pub const NUMBER: Allowed = (|x| x.is_number() || x.is_null(), "a number");
pub const INTEGER: Allowed = (Value::is_u64, "an integer, at least 0");
pub const POSITIVE: Allowed = (|x| x.as_f64().is_some_and(|x| x > 0.0), "a positive number");
pub const NOT_NEGATIVE: Allowed =
    (|x| x.as_f64().is_some_and(|x| x >= 0.0), "a number, at least 0");
pub const SHARE: Allowed =
    (|x| x.as_f64().is_some_and(|x| (0.0..=1.0).contains(&x)), "a number from 0 to 1");

/// A kind of record: the keys that it must have, by what is allowed.
pub trait Record: DeserializeOwned {
    const KEYS: &'static [(Allowed, &'static [&'static str])];
}

/// The records of a file, and a note about a line that was left out. A line that a killed run did not
/// finish is the last one and has no line end; anything else that cannot be read is an error.
pub fn read<T: Record>(text: &str, path: &str) -> Result<(Vec<T>, Option<String>)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if line.trim().is_empty() {
            continue;
        }
        let json = without_nan(line);
        if !line.ends_with('\n') && serde_json::from_str::<IgnoredAny>(&json).is_err() {
            let note = format!(
                "{path}: line {number}, the last one, is incomplete and was skipped; a resumed run \
                 writes it again"
            );
            return Ok((found, Some(note)));
        }
        found.push(read_one(&json, &format!("{path}, line {number}"))?);
    }
    if found.is_empty() {
        bail!("{path} is empty: train.py adds a line at each measurement");
    }
    Ok((found, None))
}

/// One record; errors name its `place`.
pub fn read_one<T: Record>(json: &str, place: &str) -> Result<T> {
    let Ok(record @ Value::Object(_)) = serde_json::from_str(json) else {
        bail!("{place}: expected a JSON object as train.py writes it");
    };
    for ((is_allowed, expected), keys) in T::KEYS {
        for key in *keys {
            match record.get(key) {
                None => bail!("{place}: `{key}` is missing; train.py writes it"),
                Some(value) if is_allowed(value) => {}
                Some(value) => bail!("{place}: `{key}` is {value}; expected {expected}"),
            }
        }
    }
    serde_json::from_value(record).with_context(|| place.to_owned())
}

/// Python writes what is not finite as NaN, Infinity and -Infinity, which is not JSON: null instead.
fn without_nan(line: &str) -> String {
    let null = |part: &str| {
        let words = ["-Infinity", "Infinity", "NaN"];
        words.iter().fold(part.to_owned(), |part, word| part.replace(word, "null"))
    };
    // Only outside of strings; the names and words of a record contain no \".
    let parts = line.split('"').enumerate();
    let parts = parts.map(|(i, part)| if i % 2 == 0 { null(part) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize, PartialEq)]
    struct Line {
        step: u64,
        d: Option<f64>,
        #[serde(default)]
        name: String,
    }

    impl Record for Line {
        const KEYS: &'static [(Allowed, &'static [&'static str])] =
            &[(INTEGER, &["step"]), ((|x| x != 9, "not 9"), &["step"]), (NUMBER, &["d"])];
    }

    fn read(text: &str, path: &str) -> Result<(Vec<Line>, Option<String>)> {
        super::read(text, path)
    }

    #[test]
    fn numbers_that_are_not_finite_are_missing() {
        let text = "{\"step\": 1, \"d\": 2.5, \"name\": \"NaN\"}\n\n{\"step\": 2, \"d\": NaN}\n\
                    {\"step\": 3, \"d\": -Infinity}\n{\"step\": 4, \"d\": 7}";
        let (found, skipped) = read(text, "x").unwrap();
        assert_eq!(skipped, None, "a complete last line needs no line end");
        let numbers: Vec<(u64, Option<f64>)> = found.iter().map(|l| (l.step, l.d)).collect();
        assert_eq!(numbers, [(1, Some(2.5)), (2, None), (3, None), (4, Some(7.0))]);
        assert_eq!(found[0].name, "NaN");
    }

    #[test]
    fn only_an_incomplete_last_line_is_skipped() {
        let whole = "{\"step\": 1, \"d\": 1}\n";
        for cut in ["{\"step\": 2, \"d", "{\"step\": 2, \"d\": Na"] {
            let (found, note) = read(&format!("{whole}{cut}"), "x.jsonl").unwrap();
            assert_eq!((found.len(), note.is_some()), (1, true));
        }
        let errors: Vec<String> = [
            "{\"step\": 1, \"d\n{\"step\": 2, \"d\": 1}\n",
            "{\"step\": 1, \"d\": 1}\n{\"step\"\n",
            "{\"d\": 1}",
            "{\"step\": 9, \"d\": 1}\n",
            "{\"step\": \"one\", \"d\": 1}\n",
            "[1, 2\n",
            "",
            "\n \n",
        ]
        .map(|text| format!("{:#}", read(text, "x.jsonl").unwrap_err()))
        .into();
        insta::assert_snapshot!(errors.join("\n"));
    }
}
