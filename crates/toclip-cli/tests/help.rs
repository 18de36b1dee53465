//! The help of every command, and the version.

mod support;

use std::path::Path;
use support::run;

const COMMANDS: [&str; 23] = [
    "advise",
    "explore",
    "factors",
    "fit",
    "run",
    "reproduce",
    "residuals",
    "schedule",
    "schema",
    "sweep",
    "sweep export",
    "sweep merge",
    "sweep plot",
    "sweep cell",
    "convergence",
    "data",
    "data list",
    "data get",
    "data path",
    "data remove",
    "embed",
    "completions",
    "man",
];

#[test]
fn help_of_every_command() {
    let (code, text, _) = run(Path::new("."), &["--help"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("toclip", text);
    for command in COMMANDS {
        let args: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let (code, text, _) = run(Path::new("."), &args);
        assert_eq!(code, 0, "{command}");
        assert!(text.contains("Examples:"), "{command}");
        insta::assert_snapshot!(command.replace(' ', "-"), text);
    }
}

#[test]
fn the_version_names_the_features() {
    for flag in ["-V", "--version"] {
        let (code, text, _) = run(Path::new("."), &[flag]);
        assert_eq!(code, 0);
        assert!(text.starts_with(&format!("toclip {} (", env!("CARGO_PKG_VERSION"))), "{text}");
        assert_eq!(text.contains("png"), cfg!(feature = "png"), "{text}");
    }
}

#[test]
fn completions_and_manual_pages() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, script, _) = run(folder.path(), &["completions", shell]);
        assert!(code == 0 && script.contains("factors"), "{shell}");
    }
    assert!(run(folder.path(), &["man"]).1.contains(".TH toclip"));
    assert_eq!(run(folder.path(), &["man", "pages"]).0, 0);
    assert!(folder.path().join("pages/toclip-factors.1").is_file());
}
