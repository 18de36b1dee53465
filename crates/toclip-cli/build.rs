//! Puts the commit of a release build into `TOCLIP_COMMIT`, for `toclip --version`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A development build would be compiled anew after every commit.
    let release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = if release { packaged().or_else(checked_out) } else { None };
    println!("cargo::rustc-env=TOCLIP_COMMIT={}", commit.unwrap_or_default());
}

/// The commit that `cargo package` noted in the crate.
fn packaged() -> Option<String> {
    let text = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    rest.get(..7).map(Into::into)
}

/// The commit of the repository that this file belongs to; none without git or a repository.
fn checked_out() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    // The crate may lie unpacked inside another repository.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=7", "HEAD"])
}
