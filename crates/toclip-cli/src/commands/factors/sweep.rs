//! A number or a range of numbers on the command line.

use std::str::FromStr;

/// Points of a range when none are asked for.
const DEFAULT_POINTS: usize = 200;

/// `0.9`, `0.1..15` or `0.1..15:100`.
#[derive(Debug, Clone, PartialEq)]
pub enum Sweep {
    /// One number.
    Point(f64),
    /// So many numbers from one to another, ends included.
    Range {
        /// The first.
        from: f64,
        /// The last.
        to: f64,
        /// How many.
        points: usize,
    },
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            part.trim()
                .parse::<f64>()
                .map_err(|_| format!("`{part}` is not a number; write 0.9, 0.1..15 or 0.1..15:100"))
        };
        let Some((from, rest)) = text.split_once("..") else {
            return number(text).map(Sweep::Point);
        };
        let (to, points) = match rest.split_once(':') {
            Some((to, points)) => match points.trim().parse::<usize>() {
                Ok(points) if (2..=1_000_000).contains(&points) => (to, points),
                _ => return Err(format!("`{points}` is not a number of points from 2 to 1000000")),
            },
            None => (rest, DEFAULT_POINTS),
        };
        let (from, to) = (number(from)?, number(to)?);
        if !(from < to && from.is_finite() && to.is_finite()) {
            return Err(format!(
                "a range goes from a smaller to a larger finite number, not {from}..{to}"
            ));
        }
        Ok(Sweep::Range { from, to, points })
    }
}

impl Sweep {
    /// The numbers, evenly spaced or evenly in the logarithm.
    pub fn values(&self, log: bool) -> Result<Vec<f64>, String> {
        match *self {
            Sweep::Point(x) => Ok(vec![x]),
            Sweep::Range { from, .. } if log && from <= 0.0 => {
                Err(format!("--log-x needs a range that starts above zero, not at {from}"))
            }
            Sweep::Range { from, to, points } => Ok((0..points)
                .map(|k| {
                    let share = k as f64 / (points - 1) as f64;
                    if k == 0 {
                        from
                    } else if k == points - 1 {
                        to
                    } else if log {
                        (from.ln() + (to.ln() - from.ln()) * share).exp()
                    } else {
                        from + (to - from) * share
                    }
                })
                .collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_and_ranges() {
        assert_eq!("0.9".parse(), Ok(Sweep::Point(0.9)));
        assert_eq!("inf".parse(), Ok(Sweep::Point(f64::INFINITY)));
        assert_eq!("1..3:3".parse(), Ok(Sweep::Range { from: 1.0, to: 3.0, points: 3 }));
        for bad in ["", "x", "3..1", "1..", "1..2:1", "1..2:x", "1..inf", "nan..1"] {
            assert!(bad.parse::<Sweep>().is_err(), "{bad}");
        }
    }

    #[test]
    fn spaces_points_evenly_with_exact_ends() {
        let range: Sweep = "0.1..10:3".parse().unwrap();
        assert_eq!(range.values(false).unwrap(), [0.1, 5.05, 10.0]);
        let log = range.values(true).unwrap();
        assert!((log[1] - 1.0).abs() < 1e-15 && log[2] == 10.0);
        assert!("0..1".parse::<Sweep>().unwrap().values(true).is_err());
    }
}
