//! Numbers as a person would write them.

pub(crate) use toclip::short;

/// Three decimals, or a power of ten where the number is large.
pub(crate) fn decimals(x: f64) -> String {
    if x.is_finite() && x.abs() < 1e4 { format!("{x:.3}") } else { format!("{x:.2e}") }
}

/// A number for JSON, which would write null for an infinite one.
pub(crate) fn or_inf<S: serde::Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match x.is_infinite() {
        true => serializer.serialize_str("inf"),
        false => serializer.serialize_f64(*x),
    }
}

/// A name out of a log as one that can be printed: line breaks and the commands of terminals are
/// no part of it.
pub(crate) fn printable(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace(char::is_control, "\u{fffd}")
}

/// Names joined for a message, at most a dozen of them, none longer than a line.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_powers_of_ten() {
        assert_eq!(
            [1.2345, 9999.0, 1.2e8, 1e308].map(decimals),
            ["1.234", "9999.000", "1.20e8", "1.00e308"]
        );
        assert_eq!(decimals(f64::INFINITY), "inf");
    }
}
