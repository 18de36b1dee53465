//! WikiText-2: lines of good Wikipedia articles, each line a sample.

use crate::Result;
use crate::data_sets::archive::Members;
use crate::data_sets::write_file;
use crate::error::{AtPath, bail};
use crate::read::{FileFormat, Source};
use std::path::Path;

/// The lines of the three parts as published, both with `<unk>` and raw.
const PARTS: [(&str, usize); 3] = [("train", 36_718), ("valid", 3_760), ("test", 4_358)];

/// More than any part of WikiText-103 has.
const MOST_BYTES: u64 = 1 << 30;

/// WikiText-2, or any text in its form: each line, blank ones included, is a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WikiText {
    /// The text to train on.
    pub train: String,
    /// The text for validation, if present.
    pub valid: Option<String>,
    /// The text to test on, if present.
    pub test: Option<String>,
    /// Parts that are missing or do not have the published number of lines.
    pub notes: Vec<String>,
}

impl WikiText {
    /// Reads a folder or a `.zip` with `wiki.train.tokens`, `wiki.train.raw` or `train.txt` (and
    /// the same for `valid` and `test`), or one text file, which is then the training part.
    ///
    /// ```no_run
    /// let text = toclip_data::wikitext::WikiText::read("wikitext-2-raw-v1.zip")?;
    /// assert_eq!(text.train.lines().count(), 36_718);
    /// # Ok::<(), toclip_data::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), or [`Error::File`](crate::Error::File) if there is no
    /// training part, more than one, or one that is empty or not UTF-8.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if std::fs::metadata(path).at(path)?.is_dir() {
            // The published archives have one folder; accept it and the folder around it.
            let holds = |folder: &Path| names("train").iter().any(|n| folder.join(n).is_file());
            let inside = ["wikitext-2", "wikitext-2-raw"].map(|name| path.join(name));
            let inside = inside.iter().find(|folder| !holds(path) && holds(folder));
            let folder = inside.map_or(path, |folder| folder.as_path());
            return Self::from_files(folder, |part| {
                let there = names(part).into_iter().filter(|name| folder.join(name).is_file());
                there.map(|name| named_file(&folder.join(&name))).collect()
            });
        }
        match FileFormat::of_bytes(&Source::file(path).first_bytes()?) {
            FileFormat::Zip => {
                let known: Vec<String> = PARTS.iter().flat_map(|(part, _)| names(part)).collect();
                let wanted = |name: &str| known.iter().any(|k| k == name).then_some(MOST_BYTES);
                let mut found = Members::of_zip(path, &wanted)?.found;
                Self::from_files(path, |part| {
                    Ok(names(part).iter().filter_map(|name| found.remove_entry(name)).collect())
                })
            }
            FileFormat::Text => Self::from_files(path, |part| match part {
                "train" => Ok(vec![named_file(path)?]),
                _ => Ok(Vec::new()),
            }),
            other => {
                bail!(in path, "this is {}; WikiText-2 is a folder, a .zip or a text file",
                    other.describe())
            }
        }
    }

    /// `files_of` gives the files that may be a part, with their names.
    fn from_files(
        path: &Path,
        mut files_of: impl FnMut(&str) -> Result<Vec<(String, Vec<u8>)>>,
    ) -> Result<Self> {
        let mut notes = Vec::new();
        let mut texts: [Option<String>; 3] = Default::default();
        for (slot, (part, published)) in texts.iter_mut().zip(PARTS) {
            let mut files = files_of(part)?;
            // Two versions of a part would be mixed by mistake.
            if let [(one, _), (other, _), ..] = &files[..] {
                bail!(in path, "both {one} and {other} are the {part} part; keep one of them");
            }
            let Some((name, bytes)) = files.pop() else {
                notes.push(format!("the {part} part is missing"));
                continue;
            };
            let text = check(path, &name, bytes)?;
            let count = text.lines().count();
            if count != published {
                notes.push(format!("{name} has {count} lines; WikiText-2 has {published}"));
            }
            *slot = Some(text);
        }
        let [Some(train), valid, test] = texts else {
            bail!(in path, "the training text is missing: expected one of {}",
                names("train").join(", "));
        };
        Ok(WikiText { train, valid, test, notes })
    }

    /// Writes the parts into `folder` as `train.txt`, `valid.txt` and `test.txt`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn write(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        std::fs::create_dir_all(folder).at(folder)?;
        let parts = [Some(&self.train), self.valid.as_ref(), self.test.as_ref()];
        for (text, (part, _)) in parts.into_iter().zip(PARTS) {
            if let Some(text) = text {
                write_file(&folder.join(format!("{part}.txt")), text.as_bytes())?;
            }
        }
        Ok(())
    }
}

/// The names a part may have, in order of preference.
fn names(part: &str) -> [String; 3] {
    [format!("wiki.{part}.tokens"), format!("wiki.{part}.raw"), format!("{part}.txt")]
}

fn named_file(path: &Path) -> Result<(String, Vec<u8>)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((name, std::fs::read(path).at(path)?))
}

fn check(path: &Path, name: &str, bytes: Vec<u8>) -> Result<String> {
    match FileFormat::of_bytes(&bytes) {
        FileFormat::Text => {}
        FileFormat::Empty => bail!(in path, "{name} is empty"),
        other => bail!(in path, "{name} is {}, not a text file", other.describe()),
    }
    if let Some(at) = bytes.iter().position(|b| *b == 0) {
        bail!(in path, "{name} is not UTF-8: byte {} is zero (UTF-16, or binary?)", at + 1);
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.trim().is_empty() => bail!(in path, "{name} has only blank lines"),
        Ok(text) => Ok(text),
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            let line = e.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
            bail!(in path, "{name} is not UTF-8: invalid byte {} in line {line}", at + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_sets::archive::tests::write_zip;

    /// The first lines of the real training text.
    const REAL: &str = include_str!("../../tests/data/wikitext-2-head.txt");

    #[test]
    fn folder_zip_and_file_say_the_same() {
        let dir = tempfile::tempdir().unwrap();
        for (part, style) in [("train", 0), ("train", 1), ("train", 2)] {
            let name = &names(part)[style];
            let folder = dir.path().join(format!("{style}"));
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join(name), REAL).unwrap();
            std::fs::write(folder.join(&names("test")[style]), "a\nb\n").unwrap();
            let read = WikiText::read(&folder).unwrap();
            assert_eq!((&read.train[..], read.test.as_deref()), (REAL, Some("a\nb\n")));
            assert_eq!(read.notes[0], format!("{name} has 12 lines; WikiText-2 has 36718"));
            assert_eq!(read.notes[1], "the valid part is missing");
            let inside = format!("wikitext-2-raw/{name}");
            let test = format!("wikitext-2-raw/{}", names("test")[style]);
            let members = [(&inside[..], REAL.as_bytes()), (&test, b"a\nb\n")];
            let zip = write_zip(dir.path().join(format!("{style}.zip")), &members);
            assert_eq!(WikiText::read(&zip).unwrap(), read);
            let copy = dir.path().join(format!("copy {style}"));
            read.write(&copy).unwrap();
            assert_eq!(std::fs::read_to_string(copy.join("train.txt")).unwrap(), REAL);
            assert_eq!(WikiText::read(&copy).unwrap().test, read.test);
            assert_eq!(WikiText::read(folder.join(name)).unwrap().train, read.train);
        }
        let parent = dir.path().join("parent");
        std::fs::create_dir_all(parent.join("wikitext-2")).unwrap();
        std::fs::write(parent.join("wikitext-2/wiki.train.tokens"), REAL).unwrap();
        assert_eq!(WikiText::read(&parent).unwrap().train, REAL);
    }

    #[test]
    fn errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("train.txt");
        let files: [&[u8]; 6] = [
            b"",
            b" \n\n",
            b"abc\nd\xff\xfe",
            b"a\0b\0",
            b"\x89PNG\r\n\x1a\n",
            b"<!DOCTYPE html><p>404",
        ];
        let mut results: Vec<_> = files
            .iter()
            .map(|bytes| {
                std::fs::write(&file, bytes).unwrap();
                WikiText::read(&file)
            })
            .collect();
        let folder = dir.path().join("text");
        std::fs::create_dir(&folder).unwrap();
        results.push(WikiText::read(&folder));
        for name in ["train.txt", "wiki.train.raw"] {
            std::fs::write(folder.join(name), "a\n").unwrap();
        }
        results.push(WikiText::read(&folder));
        let archive = crate::data_sets::archive::tests::write_tar_gz(folder.join("a.tgz"), &[]);
        results.push(WikiText::read(&archive));
        insta::assert_snapshot!(crate::testing::messages(dir.path(), results));
    }
}
