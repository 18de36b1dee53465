//! Checksums in hexadecimal.

use crate::Result;
use crate::error::AtPath;
use md5::{Digest, Md5};
use sha2::Sha256;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The MD5 of bytes, which the authors of CIFAR-10 published.
pub(crate) fn md5(bytes: &[u8]) -> String {
    hex(&Md5::digest(bytes))
}

/// The SHA-256 of a file, in hexadecimal.
///
/// ```no_run
/// let sum = toclip_data::sha256("archive.tar.gz")?;
/// assert_eq!(sum.len(), 64);
/// # Ok::<(), toclip_data::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if it cannot be read.
pub fn sha256(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let mut file = File::open(path).at(path)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).at(path)? {
            0 => return Ok(hex(&hash.finalize())),
            count => hash.update(&buffer[..count]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sums() {
        // The test vectors of RFC 1321 and FIPS 180.
        assert_eq!(md5(b"message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&path).unwrap(), sum);
    }
}
