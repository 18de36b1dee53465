//! Lines of JSON as Python writes them, with errors that name the line.

use anyhow::{Result, bail};

use super::measurements::Record;

/// The records of a file, and a note about a line that was left out. A line that a killed run did not
/// finish is the last one and has no line end; anything else that cannot be read is an error.
pub fn read<T: Record>(text: &str, path: &str) -> Result<(Vec<T>, Option<String>)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<T>(&without_nan(line)) {
            Ok(record) => match record.problem() {
                None => found.push(record),
                Some(problem) => bail!("{path}, line {number}: {problem}"),
            },
            Err(error) if !error.is_data() && !line.ends_with('\n') => {
                let note = format!(
                    "{path}: line {number}, the last one, is incomplete and was skipped; a resumed run \
                     writes it again"
                );
                return Ok((found, Some(note)));
            }
            Err(error) => bail!("{path}, line {number}: {}", explain(&error)),
        }
    }
    if found.is_empty() {
        bail!("{path} is empty: train.py adds a line at each measurement");
    }
    Ok((found, None))
}

/// A file that is one record.
pub fn read_one<T: Record>(text: &str, path: &str) -> Result<T> {
    match serde_json::from_str::<T>(text) {
        Ok(record) => match record.problem() {
            None => Ok(record),
            Some(problem) => bail!("{path}: {problem}"),
        },
        Err(error) => bail!("{path}: {}", explain(&error)),
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
    // Only outside of strings; the names and words of a record contain no \".
    let part = |(i, part): (usize, &str)| match i % 2 {
        0 => ["-Infinity", "Infinity", "NaN"]
            .iter()
            .fold(part.to_owned(), |p, w| p.replace(w, "null")),
        _ => part.to_owned(),
    };
    line.split('"').enumerate().map(part).collect::<Vec<_>>().join("\"")
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
        fn problem(&self) -> Option<String> {
            (self.step == 9).then(|| "`step` is 9".into())
        }
    }

    #[test]
    fn numbers_that_are_not_finite_are_missing() {
        let text = "{\"step\": 1, \"d\": 2.5, \"name\": \"NaN\"}\n\n{\"step\": 2, \"d\": NaN}\n\
                    {\"step\": 3, \"d\": -Infinity}\n{\"step\": 4, \"d\": 7}";
        let (found, skipped) = read::<Line>(text, "x").unwrap();
        assert_eq!(skipped, None, "a complete last line needs no line end");
        let numbers: Vec<(u64, Option<f64>)> = found.iter().map(|l| (l.step, l.d)).collect();
        assert_eq!(numbers, [(1, Some(2.5)), (2, None), (3, None), (4, Some(7.0))]);
        assert_eq!(found[0].name, "NaN");
    }

    #[test]
    fn only_an_incomplete_last_line_is_skipped() {
        let whole = "{\"step\": 1, \"d\": 1}\n";
        for cut in ["{\"step\": 2, \"d", "{\"step\": 2, \"d\": Na"] {
            let (found, note) = read::<Line>(&format!("{whole}{cut}"), "x.jsonl").unwrap();
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
        .map(|text| format!("{:#}", read::<Line>(text, "x.jsonl").unwrap_err()))
        .into();
        insta::assert_snapshot!(errors.join("\n"));
    }
}
