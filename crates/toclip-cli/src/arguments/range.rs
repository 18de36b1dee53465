//! A number or a range of numbers on the command line.

use anyhow::{Result, bail};
use std::str::FromStr;

/// Points of a range when none are asked for.
const DEFAULT_POINTS: usize = 200;

/// `0.9`, `0.1..15` or `0.1..15:100`.
#[derive(Debug, Clone, PartialEq)]
pub enum PointOrRange {
    /// One number; `none` is infinite.
    Number(f64),
    /// Numbers from one to another, ends included, as many as given.
    Range {
        /// The first.
        from: f64,
        /// The last.
        to: f64,
        /// How many.
        points: Option<usize>,
    },
}

impl FromStr for PointOrRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| match part.trim() {
            "none" => Ok(f64::INFINITY),
            part => part.parse().ok().filter(|x: &f64| !x.is_nan()).ok_or_else(|| {
                format!("`{part}` is not a number; write 0.9, 0.1..15 or 0.1..15:100")
            }),
        };
        let Some((from, rest)) = text.split_once("..") else {
            return number(text).map(PointOrRange::Number);
        };
        let (to, points) = rest.split_once(':').map_or((rest, None), |(to, n)| (to, Some(n)));
        let count = |n: &str| match n.trim().parse() {
            Ok(points @ 2..=1_000_000) => Ok(points),
            _ => Err(format!("`{n}` is not a number of points from 2 to 1000000")),
        };
        let points = points.map(count).transpose()?;
        let (from, to) = (number(from)?, number(to)?);
        if !(from < to && from.is_finite() && to.is_finite()) {
            return Err("expected a range from a smaller to a larger finite number".into());
        }
        Ok(PointOrRange::Range { from, to, points })
    }
}

impl PointOrRange {
    /// The numbers, evenly spaced or evenly in the logarithm.
    pub fn values(&self, log: bool) -> Result<Vec<f64>> {
        let (from, to, points) = match *self {
            PointOrRange::Number(x) => return Ok(vec![x]),
            PointOrRange::Range { from, to, points } => (from, to, points),
        };
        if log && from <= 0.0 {
            bail!("--log-x needs a range that starts above zero, not at {from}");
        }
        let last = points.unwrap_or(DEFAULT_POINTS) - 1;
        let at = |k: usize| match k as f64 / last as f64 {
            _ if k == 0 => from,
            _ if k == last => to,
            share if log => (from.ln() + (to.ln() - from.ln()) * share).exp(),
            share => from + (to - from) * share,
        };
        Ok((0..=last).map(at).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_and_ranges() {
        assert_eq!("0.9".parse(), Ok(PointOrRange::Number(0.9)));
        for text in ["inf", "none"] {
            assert_eq!(text.parse(), Ok(PointOrRange::Number(f64::INFINITY)));
        }
        let range = PointOrRange::Range { from: 1.0, to: 3.0, points: Some(3) };
        assert_eq!("1..3:3".parse(), Ok(range));
        for bad in ["", "x", "nan", "3..1", "1..", "1..2:1", "1..2:x", "1..inf", "nan..1"] {
            assert!(bad.parse::<PointOrRange>().is_err(), "{bad}");
        }
    }

    #[test]
    fn spaces_points_evenly_with_exact_ends() {
        let range: PointOrRange = "0.1..10:3".parse().unwrap();
        assert_eq!(range.values(false).unwrap(), [0.1, 5.05, 10.0]);
        let log = range.values(true).unwrap();
        assert!((log[1] - 1.0).abs() < 1e-15 && log[2] == 10.0);
        assert!("0..1".parse::<PointOrRange>().unwrap().values(true).is_err());
    }
}
