//! Lines of JSON as Python writes them, with errors that say where.

use anyhow::{Result, bail};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};

/// The records of a file, and a word about what was left out. A line that a killed run did not
/// finish is the last one and has no line end; anything else that cannot be read is an error.
pub fn read<T: DeserializeOwned>(text: &str, place: &str) -> Result<(Vec<T>, Option<String>)> {
    let mut found = Vec::new();
    let mut number = 0;
    for line in text.split_inclusive('\n') {
        number += 1;
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(&without_nan(line)) {
            Ok(record) => found.push(record),
            Err(error) if !error.is_data() && !line.ends_with('\n') => {
                let said = format!(
                    "{place}: line {number}, the last one, is cut off and was left out; a run that \
                     goes on writes it again"
                );
                return Ok((found, Some(said)));
            }
            Err(error) => bail!("{place}, line {number}: {}", why(&error)),
        }
    }
    if found.is_empty() {
        bail!("{place} has no line: no measurement was made yet. train.py writes some at each");
    }
    Ok((found, None))
}

/// What is wrong with one record, in the reader's terms.
pub fn why(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
    match said.starts_with("missing field") {
        true => format!("{said}, which train.py writes"),
        false => format!("{said}; it should be a JSON object as train.py writes it"),
    }
}

/// Python writes what is not finite as NaN, Infinity and -Infinity, which is no JSON: a gap.
fn without_nan(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    // Outside of quotation marks only; a \" does not occur in what numbers are named by.
    for (i, part) in line.split('"').enumerate() {
        if i > 0 {
            out.push('"');
        }
        match i % 2 {
            0 => {
                let part = part.replace("-Infinity", "null").replace("Infinity", "null");
                out.push_str(&part.replace("NaN", "null"));
            }
            _ => out.push_str(part),
        }
    }
    out
}

/// A number, or NaN where there is none.
pub fn gap<'de, D: Deserializer<'de>>(value: D) -> std::result::Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(value)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize, PartialEq)]
    struct Line {
        step: u64,
        #[serde(deserialize_with = "gap")]
        d: f64,
    }

    fn said(text: &str) -> String {
        format!("{:#}", read::<Line>(text, "runs/a/x.jsonl").unwrap_err())
    }

    #[test]
    fn lines_are_read_and_gaps_are_gaps() {
        let text = "{\"step\": 1, \"d\": 2.5, \"name\": \"NaN\"}\n\n{\"step\": 2, \"d\": NaN}\n\
                    {\"step\": 3, \"d\": -Infinity}\n{\"step\": 4, \"d\": 7}";
        let (found, left_out) = read::<Line>(text, "x").unwrap();
        assert_eq!(left_out, None, "a whole last line needs no line end");
        assert_eq!(found.iter().map(|l| l.step).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!((found[0].d, found[3].d), (2.5, 7.0));
        assert!(found[1].d.is_nan() && found[2].d.is_nan());
    }

    #[test]
    fn a_line_cut_off_at_the_end_is_left_out_and_said() {
        let (found, left_out) =
            read::<Line>("{\"step\": 1, \"d\": 1}\n{\"step\": 2, \"d", "r/x.jsonl").unwrap();
        assert_eq!(found, [Line { step: 1, d: 1.0 }]);
        let left_out = left_out.unwrap();
        assert!(left_out.contains("r/x.jsonl: line 2") && left_out.contains("cut off"));
        let word = "{\"step\": 1, \"d\": 1}\n{\"step\": 2, \"d\": Na";
        assert!(read::<Line>(word, "x").unwrap().1.is_some());
        assert!(
            said("{\"step\": 1}").contains("missing field"),
            "whole, but not what it should be"
        );
        // The same in the middle, or with a line end, is no killed run.
        let middle = said("{\"step\": 1, \"d\n{\"step\": 2, \"d\": 1}\n");
        assert!(middle.contains("runs/a/x.jsonl, line 1"), "{middle}");
        assert!(said("{\"step\": 1, \"d\": 1}\n{\"step\"\n").contains("line 2"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let missing = said("{\"step\": 1, \"d\": 1}\n{\"step\": 2}\n");
        assert_eq!(missing, "runs/a/x.jsonl, line 2: missing field `d`, which train.py writes");
        let kind = said("{\"step\": \"one\", \"d\": 1}\n");
        assert!(kind.contains("line 1") && kind.contains("\"one\""), "{kind}");
        assert!(said("[1, 2\n").contains("JSON object as train.py"), "{}", said("[1, 2\n"));
        assert!(said("").contains("no line") && said("\n \n").contains("no measurement"));
        assert!(said("\u{0}\u{1}\n").contains("line 1"));
    }
}
