//! Runs the command in a folder of its own and shows what a user sees.

#![allow(clippy::unwrap_used, dead_code, reason = "a helper that fails fails the test")]

use assert_cmd::Command;
use std::path::Path;
use std::process::Output;

/// The command in a folder, so that paths in messages are relative.
pub fn toclip(folder: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("toclip"));
    command.current_dir(folder).env_remove("COLUMNS");
    command
}

/// Exit status, standard output and standard error.
pub fn run(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = toclip(folder).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// The session as a user sees it.
pub fn session(folder: &Path, commands: &[&[&str]]) -> String {
    let one = |args: &&[&str]| {
        let (code, out, err) = run(folder, args);
        let code = if code == 0 { String::new() } else { format!("[exit status {code}]\n") };
        format!("$ toclip {}\n{out}{err}{code}", args.join(" "))
    };
    commands.iter().map(one).collect::<Vec<_>>().join("\n")
}
