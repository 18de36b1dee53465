//! Numbers as a person would write them.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let said = [0.010754, 2.5286, 12.0, 0.0, 1236.7, 3e-9, f64::INFINITY].map(short);
        assert_eq!(said, ["0.01075", "2.529", "12", "0", "1237", "3.00e-9", "∞"]);
    }
}
