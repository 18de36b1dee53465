//! Numbers as people read them, and as files keep them.

use std::time::Duration;

pub use toclip::short;

/// All digits, for files: the shortest string that reads back as the same number.
pub fn exact(x: f64) -> String {
    format!("{x:?}")
}

/// So many significant digits, without zeros at the end; very large and very small numbers as in
/// "1.5e-9".
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

/// A share as a percentage: "50%", "1.23%", "0.04%". A share below 1% keeps two digits; only zero
/// is "0%".
pub fn percent(share: f64) -> String {
    match 100.0 * share {
        0.0 => "0%".into(),
        p if p.abs() >= 10.0 => format!("{p:.0}%"),
        p if p.abs() >= 0.01 => format!("{p:.2}%"),
        p => format!("{p:.0e}%"),
    }
}

/// An estimate with its 95% confidence interval: "1.08 (95% CI 1.03–1.25)".
pub fn interval(value: f64, low: f64, high: f64) -> String {
    interval_at(0.95, value, low, high)
}

/// An estimate with its confidence interval at any confidence.
pub fn interval_at(confidence: f64, value: f64, low: f64, high: f64) -> String {
    let [value, low, high] = [value, low, high].map(short);
    // A dash between numbers would be read as the minus sign of the second.
    let dash = if low.starts_with('-') || high.starts_with('-') { " to " } else { "–" };
    format!("{value} ({}% CI {low}{dash}{high})", short(100.0 * confidence))
}

/// A share with its 95% confidence interval: "12.3% (95% CI 11.8–13.1)".
pub fn percent_interval(value: f64, low: f64, high: f64) -> String {
    let p = |x: f64| short((1000.0 * x).round() / 10.0);
    format!("{}% (95% CI {}–{})", p(value), p(low), p(high))
}

/// How long something took.
pub fn duration(d: Duration) -> String {
    toclip_report::duration(d.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_and_intervals() {
        assert_eq!(
            [0.5, 0.0123, 4e-4, 1e-9, 0.0].map(percent),
            ["50%", "1.23%", "0.04%", "1e-7%", "0%"]
        );
        assert_eq!(interval(1.0841, 1.03, 1.25), "1.084 (95% CI 1.03–1.25)");
        assert_eq!(percent_interval(0.1234, 0.118, 0.131), "12.3% (95% CI 11.8–13.1)");
    }

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
        assert_eq!(interval_at(0.9, -0.5, -0.52, -0.48), "-0.5 (90% CI -0.52 to -0.48)");
    }

    #[test]
    fn durations() {
        let of = |s| duration(Duration::from_secs_f64(s));
        assert_eq!([5e-5, 0.25, 7.25, 150.0].map(of), ["50 µs", "250 ms", "7.2 s", "2.5 min"]);
    }
}
