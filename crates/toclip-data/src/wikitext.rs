//! WikiText-2: lines of good Wikipedia articles, a line a sample.

use crate::kind::Kind;
use crate::{Error, Result, archive};
use std::path::Path;

/// The lines of the three parts as published, of the version with `<unk>` and of the raw one.
const LINES: [(&str, usize); 3] = [("train", 36_718), ("valid", 3_760), ("test", 4_358)];

/// More than any part of WikiText-103 has.
const MOST_BYTES: u64 = 1 << 30;

/// Lines of text, all of them: where an article has a blank line, so has this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    text: String,
    /// Where each line starts and ends.
    spans: Vec<(usize, usize)>,
}

impl Lines {
    /// The lines of a text, without their ends (`\n` or `\r\n`).
    ///
    /// ```
    /// let lines = toclip_data::wikitext::Lines::new(" = Title = \n\nA text .\n".into());
    /// assert_eq!(lines.iter().collect::<Vec<_>>(), [" = Title = ", "", "A text ."]);
    /// ```
    pub fn new(text: String) -> Self {
        let start = text.as_ptr() as usize;
        let span = |line: &str| {
            let from = line.as_ptr() as usize - start;
            (from, from + line.len())
        };
        let spans = text.lines().map(span).collect();
        Self { text, spans }
    }

    /// The number of lines, blank ones included.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The text as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line `i`, from 0, if there is one.
    pub fn get(&self, i: usize) -> Option<&str> {
        self.spans.get(i).and_then(|(from, to)| self.text.get(*from..*to))
    }

    /// All lines, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.spans.iter().filter_map(|(from, to)| self.text.get(*from..*to))
    }
}

/// WikiText-2, or any text in its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WikiText {
    /// The lines to train on.
    pub train: Lines,
    /// The lines to choose by, where they are there.
    pub valid: Option<Lines>,
    /// The lines to test on, where they are there.
    pub test: Option<Lines>,
    /// What a reader should know: parts that are missing or have not the published number of lines.
    pub notes: Vec<String>,
}

impl WikiText {
    /// Reads a folder or a `.zip` with `wiki.train.tokens`, `wiki.train.raw` or `train.txt` (and
    /// `valid` and `test` alike), or one text file, which is then the training part.
    ///
    /// ```no_run
    /// let text = toclip_data::wikitext::WikiText::read("wikitext-2-raw-v1.zip")?;
    /// assert_eq!(text.train.len(), 36_718);
    /// # Ok::<(), toclip_data::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::File`] where there is no training part, more than one, or one
    /// that is empty or no UTF-8 text.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
        if metadata.is_dir() {
            return folder(path);
        }
        match Kind::of(path)? {
            Kind::Zip => zipped(path),
            Kind::Text => {
                let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                from_parts(path, [Some((name, bytes)), None, None])
            }
            other => Err(Error::file(
                path,
                format!("this is {}; WikiText-2 is a folder, a .zip or a text file", other.words()),
            )),
        }
    }
}

impl WikiText {
    /// Writes the parts that are there into `folder` as `train.txt`, `valid.txt` and `test.txt`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        let parts = [Some(&self.train), self.valid.as_ref(), self.test.as_ref()];
        for (lines, (part, _)) in parts.into_iter().zip(LINES) {
            if let Some(lines) = lines {
                let path = folder.join(format!("{part}.txt"));
                crate::write_file(&path, lines.text().as_bytes())?;
            }
        }
        Ok(())
    }
}

/// The names a part may have, in order of preference.
fn names(part: &str) -> [String; 3] {
    [format!("wiki.{part}.tokens"), format!("wiki.{part}.raw"), format!("{part}.txt")]
}

type Part = Option<(String, Vec<u8>)>;

fn folder(path: &Path) -> Result<WikiText> {
    // The archives hold one folder; take either.
    let inside = ["wikitext-2", "wikitext-2-raw"].map(|name| path.join(name));
    let holds = |folder: &Path| names("train").iter().any(|name| folder.join(name).is_file());
    let place = match inside.iter().find(|folder| !holds(path) && holds(folder)) {
        Some(folder) => folder,
        None => path,
    };
    let mut parts: [Part; 3] = Default::default();
    for (slot, (part, _)) in parts.iter_mut().zip(LINES) {
        let there: Vec<String> =
            names(part).into_iter().filter(|name| place.join(name).is_file()).collect();
        if let Some(name) = only(place, part, there)? {
            let file = place.join(&name);
            let bytes = std::fs::read(&file).map_err(|e| Error::io(&file, e))?;
            *slot = Some((name, bytes));
        }
    }
    from_parts(place, parts)
}

fn zipped(path: &Path) -> Result<WikiText> {
    let known: Vec<String> = LINES.iter().flat_map(|(part, _)| names(part)).collect();
    let wanted = |name: &str| known.iter().any(|k| k == name).then_some(MOST_BYTES);
    let mut members = archive::zip(path, &wanted)?.found;
    let mut parts: [Part; 3] = Default::default();
    for (slot, (part, _)) in parts.iter_mut().zip(LINES) {
        let there = names(part).into_iter().filter(|name| members.contains_key(name)).collect();
        if let Some(name) = only(path, part, there)? {
            *slot = members.remove_entry(&name);
        }
    }
    from_parts(path, parts)
}

/// Two versions of a part side by side would be mixed without anybody's wish.
fn only(path: &Path, part: &str, mut there: Vec<String>) -> Result<Option<String>> {
    if there.len() > 1 {
        let names = there.join(" and ");
        let message = format!("the {part} part is here more than once: {names}; keep one");
        return Err(Error::file(path, message));
    }
    Ok(there.pop())
}

fn from_parts(path: &Path, parts: [Part; 3]) -> Result<WikiText> {
    let mut notes = Vec::new();
    let mut lines: [Option<Lines>; 3] = Default::default();
    for (slot, (part, (kind, expected))) in lines.iter_mut().zip(parts.into_iter().zip(LINES)) {
        let Some((name, bytes)) = part else {
            if kind != "train" {
                notes.push(format!("there is no {kind} part"));
            }
            continue;
        };
        let text = check(path, &name, bytes)?;
        if text.len() != expected {
            let count = text.len();
            notes.push(format!("{name} has {count} lines; that of WikiText-2 has {expected}"));
        }
        *slot = Some(text);
    }
    let [train, valid, test] = lines;
    let Some(train) = train else {
        let names = names("train").join(", ");
        return Err(Error::file(path, format!("there is no training text here: none of {names}")));
    };
    Ok(WikiText { train, valid, test, notes })
}

fn check(path: &Path, name: &str, bytes: Vec<u8>) -> Result<Lines> {
    let wrong = |what: String| Err(Error::file(path, format!("{name} {what}")));
    match Kind::of_bytes(&bytes) {
        Kind::Text => {}
        Kind::Empty => return wrong("is empty".into()),
        other => return wrong(format!("is {}, not a text", other.words())),
    }
    if let Some(at) = bytes.iter().position(|b| *b == 0) {
        return wrong(format!("is no UTF-8 text: byte {} is zero (UTF-16, or binary?)", at + 1));
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.trim().is_empty() => wrong("has no text in it".into()),
        Ok(text) => Ok(Lines::new(text)),
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            let line = e.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
            wrong(format!("is no UTF-8 text: byte {} (line {line}) begins no character", at + 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::tests::write_zip;

    /// The first lines of the real training text.
    const REAL: &str = include_str!("../tests/data/wikitext-2-head.txt");

    #[test]
    fn real_lines_come_as_they_are() {
        let lines = Lines::new(REAL.into());
        assert_eq!(lines.len(), 12);
        assert_eq!(lines.get(1), Some(" = Valkyria Chronicles III = "));
        assert!(lines.get(3).unwrap().starts_with(" Senjō no Valkyria 3 : <unk> Chronicles"));
        assert_eq!(lines.get(12), None);
        let again: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(again, REAL);
    }

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
            assert_eq!((read.train.len(), read.test.as_ref().unwrap().len()), (12, 2));
            assert_eq!(read.notes[0], format!("{name} has 12 lines; that of WikiText-2 has 36718"));
            assert_eq!(read.notes[1], "there is no valid part");
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
        assert_eq!(WikiText::read(&parent).unwrap().train.len(), 12);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("train.txt");
        for (bytes, part) in [
            (&b""[..], "train.txt is empty"),
            (b" \n\n", "has no text in it"),
            (b"abc\nd\xff\xfe", "byte 6 (line 2)"),
            (b"a\0b\0", "byte 2 is zero (UTF-16"),
            (b"\x89PNG\r\n\x1a\n", "is a PNG image, not a text"),
            (b"<!DOCTYPE html><p>404", "is a web page"),
        ] {
            std::fs::write(&file, bytes).unwrap();
            let said = WikiText::read(dir.path()).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
        std::fs::write(&file, "a\n").unwrap();
        std::fs::write(dir.path().join("wiki.train.raw"), "a\n").unwrap();
        let twice = WikiText::read(dir.path()).unwrap_err().to_string();
        assert!(twice.contains("more than once: wiki.train.raw and train.txt"), "{twice}");
        let empty = tempfile::tempdir().unwrap();
        let none = WikiText::read(empty.path()).unwrap_err().to_string();
        assert!(none.contains("none of wiki.train.tokens, wiki.train.raw, train.txt"), "{none}");
        let archive = archive::tests::write_tar_gz(empty.path().join("a.tgz"), &[]);
        let gz = WikiText::read(&archive).unwrap_err().to_string();
        assert!(gz.contains("this is a gzip archive"), "{gz}");
    }
}
