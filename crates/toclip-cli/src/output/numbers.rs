//! Numbers as people read them, and as files keep them.

use std::time::Duration;

pub use toclip::{bounds, interval, interval_at, percent, short};

/// All digits, for files: the shortest string that reads back as the same number.
pub fn exact(x: f64) -> String {
    format!("{x:?}")
}

/// Rounded to so many significant digits, without trailing zeros; very large and very small numbers
/// as in "1.5e-9".
pub fn significant(x: f64, digits: usize) -> String {
    let exponent = match x.abs() {
        size if size > 0.0 && size.is_finite() => size.log10().floor() as i32,
        _ => return short(x),
    };
    let trim = |number: &str| match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    };
    if (-4..digits as i32).contains(&exponent) {
        return trim(&format!("{x:.*}", (digits as i32 - 1 - exponent).max(0) as usize));
    }
    let text = format!("{x:.*e}", digits - 1);
    let (lead, power) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e{power}", trim(lead))
}

/// A change as a percentage with its sign: "+1.2%", "-0.041%".
pub fn signed_percent(share: f64) -> String {
    format!("{}{}", if share < 0.0 { "" } else { "+" }, percent(share))
}

/// A count and its noun: "1 row", "2 rows".
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// How long something took.
pub fn duration(d: Duration) -> String {
    toclip_report::duration(d.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_numbers_read_back_bit_for_bit() {
        for x in [0.1 + 0.2, 1e-300, 5e-324, f64::INFINITY, 1e16, -0.0] {
            assert_eq!(exact(x).parse::<f64>().unwrap().to_bits(), x.to_bits());
        }
    }

    #[test]
    fn significant_digits() {
        let seven = [0.5010494123, 1.0, 2.2300001, 1e308, -4.5e-9, 123456789.0, 0.0]
            .map(|x| significant(x, 7));
        assert_eq!(seven, ["0.5010494", "1", "2.23", "1e308", "-4.5e-9", "1.234568e8", "0"]);
    }

    #[test]
    fn small_changes_are_not_zero() {
        assert_eq!([0.06, -0.0004, 0.0].map(signed_percent), ["+6%", "-0.04%", "+0%"]);
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|n| counted(n, "row")), ["0 rows", "1 row", "2 rows"]);
    }

    #[test]
    fn durations() {
        let of = |s| duration(Duration::from_secs_f64(s));
        assert_eq!([5e-5, 0.25, 7.25, 150.0].map(of), ["50 µs", "250 ms", "7.2 s", "2.5 min"]);
    }
}
