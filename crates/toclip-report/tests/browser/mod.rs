//! A report in a real browser without a window: opened at a given width, tried out by
//! `selftest.js`, and photographed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// A browser on this machine.
pub struct Browser(PathBuf);

impl Browser {
    /// The first of the usual names on the path; says so where there is none.
    pub fn find() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = NAMES
            .iter()
            .flat_map(|name| std::env::split_paths(&path).map(move |folder| folder.join(name)));
        let found = places.into_iter().find(|file| file.is_file()).map(Self);
        if found.is_none() {
            println!("skipped: no browser on the path ({})", NAMES.join(", "));
        }
        found
    }

    /// Opens a page of a report at this width, tries out its plots, and returns what the script
    /// found, with what the browser wrote to its log under `"log"`.
    pub fn try_out(&self, page: &str, width: u32) -> Value {
        let folder = tempfile::tempdir().unwrap();
        let first = "<head><script>window.faults = [];\
                     addEventListener('error', (e) => faults.push(e.message));\
                     addEventListener('securitypolicyviolation', (e) => faults.push(e.blockedURI));\
                     </script>";
        let last = format!("<script>{}</script></body>", include_str!("selftest.js"));
        let page = page.replacen("<head>", first, 1);
        let end = page.rfind("</body>").expect("a page ends");
        let page = format!("{}{last}{}", &page[..end], &page[end + "</body>".len()..]);
        std::fs::write(folder.path().join("report.html"), page).unwrap();
        // A window of a desktop browser has a least width; a frame has none. The page inside
        // sends what it found, because a frame from a file may not be looked into.
        let outer = format!(
            "<!doctype html><body><iframe src=\"report.html\" style=\"border:0;width:{width}px;\
             height:800px\"></iframe><script>addEventListener('message', (e) => {{ \
             document.body.dataset.found = encodeURIComponent(e.data); }});</script></body>"
        );
        let file = folder.path().join("outer.html");
        std::fs::write(&file, outer).unwrap();
        let (dom, log) = self.run(&file, 1400, &["--dump-dom", "--virtual-time-budget=10000"]);
        let found = dom
            .split_once("data-found=\"")
            .and_then(|(_, rest)| rest.split_once('"'))
            .unwrap_or_else(|| panic!("the script did not finish:\n{log}"))
            .0;
        let mut found: Value = serde_json::from_str(&decode(found)).unwrap();
        let spoken: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
        found["log"] = spoken.into();
        found
    }

    /// A picture of the first screen of a page.
    pub fn photograph(&self, page: &Path, width: u32) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("picture.png");
        let (_, log) = self.run(
            page,
            width,
            &[&format!("--screenshot={}", file.display()), "--virtual-time-budget=2000"],
        );
        std::fs::read(file).unwrap_or_else(|_| panic!("no picture:\n{log}"))
    }

    fn run(&self, page: &Path, width: u32, options: &[&str]) -> (String, String) {
        let profile = tempfile::tempdir().unwrap();
        let output = Command::new(&self.0)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-background-networking", "--enable-logging=stderr", "--v=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={width},900"))
            .args(options)
            .arg(format!("file://{}", page.display()))
            .output()
            .expect("the browser starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }
}

/// Undoes the script's `encodeURIComponent`.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = || u8::from_str_radix(std::str::from_utf8(after.get(..2)?).ok()?, 16).ok();
        match (first, code()) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).expect("UTF-8 from the browser")
}
