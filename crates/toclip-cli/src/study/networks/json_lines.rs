//! Lines of JSON as Python writes them, with errors that name the line.

use anyhow::{Result, anyhow, bail};
use serde::de::{DeserializeOwned, IgnoredAny};

/// What is impossible in a record, and what is allowed.
pub type Problem<T> = fn(&T) -> Option<String>;

/// The records of a file, and a note about a line that was left out. A line that a killed run did not
/// finish is the last one and has no line end; anything else that cannot be read is an error.
pub fn read<T: DeserializeOwned>(
    text: &str,
    path: &str,
    problem: Problem<T>,
) -> Result<(Vec<T>, Option<String>)> {
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
        found.push(read_one(&json, &format!("{path}, line {number}"), problem)?);
    }
    if found.is_empty() {
        bail!("{path} is empty: train.py adds a line at each measurement");
    }
    Ok((found, None))
}

/// One record; errors name its `place`.
pub fn read_one<T: DeserializeOwned>(json: &str, place: &str, problem: Problem<T>) -> Result<T> {
    let record =
        serde_json::from_str(json).map_err(|error| anyhow!("{place}: {}", explain(&error)))?;
    match problem(&record) {
        None => Ok(record),
        Some(problem) => bail!("{place}: {problem}"),
    }
}

fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    if let Some(field) = text.strip_prefix("missing field ") {
        return format!("{field} is missing; train.py writes it");
    }
    match text.strip_prefix("invalid type: ").and_then(|text| text.split_once(", expected")) {
        Some((found, _)) => format!("unexpected {found}; expected a record as train.py writes it"),
        None => format!("expected a JSON object as train.py writes it ({text})"),
    }
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

    fn not_nine(line: &Line) -> Option<String> {
        (line.step == 9).then(|| "`step` is 9".into())
    }

    #[test]
    fn numbers_that_are_not_finite_are_missing() {
        let text = "{\"step\": 1, \"d\": 2.5, \"name\": \"NaN\"}\n\n{\"step\": 2, \"d\": NaN}\n\
                    {\"step\": 3, \"d\": -Infinity}\n{\"step\": 4, \"d\": 7}";
        let (found, skipped) = read(text, "x", not_nine).unwrap();
        assert_eq!(skipped, None, "a complete last line needs no line end");
        let numbers: Vec<(u64, Option<f64>)> = found.iter().map(|l| (l.step, l.d)).collect();
        assert_eq!(numbers, [(1, Some(2.5)), (2, None), (3, None), (4, Some(7.0))]);
        assert_eq!(found[0].name, "NaN");
    }

    #[test]
    fn only_an_incomplete_last_line_is_skipped() {
        let whole = "{\"step\": 1, \"d\": 1}\n";
        for cut in ["{\"step\": 2, \"d", "{\"step\": 2, \"d\": Na"] {
            let (found, note) = read(&format!("{whole}{cut}"), "x.jsonl", not_nine).unwrap();
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
        .map(|text| format!("{:#}", read(text, "x.jsonl", not_nine).unwrap_err()))
        .into();
        insta::assert_snapshot!(errors.join("\n"));
    }
}
