//! Numbers within error messages. What people read elsewhere is formatted by the crate `toclip-words`.

/// Four significant digits.
pub(crate) fn short(x: f64) -> String {
    let rounded: f64 = format!("{x:.3e}").parse().unwrap_or(x);
    match rounded.abs() {
        size if size > 0.0 && !(1e-3..1e7).contains(&size) => format!("{rounded:e}"),
        _ => rounded.to_string(),
    }
}
