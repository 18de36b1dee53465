//! A text file.

use std::path::Path;

use anyhow::{Context, Result, bail};

/// The text of a file, which must be UTF-8.
pub fn read(path: &Path) -> Result<String> {
    let name = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = good.iter().filter(|b| **b == b'\n').count() + 1;
        anyhow::anyhow!("{name}, line {line}: not UTF-8; convert it with iconv -t UTF-8")
    })?;
    if text.is_empty() {
        bail!("{name} is empty; expected a sample on every line");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_either_way_and_other_bytes_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.txt");
        std::fs::write(&path, " a \r\n\n b").unwrap();
        assert_eq!(read(&path).unwrap().lines().collect::<Vec<_>>(), [" a ", "", " b"]);
        std::fs::write(&path, b"a\nb\n\xff\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("line 3: not UTF-8"));
        std::fs::write(&path, "").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("is empty"));
        assert!(read(folder.path()).unwrap_err().to_string().contains("cannot read"));
    }
}
