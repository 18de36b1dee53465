//! Rows of a Parquet table, from its columns a few hundred rows at a time.

use super::table::{Table, finite};
use crate::{Error, Result};
use parquet::basic::{Compression, ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Rows that are turned from columns at a time.
const ROWS: usize = 512;

pub(super) struct Parquet {
    path: PathBuf,
    names: Vec<String>,
    /// Integers of these columns are stored as if signed, and are not.
    unsigned: Vec<bool>,
}

impl Parquet {
    pub fn open(path: &Path) -> Result<Self> {
        let file = reader(path)?;
        let metadata = file.metadata();
        compression(path, metadata)?;
        let (mut names, mut unsigned) = (Vec::new(), Vec::new());
        for column in metadata.file_metadata().schema_descr().columns() {
            unsigned.push(check_type(column).map_err(|what| {
                let name = column.path().string();
                Error::file(path, format!("the column {name:?} {what}"))
            })?);
            names.push(column.name().to_owned());
        }
        match names.is_empty() {
            true => Err(Error::file(path, "the table has no columns")),
            false => Ok(Self { path: path.into(), names, unsigned }),
        }
    }

    fn damaged(&self, e: parquet::errors::ParquetError) -> Error {
        Error::file(&self.path, format!("the Parquet file is damaged: {e}"))
    }
}

fn reader(path: &Path) -> Result<SerializedFileReader<File>> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    SerializedFileReader::new(file)
        .map_err(|e| Error::file(path, format!("the Parquet file is damaged or cut short ({e})")))
}

/// Other ways of compression are not compiled in: say so before the first page does.
fn compression(path: &Path, metadata: &ParquetMetaData) -> Result<()> {
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    for found in columns.map(|column| column.compression()) {
        let known =
            matches!(found, Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::GZIP(_));
        if !known {
            let message = format!(
                "the table is compressed with {found}, which is not read; \
                 save it with compression='snappy'"
            );
            return Err(Error::file(path, message));
        }
    }
    Ok(())
}

/// Whether the integers of a column are unsigned; an error says what it holds instead of numbers.
fn check_type(column: &ColumnDescriptor) -> std::result::Result<bool, String> {
    if column.name().starts_with("__index_level_") {
        return Err("is an index, not data; save the table with index=False".into());
    }
    if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
        return Err("holds lists or groups; each feature must be a column of its own".into());
    }
    let text = "holds text or categories; write them as numbers, or leave the column out";
    let numbers = |what: &str| format!("holds {what}; write them as numbers");
    match column.physical_type() {
        Type::BYTE_ARRAY => return Err(text.into()),
        Type::INT96 => return Err(numbers("times")),
        Type::FIXED_LEN_BYTE_ARRAY => return Err(numbers("values of fixed length")),
        _ => {}
    }
    match column.logical_type_ref() {
        Some(LogicalType::Integer(of)) => return Ok(!of.is_signed),
        Some(LogicalType::Date | LogicalType::Time(_) | LogicalType::Timestamp(_)) => {
            return Err(numbers("dates or times"));
        }
        Some(other) => return Err(numbers(&format!("values of type {other:?}"))),
        None => {}
    }
    use ConvertedType as C;
    match column.converted_type() {
        C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64 => Ok(true),
        C::NONE | C::INT_8 | C::INT_16 | C::INT_32 | C::INT_64 => Ok(false),
        other => Err(numbers(&format!("values of type {other}"))),
    }
}

impl Table for Parquet {
    fn path(&self) -> &Path {
        &self.path
    }

    fn width(&self) -> usize {
        self.names.len()
    }

    fn names(&self) -> Option<&[String]> {
        Some(&self.names)
    }

    fn each(&self, row: &mut dyn FnMut(&[f64]) -> Result<()>) -> Result<()> {
        let file = reader(&self.path)?;
        let width = self.width();
        let (mut done, mut values, mut column) = (0, vec![0.0; ROWS * width], Vec::new());
        for index in 0..file.num_row_groups() {
            let group = file.get_row_group(index).map_err(|e| self.damaged(e))?;
            let mut readers = (0..width)
                .map(|i| group.get_column_reader(i).map_err(|e| self.damaged(e)))
                .collect::<Result<Vec<_>>>()?;
            let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            while left > 0 {
                let count = ROWS.min(left);
                for (i, reader) in readers.iter_mut().enumerate() {
                    column.clear();
                    numbers(reader, self.unsigned[i], count, &mut column)
                        .map_err(|e| self.damaged(e))?;
                    if column.len() < count {
                        let message = format!("the column {:?} ends too early", self.names[i]);
                        return Err(Error::file(&self.path, message));
                    }
                    for (k, value) in column.iter().enumerate() {
                        let Some(value) = value else {
                            let row = (done + k) as u64 + 1;
                            let message = format!("{:?} has no value here", self.names[i]);
                            return Err(Error::cell(&self.path, row, i + 1, message));
                        };
                        values[k * width + i] = *value;
                    }
                }
                for (k, values) in values.chunks_exact(width).take(count).enumerate() {
                    finite(&self.path, done + k, values)?;
                    row(values)?;
                }
                (done, left) = (done + count, left - count);
            }
        }
        Ok(())
    }
}

/// The next values of a column, `None` where there is none.
fn numbers(
    reader: &mut ColumnReader,
    unsigned: bool,
    count: usize,
    out: &mut Vec<Option<f64>>,
) -> parquet::errors::Result<()> {
    use ColumnReader as R;
    match reader {
        R::BoolColumnReader(r) => typed(r, count, out, |v| f64::from(u8::from(*v))),
        R::Int32ColumnReader(r) if unsigned => typed(r, count, out, |v| f64::from(*v as u32)),
        R::Int32ColumnReader(r) => typed(r, count, out, |v| f64::from(*v)),
        // Above 2^53 rounded to the nearest f64.
        R::Int64ColumnReader(r) if unsigned => typed(r, count, out, |v| *v as u64 as f64),
        R::Int64ColumnReader(r) => typed(r, count, out, |v| *v as f64),
        R::FloatColumnReader(r) => typed(r, count, out, |v| f64::from(*v)),
        R::DoubleColumnReader(r) => typed(r, count, out, |v| *v),
        // Refused when the file was opened.
        _ => Ok(()),
    }
}

fn typed<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    count: usize,
    out: &mut Vec<Option<f64>>,
    to: impl Fn(&T::T) -> f64,
) -> parquet::errors::Result<()> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < count {
        let (records, ..) =
            reader.read_records(count - read, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            break;
        }
        read += records;
    }
    // Without levels, every value is there; with them, those of level 1 are.
    let mut values = values.iter();
    match levels.is_empty() {
        true => out.extend(values.map(|v| Some(to(v)))),
        false => out.extend(levels.iter().map(|level| match level {
            0 => None,
            _ => values.next().map(&to),
        })),
    }
    Ok(())
}
