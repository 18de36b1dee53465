//! Names of columns, formats and frameworks in messages.

use crate::{Error, Result};

/// The entry of a table of values, names for options and names for people.
pub(crate) fn by_name<T: Copy>(kind: &str, name: &str, table: &[(T, &str, &str)]) -> Result<T> {
    let known = table.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name));
    known.map(|(value, ..)| *value).ok_or_else(|| {
        let names: Vec<&str> = table.iter().map(|(_, name, _)| *name).collect();
        let names = names.join(", ");
        Error::Invalid(format!("unknown {kind} `{name}`; expected one of: {names}"))
    })
}

/// A column name that is safe to print: control characters are replaced.
pub(crate) fn printable(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace(char::is_control, "\u{fffd}")
}

/// Names joined for a message: at most twelve, each cut to 80 characters.
pub(crate) fn list(names: &[String]) -> String {
    let cut = |name: &String| match name.char_indices().nth(80) {
        Some((end, _)) => format!("`{}…`", &name[..end]),
        None => format!("`{name}`"),
    };
    let shown: Vec<String> = names.iter().take(12).map(cut).collect();
    match names.len().saturating_sub(12) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The known columns for a message about an unknown one, similar names first.
pub(crate) fn known_columns(name: &str, known: &[String]) -> String {
    if known.is_empty() {
        return "the log has no columns".into();
    }
    let name = name.to_lowercase();
    let close = |other: &&String| {
        let other = other.to_lowercase();
        other.contains(&name) || strsim::normalized_damerau_levenshtein(&name, &other) > 0.6
    };
    let close: Vec<String> = known.iter().filter(close).take(3).cloned().collect();
    match close.is_empty() {
        true => format!("the log has {}", list(known)),
        false => format!("did you mean {}? The log has {}", list(&close), list(known)),
    }
}
