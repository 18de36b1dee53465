//! No command imports another command: what two of them need lives in a module or a crate below.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

/// Every `.rs` file under a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().into()
}

/// The first names after a path prefix: `a` of `a::b`, or `a` and `c` of `{a::b, c}`.
fn heads(rest: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let head = |text: &'_ str| text.len() - text.trim_start_matches(is_name).len();
    let Some(group) = rest.strip_prefix('{') else { return vec![&rest[..head(rest)]] };
    let (mut depth, mut at_start, mut names) = (0, true, Vec::new());
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            c if at_start && is_name(c) => {
                names.push(&group[i..i + head(&group[i..])]);
                at_start = false;
            }
            _ => {}
        }
    }
    names
}

/// Lines that name another command, as (line number, other command). `depth` is how many `super`
/// lead from the top of the file to `commands`; `inner` are modules that the command has itself.
fn imports(
    source: &str,
    own: &str,
    commands: &[String],
    depth: usize,
    inner: &[String],
) -> Vec<(usize, String)> {
    let up = "super::".repeat(depth);
    let mut found = Vec::new();
    for prefix in ["commands::", up.as_str()] {
        let by_super = prefix != "commands::";
        for (at, _) in source.match_indices(prefix) {
            // The last `super` of a longer chain only, and no name that ends in `super`.
            let rest = &source[at + prefix.len()..];
            if rest.starts_with("super::") {
                continue;
            }
            let line = source[..at].matches('\n').count() + 1;
            let written = source.lines().nth(line - 1).unwrap_or("").trim_start();
            if written.starts_with("//") {
                continue;
            }
            for name in heads(rest) {
                let other = name != own && commands.iter().any(|command| command == name);
                // In a nested module `super::super::name` may be a module of the command's own.
                let ambiguous = by_super && inner.iter().any(|module| module == name);
                if other && !ambiguous {
                    found.push((line, name.to_owned()));
                }
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn no_command_imports_another() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let top = |path: &Path| {
        let first = path.strip_prefix(&folder).unwrap().components().next().unwrap();
        stem(Path::new(&first))
    };
    let mut commands: Vec<String> =
        files.iter().map(|path| top(path)).filter(|name| name != "mod").collect();
    commands.dedup();
    assert!(commands.len() >= 10, "commands are not found: {commands:?}");

    let mut wrong = Vec::new();
    for path in &files {
        let own = top(path);
        if own == "mod" {
            continue;
        }
        let inside = path.strip_prefix(&folder).unwrap().components().count();
        let depth = if stem(path) == "mod" { inside - 1 } else { inside };
        let inner: Vec<String> =
            files.iter().filter(|other| top(other) == own).map(|other| stem(other)).collect();
        let source = std::fs::read_to_string(path).unwrap();
        for (line, other) in imports(&source, &own, &commands, depth, &inner) {
            let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display();
            wrong.push(format!("{name}:{line}: `{own}` imports from `{other}`"));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// Commands are at the top: no other module names one of them or includes one of their files.
#[test]
fn nothing_below_knows_the_commands() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&source, &mut files);
    files.retain(|path| !path.starts_with(source.join("commands")) && stem(path) != "lib");
    assert!(files.len() > 50, "{files:?}");
    for path in &files {
        for (number, line) in (1..).zip(std::fs::read_to_string(path).unwrap().lines()) {
            let code = line.split("//").next().unwrap_or("");
            let named = ["commands::", "commands/"].iter().any(|name| code.contains(name));
            assert!(!named, "{}:{number}: {line}", path.display());
        }
    }
}

#[test]
fn every_way_to_import_is_found() {
    let commands = ["fit", "run", "schedule"].map(String::from);
    let found = |source, depth, inner: &[&str]| {
        let inner: Vec<String> = inner.iter().map(|&name| name.into()).collect();
        imports(source, "run", &commands, depth, &inner)
    };
    assert_eq!(found("use crate::commands::fit::Options;", 1, &[]), [(1, "fit".into())]);
    assert_eq!(found("\nlet a = super::fit::read();", 1, &[]), [(2, "fit".into())]);
    assert_eq!(found("use super::super::fit;", 2, &[]), [(1, "fit".into())]);
    let group = "use crate::commands::{Status, fit::{self, schedule}, schedule as s};";
    assert_eq!(found(group, 1, &[]), [(1, "fit".into()), (1, "schedule".into())]);

    assert_eq!(found("use crate::commands::run::table;", 1, &[]), []);
    assert_eq!(found("use crate::commands::Status;", 1, &[]), []);
    assert_eq!(found("use super::fit;", 2, &[]), []);
    assert_eq!(found("use super::super::fit;", 2, &["fit"]), []);
    assert_eq!(found("// as in `commands::fit`", 1, &[]), []);
}
