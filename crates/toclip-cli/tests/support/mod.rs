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

/// Exit status and output of a command that sees no data set of the machine's owner.
pub fn without_data(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = toclip(folder);
    let output = command.env("TOCLIP_CACHE", folder.join("cache")).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Uniform numbers in (0, 1): a linear congruential generator is random enough here.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Box and Muller.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.roll().ln()).sqrt() * (std::f64::consts::TAU * self.roll()).cos()
    }
}
