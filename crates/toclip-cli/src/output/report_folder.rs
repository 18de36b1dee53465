//! The folder of a report: whole or not at all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::files;

/// The list of files in the folder, by which a later run knows what it may replace.
const LIST: &str = "files.txt";

/// A folder whose files are first written to a hidden one beside it, which takes its place at the end.
pub struct ReportFolder {
    target: PathBuf,
    staging: TempDir,
    files: BTreeSet<String>,
}

impl ReportFolder {
    /// Refuses a folder that cannot be written, or that contains files of others.
    pub fn new(target: &Path) -> Result<Self> {
        let target = std::path::absolute(target)
            .with_context(|| format!("invalid folder name: {}", target.display()))?;
        let here = std::env::current_dir().ok();
        let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
            (Ok(a), Ok(b)) => b.starts_with(a),
            _ => false,
        };
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            bail!("cannot write the report to {}: expected a folder of its own", target.display());
        };
        if here.is_some_and(|here| same(&target, &here)) {
            bail!(
                "cannot write the report to {}: the command runs inside it; expected a folder of \
                 its own, such as --out toclip-out",
                target.display()
            );
        }
        replaceable(&target)?;
        let name = format!(".{}-", name.to_string_lossy());
        let staging = std::fs::create_dir_all(parent)
            .and_then(|()| tempfile::Builder::new().prefix(&name).suffix(".tmp").tempdir_in(parent))
            .with_context(|| format!("cannot write into the folder {}", parent.display()))?;
        Ok(ReportFolder { target, staging, files: BTreeSet::new() })
    }

    /// Adds a file; `name` may hold folders, separated by `/`.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        files::write(&self.staging.path().join(name), bytes)
            .with_context(|| format!("cannot write {name} of {}", self.target.display()))?;
        self.files.insert(name.into());
        Ok(())
    }

    /// Puts the folder in its place, then deletes the earlier report.
    pub fn finish(mut self) -> Result<PathBuf> {
        self.files.insert(LIST.into());
        let list: String = self.files.iter().map(|name| format!("{name}\n")).collect();
        self.write(LIST, list.as_bytes())?;
        #[cfg(unix)]
        {
            // A temporary folder is private by default; a report is as readable as any new folder.
            use std::os::unix::fs::PermissionsExt;
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(self.staging.path(), open)?;
        }
        // Check again: a file may have appeared there in the meantime.
        replaceable(&self.target)?;
        let failed = || format!("cannot put the report in place at {}", self.target.display());
        let old = self.staging.path().with_extension("old");
        let replaces = self.target.exists();
        if replaces {
            std::fs::rename(&self.target, &old).with_context(failed)?;
        }
        if let Err(error) = std::fs::rename(self.staging.path(), &self.target) {
            if replaces {
                let _ = std::fs::rename(&old, &self.target);
            }
            return Err(error).with_context(failed);
        }
        // It was renamed, so there is nothing to clean up.
        let _ = self.staging.keep();
        if replaces {
            std::fs::remove_dir_all(&old)
                .with_context(|| format!("cannot delete the earlier report {}", old.display()))?;
        }
        Ok(self.target)
    }
}

/// Whether a folder is absent, empty, or contains nothing but an earlier report.
fn replaceable(target: &Path) -> Result<()> {
    let shown = target.display();
    match std::fs::symlink_metadata(target) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
        Ok(found) if !found.is_dir() => {
            bail!("cannot write the report to {shown}: there is a file of that name")
        }
        Ok(_) => {}
    }
    let ours: BTreeSet<PathBuf> = std::fs::read_to_string(target.join(LIST))
        .unwrap_or_default()
        .lines()
        .map(PathBuf::from)
        .collect();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(target.join(&folder))
            .with_context(|| format!("cannot read the folder {shown}"))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read the folder {shown}"))?;
            let name = folder.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(name);
            } else if !ours.contains(&name) {
                bail!(
                    "{shown} contains a file that is not part of a report ({}); give --out another \
                     folder",
                    name.display()
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_report_replaces_an_earlier_one_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("deep/out");
        let make = |file: &str| -> Result<PathBuf> {
            let mut folder = ReportFolder::new(&target)?;
            folder.write(file, b"x")?;
            folder.finish()
        };
        make("a/one.txt").unwrap();
        make("two.txt").unwrap();
        assert_eq!(names(&target), ["files.txt", "two.txt"]);
        assert_eq!(names(target.parent().unwrap()), ["out"], "nothing is left beside it");
        std::fs::write(target.join("mine.txt"), "keep").unwrap();
        let error = format!("{:#}", make("three.txt").unwrap_err());
        assert!(error.contains("mine.txt") && error.contains("--out"), "{error}");
        assert_eq!(names(&target), ["files.txt", "mine.txt", "two.txt"]);
        assert_eq!(names(target.parent().unwrap()), ["out"]);
    }

    #[test]
    fn an_unfinished_report_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let mut folder = ReportFolder::new(&root.path().join("out")).unwrap();
        folder.write("a", b"x").unwrap();
        drop(folder);
        assert!(names(root.path()).is_empty());
    }

    #[test]
    fn a_file_in_the_way_and_the_folder_one_stands_in_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        let says = |path: &Path| format!("{:#}", ReportFolder::new(path).err().unwrap());
        assert!(says(&file).contains("file of that name"));
        assert!(says(&file.join("out")).contains("file"));
        assert!(says(Path::new(".")).contains("runs inside it"));
        assert!(says(Path::new("/")).contains("of its own"));
    }
}
