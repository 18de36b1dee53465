//! The last lines of a command: its result, and the files that it wrote.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use super::{files, json, say, terminal};

/// Prints a result: with `as_json` the object `value`, which gets the list of files under `files`;
/// otherwise the text, and a line for each file.
pub fn show(as_json: bool, mut value: Value, text: &str, written: &[PathBuf]) -> Result<()> {
    if as_json {
        // Not the paths themselves: JSON has no bytes outside UTF-8.
        let names: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
        value["files"] = json!(names);
        return json::print(&value);
    }
    terminal::print(format_args!("{text}"));
    written.iter().for_each(|path| say!("{}", files::wrote(path)));
    Ok(())
}
