//! Tables in CSV.

use super::source::{ReadSeek, Source};
use super::table::{RowVisitor, Table};
use crate::error::bail;
use crate::{Error, Result};
use std::path::Path;

pub(super) fn open(source: Source<'_>, delimiter: u8) -> Result<Table<'_>> {
    let mut lines = Lines::open(&source, delimiter)?;
    if !lines.next(&mut Vec::new())? {
        bail!(in &source.path, "the file has no rows of numbers");
    }
    let (width, names) = (lines.cols, std::mem::take(&mut lines.names));
    drop(lines);
    let read_rows = Box::new(move |source: &Source<'_>, visit: RowVisitor<'_>| {
        let mut lines = Lines::open(source, delimiter)?;
        let mut values = Vec::new();
        while lines.next(&mut values)? {
            visit(&values)?;
            values.clear();
        }
        Ok(())
    });
    Ok(Table { source, width, names, rounding: f64::EPSILON, read_rows })
}

/// What separates the cells of a table that starts with these bytes: a comma where its first line has
/// one, else a tab or a semicolon, or a blank between numbers.
pub(super) fn delimiter(start: &[u8]) -> u8 {
    let mut lines = start.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && line[0] != b'#').unwrap_or_default();
    // The last word of a line that goes on beyond these bytes may be half a number.
    let cut = lines.next().is_none();
    let blank = first.iter().rposition(|b| *b == b' ');
    let first = blank.filter(|_| cut).map_or(first, |blank| &first[..blank]);
    let numbers = || first.split(|b| *b == b' ').all(|word| number(word).is_some());
    let found = b",\t;".iter().find(|d| first.contains(d));
    found.copied().unwrap_or(if blank.is_some() && numbers() { b' ' } else { b',' })
}

/// The lines of a CSV file, one after the other.
struct Lines<'a> {
    path: &'a Path,
    csv: csv::Reader<Box<dyn ReadSeek + 'a>>,
    record: csv::ByteRecord,
    /// The first line that is not blank and its number of fields.
    first_line: u64,
    cols: usize,
    names: Vec<String>,
    delimiter: u8,
}

impl<'a> Lines<'a> {
    fn open(source: &'a Source<'_>, delimiter: u8) -> Result<Self> {
        // Lengths are compared here, where the message can say which lines differ.
        let csv = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .delimiter(delimiter)
            .trim(csv::Trim::All)
            .from_reader(source.open()?);
        let (record, names) = (csv::ByteRecord::new(), Vec::new());
        Ok(Self { path: &source.path, csv, record, first_line: 0, cols: 0, names, delimiter })
    }

    /// Appends the numbers of the next row, if there is one.
    fn next(&mut self, data: &mut Vec<f64>) -> Result<bool> {
        while self.csv.read_byte_record(&mut self.record).map_err(|e| csv_error(self.path, e))? {
            let line = self.record.position().map_or(0, csv::Position::line);
            if self.first_line == 0 {
                (self.first_line, self.cols) = (line, self.record.len());
                if self.is_header(line)? {
                    let name = |cell| String::from_utf8_lossy(cell).into_owned();
                    self.names = self.record.iter().map(name).collect();
                    continue;
                }
            }
            return self.numbers(line, data).map(|()| true);
        }
        Ok(false)
    }

    /// Whether the first line has names. A line without any number has; so has one whose numbers
    /// count the columns, as pandas does for columns that nobody named (`0,1,2,y`).
    fn is_header(&self, line: u64) -> Result<bool> {
        let cells = || self.record.iter();
        let counted = counts(cells());
        if cells().all(|cell| number(cell).is_some()) {
            // Two columns that start with 0,1 are as likely a sample.
            if counted == Some(0) && self.cols >= 3 {
                bail!(at self.path, line, 1, "0 to {} may be a sample, or the numbers that pandas \
                      gives to columns without names. If it is a sample, write 0.0; if not, delete \
                      the line (pandas: header=False)", self.cols - 1);
            }
            return Ok(false);
        }
        let numbers = cells().any(|cell| number(cell).is_some());
        let index = cells().next().is_some_and(<[u8]>::is_empty);
        let named = cells().any(|cell| !cell.is_empty() && number(cell).is_none());
        let header = match numbers {
            true => counted.is_some() && (named || index) && !cells().any(is_value),
            false => named,
        };
        if let Some(i) = cells().position(<[u8]>::is_empty).filter(|_| header) {
            bail!(at self.path, line, i + 1, "the column has no name; name it, or leave out the \
                  index that pandas writes (index=False)");
        }
        Ok(header)
    }

    fn numbers(&self, line: u64, data: &mut Vec<f64>) -> Result<()> {
        let Self { path, ref record, cols, first_line, .. } = *self;
        let count = record.len();
        if count != cols {
            let fields = if count == 1 { "1 field" } else { &format!("{count} fields") };
            bail!(at path, line, count.min(cols) + 1, "the line has {fields}, line {first_line} has \
                  {cols}; all must have the same");
        }
        for (i, cell) in record.iter().enumerate() {
            let wrong = match number(cell) {
                Some(value) if value.is_finite() => {
                    data.push(value);
                    continue;
                }
                Some(value) => format!("{value} is not allowed; all numbers must be finite"),
                None if line == first_line && !cell.is_empty() && !is_value(cell) => {
                    not_a_number(cell, self.delimiter)
                        + "; if the line names the columns, no name may be a number"
                }
                None => not_a_number(cell, self.delimiter),
            };
            bail!(at path, line, i + 1, "{wrong}");
        }
        Ok(())
    }
}

/// Where the numbers among the cells begin, 0 or 1, if they count on by one from there.
fn counts<'c>(cells: impl Iterator<Item = &'c [u8]>) -> Option<u64> {
    let mut first = None;
    for (i, cell) in cells.filter(|cell| number(cell).is_some()).enumerate() {
        // Nobody names a column 0.0 or +1.
        let plain = cell.iter().all(u8::is_ascii_digit) && (cell.len() == 1 || cell[0] != b'0');
        let value: u64 = std::str::from_utf8(cell).ok().filter(|_| plain)?.parse().ok()?;
        let first = *first.get_or_insert(value);
        if first > 1 || value != first + i as u64 {
            return None;
        }
    }
    first
}

/// Strings that stand for a value, and bytes that are not text: a line with numbers and one of them
/// is a sample.
fn is_value(cell: &[u8]) -> bool {
    let words = ["true", "false", "na", "n/a", "null", "none", "?"];
    let word = |word: &&str| cell.eq_ignore_ascii_case(word.as_bytes());
    words.iter().any(word) || std::str::from_utf8(cell).is_err()
}

/// Why a cell is not a number.
fn not_a_number(cell: &[u8], delimiter: u8) -> String {
    let text = String::from_utf8_lossy(cell);
    if cell.is_empty() {
        "the field is empty; give a number".into()
    } else if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        format!("{text:?} is not a number; write true as 1 and false as 0")
    } else if text.eq_ignore_ascii_case("yes") || text.eq_ignore_ascii_case("no") {
        format!("{text:?} is not a number; write classes as numbers: yes as 1 and no as 0")
    } else {
        let shown: String = text.chars().take(40).collect();
        let separator = match delimiter {
            _ if delimiter != b',' && text.contains(',') => "write a decimal point, as in 1.5",
            b'\t' => "numbers are separated by tabs",
            b';' => "numbers are separated by semicolons",
            b' ' => "numbers are separated by blanks",
            _ => "numbers are separated by commas",
        };
        format!("{shown:?} is not a number; {separator}")
    }
}

fn number(cell: &[u8]) -> Option<f64> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

fn csv_error(path: &Path, error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(cause) => Error::Io { path: path.into(), cause },
        other => Error::file(path, format!("this is not valid CSV ({other:?})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;
    use crate::testing::messages;

    fn parse_all<B: AsRef<[u8]>>(files: &[B]) -> (tempfile::TempDir, Vec<Result<Matrix>>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k.csv");
        let read = |bytes: &B| {
            std::fs::write(&path, bytes).unwrap();
            Matrix::read(&path)
        };
        let results = files.iter().map(read).collect();
        (dir, results)
    }

    fn parse(text: &str) -> Matrix {
        parse_all(&[text]).1.remove(0).unwrap()
    }

    #[test]
    fn with_and_without_header() {
        let plain = parse("1,2\n3,4\n");
        assert_eq!((plain.rows(), plain.cols(), plain.data()), (2, 2, &[1.0, 2.0, 3.0, 4.0][..]));
        for same in [
            "a,b\n1,2\n3,4",
            "# a comment\n\"x\",\"y\"\r\n 1 , 2\r\n\r\n+3.0,4e0\r\n",
            "\u{feff}1,2\n3,4\n",
        ] {
            assert_eq!(parse(same), plain, "{same:?}");
        }
        assert_eq!(parse("lambda\n1\n0.5\n").cols(), 1);
    }

    #[test]
    fn headers_as_pandas_writes_them() {
        // pd.DataFrame(X).assign(y=y), and columns counted from 1, or after a label.
        for text in ["0,1,y\n5,6,7\n", "1,2,y\n5,6,7\n", "label,0,1\n5,6,7\n"] {
            assert_eq!(parse(text).data(), [5.0, 6.0, 7.0], "{text:?}");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k.csv");
        std::fs::write(&path, "0,1,y\n5,6,7\n").unwrap();
        assert_eq!(open(Source::file(&path), b',').unwrap().names, ["0", "1", "y"]);
        for sample in ["0.0,1,2\n5,6,7\n", "1,2,3\n5,6,7\n", "0,2,1\n5,6,7\n", "0,1\n1,0\n"] {
            assert_eq!(parse(sample).rows(), 2, "{sample:?}");
        }
        assert_eq!(parse("0\n1\n").rows(), 2);
    }

    #[test]
    fn errors_name_line_and_column() {
        let (dir, results) = parse_all(&[
            // Nothing but column numbers may be a sample: the user decides.
            "0,1,2\n5,6,7\n",
            // With the index of pandas.
            ",0,1,y\n0,5,6,7\n",
            ",0,1\n0,5,6\n",
            // A sample with a missing value is not a header, whatever its numbers.
            "0,NA\n3,4\n",
            "2019,2020,y\n3,4,5\n",
            "1,2\n3,x\n",
            "a,b\n\n1,2\n3\n",
            "1,2\n3,4,5\n",
            "1,2\n3,NaN\n",
            "1,-inf\n",
            "1,1e999\n",
            "1,\n",
            // A line with some numbers that do not count the columns is not a header.
            "1.5,b\n3,4\n",
            "1 2\n3 4\n2\n",
            "1,True\n",
            "1,2\n3,No\n",
            ",a\n0,1\n",
            "",
            "a,b\n",
        ]);
        insta::assert_snapshot!(messages(dir.path(), results));
        let (dir, results) = parse_all(&[b"1,\xff\xfe\n"]);
        insta::assert_snapshot!(messages(dir.path(), results));
    }
}
