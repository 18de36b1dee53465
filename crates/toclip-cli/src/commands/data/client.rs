//! Programs that fetch: `curl` and `npm`.
//!
//! Both are called as commands. They use the user's own proxies, certificates and registries, and
//! toclip needs no TLS library for two downloads.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::staging::{delete, size};
use crate::output::interrupt::INTERRUPTED;
use crate::output::progress_bar;

/// An error once Ctrl-C was pressed.
pub fn check_interrupt() -> Result<()> {
    match INTERRUPTED.load(Ordering::Relaxed) {
        true => Err(anyhow!("interrupted")),
        false => Ok(()),
    }
}

/// How long an answer may take, and how long a download may stall.
const ANSWER: Duration = Duration::from_secs(15);
const STANDSTILL: Duration = Duration::from_secs(60);

/// Fetches an address into a file of about `bytes` bytes; resumes an earlier try.
pub fn curl(url: &str, to: &Path, bytes: u64) -> Result<()> {
    if size(to) > bytes {
        delete(to)?;
    }
    if size(to) == bytes {
        return Ok(());
    }
    let resumed = size(to) > 0;
    let get = || -> Result<(ExitStatus, String)> {
        let mut command = Command::new("curl");
        command
            .args(["--fail", "--location", "--silent", "--show-error"])
            .args(["--proto", "=https", "--proto-redir", "=https", "--connect-timeout", "10"])
            .args(["--speed-limit", "1000", "--speed-time", "20", "--continue-at", "-"])
            .arg("--output")
            .arg(to)
            .arg(url);
        watch(command, &to.with_extension("log"), &|| size(to), bytes, STANDSTILL)
    };
    let (mut status, mut said) = get()?;
    // 22: the server refuses the range or the whole, 33 and 36: it cannot continue.
    if resumed && matches!(status.code(), Some(22 | 33 | 36)) {
        delete(to)?;
        (status, said) = get()?;
    }
    succeeded("curl", status, &said)
}

/// Fetches a package's archive into a folder through the `npm` client.
pub fn npm_pack(package: &str, folder: &Path, bytes: u64) -> Result<()> {
    // The folder also keeps the client's own cache, which would hold the archive for ever.
    let npm = |arguments: &[&str]| {
        let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
        command.current_dir(folder).args(arguments).args(["--loglevel", "error", "--cache"]);
        command.arg(folder.join("cache"));
        command
    };
    let log = folder.join("npm.log");
    let arrived = || size(folder);
    // A small request first: it may time out quickly, which the download itself must not.
    let ask = npm(&["view", package, "dist.shasum", "--fetch-timeout=10000", "--fetch-retries=0"]);
    let (status, said) = watch(ask, &log, &arrived, bytes, ANSWER)?;
    succeeded("npm", status, &said)?;
    let patient = ["--fetch-timeout=7200000", "--fetch-retries=1"];
    let mut pack = npm(&["pack", package, "--ignore-scripts", "--pack-destination", "."]);
    pack.args(patient);
    let (status, said) = watch(pack, &log, &arrived, bytes, STANDSTILL)?;
    succeeded("npm", status, &said)
}

/// Runs a client to its end, showing the bytes that arrive; ends it when nothing arrives any more
/// or Ctrl-C is pressed. Its messages go to `log` and are returned.
fn watch(
    mut command: Command,
    log: &Path,
    arrived: &dyn Fn() -> u64,
    bytes: u64,
    patience: Duration,
) -> Result<(ExitStatus, String)> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(out).spawn();
    let mut child = match child {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("{name} is not installed"),
        other => other.with_context(|| format!("cannot start {name}"))?,
    };
    let bar = progress_bar(bytes, "bytes", false);
    let (mut last, mut since) = (arrived(), Instant::now());
    let ended = loop {
        if let Some(status) = child.try_wait().with_context(|| format!("waiting for {name}"))? {
            break Ok(status);
        }
        let now = arrived();
        bar.set_position(now.min(bytes));
        if now != last {
            (last, since) = (now, Instant::now());
        }
        if let Err(stop) = check_interrupt() {
            break Err(stop);
        }
        if since.elapsed() > patience {
            break Err(anyhow!("no data for {} s", patience.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    bar.finish_and_clear();
    if ended.is_err() {
        // Fails if the client has ended by itself in the meantime.
        let _ = child.kill();
        let _ = child.wait();
    }
    let said = std::fs::read(log).map(|said| String::from_utf8_lossy(&said).into_owned());
    delete(log)?;
    Ok((ended?, said.unwrap_or_default()))
}

/// An error with one line of the client's messages, if it failed.
fn succeeded(name: &str, status: ExitStatus, said: &str) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    // npm prints several lines; the first is a code, a later one has the reason.
    let words = ["request to", "reason:", "404 ", "curl:"];
    let telling = lines().find(|line| words.iter().any(|word| line.contains(word)));
    match telling.or(lines().next()) {
        Some(line) => bail!("{}", line.trim_start_matches("npm error ")),
        None => bail!("{name} ended with {status}"),
    }
}
