//! The folder in the cache where a data set is prepared before it appears under its name.
//!
//! `.cifar10.partial/` holds downloads, which may be continued, and `new/`, which becomes the data
//! set's folder by renaming once it is verified. A lock keeps a second process out; the system
//! drops it when a process dies, however it dies.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use toclip_data::{DataSet, cache_folder};

/// The folder inside that becomes the data set.
pub const NEW: &str = "new";

/// Where one data set is prepared, by one process at a time.
pub struct StagingFolder {
    partial: PathBuf,
    target: PathBuf,
    _lock: File,
}

impl StagingFolder {
    /// Makes the folders and takes the lock.
    pub fn open(set: DataSet) -> Result<Self> {
        let cache = cache_folder()?;
        let lock = std::fs::create_dir_all(&cache)
            .and_then(|()| File::create(cache.join(format!(".{}.lock", set.key()))))
            .with_context(|| format!("cannot write to the cache folder {}", cache.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("another toclip is working on {} in {}", set.title(), cache.display())
            }
            Err(TryLockError::Error(error)) => {
                let failed = || format!("cannot lock the cache folder {}", cache.display());
                return Err(error).with_context(failed);
            }
        }
        let partial = cache.join(format!(".{}.partial", set.key()));
        Ok(Self { partial, target: cache.join(set.key()), _lock: lock })
    }

    /// The file of a download of this name; it may contain the start from an earlier process.
    pub fn download(&self, name: &str) -> Result<PathBuf> {
        make(&self.partial)?;
        Ok(self.partial.join(name))
    }

    /// An empty folder of this name.
    pub fn empty(&self, name: &str) -> Result<PathBuf> {
        let folder = self.partial.join(name);
        delete(&folder)?;
        make(&folder)?;
        Ok(folder)
    }

    /// Puts the verified folder [`NEW`] in the place of the data set, and cleans up.
    pub fn finish(self) -> Result<PathBuf> {
        let old = self.partial.join("old");
        delete(&old)?;
        let replace = || -> std::io::Result<()> {
            if self.target.exists() {
                std::fs::rename(&self.target, &old)?;
            }
            std::fs::rename(self.partial.join(NEW), &self.target)
        };
        replace().with_context(|| format!("cannot write {}", self.target.display()))?;
        delete(&self.partial)?;
        Ok(self.target)
    }

    /// Deletes the leftovers of a failed try, except downloads that can be resumed.
    pub fn tidy(&self) -> Result<()> {
        delete(&self.partial.join(NEW))?;
        delete(&self.partial.join("npm"))?;
        // Only an empty folder goes; with a download in it, it stays.
        let _ = std::fs::remove_dir(&self.partial);
        Ok(())
    }

    /// Deletes the data set and unfinished downloads of it. The folder is renamed first, so nobody finds
    /// half of it.
    pub fn remove_all(self) -> Result<()> {
        make(&self.partial)?;
        let old = self.partial.join("old");
        delete(&old)?;
        if self.target.exists() {
            std::fs::rename(&self.target, &old)
                .with_context(|| format!("cannot remove {}", self.target.display()))?;
        }
        delete(&self.partial)
    }
}

fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))
}

/// Deletes a folder or a file if it is there.
pub fn delete(path: &Path) -> Result<()> {
    let deleted =
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match deleted {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot delete {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The bytes of a file, or of all the files in a folder; 0 if there is none.
pub fn size(path: &Path) -> u64 {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => std::fs::read_dir(path)
            .map(|entries| entries.flatten().map(|entry| size(&entry.path())).sum())
            .unwrap_or(0),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    }
}
