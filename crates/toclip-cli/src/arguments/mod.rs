//! Values on the command line that several commands take, with one parser and one message each.

mod noise;
mod range;

pub use noise::{NoiseArgs, family, object};
pub use range::PointOrRange;

pub use toclip_words::unknown;

use toclip::Rule;
use toclip_experiment::RuleChoice;

use toclip_words::short;

/// The rule of this name.
pub fn rule(name: &str) -> anyhow::Result<Rule> {
    RuleChoice::named(name).map(|choice| choice.0).map_err(anyhow::Error::msg)
}

/// A finite number.
pub fn number(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    number.ok_or_else(|| "expected a finite number".into())
}

/// A positive finite number.
pub fn positive(text: &str) -> Result<f64, String> {
    number(text).ok().filter(|x| *x > 0.0).ok_or_else(|| "expected a positive number".into())
}

/// A clipping threshold; infinite for no clipping.
pub fn threshold(text: &str) -> Result<f64, String> {
    match text.trim() {
        "none" | "inf" => Ok(f64::INFINITY),
        text => positive(text).map_err(|said| said + ", or none for no clipping"),
    }
}

/// A count of at least `LEAST` and at most 10⁹.
pub fn count<const LEAST: u64>(text: &str) -> Result<u64, String> {
    integer(text, LEAST, 1_000_000_000)
}

/// A number of threads. More than a thousand take minutes to start, which Ctrl-C cannot stop.
pub fn threads(text: &str) -> Result<usize, String> {
    integer(text, 1, 1024).map(|threads| threads as usize)
}

/// A seed that a TOML file can hold as well.
pub fn seed(text: &str) -> Result<u64, String> {
    integer(text, 0, i64::MAX as u64)
}

/// An integer in digits or as in 1e6.
fn integer(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let text = text.trim();
    let scientific = || {
        let x = text.parse::<f64>().ok()?;
        (x.fract() == 0.0 && (0.0..=1e15).contains(&x)).then_some(x as u64)
    };
    let integer = text.parse().ok().or_else(scientific);
    integer.filter(|n| (least..=most).contains(n)).ok_or_else(|| {
        let most = if most > 1_000_000_000 { "2^63 − 1".into() } else { short(most as f64) };
        format!("expected an integer from {least} to {most}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_and_integers() {
        assert_eq!([threshold("none"), threshold("inf")], [Ok(f64::INFINITY), Ok(f64::INFINITY)]);
        assert_eq!(threshold("0.5"), Ok(0.5));
        for text in ["0", "-1", "nan", "x"] {
            assert!(threshold(text).is_err(), "{text}");
        }
        assert_eq!(
            threshold("0").unwrap_err(),
            "expected a positive number, or none for no clipping"
        );
        assert_eq!((count::<1>("1e3"), count::<2>("2")), (Ok(1000), Ok(2)));
        assert_eq!(count::<1>("0").unwrap_err(), "expected an integer from 1 to 1e9");
        assert_eq!(threads("1025").unwrap_err(), "expected an integer from 1 to 1024");
        assert_eq!(seed("9007199254740993"), Ok(9_007_199_254_740_993));
        for text in ["-1", "2.5", "x", "", "1e10", "nan"] {
            assert!(count::<1>(text).is_err(), "{text}");
        }
    }
}
