//! A table too long for memory, written block by block as CSV or Parquet.

use std::path::Path;

#[cfg(feature = "parquet")]
use anyhow::Context;
use anyhow::{Result, bail};

use super::Table;
use super::files::NewFile;
#[cfg(feature = "parquet")]
use super::parquet::ParquetWriter;

/// The file appears under its name when it is finished. The same blocks give the same bytes.
pub struct TableFile(TableFormat);

#[cfg(feature = "parquet")]
const CANNOT: &str = "cannot write the Parquet table";

enum TableFormat {
    Csv(NewFile),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetWriter<NewFile>>),
}

impl TableFile {
    /// The extension of the best format that this build can write.
    pub const EXTENSION: &str = if cfg!(feature = "parquet") { "parquet" } else { "csv" };

    /// Refuses a file name whose extension is not that of a table, or not one that this build can write.
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

    /// Starts a file at `path`, in the format of its extension, with the columns of `table`, which has no
    /// rows. A Parquet file gets these pairs of metadata.
    pub fn create(path: &Path, table: &Table, metadata: &[(&str, String)]) -> Result<Self> {
        TableFile::check_name(path)?;
        let mut file = NewFile::create(path)?;
        #[cfg(feature = "parquet")]
        if path.extension().is_some_and(|extension| extension == "parquet") {
            let writer = ParquetWriter::new(file, table, metadata).context(CANNOT)?;
            return Ok(TableFile(TableFormat::Parquet(Box::new(writer))));
        }
        #[cfg(not(feature = "parquet"))]
        let _ = metadata;
        table.write_csv(&mut file, true)?;
        Ok(TableFile(TableFormat::Csv(file)))
    }

    /// Appends rows; every block has the same columns.
    pub fn block(&mut self, table: &Table) -> Result<()> {
        match &mut self.0 {
            TableFormat::Csv(file) => table.write_csv(file, false),
            #[cfg(feature = "parquet")]
            TableFormat::Parquet(writer) => writer.block(table).context(CANNOT),
        }
    }

    /// Puts the file in its place.
    pub fn finish(self) -> Result<()> {
        match self.0 {
            TableFormat::Csv(file) => file.finish(),
            #[cfg(feature = "parquet")]
            TableFormat::Parquet(writer) => writer.finish().context(CANNOT)?.finish(),
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
        let empty = Table::default().counts("cell", [0; 0]).numbers("x", [0.0; 0]);
        let mut written = Vec::new();
        for name in ["a.parquet", "b.parquet", "a.csv"] {
            let path = folder.path().join(name);
            let mut file = TableFile::create(&path, &empty, &[("k", "v".into())]).unwrap();
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
