//! Matrices in CSV.

use crate::{Error, Matrix, Result};
use std::io::Read;
use std::path::Path;

pub(crate) fn read(path: &Path, reader: impl Read) -> Result<Matrix> {
    let mut lines = Rows::new(path, reader);
    let mut data: Vec<f64> = Vec::new();
    let mut rows = 0;
    while lines.next(&mut data)? {
        rows += 1;
    }
    if rows == 0 {
        return Err(Error::file(path, "there are no numbers in the file"));
    }
    Matrix::new(rows, lines.cols(), data).map_err(|e| e.in_file(path))
}

/// The rows of a CSV file, one after the other.
pub(crate) struct Rows<'a, R> {
    path: &'a Path,
    csv: csv::Reader<R>,
    record: csv::ByteRecord,
    /// The first line that is not blank and its number of fields.
    first_line: u64,
    cols: usize,
    names: Option<Vec<String>>,
}

impl<'a, R: Read> Rows<'a, R> {
    pub fn new(path: &'a Path, reader: R) -> Self {
        // Lengths are compared here, so that the message can say which line differs from which.
        let csv = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(reader);
        Self { path, csv, record: csv::ByteRecord::new(), first_line: 0, cols: 0, names: None }
    }

    /// The fields of every line, once one was read.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The names in the first line, if there were any.
    pub fn into_names(self) -> Option<Vec<String>> {
        self.names
    }

    /// Appends the numbers of the next row, if there is one.
    pub fn next(&mut self, data: &mut Vec<f64>) -> Result<bool> {
        loop {
            let more = self.csv.read_byte_record(&mut self.record);
            if !more.map_err(|e| from_csv(self.path, e))? {
                return Ok(false);
            }
            let line = self.record.position().map_or(0, csv::Position::line);
            if self.first_line == 0 {
                (self.first_line, self.cols) = (line, self.record.len());
                if self.header(line)? {
                    continue;
                }
            }
            return self.numbers(line, data).map(|()| true);
        }
    }

    /// Whether the first line has names. A line without any number has; so has one whose numbers
    /// count the columns, as pandas does for columns that nobody named (`0,1,2,y`).
    fn header(&mut self, line: u64) -> Result<bool> {
        let cells = || self.record.iter();
        let counted = counts(cells());
        if cells().all(|cell| number(cell).is_some()) {
            // Two columns that start with 0,1 are as likely a sample.
            if counted != Some(0) || self.cols < 3 {
                return Ok(false);
            }
            let last = self.cols - 1;
            let message = format!(
                "is 0 to {last} a sample, or the numbers that pandas gives to columns without a \
                 name? If a sample, write 0.0; if not, delete the line (pandas: header=False)"
            );
            return Err(Error::cell(self.path, line, 1, message));
        }
        let numbers = cells().any(|cell| number(cell).is_some());
        let index = cells().next().is_some_and(<[u8]>::is_empty);
        let named = cells().any(|cell| !cell.is_empty() && number(cell).is_none());
        let header = match numbers {
            true => counted.is_some() && (named || index) && !cells().any(is_value),
            false => named,
        };
        if !header {
            return Ok(false);
        }
        if let Some(i) = cells().position(<[u8]>::is_empty) {
            let message = "the column has no name; give it one, or leave out the index that \
                           pandas writes (index=False)";
            return Err(Error::cell(self.path, line, i + 1, message));
        }
        let name = |cell: &[u8]| String::from_utf8_lossy(cell).into_owned();
        self.names = Some(cells().map(name).collect());
        Ok(true)
    }

    fn numbers(&self, line: u64, data: &mut Vec<f64>) -> Result<()> {
        let Self { path, record, cols, first_line, .. } = self;
        if record.len() != *cols {
            let column = record.len().min(*cols) + 1;
            let message = format!(
                "the line has {} fields, line {first_line} has {cols}; all must have the same",
                record.len()
            );
            return Err(Error::cell(path, line, column, message));
        }
        for (i, cell) in record.iter().enumerate() {
            let value = number(cell).ok_or_else(|| {
                let mut message = reason(cell);
                if line == *first_line && !cell.is_empty() && !is_value(cell) {
                    message += "; if the line names the columns, no name may be a number";
                }
                Error::cell(path, line, i + 1, message)
            })?;
            if !value.is_finite() {
                let message = format!("{value} is not allowed; all numbers must be finite");
                return Err(Error::cell(path, line, i + 1, message));
            }
            data.push(value);
        }
        Ok(())
    }
}

/// Where the numbers among the cells begin, 0 or 1, if they count on by one from there.
fn counts<'c>(cells: impl Iterator<Item = &'c [u8]>) -> Option<u64> {
    let mut first = None;
    for (i, cell) in cells.filter(|cell| number(cell).is_some()).enumerate() {
        // 0.0 and +1 are numbers, and nobody's names.
        let plain = cell.iter().all(u8::is_ascii_digit) && (cell.len() == 1 || cell[0] != b'0');
        let value: u64 = std::str::from_utf8(cell).ok().filter(|_| plain)?.parse().ok()?;
        let first = *first.get_or_insert(value);
        if first > 1 || value != first + i as u64 {
            return None;
        }
    }
    first
}

/// Words that stand for a value, and bytes that are no text: a line with numbers and one of them is
/// a sample.
fn is_value(cell: &[u8]) -> bool {
    let words = ["true", "false", "na", "n/a", "null", "none", "?"];
    let word = |word: &&str| cell.eq_ignore_ascii_case(word.as_bytes());
    words.iter().any(word) || std::str::from_utf8(cell).is_err()
}

/// Why a cell is no number.
fn reason(cell: &[u8]) -> String {
    let text = String::from_utf8_lossy(cell);
    if cell.is_empty() {
        "the field is empty; give a number".into()
    } else if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        format!("{text:?} is not a number; write true as 1 and false as 0")
    } else {
        let shown: String = text.chars().take(40).collect();
        format!("{shown:?} is not a number; numbers are separated by commas")
    }
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
    fn headers_as_pandas_writes_them() {
        // pd.DataFrame(X).assign(y=y), and columns counted from 1, or after a label.
        for text in ["0,1,y\n5,6,7\n", "1,2,y\n5,6,7\n", "label,0,1\n5,6,7\n"] {
            assert_eq!(parse(text).unwrap().data(), [5.0, 6.0, 7.0], "{text:?}");
        }
        let mut rows = Rows::new(Path::new("k.csv"), "0,1,y\n5,6,7\n".as_bytes());
        assert!(rows.next(&mut Vec::new()).unwrap());
        assert_eq!(rows.into_names().unwrap(), ["0", "1", "y"]);
        // Nothing but column numbers may be a sample: the user decides.
        let said = message("0,1,2\n5,6,7\n");
        assert!(said.starts_with("k.csv, line 1, column 1: is 0 to 2 a sample"), "{said}");
        assert!(said.contains("header=False"), "{said}");
        for sample in ["0.0,1,2\n5,6,7\n", "1,2,3\n5,6,7\n", "0,2,1\n5,6,7\n"] {
            assert_eq!(parse(sample).unwrap().rows(), 2, "{sample:?}");
        }
        assert_eq!(parse("0,1\n1,0\n").unwrap().rows(), 2);
        assert_eq!(parse("0\n1\n").unwrap().rows(), 2);
        // With the index.
        assert!(message(",0,1,y\n0,5,6,7\n").contains("index=False"));
        assert!(message(",0,1\n0,5,6\n").contains("index=False"));
        // A sample with a hole is no header, whatever its numbers.
        assert!(message("0,NA\n3,4\n").contains("line 1, column 2: \"NA\" is not a number"));
        let years = message("2019,2020,y\n3,4,5\n");
        assert!(years.contains("\"y\" is not a number"), "{years}");
        assert!(years.contains("no name may be a number"), "{years}");
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
        // A line with some numbers that do not count the columns is no header.
        assert!(message("1.5,b\n3,4\n").starts_with("k.csv, line 1, column 2"));
        assert!(message("1 2\n3 4\n2\n").contains("separated by commas"));
        assert!(message("1,True\n").contains("write true as 1"));
        assert!(message(",a\n0,1\n").contains("line 1, column 1: the column has no name"));
        assert!(message("").contains("no numbers"));
        assert!(message("a,b\n").contains("no numbers"));
    }

    #[test]
    fn bytes_that_are_not_text_are_refused() {
        let binary = read(Path::new("k.csv"), &b"1,\xff\xfe\n"[..]).unwrap_err().to_string();
        assert!(binary.starts_with("k.csv, line 1, column 2"), "{binary}");
    }
}
