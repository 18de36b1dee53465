//! Numbers and refusals as a person would write them.

pub use toclip::short;

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
