//! Members of archives, read into memory and never written where an archive says.

use crate::{Error, Result};
use flate2::read::MultiGzDecoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// What an archive held: the wanted members by file name, and the names of all the files.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub found: BTreeMap<String, Vec<u8>>,
    pub names: Vec<String>,
}

impl Members {
    fn add(&mut self, path: &Path, name: String, bytes: Vec<u8>) -> Result<()> {
        match self.found.insert(name.clone(), bytes) {
            Some(_) => Err(Error::file(path, format!("the archive holds {name} twice"))),
            None => Ok(()),
        }
    }
}

/// Which members to read: for a file name, the most bytes it may have, or `None` to pass over it.
pub(crate) type Wanted<'a> = &'a dyn Fn(&str) -> Option<u64>;

/// No data set here is larger: what goes on beyond is a bomb or the wrong file.
const MOST_BYTES: u64 = 2 << 30;

/// The wanted members of a `.tar.gz`.
pub(crate) fn tar_gz(path: &Path, wanted: Wanted<'_>) -> Result<Members> {
    let broken = |e: std::io::Error| {
        Error::file(path, format!("the .tar.gz is damaged or cut short ({e}); fetch it again"))
    };
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let unpacked = MultiGzDecoder::new(BufReader::new(file)).take(MOST_BYTES);
    let mut archive = tar::Archive::new(unpacked);
    let mut members = Members::default();
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = file_name(&String::from_utf8_lossy(&entry.path_bytes()));
        if let Some(most) = wanted(&name) {
            let size = entry.size();
            let bytes = whole(path, &name, &mut entry, size, most, broken)?;
            members.add(path, name.clone(), bytes)?;
        }
        members.names.push(name);
    }
    Ok(members)
}

/// The wanted members of a `.zip`.
pub(crate) fn zip(path: &Path, wanted: Wanted<'_>) -> Result<Members> {
    let broken = |e: String| {
        Error::file(path, format!("the zip archive is damaged or cut short ({e}); fetch it again"))
    };
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut archive =
        zip::ZipArchive::new(BufReader::new(file)).map_err(|e| broken(e.to_string()))?;
    let mut members = Members::default();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|e| broken(e.to_string()))?;
        if !entry.is_file() {
            continue;
        }
        let name = file_name(&entry.name().map_err(|e| broken(e.to_string()))?);
        if let Some(most) = wanted(&name) {
            let size = entry.size();
            let bytes = whole(path, &name, &mut entry, size, most, |e| broken(e.to_string()))?;
            members.add(path, name.clone(), bytes)?;
        }
        members.names.push(name);
    }
    Ok(members)
}

/// The bytes of a member whose header claims `size`.
fn whole(
    path: &Path,
    name: &str,
    member: &mut dyn Read,
    size: u64,
    most: u64,
    broken: impl Fn(std::io::Error) -> Error,
) -> Result<Vec<u8>> {
    let too_large = |size: u64| {
        let message = format!("{name} in it has {size} bytes or more, where at most {most} belong");
        Error::file(path, message)
    };
    if size > most {
        return Err(too_large(size));
    }
    // A header can lie about the size, so the reading itself is bounded.
    let mut bytes = Vec::new();
    member.take(most + 1).read_to_end(&mut bytes).map_err(broken)?;
    match bytes.len() as u64 > most {
        true => Err(too_large(most + 1)),
        false => Ok(bytes),
    }
}

/// The last part of a member's path: folders in an archive say nothing, and `..` nothing good.
fn file_name(path: &str) -> String {
    path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned()
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
        for members in [tar_gz(&tar, &ten).unwrap(), zip(&zip_file, &ten).unwrap()] {
            assert_eq!(members.found["a.bin"], b"hello");
            assert_eq!(members.names, ["a.bin", "other.txt"]);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn damage_bombs_and_doubles_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let large = [("a.bin", &[0_u8; 11][..])];
        let twice = [("x/a.bin", &b"1"[..]), ("y/a.bin", b"2")];
        let tar = write_tar_gz(dir.path().join("a.tar.gz"), &large);
        assert!(tar_gz(&tar, &ten).unwrap_err().to_string().contains("at most 10 belong"));
        let zipped = write_zip(dir.path().join("a.zip"), &large);
        assert!(zip(&zipped, &ten).unwrap_err().to_string().contains("at most 10 belong"));
        let tar = write_tar_gz(dir.path().join("b.tar.gz"), &twice);
        assert!(tar_gz(&tar, &ten).unwrap_err().to_string().contains("a.bin twice"));

        for (path, cut) in [(&tar, 40), (&zipped, 60)] {
            let bytes = std::fs::read(path).unwrap();
            std::fs::write(path, &bytes[..cut]).unwrap();
        }
        assert!(tar_gz(&tar, &ten).unwrap_err().to_string().contains("damaged or cut short"));
        assert!(zip(&zipped, &ten).unwrap_err().to_string().contains("damaged or cut short"));
    }
}
