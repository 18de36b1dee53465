//! Numbers and refusals as a person would write them.

/// Three or four significant digits, as a person would write them.
pub fn short(x: f64) -> String {
    if x.is_infinite() {
        return if x > 0.0 { "∞".into() } else { "−∞".into() };
    }
    let size = x.abs();
    if x == 0.0 {
        "0".into()
    } else if (1e-3..1e5).contains(&size) {
        let decimals = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
        let text = format!("{x:.decimals$}");
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    } else {
        format!("{x:.2e}")
    }
}

/// What a deserializer says, on one line and without the names of Rust's types.
///
/// ```
/// let said = "invalid type: string \"x\", expected f64\n";
/// assert_eq!(toclip_experiment::words::plain(said), "invalid type: string \"x\", expected a number");
/// ```
pub fn plain(said: &str) -> String {
    let text = said.trim_end().replace('\n', ", ");
    let Some((before, expected)) = text.rsplit_once(", expected ") else { return text };
    let words = match expected {
        "f64" => "a number",
        "u64" | "usize" | "u32" => "a whole number, at least 0",
        "a sequence" => "a list",
        _ if expected.starts_with("internally tagged enum") => "a table",
        _ if expected.starts_with("struct ") => "a table",
        _ => return text,
    };
    format!("{before}, expected {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let said = [0.010754, 2.5286, 12.0, 0.0, 1236.7, 3e-9, f64::INFINITY].map(short);
        assert_eq!(said, ["0.01075", "2.529", "12", "0", "1237", "3.00e-9", "∞"]);
    }
}
