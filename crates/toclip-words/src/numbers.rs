//! Numbers as people read them, and as files keep them.

use std::time::Duration;

/// Four significant digits for text, integers below $10^7$ in full, no trailing zeros.
///
/// ```
/// assert_eq!([0.0107541, 12.0, 123456.7, 4.25e-5].map(toclip_words::short), ["0.01075", "12", "123457", "4.25e-5"]);
/// ```
pub fn short(x: f64) -> String {
    if x.is_infinite() {
        return if x > 0.0 { "∞".into() } else { "−∞".into() };
    }
    let size = x.abs();
    if x == 0.0 || x.is_nan() {
        return format!("{x}").replace("-0", "0");
    }
    if !(1e-3..1e7).contains(&size) {
        return in_powers_of_ten(x, 4);
    }
    let decimals = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
    trimmed(&format!("{x:.decimals$}")).to_owned()
}

/// The number with so many significant digits.
///
/// ```
/// assert_eq!([0.012345, 98.76].map(|x| toclip_words::rounded(x, 2)), [0.012, 99.0]);
/// ```
pub fn rounded(x: f64, digits: usize) -> f64 {
    format!("{x:.*e}", digits.saturating_sub(1)).parse().unwrap_or(x)
}

/// A share as a percentage: one decimal, or two significant digits below 1%.
///
/// ```
/// assert_eq!([0.5, 0.12345, 0.000412, 0.0].map(toclip_words::percent), ["50%", "12.3%", "0.041%", "0%"]);
/// ```
pub fn percent(share: f64) -> String {
    percentage(share) + "%"
}

/// An estimate with its 95% confidence interval, three significant digits each.
///
/// ```
/// assert_eq!(toclip_words::interval(1.0812, 1.03, 1.25), "1.08 (95% CI 1.03–1.25)");
/// ```
pub fn interval(value: f64, low: f64, high: f64) -> String {
    interval_at(value, low, high, 0.95)
}

/// An estimate with its interval at another confidence.
///
/// ```
/// assert_eq!(toclip_words::interval_at(1.08, 1.03, 1.25, 0.9), "1.08 (90% CI 1.03–1.25)");
/// assert_eq!(toclip_words::interval_at(-0.5, -0.6, -0.4, 0.95), "-0.5 (95% CI -0.6 to -0.4)");
/// ```
pub fn interval_at(value: f64, low: f64, high: f64, confidence: f64) -> String {
    // An estimate has no more digits than that.
    let [value, low, high] = [value, low, high].map(|x| short(rounded(x, 3)));
    format!("{value} ({}% CI {})", short(100.0 * confidence), range(&low, &high))
}

/// A share with its confidence interval.
///
/// ```
/// assert_eq!(toclip_words::percent_interval_at(0.5, 0.4, 0.6, 0.9), "50% (90% CI 40–60)");
/// ```
pub fn percent_interval_at(value: f64, low: f64, high: f64, confidence: f64) -> String {
    let [value, low, high] = [value, low, high].map(percentage);
    format!("{value}% ({}% CI {})", short(100.0 * confidence), range(&low, &high))
}

fn percentage(share: f64) -> String {
    let percent = 100.0 * share;
    let decimals = match percent.abs() {
        p if p > 0.0 && p < 1.0 => 1.0 - p.log10().floor(),
        _ => 1.0,
    };
    let power = 10_f64.powf(decimals);
    short((percent * power).round() / power)
}

/// The ends of a range.
///
/// ```
/// assert_eq!(toclip_words::bounds(0.01034, 0.0119), "0.01034–0.0119");
/// ```
pub fn bounds(low: f64, high: f64) -> String {
    range(&short(low), &short(high))
}

/// Two ends; a dash before a minus sign would be read as one.
fn range(low: &str, high: &str) -> String {
    let dash = if low.starts_with('-') || high.starts_with('-') { " to " } else { "–" };
    format!("{low}{dash}{high}")
}

/// All digits, for files: the shortest string that reads back as the same number.
///
/// ```
/// assert_eq!(toclip_words::exact(0.1 + 0.2), "0.30000000000000004");
/// ```
pub fn exact(x: f64) -> String {
    format!("{x:?}")
}

/// Rounded to so many significant digits, without trailing zeros; very large and very small numbers
/// as in "1.5e-9".
///
/// ```
/// assert_eq!([0.50104941, 123456789.0].map(|x| toclip_words::significant(x, 3)), ["0.501", "1.23e8"]);
/// ```
pub fn significant(x: f64, digits: usize) -> String {
    let exponent = match x.abs() {
        size if size > 0.0 && size.is_finite() => size.log10().floor() as i32,
        _ => return short(x),
    };
    if (-4..digits as i32).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        return trimmed(&format!("{x:.decimals$}")).to_owned();
    }
    in_powers_of_ten(x, digits)
}

/// A change as a percentage with its sign.
///
/// ```
/// assert_eq!([0.012, -0.0004, 0.0].map(toclip_words::signed_percent), ["+1.2%", "-0.04%", "+0%"]);
/// ```
pub fn signed_percent(share: f64) -> String {
    format!("{}{}", if share < 0.0 { "" } else { "+" }, percent(share))
}

/// A count and its noun.
///
/// ```
/// assert_eq!([0, 1, 2].map(|n| toclip_words::counted(n, "row")), ["0 rows", "1 row", "2 rows"]);
/// ```
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// How long something took.
///
/// ```
/// use std::time::Duration;
/// let took = [5e-5, 0.25, 7.25, 150.0].map(Duration::from_secs_f64);
/// assert_eq!(took.map(toclip_words::duration), ["50 µs", "250 ms", "7.2 s", "2.5 min"]);
/// ```
pub fn duration(took: Duration) -> String {
    match took.as_secs_f64() {
        s if s < 1e-3 => format!("{:.0} µs", 1e6 * s),
        s if s < 1.0 => format!("{:.0} ms", 1e3 * s),
        s if s < 100.0 => format!("{s:.1} s"),
        s => format!("{:.1} min", s / 60.0),
    }
}

/// "1.5e-9".
fn in_powers_of_ten(x: f64, digits: usize) -> String {
    let text = format!("{x:.*e}", digits.saturating_sub(1));
    let (lead, power) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e{power}", trimmed(lead))
}

fn trimmed(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_short() {
        let said =
            [0.010754, 2.5286, 12.0, 0.0, -0.0, 1236.7, 9.9999, 3e-9, 1e300, -7.25e8].map(short);
        let want = ["0.01075", "2.529", "12", "0", "0", "1237", "10", "3e-9", "1e300", "-7.25e8"];
        assert_eq!(said, want);
        assert_eq!([f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(short), ["∞", "−∞", "NaN"]);
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
    }

    proptest! {
        #[test]
        fn the_printed_number_is_the_number(x in -1e12_f64..1e12, power in -40_i32..40) {
            let x = x * 10_f64.powi(power);
            let said: f64 = short(x).parse().unwrap();
            prop_assert!((said - x).abs() <= 5.001e-4 * x.abs(), "{x} as {said}");
        }
    }
}
