//! A file that was dropped on the page: an experiment, residuals or a training log.

use serde::Serialize;
use serde_json::Value;
use toclip_logs::{AdviceOptions, CodeBlock, Framework, Tone};

use crate::setting;

/// The page sends residuals with every question, so more of them are replaced by quantiles.
const MOST_RESIDUALS: usize = 400;

/// The content of a file.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Dropped {
    /// A file for `toclip run`.
    Experiment {
        /// As the page keeps it.
        experiment: Value,
    },
    /// Residuals, to be the noise.
    Residuals {
        /// The residuals, or quantiles of them.
        values: Vec<f64>,
        /// How many the file has.
        count: usize,
    },
    /// The advice of `toclip advise` on a training log.
    Log {
        /// Whether to change something.
        tone: Tone,
        /// What to do, in a sentence.
        headline: String,
        /// Why.
        reasons: Vec<String>,
        /// The lines to write.
        code: Option<CodeBlock>,
        /// The kind of the log.
        format: String,
        /// How many gradient norms it has.
        norms: usize,
    },
}

/// Names of a column of residuals among others.
const RESIDUALS: [&str; 2] = ["residual", "residuals"];

/// Finds out what the bytes of a file are.
pub fn read(bytes: &[u8]) -> Result<Dropped, String> {
    if matches!(bytes, b"" | b"\xEF\xBB\xBF") {
        return Err("the file is empty".into());
    }
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    if looks_like_experiment(text) {
        return setting::read(text).map(|experiment| Dropped::Experiment { experiment });
    }
    let column = |name| toclip_data::column_of_bytes("the file", bytes, name);
    let no_column = match column(None) {
        Ok(values) => return Ok(residuals(values)),
        Err(error) => error.to_string(),
    };
    if bytes.starts_with(b"\x93NUMPY") || starts_with_a_number(text) {
        return Err(no_column);
    }
    let no_log = match log(bytes) {
        Ok(answer) => return Ok(answer),
        Err(error) => error.to_string(),
    };
    match RESIDUALS.iter().find_map(|name| column(Some(name)).ok()) {
        Some(values) => Ok(residuals(values)),
        None => Err(format!(
            "the file is neither an experiment (TOML), nor residuals (one column of numbers in CSV \
             or NPY), nor a training log. As residuals: {no_column}. As a log: {no_log}"
        )),
    }
}

fn looks_like_experiment(text: &str) -> bool {
    let keys = ["noise", "spectrum", "learning_rate", "criteria"];
    let starts = |line: &str, key: &str| {
        let rest = line.trim_start().trim_start_matches('[').strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start().starts_with(['=', ']', '.']))
    };
    text.lines().any(|line| keys.iter().any(|key| starts(line, key)))
}

/// Whether the first line is one number: the file is then a column, and no log.
fn starts_with_a_number(text: &str) -> bool {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| line.parse::<f64>().is_ok())
}

fn residuals(values: Vec<f64>) -> Dropped {
    let count = values.len();
    Dropped::Residuals { values: quantiles(values), count }
}

/// The residuals, or quantiles of them where they are too many.
pub fn quantiles(mut values: Vec<f64>) -> Vec<f64> {
    let count = values.len();
    if count <= MOST_RESIDUALS {
        return values;
    }
    values.sort_by(f64::total_cmp);
    let at = |k: usize| (2 * k + 1) * count / (2 * MOST_RESIDUALS);
    (0..MOST_RESIDUALS).map(|k| values[at(k)]).collect()
}

fn log(bytes: &[u8]) -> Result<Dropped, toclip_logs::Error> {
    let log = toclip_logs::load(bytes, &Default::default())?;
    let advice = toclip_logs::advise(&log, &AdviceOptions::default())?;
    let verdict = advice.verdict(Framework::of(&log));
    Ok(Dropped::Log {
        tone: verdict.tone,
        headline: verdict.headline,
        reasons: verdict.reasons,
        code: verdict.code,
        format: log.summary.format.to_string(),
        norms: log.points.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn values(bytes: &[u8]) -> Vec<f64> {
        match read(bytes) {
            Ok(Dropped::Residuals { values, .. }) => values,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn residuals_are_read_from_text_and_arrays() {
        assert_eq!(values(b"residual\n1\n-2.5\n# note\n3e-1\n"), [1.0, -2.5, 0.3]);
        for row in ["1, 2, 3", "1 2 3", "1;2;3\n", "1\t2\t3"] {
            assert_eq!(values(row.as_bytes()), [1.0, 2.0, 3.0], "{row}");
        }
        assert_eq!(values(b"id,residual\n7,1\n8,-2.5\n"), [1.0, -2.5]);
        assert_eq!(values(b"\xEF\xBB\xBF1\n2\n3\n"), [1.0, 2.0, 3.0]);
        let data: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(values(&array("<f8", "(2,)", &data)), [1.5, -2.0]);
        assert_eq!(values(&array("<f8", "(1, 2)", &data)), [1.5, -2.0]);
        let single: Vec<u8> = [1.5f32].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(values(&array("<f4", "(1,)", &single)), [1.5]);
        assert_eq!(values(&array(">i2", "(2,)", &[0, 1, 0, 2])), [1.0, 2.0]);
    }

    #[test]
    fn many_residuals_become_quantiles() {
        let text: String = (0..10_000).map(|k| format!("{}\n", 9_999 - k)).collect();
        let Ok(Dropped::Residuals { values, count }) = read(text.as_bytes()) else { panic!() };
        assert_eq!((count, values.len()), (10_000, MOST_RESIDUALS));
        assert_eq!((values[0], values[MOST_RESIDUALS - 1]), (12.0, 9987.0));
    }

    #[test]
    fn a_bad_file_is_one_sentence() {
        for bytes in [
            &b""[..],
            b"\xEF\xBB\xBF",
            b"\x93NUMPY",
            b"\x89PNG\r\n\x1a\n",
            b"hello",
            b"1\nnan\n",
            b"noise = { family = 'cauchy' }",
            &array("<c16", "(1,)", &[0; 16]),
            &array("<f8", "(3, 2)", &[0; 48]),
            &array("<f8", "(3,)", &[0; 8]),
        ] {
            let said = read(bytes).unwrap_err();
            assert!(!said.contains('\n') && said.len() > 10, "{said}");
        }
        let said = read(b"1\n2\nx\n").unwrap_err();
        assert!(said.starts_with("the file, line 3, column 1: \"x\" is not a number"), "{said}");
    }

    #[test]
    fn a_training_log_is_answered_with_advice() {
        let mut text = String::from("step,loss,grad_norm\n");
        for k in 0..300 {
            let norm = 1.0 + 0.3 * (f64::from(k) * 0.618).fract();
            text += &format!("{k},{},{norm}\n", 2.0 - 0.001 * f64::from(k));
        }
        for text in [text.replace("loss", "other"), text] {
            let Ok(Dropped::Log { headline, norms, .. }) = read(text.as_bytes()) else { panic!() };
            assert!(headline.ends_with('.') && norms == 300, "{headline}");
        }
    }
}
