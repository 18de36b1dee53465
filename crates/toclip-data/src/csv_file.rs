//! Matrices in CSV.

use crate::{Error, Matrix, Result};
use std::io::Read;
use std::path::Path;

pub(crate) fn read(path: &Path, reader: impl Read) -> Result<Matrix> {
    // Lengths are compared here, so that the message can say which line differs from which.
    let mut csv = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(reader);
    let mut record = csv::ByteRecord::new();
    let mut data: Vec<f64> = Vec::new();
    let (mut rows, mut cols, mut first_line) = (0, 0, 0);
    loop {
        let more = csv.read_byte_record(&mut record).map_err(|e| from_csv(path, e))?;
        if !more {
            break;
        }
        let line = record.position().map_or(0, csv::Position::line);
        if first_line == 0 {
            (first_line, cols) = (line, record.len());
            if record.iter().all(|cell| number(cell).is_none() && !cell.is_empty()) {
                continue;
            }
        }
        if record.len() != cols {
            let column = record.len().min(cols) + 1;
            let message = format!(
                "the line has {} fields, line {first_line} has {cols}; all must have the same",
                record.len()
            );
            return Err(Error::cell(path, line, column, message));
        }
        for (i, cell) in record.iter().enumerate() {
            let value = number(cell).ok_or_else(|| {
                let text = String::from_utf8_lossy(cell);
                let what = if cell.is_empty() {
                    "the field is empty; give a number".to_owned()
                } else {
                    format!("{text:?} is not a number; numbers are separated by commas")
                };
                Error::cell(path, line, i + 1, what)
            })?;
            if !value.is_finite() {
                let message = format!("{value} is not allowed; all numbers must be finite");
                return Err(Error::cell(path, line, i + 1, message));
            }
            data.push(value);
        }
        rows += 1;
    }
    if rows == 0 {
        return Err(Error::file(path, "there are no numbers in the file"));
    }
    Matrix::new(rows, cols, data).map_err(|e| e.in_file(path))
}

fn number(cell: &[u8]) -> Option<f64> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

fn from_csv(path: &Path, error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(source) => Error::io(path, source),
        other => Error::file(path, format!("not readable as CSV: {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Matrix> {
        read(Path::new("k.csv"), text.as_bytes())
    }

    fn message(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn with_and_without_header() {
        let plain = parse("1,2\n3,4\n").unwrap();
        assert_eq!((plain.rows(), plain.cols(), plain.data()), (2, 2, &[1.0, 2.0, 3.0, 4.0][..]));
        for same in [
            "a,b\n1,2\n3,4",
            "# a comment\n\"x\",\"y\"\r\n 1 , 2\r\n\r\n+3.0,4e0\r\n",
            "\u{feff}1,2\n3,4\n",
        ] {
            assert_eq!(parse(same).unwrap(), plain, "{same:?}");
        }
        assert_eq!(parse("lambda\n1\n0.5\n").unwrap().cols(), 1);
    }

    #[test]
    fn what_is_wrong_is_said_with_line_and_column() {
        assert_eq!(
            message("1,2\n3,x\n"),
            "k.csv, line 2, column 2: \"x\" is not a number; numbers are separated by commas"
        );
        assert!(message("a,b\n\n1,2\n3\n").starts_with("k.csv, line 4, column 2: the line has 1"));
        assert!(message("1,2\n3,4,5\n").contains("line 2, column 3: the line has 3 fields"));
        assert!(message("1,2\n3,NaN\n").starts_with("k.csv, line 2, column 2: NaN"));
        assert!(message("1,-inf\n").starts_with("k.csv, line 1, column 2: -inf"));
        assert!(message("1,1e999\n").starts_with("k.csv, line 1, column 2: inf"));
        assert!(message("1,\n").contains("line 1, column 2: the field is empty"));
        // A line with some numbers is no header.
        assert!(message("1,b\n3,4\n").starts_with("k.csv, line 1, column 2"));
        assert!(message("1 2\n3 4\n2\n").contains("separated by commas"));
        assert!(message("").contains("no numbers"));
        assert!(message("a,b\n").contains("no numbers"));
    }

    #[test]
    fn bytes_that_are_not_text_are_refused() {
        let binary = read(Path::new("k.csv"), &b"1,\xff\xfe\n"[..]).unwrap_err().to_string();
        assert!(binary.starts_with("k.csv, line 1, column 2"), "{binary}");
    }
}
