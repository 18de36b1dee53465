//! What a file that was dropped on the page contains: an experiment, residuals or a training log.

use serde::Serialize;
use serde_json::Value;
use toclip_logs::{AdviceOptions, CodeBlock, Framework, Tone};

use crate::setting;

/// The page sends residuals with every question, so that more of them are replaced by quantiles.
const MOST_RESIDUALS: usize = 400;

/// What was found.
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
        /// Whether something is to be done.
        tone: Tone,
        /// What to do, in a sentence.
        headline: String,
        /// Why.
        reasons: Vec<String>,
        /// What to write.
        code: Option<CodeBlock>,
        /// The kind of the log.
        format: String,
        /// How many gradient norms it has.
        norms: usize,
    },
}

/// Finds out what the bytes of a file are.
pub fn read(bytes: &[u8]) -> Result<Dropped, String> {
    // Spreadsheets write a byte order mark, which would make the first number a name.
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    if bytes.is_empty() {
        return Err("the file is empty".into());
    }
    if bytes.starts_with(b"\x93NUMPY") {
        return residuals(npy(bytes)?);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if looks_like_experiment(text) {
            return setting::read(text).map(|experiment| Dropped::Experiment { experiment });
        }
        if let Some(values) = column(text) {
            return residuals(values);
        }
    }
    log(bytes).map_err(|error| {
        format!(
            "the file is neither an experiment (TOML), nor residuals (one column of numbers in \
             CSV or NPY), nor a training log: {error}"
        )
    })
}

fn looks_like_experiment(text: &str) -> bool {
    let keys = ["noise", "spectrum", "learning_rate", "criteria"];
    let starts = |line: &str, key: &str| {
        let rest = line.trim_start().trim_start_matches('[').strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start().starts_with(['=', ']', '.']))
    };
    text.lines().any(|line| keys.iter().any(|key| starts(line, key)))
}

/// One column or one row of numbers; a first line without numbers is its name.
fn column(text: &str) -> Option<Vec<f64>> {
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<&str> = lines.collect();
    let cells = |line: &str| -> Option<Vec<f64>> {
        let parts =
            line.split([',', ';', '\t', ' ']).map(str::trim).filter(|part| !part.is_empty());
        parts.map(|part| part.parse().ok()).collect()
    };
    let body = match lines.first() {
        Some(first) if cells(first).is_none() => &lines[1..],
        _ => &lines[..],
    };
    let rows: Vec<Vec<f64>> = body.iter().map(|line| cells(line)).collect::<Option<_>>()?;
    match &rows[..] {
        [] => None,
        [row] => Some(row.clone()),
        rows if rows.iter().all(|row| row.len() == 1) => Some(rows.concat()),
        _ => None,
    }
}

/// The numbers of a NumPy array of one dimension, or of one row or column.
fn npy(bytes: &[u8]) -> Result<Vec<f64>, String> {
    let damaged = || "the NumPy file is damaged or cut off".to_owned();
    let version = *bytes.get(6).ok_or_else(damaged)?;
    let (start, length): (usize, usize) = if version == 1 {
        let field = bytes.get(8..10).ok_or_else(damaged)?;
        (10, usize::from(u16::from_le_bytes([field[0], field[1]])))
    } else {
        let field = bytes.get(8..12).ok_or_else(damaged)?;
        (12, u32::from_le_bytes([field[0], field[1], field[2], field[3]]) as usize)
    };
    let header = bytes.get(start..start.saturating_add(length)).ok_or_else(damaged)?;
    let header = std::str::from_utf8(header).map_err(|_| damaged())?;
    let after = |key: &str| header.split_once(key).map(|(_, rest)| rest).ok_or_else(damaged);
    let kind = after("'descr':")?.trim_start().trim_start_matches('\'');
    let kind = kind.split('\'').next().unwrap_or_default();
    let shape = after("'shape':")?.split(['(', ')']).nth(1).ok_or_else(damaged)?;
    let sides = shape.split(',').map(str::trim).filter(|side| !side.is_empty());
    let sides: Vec<usize> =
        sides.map(|side| side.parse().map_err(|_| damaged())).collect::<Result<_, _>>()?;
    if sides.iter().filter(|side| **side > 1).count() > 1 {
        return Err(format!(
            "residuals are one row or one column of numbers, but the array has the shape ({shape})"
        ));
    }
    let data = &bytes[start + length..];
    let values: Vec<f64> = match kind {
        "<f8" => data.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
        "<f4" => {
            data.as_chunks::<4>().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect()
        }
        other => {
            return Err(format!(
                "the array has numbers of the type `{other}`; expected <f8 or <f4 (float64 or float32)"
            ));
        }
    };
    let expected: usize = sides.iter().product();
    if values.len() == expected { Ok(values) } else { Err(damaged()) }
}

fn residuals(values: Vec<f64>) -> Result<Dropped, String> {
    if let Some(place) = values.iter().position(|value| !value.is_finite()) {
        return Err(format!("residual {} is {}; all must be finite", place + 1, values[place]));
    }
    if values.is_empty() {
        return Err("the file has no numbers".into());
    }
    let count = values.len();
    Ok(Dropped::Residuals { values: quantiles(values), count })
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

fn log(bytes: &[u8]) -> Result<Dropped, String> {
    let say = |error: toclip_logs::Error| error.to_string();
    let log = toclip_logs::load(bytes, &Default::default()).map_err(say)?;
    let advice = toclip_logs::advise(&log, &AdviceOptions::default()).map_err(say)?;
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
        assert_eq!(values(b"1, 2, 3"), [1.0, 2.0, 3.0]);
        assert_eq!(values(b"\xEF\xBB\xBF1\n2\n3\n"), [1.0, 2.0, 3.0]);
        let data: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(values(&array("<f8", "(2,)", &data)), [1.5, -2.0]);
        assert_eq!(values(&array("<f8", "(1, 2)", &data)), [1.5, -2.0]);
        let single: Vec<u8> = [1.5f32].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(values(&array("<f4", "(1,)", &single)), [1.5]);
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
            &array("<i8", "(1,)", &[0; 8]),
            &array("<f8", "(3, 2)", &[0; 48]),
            &array("<f8", "(3,)", &[0; 8]),
        ] {
            let said = read(bytes).unwrap_err();
            assert!(!said.contains('\n') && said.len() > 10, "{said}");
        }
    }

    #[test]
    fn a_training_log_is_answered_with_advice() {
        let mut text = String::from("step,loss,grad_norm\n");
        for k in 0..300 {
            let norm = 1.0 + 0.3 * (f64::from(k) * 0.618).fract();
            text += &format!("{k},{},{norm}\n", 2.0 - 0.001 * f64::from(k));
        }
        let Ok(Dropped::Log { headline, norms, .. }) = read(text.as_bytes()) else { panic!() };
        assert!(headline.ends_with('.') && norms == 300, "{headline}");
    }
}
