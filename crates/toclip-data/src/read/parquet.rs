//! Parquet tables, read from their columns in blocks of rows.

use super::source::Source;
use super::table::{RowVisitor, Table};
use crate::error::{AtPath, bail};
use crate::{Error, Result};
use parquet::basic::{Compression, ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;
use std::path::Path;

/// Rows that are converted from columns at a time.
const BLOCK: usize = 512;

/// The columns of a file.
struct Columns {
    names: Vec<String>,
    /// Whether the integers of a column are unsigned: they are stored as if signed.
    unsigned: Vec<bool>,
}

pub(super) fn open(source: Source<'_>) -> Result<Table<'_>> {
    let path = &source.path;
    if source.in_memory() {
        bail!(in path, "Parquet is read from files only; expected CSV or NPY");
    }
    let file = reader(path)?;
    let metadata = file.metadata();
    // The other codecs are not compiled in.
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    for found in columns.map(|column| column.compression()) {
        use Compression::{GZIP, SNAPPY, UNCOMPRESSED};
        if !matches!(found, UNCOMPRESSED | SNAPPY | GZIP(_)) {
            let found = found.to_string();
            let codec = found.split('(').next().unwrap_or_default();
            bail!(in path, "unsupported compression {codec}; save with compression='snappy'");
        }
    }
    let (mut names, mut unsigned) = (Vec::new(), Vec::new());
    for column in metadata.file_metadata().schema_descr().columns() {
        match is_unsigned(column) {
            Ok(is_unsigned) => unsigned.push(is_unsigned),
            Err(what) => bail!(in path, "the column `{}` {what}", column.path().string()),
        }
        names.push(column.name().to_owned());
    }
    if names.is_empty() {
        bail!(in path, "the table has no columns");
    }
    let (width, rounding) = (names.len(), f64::EPSILON);
    let columns = Columns { names: names.clone(), unsigned };
    let read_rows = Box::new(move |source: &Source<'_>, visit: RowVisitor<'_>| {
        columns.each_row(&source.path, visit)
    });
    Ok(Table { source, width, names, rounding, read_rows })
}

fn reader(path: &Path) -> Result<SerializedFileReader<File>> {
    SerializedFileReader::new(File::open(path).at(path)?).map_err(|e| damaged(path, e))
}

fn damaged(path: &Path, e: ParquetError) -> Error {
    Error::file(path, format!("the Parquet file is damaged or cut short ({e})"))
}

/// Whether the integers of a column are unsigned; the error names its content if it has no numbers.
fn is_unsigned(column: &ColumnDescriptor) -> std::result::Result<bool, String> {
    if column.name().starts_with("__index_level_") {
        return Err("is an index; save the table with index=False".into());
    }
    if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
        return Err("has lists or groups; each feature must be a separate column".into());
    }
    let numbers = |what: &str| format!("has {what}; convert them to numbers or drop the column");
    match column.physical_type() {
        Type::BYTE_ARRAY => return Err(numbers("strings or categories")),
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

impl Columns {
    fn each_row(&self, path: &Path, visit: RowVisitor<'_>) -> Result<()> {
        let file = reader(path)?;
        let width = self.names.len();
        let (mut done, mut values) = (0, vec![0.0; BLOCK * width]);
        for index in 0..file.num_row_groups() {
            let group = file.get_row_group(index).map_err(|e| damaged(path, e))?;
            let mut readers = (0..width)
                .map(|i| group.get_column_reader(i).map_err(|e| damaged(path, e)))
                .collect::<Result<Vec<_>>>()?;
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            for first in (0..rows).step_by(BLOCK) {
                let count = BLOCK.min(rows - first);
                for (i, reader) in readers.iter_mut().enumerate() {
                    let column = numbers(reader, self.unsigned[i], count);
                    let column = column.map_err(|e| damaged(path, e))?;
                    if column.len() < count {
                        bail!(in path, "the column `{}` ends too early", self.names[i]);
                    }
                    for (k, value) in column.iter().enumerate() {
                        let Some(value) = value else {
                            bail!(at path, (done + first + k) as u64 + 1, i + 1,
                                "`{}` has no value here", self.names[i]);
                        };
                        values[k * width + i] = *value;
                    }
                }
                values.chunks_exact(width).take(count).try_for_each(&mut *visit)?;
            }
            done += rows;
        }
        Ok(())
    }
}

/// Values of a column, `None` where one is missing.
type Numbers = std::result::Result<Vec<Option<f64>>, ParquetError>;

/// The next values of a column, at most `count`.
fn numbers(reader: &mut ColumnReader, unsigned: bool, count: usize) -> Numbers {
    use ColumnReader as R;
    match reader {
        R::BoolColumnReader(r) => typed(r, count, |v| f64::from(u8::from(*v))),
        R::Int32ColumnReader(r) if unsigned => typed(r, count, |v| f64::from(*v as u32)),
        R::Int32ColumnReader(r) => typed(r, count, |v| f64::from(*v)),
        // Above 2^53 rounded to the nearest double.
        R::Int64ColumnReader(r) if unsigned => typed(r, count, |v| *v as u64 as f64),
        R::Int64ColumnReader(r) => typed(r, count, |v| *v as f64),
        R::FloatColumnReader(r) => typed(r, count, |v| f64::from(*v)),
        R::DoubleColumnReader(r) => typed(r, count, |v| *v),
        // Refused when the file was opened.
        _ => Ok(Vec::new()),
    }
}

fn typed<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    count: usize,
    to: impl Fn(&T::T) -> f64,
) -> Numbers {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    reader.read_records(count, Some(&mut levels), None, &mut values)?;
    let mut values = values.iter().map(to);
    // Without levels no value is missing; with them, those of level 0 are.
    if levels.is_empty() {
        return Ok(values.map(Some).collect());
    }
    Ok(levels.iter().map(|level| if *level == 0 { None } else { values.next() }).collect())
}
