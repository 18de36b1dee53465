//! Findings and recommendations in words. No sentence about them is written elsewhere.

mod code;
mod details;
mod findings;
mod reasons;
mod verdict;

pub use code::{CodeBlock, Framework};
pub use details::AdviceSection;
pub use verdict::{Tone, Verdict};

use toclip_words::{rounded, short};

/// A count with its noun.
fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count as f64), if count == 1 { one } else { many })
}

/// A step or a count, with commas from ten thousand on.
fn grouped(x: f64) -> String {
    let digits = short(x);
    if !(1e4..1e15).contains(&x) || x.fract() != 0.0 {
        return digits;
    }
    let digits = format!("{x:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three significant digits, for losses and ratios.
fn about(x: f64) -> String {
    grouped(rounded(x, 3))
}

/// Two significant digits, for guesses.
fn roughly(x: f64) -> String {
    short(rounded(x, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        assert_eq!(
            [999.0, 9_999.0, 12_345.0, 1_234_567.0].map(grouped),
            ["999", "9999", "12,345", "1,234,567"]
        );
        assert_eq!([1.2345, 0.001_234_5, 347.97].map(about), ["1.23", "0.00123", "348"]);
    }
}
