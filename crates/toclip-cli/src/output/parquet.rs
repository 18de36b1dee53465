//! Parquet: typed columns, and the whole configuration in the metadata.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::table::{ColumnValues, Table, TableColumn};

impl Table {
    /// The bytes of a Parquet file with these pairs of metadata.
    pub(super) fn parquet(&self, metadata: &[(&str, String)]) -> Result<Vec<u8>> {
        let mut writer = ParquetWriter::new(Vec::new(), self, metadata)?;
        writer.block(self)?;
        writer.finish()
    }
}

/// A Parquet file to which blocks of rows are appended.
pub(super) struct ParquetWriter<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> ParquetWriter<W> {
    /// Starts a file with the columns of this table and these pairs of metadata.
    pub(super) fn new(to: W, table: &Table, metadata: &[(&str, String)]) -> Result<Self> {
        let fields = table.columns.iter().map(|c| field(c).map(Arc::new)).collect::<Result<_>>()?;
        let schema = Type::group_type_builder("trajectory").with_fields(fields).build()?;
        let pairs = metadata.iter().map(|(k, v)| KeyValue::new((*k).to_owned(), v.clone()));
        let properties =
            WriterProperties::builder().set_key_value_metadata(Some(pairs.collect())).build();
        let writer = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties));
        Ok(ParquetWriter(writer?))
    }

    /// Appends rows.
    pub(super) fn block(&mut self, table: &Table) -> Result<()> {
        let mut group = self.0.next_row_group()?;
        for column in &table.columns {
            let mut to = group.next_column()?.context("fewer columns than the schema has")?;
            match &column.values {
                ColumnValues::Text(values) => {
                    let values: Vec<ByteArray> =
                        values.iter().map(|v| ByteArray::from(v.as_ref())).collect();
                    to.typed::<ByteArrayType>().write_batch(&values, None, None)?;
                }
                ColumnValues::Numbers(values) => {
                    let present: Vec<f64> = values.iter().flatten().copied().collect();
                    to.typed::<DoubleType>().write_batch(&present, Some(&levels(values)), None)?;
                }
                ColumnValues::Counts(values) => {
                    let present: Vec<i64> = values.iter().flatten().map(|v| *v as i64).collect();
                    to.typed::<Int64Type>().write_batch(&present, Some(&levels(values)), None)?;
                }
            }
            to.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file and gives back where it was written to.
    pub(super) fn finish(self) -> Result<W> {
        Ok(self.0.into_inner()?)
    }
}

fn field(column: &TableColumn) -> Result<Type> {
    let (physical, repetition, logical) = match column.values {
        ColumnValues::Text(_) => {
            (Physical::BYTE_ARRAY, Repetition::REQUIRED, Some(LogicalType::String))
        }
        ColumnValues::Numbers(_) => (Physical::DOUBLE, Repetition::OPTIONAL, None),
        ColumnValues::Counts(_) => (Physical::INT64, Repetition::OPTIONAL, None),
    };
    let builder = Type::primitive_type_builder(&column.name, physical);
    Ok(builder.with_repetition(repetition).with_logical_type(logical).build()?)
}

/// Which values are there: one, or missing: zero.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|v| i16::from(v.is_some())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    #[test]
    fn the_table_and_its_metadata_come_back() {
        let table = Table::default()
            .text("method", ["ode", "sgd"])
            .numbers("risk", [Some(0.1 + 0.2), None])
            .counts("runs", [None, Some(100)]);
        let bytes = table.parquet(&[("toclip.version", "1.2.3".into())]).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
        assert_eq!(pairs[0].key, "toclip.version");
        assert_eq!(pairs[0].value.as_deref(), Some("1.2.3"));
        let rows: Vec<Vec<Field>> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().get_column_iter().map(|(_, f)| f.clone()).collect())
            .collect();
        let text = |s: &str| Field::Str(s.into());
        assert_eq!(rows[0], [text("ode"), Field::Double(0.1 + 0.2), Field::Null]);
        assert_eq!(rows[1], [text("sgd"), Field::Null, Field::Long(100)]);
    }
}
