//! The one progress store: finished pieces of long work, on disk as they come.
//!
//! The file is a header and records, each a length, its bytes and a checksum of them. Records are
//! only ever appended. A process killed while it writes leaves a torn record at the end, which is
//! recognised by its length or checksum and cut off. One process at a time may hold the file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::files;

const MAGIC: &[u8] = b"toclip progress 2\n";
/// How often finished records are flushed to the disk. Until then a power failure, but not the end of
/// the process, could lose them.
const SYNC_EVERY: Duration = Duration::from_secs(5);

/// Everything the records depend on: only a run with the same identity may continue them.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// The command as a person types it, such as `toclip run`.
    pub command: &'static str,
    /// The content of a record, in the plural, such as `runs`.
    pub pieces: &'static str,
    /// Everything the records depend on.
    pub inputs: Value,
}

/// A file of finished records, open for more.
#[derive(Debug)]
pub struct ProgressLog {
    path: PathBuf,
    file: File,
    /// Where the records begin.
    start: u64,
    synced: Instant,
}

impl ProgressLog {
    /// Opens the file at `path`, new or with earlier records, and decodes its records up to the first
    /// that `decode` does not accept. With `resume` false, a file that holds records is an error.
    pub fn open<T>(
        path: &Path,
        identity: &Identity,
        resume: bool,
        decode: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<(Self, Vec<T>)> {
        ProgressLog::open_from(path, identity, None, resume, decode)
    }

    /// The same, and a new file remembers the folder of the files that the inputs name. The records do not
    /// depend on it.
    pub fn open_from<T>(
        path: &Path,
        identity: &Identity,
        folder: Option<&Path>,
        resume: bool,
        decode: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<(Self, Vec<T>)> {
        let (name, command) = (path.display(), identity.command);
        let mut inputs = serde_json::json!({ "command": command, "inputs": identity.inputs });
        if let Some(folder) = folder {
            inputs["folder"] = folder.to_string_lossy().into();
        }
        let mut header = MAGIC.to_vec();
        append(&mut header, inputs.to_string().as_bytes());
        let new = |file: File| {
            let start = header.len() as u64;
            (ProgressLog { path: path.into(), file, start, synced: Instant::now() }, Vec::new())
        };
        let mut tries = 0..100;
        let mut file = loop {
            if !path.exists()
                && let Some(file) = create(path, &header, false)?
            {
                return Ok(new(file));
            }
            let file = match OpenOptions::new().read(true).write(true).open(path) {
                Ok(file) => file,
                // Another process has removed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                    continue;
                }
                Err(error) => return Err(error).with_context(|| format!("cannot open {name}")),
            };
            if locked_by_another(&file) {
                bail!(
                    "another {command} is writing to {name}; wait for it or choose another --out"
                );
            }
            // Before the lock was taken, another process may have removed or replaced the file.
            // Some file systems number their files again each time and cannot tell: go on.
            if is_at(&file, path) || tries.next().is_none() {
                break file;
            }
        };
        let same = file.try_clone().with_context(|| format!("cannot open {name}"))?;
        let mut saved = SavedLog::read_header(same, path, command)
            .map_err(|error| anyhow::anyhow!("{error}; move it or choose another --out"))?;
        let mut finished = Vec::new();
        let start = saved.end;
        let mut end = start;
        while let Some(piece) = saved.read_next()?.and_then(&decode) {
            finished.push(piece);
            end = saved.end;
        }
        let saved = saved.header;
        if !resume && !finished.is_empty() {
            bail!(
                "{name} contains {} finished {} of an interrupted {command}; add --resume to continue, or \
                 delete the file to start over",
                finished.len(),
                identity.pieces
            );
        }
        let differs = |key: &str| saved.get(key) != inputs.get(key);
        if differs("command") || differs("inputs") {
            if !finished.is_empty() {
                bail!(
                    "cannot resume from {name}: {}; undo the change, or delete the file to start over",
                    difference(&saved, &inputs)
                );
            }
            // Nothing is lost: start over. The lock on the old file ends after the new one is in its place.
            let Some(file) = create(path, &header, true)? else { bail!("cannot replace {name}") };
            return Ok(new(file));
        }
        file.set_len(end)
            .and_then(|()| file.seek(SeekFrom::Start(end)))
            .with_context(|| format!("cannot write {name}"))?;
        Ok((ProgressLog { path: path.into(), file, start, synced: Instant::now() }, finished))
    }

    /// Removes all records.
    pub fn clear(&mut self) -> Result<()> {
        self.file
            .set_len(self.start)
            .and_then(|()| self.file.seek(SeekFrom::Start(self.start)))
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(())
    }

    /// Appends a finished record.
    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let mut record = Vec::with_capacity(bytes.len() + 16);
        append(&mut record, bytes);
        let mut write = || -> io::Result<()> {
            self.file.write_all(&record)?;
            if self.synced.elapsed() > SYNC_EVERY {
                self.file.sync_data()?;
                self.synced = Instant::now();
            }
            Ok(())
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Makes sure that what was added survives a power failure.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Deletes the file, once its records are in the results.
    pub fn remove(self) -> Result<()> {
        // The lock is held until then: nobody may add to a file that is about to be deleted.
        let path = &self.path;
        std::fs::remove_file(path).with_context(|| format!("cannot delete {}", path.display()))
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A log that is read and not continued.
#[derive(Debug)]
pub struct SavedLog {
    /// Command and inputs.
    header: Value,
    reader: BufReader<File>,
    /// The place after the last record that was whole.
    pub end: u64,
    bytes: Vec<u8>,
}

impl SavedLog {
    /// Opens the log of a command, even while another process writes to it.
    pub fn open(path: &Path, command: &str) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let saved = SavedLog::read_header(file, path, command)?;
        if saved.header.get("command").and_then(Value::as_str) != Some(command) {
            bail!("{} is not a progress file of {command}", path.display());
        }
        Ok(saved)
    }

    fn read_header(file: File, path: &Path, command: &str) -> Result<Self> {
        let name = path.display();
        let mut reader = BufReader::new(file);
        let mut magic = vec![0; MAGIC.len()];
        if reader.read_exact(&mut magic).is_err() || magic != MAGIC {
            bail!("{name} is not a progress file of {command}");
        }
        let (header, end) = (Value::Null, MAGIC.len() as u64);
        let mut log = SavedLog { header, reader, end, bytes: Vec::new() };
        let header = log.read_next()?.and_then(|header| serde_json::from_slice(header).ok());
        log.header =
            header.with_context(|| format!("the header of {name} is damaged; delete the file"))?;
        Ok(log)
    }

    /// Everything the records depend on.
    pub fn inputs(&self) -> Value {
        self.header.get("inputs").cloned().unwrap_or_default()
    }

    /// The folder of the files that the inputs name, where the log remembers it.
    pub fn folder(&self) -> Option<PathBuf> {
        self.header.get("folder").and_then(Value::as_str).map(PathBuf::from)
    }

    /// The bytes of the next record; `None` at the end, or where the rest is torn or damaged.
    pub fn read_next(&mut self) -> Result<Option<&[u8]>> {
        match self.read() {
            Ok(true) => Ok(Some(&self.bytes)),
            Ok(false) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error).context("cannot read the progress file"),
        }
    }

    /// The bytes of the record that begins at this place.
    pub fn read_at(&mut self, start: u64) -> Result<Option<&[u8]>> {
        self.reader.seek(SeekFrom::Start(start)).context("cannot read the progress file")?;
        self.end = start;
        self.read_next()
    }

    fn read(&mut self) -> io::Result<bool> {
        let mut number = [0; 8];
        self.reader.read_exact(&mut number)?;
        let length = u64::from_le_bytes(number);
        self.bytes.clear();
        // A damaged length asks for more than there is, and gets what there is.
        self.reader.by_ref().take(length).read_to_end(&mut self.bytes)?;
        self.reader.read_exact(&mut number)?;
        let whole =
            self.bytes.len() as u64 == length && u64::from_le_bytes(number) == fnv1a(&self.bytes);
        if whole {
            self.end += length + 16;
        }
        Ok(whole)
    }
}

/// A length, the bytes and their checksum.
fn append(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend((bytes.len() as u64).to_le_bytes());
    to.extend(bytes);
    to.extend(fnv1a(bytes).to_le_bytes());
}

/// A new log, locked before others can see it; `None` where one is there and may not be replaced.
fn create(path: &Path, header: &[u8], replace: bool) -> Result<Option<File>> {
    let mut new = files::NewFile::create(path)?;
    new.write_all(header).with_context(|| format!("cannot write {}", path.display()))?;
    // A file system without locks cannot tell: go on.
    let lock = |file: &File| {
        let _ = file.try_lock();
    };
    new.persist(replace, lock)
}

/// Whether the file is still the one at this path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(held), Ok(seen)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (held.dev(), held.ino()) == (seen.dev(), seen.ino())
}

/// Elsewhere an open file cannot be replaced.
#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// Whether another process writes to the file. A child that another thread is just starting holds the
/// lock too, until its own program runs: a moment later it does not.
fn locked_by_another(file: &File) -> bool {
    for _ in 0..10 {
        // A file system without locks cannot tell: go on.
        if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// The first input that differs, by its path of keys: "learning_rate was 0.5 and is 0.25".
fn difference(saved: &Value, now: &Value) -> String {
    fn first(path: &str, saved: &Value, now: &Value) -> Option<String> {
        match (saved, now) {
            (Value::Object(before), Value::Object(after)) => {
                let keys =
                    before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
                keys.into_iter().find_map(|key| {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned();
                    first(&path, &of(before).unwrap_or_default(), &of(after).unwrap_or_default())
                })
            }
            _ if saved == now => None,
            (Value::Null, _) => Some(format!("{path} was not set and is {now}")),
            (_, Value::Null) => Some(format!("{path} was {saved} and is not set")),
            _ => Some(format!("{path} was {saved} and is {now}")),
        }
    }
    let at = |value: &Value, key: &str| value.get(key).cloned().unwrap_or_default();
    first("command", &at(saved, "command"), &at(now, "command"))
        .or_else(|| first("", &at(saved, "inputs"), &at(now, "inputs")))
        .unwrap_or_else(|| "it is from another version".into())
}

/// The 64-bit hash of Fowler, Noll and Vo (FNV-1a): against accidents, not against malice.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn identity(inputs: Value) -> Identity {
        Identity { command: "toclip run", pieces: "runs", inputs }
    }

    fn open(path: &Path, inputs: Value, resume: bool) -> Result<(ProgressLog, Vec<Vec<u8>>)> {
        ProgressLog::open(path, &identity(inputs), resume, |bytes| Some(bytes.to_vec()))
    }

    fn says(result: Result<(ProgressLog, Vec<Vec<u8>>)>) -> String {
        format!("{:#}", result.expect_err("an error"))
    }

    #[test]
    fn what_was_added_is_read_back_and_every_torn_end_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let (mut log, none) = open(&path, json!({ "seed": 1 }), false).unwrap();
        assert!(none.is_empty());
        let header = std::fs::metadata(&path).unwrap().len() as usize;
        log.add(b"first").unwrap();
        let first = std::fs::metadata(&path).unwrap().len() as usize;
        log.add(b"second").unwrap();
        drop(log);
        let whole = std::fs::read(&path).unwrap();
        for length in header..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (mut log, finished) = open(&path, json!({ "seed": 1 }), true).unwrap();
            let expected = usize::from(length >= first) + usize::from(length == whole.len());
            assert_eq!(finished.len(), expected, "{length} bytes");
            log.add(b"after the cut").unwrap();
            drop(log);
            let (_, again) = open(&path, json!({ "seed": 1 }), true).unwrap();
            assert_eq!(again.last().unwrap(), b"after the cut");
        }
    }

    #[test]
    fn a_flipped_bit_ends_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let (mut log, _) = open(&path, json!({}), false).unwrap();
        let header = std::fs::metadata(&path).unwrap().len() as usize;
        log.add(b"record").unwrap();
        drop(log);
        let whole = std::fs::read(&path).unwrap();
        for place in header..whole.len() {
            let mut bad = whole.clone();
            bad[place] ^= 1;
            std::fs::write(&path, bad).unwrap();
            assert!(open(&path, json!({}), true).unwrap().1.is_empty(), "byte {place}");
        }
    }

    #[test]
    fn one_writer_the_same_inputs_and_no_resuming_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let (mut log, _) = open(&path, json!({ "learning_rate": 0.5 }), false).unwrap();
        let held = says(open(&path, json!({}), true));
        assert!(held.starts_with("another toclip run is writing to"), "{held}");
        log.add(b"x").unwrap();
        drop(log);
        let said = says(open(&path, json!({ "learning_rate": 0.5 }), false));
        assert!(
            said.contains("contains 1 finished runs of an interrupted toclip run; add --resume")
        );
        let said = says(open(&path, json!({ "learning_rate": 0.25 }), true));
        assert!(said.contains("learning_rate was 0.5 and is 0.25"), "{said}");
        std::fs::write(&path, "something else").unwrap();
        let said = says(open(&path, json!({}), true));
        assert!(said.contains("is not a progress file of toclip run"), "{said}");
    }

    /// Whoever may write keeps what was written, however many start together.
    #[test]
    fn simultaneous_starts_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..300 {
            let path = folder.path().join(format!("p{round}"));
            // Some rounds begin with the header of another run, which is replaced.
            if round % 3 == 0 {
                drop(open(&path, json!({ "seed": 2 }), false).unwrap());
            }
            let start = std::sync::Barrier::new(4);
            let begin = |k: u8| {
                start.wait();
                let opened = open(&path, json!({ "seed": 1 }), true);
                opened.is_ok_and(|(mut log, _)| log.add(&[k]).is_ok()).then_some(k)
            };
            let mut added: Vec<u8> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|k| scope.spawn(move || begin(k))).collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            let (_, mut found) = open(&path, json!({ "seed": 1 }), true).unwrap();
            found.sort_unstable();
            added.sort_unstable();
            assert_eq!(found.concat(), added, "round {round}");
            assert!(!added.is_empty());
        }
    }

    #[test]
    fn without_records_other_inputs_start_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        drop(open(&path, json!({ "seed": 1 }), false).unwrap());
        assert!(open(&path, json!({ "seed": 2 }), false).unwrap().1.is_empty());
        let nested = difference(
            &json!({ "inputs": { "a": { "b": 1 } } }),
            &json!({ "inputs": { "a": { "b": 1, "c": 2 } } }),
        );
        assert_eq!(nested, "a.c was not set and is 2");
    }

    #[test]
    fn the_hash_is_the_published_one() {
        // Test vectors of the authors.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
