//! Files that others see complete or not at all.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::NamedTempFile;

use super::terminal;

/// Writes a file and the folders it lies in.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = NewFile::create(path)?;
    file.write_all(bytes).with_context(|| cannot_write(path))?;
    file.finish()
}

/// Writes a value as indented JSON with a line break at the end.
pub fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<()> {
    write(path, (serde_json::to_string_pretty(value)? + "\n").as_bytes())
}

/// Writes a result in several formats, each as `STEM.extension`; the files.
pub fn write_formats(stem: &Path, formats: Vec<(&str, Vec<u8>)>) -> Result<Vec<PathBuf>> {
    let write = |(extension, bytes): (&str, Vec<u8>)| {
        let path = with_ending(stem, extension);
        write(&path, &bytes)?;
        Ok(path)
    };
    formats.into_iter().map(write).collect()
}

/// `STEM.ending`, where the stem may contain dots.
pub fn with_ending(stem: &Path, ending: &str) -> PathBuf {
    let mut path = stem.as_os_str().to_owned();
    path.push(".");
    path.push(ending);
    path.into()
}

/// The files of a result are `FOLDER/NAME.…`, after the file `NAME.toml` that asked for it.
pub fn result_stem(folder: &Path, input: &Path) -> PathBuf {
    folder.join(input.file_stem().unwrap_or_default())
}

/// A file that is written piece by piece and appears under its name when it is finished. Dropped
/// before that, it leaves nothing behind.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl NewFile {
    /// Starts a file that will be at `path`; makes the folders it lies in.
    pub fn create(path: &Path) -> Result<Self> {
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".toclip-").suffix(".tmp");
        // A temporary file is private by default; a result is as readable as any new file.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file =
            builder.tempfile_in(folder).map_err(plain).with_context(|| cannot_write(path))?;
        Ok(NewFile { path: path.into(), file: BufWriter::new(file) })
    }

    /// Puts the file in its place.
    pub fn finish(self) -> Result<()> {
        self.persist(true, |_| ()).map(drop)
    }

    /// Puts the file in its place and keeps it open; `before` sees it while others do not. Without
    /// `replace`, a file that is there already stays, and the result is `None`.
    pub fn persist(self, replace: bool, before: impl FnOnce(&File)) -> Result<Option<File>> {
        let persist = || -> std::io::Result<Option<File>> {
            let file = self.file.into_inner().map_err(|failure| failure.into_error())?;
            file.as_file().sync_all()?;
            before(file.as_file());
            let file = match replace {
                true => file,
                false => match file.persist_noclobber(&self.path) {
                    Ok(file) => return Ok(Some(file)),
                    Err(_) if self.path.exists() => return Ok(None),
                    // A file system without hard links: all that is left is to look first.
                    Err(failure) => failure.file,
                },
            };
            // The error of `persist` holds the temporary file, and would keep it as long as it lives.
            file.persist(&self.path).map(Some).map_err(|failure| failure.error)
        };
        persist().map_err(plain).with_context(|| cannot_write(&self.path))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Where a command writes its results: a file that appears when it is finished, or standard output
/// where none is given.
#[derive(Debug)]
pub struct Destination(Option<NewFile>);

impl Destination {
    /// The file at `path`, if there is one.
    pub fn new(path: Option<&Path>) -> Result<Self> {
        path.map(NewFile::create).transpose().map(Destination)
    }

    /// Puts the file in its place.
    pub fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), NewFile::finish)
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let Some(file) = &mut self.0 else {
            terminal::print_bytes(bytes);
            return Ok(bytes.len());
        };
        file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// The line that tells the user which file was written.
pub fn wrote(path: impl AsRef<Path>) -> String {
    format!("Wrote {}", path.as_ref().display())
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// The error without the name of the temporary file, which `tempfile` adds and a person never sees.
fn plain(error: std::io::Error) -> anyhow::Error {
    let text = error.to_string();
    anyhow::anyhow!("{}", text.split_once(" at path ").map_or(&*text, |(cause, _)| cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        std::fs::read_dir(folder).unwrap().map(|e| name(e).into_string().unwrap()).collect()
    }

    #[test]
    fn folders_are_created_and_a_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/c.txt");
        write(&path, b"old").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(names(&folder.path().join("a/b")), ["c.txt"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let usual = folder.path().join("usual");
            std::fs::write(&usual, "").unwrap();
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode(&path), mode(&usual));
        }
    }

    #[test]
    fn an_unfinished_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = NewFile::create(&folder.path().join("x.csv")).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn errors_name_the_path_that_was_asked_for_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken.svg");
        std::fs::create_dir_all(taken.join("inside")).unwrap();
        let error = format!("{:#}", write(&taken, b"x").unwrap_err());
        assert!(error.starts_with(&format!("cannot write {}", taken.display())), "{error}");
        assert!(!error.contains(".toclip-"), "{error}");
        assert_eq!(names(folder.path()), ["taken.svg"]);
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = format!("{:#}", write(&file.join("plot.svg"), b"x").unwrap_err());
        assert!(error.starts_with("cannot create the folder"), "{error}");
        // A folder that exists and takes no files, whoever runs the test.
        let error = format!("{:#}", write(Path::new("/proc/toclip.csv"), b"x").unwrap_err());
        assert!(error.starts_with("cannot write /proc/toclip.csv: "), "{error}");
        assert!(!error.contains(".toclip-") && !error.contains("entity"), "{error}");
    }
}
