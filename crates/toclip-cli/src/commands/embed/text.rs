//! A text file as lines.

use std::path::Path;

use anyhow::{Context, Result, bail};

/// A text in memory.
#[derive(Debug)]
pub struct Text(String);

impl Text {
    /// Reads a file that must be UTF-8.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
        let text = String::from_utf8(bytes).map_err(|e| {
            let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = good.iter().filter(|b| **b == b'\n').count() + 1;
            anyhow::anyhow!("{name}, line {line}: not UTF-8; convert it with iconv -t UTF-8")
        })?;
        if text.is_empty() {
            bail!("{name} is empty; every line of it would be a sample");
        }
        Ok(Text(text))
    }

    /// Its lines, without their ends.
    pub fn lines(&self) -> Vec<&str> {
        self.0.lines().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_either_way_and_other_bytes_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.txt");
        std::fs::write(&path, " a \r\n\n b").unwrap();
        assert_eq!(Text::read(&path).unwrap().lines(), [" a ", "", " b"]);
        std::fs::write(&path, b"a\nb\n\xff\n").unwrap();
        assert!(Text::read(&path).unwrap_err().to_string().contains("line 3: not UTF-8"));
        std::fs::write(&path, "").unwrap();
        assert!(Text::read(&path).unwrap_err().to_string().contains("is empty"));
        assert!(Text::read(folder.path()).unwrap_err().to_string().contains("cannot read"));
    }
}
