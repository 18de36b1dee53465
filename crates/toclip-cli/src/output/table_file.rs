//! A table too long for memory, written block by block as CSV or Parquet.

use std::path::Path;

use anyhow::{Result, bail};

use super::Table;
use super::files::NewFile;
#[cfg(feature = "parquet")]
use super::parquet::ParquetWriter;

/// The file appears under its name when it is finished. The same blocks give the same bytes.
pub struct TableFile {
    format: Format,
    #[cfg(feature = "parquet")]
    metadata: Vec<(&'static str, String)>,
}

enum Format {
    Csv {
        file: NewFile,
        header: bool,
    },
    /// The schema is that of the first block.
    #[cfg(feature = "parquet")]
    Parquet(Option<NewFile>, Option<Box<ParquetWriter<NewFile>>>),
}

impl TableFile {
    /// Whether the name of a file says what a table can be written as, and this build can write it.
    pub fn check_name(path: &Path) -> Result<()> {
        match path.extension().and_then(|e| e.to_str()) {
            Some("csv") => Ok(()),
            Some("parquet") if cfg!(feature = "parquet") => Ok(()),
            Some("parquet") => bail!(
                "toclip was built without the feature `parquet`; write {} as .csv",
                path.display()
            ),
            _ => bail!(
                "cannot write the table {}: its name must end in .csv or .parquet",
                path.display()
            ),
        }
    }

    /// Starts a file that will be at `path`, in the format of its extension; Parquet gets these pairs of
    /// metadata.
    pub fn create(path: &Path, metadata: Vec<(&'static str, String)>) -> Result<Self> {
        TableFile::check_name(path)?;
        #[cfg(not(feature = "parquet"))]
        let _ = metadata;
        let file = NewFile::create(path)?;
        let format = match path.extension().and_then(|e| e.to_str()) {
            #[cfg(feature = "parquet")]
            Some("parquet") => Format::Parquet(Some(file), None),
            _ => Format::Csv { file, header: true },
        };
        Ok(TableFile {
            format,
            #[cfg(feature = "parquet")]
            metadata,
        })
    }

    /// Appends rows; every block has the same columns.
    pub fn block(&mut self, table: &Table) -> Result<()> {
        match &mut self.format {
            Format::Csv { file, header } => {
                table.write_csv(file, *header)?;
                *header = false;
            }
            #[cfg(feature = "parquet")]
            Format::Parquet(file, writer) => {
                if let Some(file) = file.take() {
                    *writer = Some(Box::new(ParquetWriter::new(file, table, &self.metadata)?));
                }
                if let Some(writer) = writer {
                    writer.block(table)?;
                }
            }
        }
        Ok(())
    }

    /// Puts the file in its place.
    pub fn finish(self) -> Result<()> {
        match self.format {
            Format::Csv { file, .. } => file.finish(),
            #[cfg(feature = "parquet")]
            Format::Parquet(file, writer) => match writer {
                Some(writer) => writer.finish()?.finish(),
                None => file.map_or(Ok(()), NewFile::finish),
            },
        }
    }
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use super::*;

    #[test]
    fn blocks_give_one_table_and_the_same_bytes_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let block =
            |k: u64| Table::default().counts("cell", [k, k + 1]).numbers("x", [0.5, f64::NAN]);
        let mut written = Vec::new();
        for name in ["a.parquet", "b.parquet", "a.csv"] {
            let path = folder.path().join(name);
            let mut file = TableFile::create(&path, vec![("k", "v".into())]).unwrap();
            file.block(&block(0)).unwrap();
            file.block(&block(2)).unwrap();
            assert!(!path.exists(), "only the whole file is seen");
            file.finish().unwrap();
            written.push(std::fs::read(&path).unwrap());
        }
        assert_eq!(written[0], written[1]);
        assert_eq!(String::from_utf8_lossy(&written[2]), "cell,x\n0,0.5\n1,\n2,0.5\n3,\n");
        let error = TableFile::check_name(Path::new("x.txt")).unwrap_err().to_string();
        assert_eq!(error, "cannot write the table x.txt: its name must end in .csv or .parquet");
    }
}
