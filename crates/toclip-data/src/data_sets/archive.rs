//! Members of archives, read into memory: nothing is written where an archive says.

use crate::error::{AtPath, bail};
use crate::{Error, Result};
use flate2::read::MultiGzDecoder;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// No data set here is larger: a larger file is a decompression bomb or the wrong file.
const MOST_BYTES: u64 = 2 << 30;

/// Which members to read: for a file name, the most bytes it may have, or `None` to skip it.
pub(crate) type Wanted<'a> = &'a dyn Fn(&str) -> Option<u64>;

/// The content of an archive: the wanted members by file name, and the names of all the files.
pub(crate) struct Members<'a> {
    pub found: BTreeMap<String, Vec<u8>>,
    pub names: Vec<String>,
    path: &'a Path,
    wanted: Wanted<'a>,
}

impl<'a> Members<'a> {
    /// The wanted members of a `.tar.gz`.
    pub fn of_tar_gz(path: &'a Path, wanted: Wanted<'a>) -> Result<Self> {
        let damaged = |e: std::io::Error| damaged(path, &e);
        let unpacked = MultiGzDecoder::new(BufReader::new(File::open(path).at(path)?));
        let mut archive = tar::Archive::new(unpacked.take(MOST_BYTES));
        let mut members = Self::new(path, wanted);
        for entry in archive.entries().map_err(damaged)? {
            let mut entry = entry.map_err(damaged)?;
            if entry.header().entry_type().is_file() {
                let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
                members.add(&name, entry.size(), &mut entry)?;
            }
        }
        Ok(members)
    }

    /// The wanted members of a `.zip`.
    pub fn of_zip(path: &'a Path, wanted: Wanted<'a>) -> Result<Self> {
        let damaged = |e: zip::result::ZipError| damaged(path, &e);
        let file = BufReader::new(File::open(path).at(path)?);
        let mut archive = zip::ZipArchive::new(file).map_err(damaged)?;
        let mut members = Self::new(path, wanted);
        for index in 0..archive.len() {
            let mut entry = archive.by_index(index).map_err(damaged)?;
            if entry.is_file() {
                let name = entry.name().map_err(damaged)?.into_owned();
                members.add(&name, entry.size(), &mut entry)?;
            }
        }
        Ok(members)
    }

    fn new(path: &'a Path, wanted: Wanted<'a>) -> Self {
        Self { found: BTreeMap::new(), names: Vec::new(), path, wanted }
    }

    /// Adds a member whose header claims `size` bytes, by the last part of its path: the folders in
    /// an archive do not matter, and `..` is dangerous.
    fn add(&mut self, member: &str, size: u64, content: &mut dyn Read) -> Result<()> {
        let name = member.rsplit(['/', '\\']).next().unwrap_or(member).to_owned();
        if let Some(most) = (self.wanted)(&name) {
            let mut bytes = Vec::new();
            if size <= most {
                // A header can claim a wrong size, so the reading itself is bounded.
                let read = content.take(most + 1).read_to_end(&mut bytes);
                read.map_err(|e| damaged(self.path, &e))?;
            }
            let size = size.max(bytes.len() as u64);
            if size > most {
                bail!(in self.path, "{name} in the archive has at least {size} bytes; at most \
                      {most} are expected");
            }
            if self.found.insert(name.clone(), bytes).is_some() {
                bail!(in self.path, "the archive has {name} twice");
            }
        }
        self.names.push(name);
        Ok(())
    }
}

fn damaged(path: &Path, e: &dyn Display) -> Error {
    Error::file(path, format!("the archive is damaged or cut short ({e}); download it again"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;
    use std::path::PathBuf;

    /// A `.tar.gz` with these members, names unchecked.
    pub fn write_tar_gz(path: PathBuf, members: &[(&str, &[u8])]) -> PathBuf {
        let file = File::create(&path).unwrap();
        let packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        let mut builder = tar::Builder::new(packed);
        for (name, bytes) in members {
            let mut header = tar::Header::new_gnu();
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            builder.append(&header, *bytes).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap();
        path
    }

    /// A `.zip` with these members.
    pub fn write_zip(path: PathBuf, members: &[(&str, &[u8])]) -> PathBuf {
        let mut writer = zip::ZipWriter::new(File::create(&path).unwrap());
        for (name, bytes) in members {
            writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap();
        path
    }

    fn ten(name: &str) -> Option<u64> {
        (name == "a.bin").then_some(10)
    }

    #[test]
    fn members_come_by_file_name_wherever_they_claim_to_belong() {
        let dir = tempfile::tempdir().unwrap();
        let inside = [("../../etc/a.bin", &b"hello"[..]), ("x/other.txt", b"no")];
        let tar = write_tar_gz(dir.path().join("a.tar.gz"), &inside);
        let zip_file = write_zip(dir.path().join("a.zip"), &inside);
        for members in [Members::of_tar_gz(&tar, &ten), Members::of_zip(&zip_file, &ten)] {
            let members = members.unwrap();
            assert_eq!(members.found["a.bin"], b"hello");
            assert_eq!(members.names, ["a.bin", "other.txt"]);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn damaged_and_oversized_archives() {
        let dir = tempfile::tempdir().unwrap();
        let large = [("a.bin", &[0_u8; 11][..])];
        let twice = [("x/a.bin", &b"1"[..]), ("y/a.bin", b"2")];
        let (large_tar, zip, tar) = ("large.tar.gz", "a.zip", "a.tar.gz");
        let [large_tar, zip, tar] = [large_tar, zip, tar].map(|name| dir.path().join(name));
        write_tar_gz(large_tar.clone(), &large);
        write_zip(zip.clone(), &large);
        write_tar_gz(tar.clone(), &twice);
        let read = || {
            let tar_gz = [&large_tar, &tar].map(|path| Members::of_tar_gz(path, &ten));
            tar_gz.into_iter().chain([Members::of_zip(&zip, &ten)])
        };
        let whole = crate::testing::messages(dir.path(), read());
        for (path, cut) in [(&tar, 40), (&zip, 60)] {
            let bytes = std::fs::read(path).unwrap();
            std::fs::write(path, &bytes[..cut]).unwrap();
        }
        let cut = crate::testing::messages(dir.path(), read());
        insta::assert_snapshot!(format!("{whole}\n\ncut short:\n{cut}"));
    }
}
