//! The places of the ticks of an axis, and their labels.

use super::AxisScale;
use super::font::SUPERSCRIPTS;

/// A labelled tick; `at` is in axis units: the value, or its log10 on a log axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub at: f64,
    pub label: String,
}

/// The ticks of one axis, both kinds in axis units.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ticks {
    pub major: Vec<Tick>,
    pub minor: Vec<f64>,
}

impl Ticks {
    /// Names at 0, 1, 2, …
    pub(super) fn named(names: &[String]) -> Self {
        let tick = |(k, label): (usize, &String)| Tick { at: k as f64, label: label.clone() };
        Ticks { major: names.iter().enumerate().map(tick).collect(), minor: Vec::new() }
    }
}

/// Slack for a tick that rounding puts just outside the axis, as a share of a step or decade.
const SLACK: f64 = 1e-9;

/// About `target` labelled ticks (seldom more) for an axis from `lo` to `hi` in axis units.
pub(super) fn ticks(scale: AxisScale, lo: f64, hi: f64, target: usize) -> Ticks {
    let target = target.max(2);
    match scale {
        AxisScale::Linear => {
            let step = TickStep::nice((hi - lo) / target as f64);
            let values = step.multiples(lo, hi);
            let major = values.iter().map(|&at| Tick { at, label: step.label(at, &values) });
            Ticks { major: major.collect(), minor: Vec::new() }
        }
        AxisScale::Log => log(lo, hi, target),
    }
}

/// A step 1, 2 or 5 times a power of ten, kept as integers so that 3 × 0.1 comes out as 0.3.
#[derive(Clone, Copy)]
struct TickStep {
    digit: f64,
    exponent: i32,
}

impl TickStep {
    /// The smallest such step that is not below `raw`.
    fn nice(raw: f64) -> Self {
        let exponent = raw.log10().floor() as i32;
        let lead = raw / ten_to(exponent);
        match [1.0, 2.0, 5.0].into_iter().find(|&digit| lead <= digit * (1.0 + SLACK)) {
            Some(digit) => Self { digit, exponent },
            None => Self { digit: 1.0, exponent: exponent + 1 },
        }
    }

    fn multiples(self, lo: f64, hi: f64) -> Vec<f64> {
        let step = self.digit * ten_to(self.exponent);
        let first = (lo / step - SLACK).ceil() as i64;
        let last = (hi / step + SLACK).floor() as i64;
        (first..=last)
            .map(|k| {
                let units = k as f64 * self.digit;
                // Dividing by an exact power of ten rounds once; multiplying by 0.1 rounds twice.
                match self.exponent {
                    e if (-22..0).contains(&e) => units / ten_to(-e),
                    e => units * ten_to(e),
                }
            })
            .collect()
    }

    /// All labels of an axis share one form, so that their digits line up.
    fn label(self, value: f64, all: &[f64]) -> String {
        let largest = all.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        if value == 0.0 {
            "0".into()
        } else if (1e-3..1e5).contains(&largest) {
            minus(format!("{value:.*}", (-self.exponent).max(0) as usize))
        } else {
            let exponent = largest.log10().floor() as i32;
            let decimals = (exponent - self.exponent).max(0) as usize;
            let lead = minus(format!("{:.decimals$}", value / ten_to(exponent)));
            if lead == "1" { power(exponent) } else { format!("{lead}×{}", power(exponent)) }
        }
    }
}

fn log(lo: f64, hi: f64, target: usize) -> Ticks {
    let (first, last) = ((lo - SLACK).ceil() as i32, (hi + SLACK).floor() as i32);
    let decades = (last - first + 1).max(0);
    if decades >= 3 {
        let stride = [1, 2, 3, 5, 10, 20, 50]
            .into_iter()
            .find(|stride| decades <= stride * target as i32)
            .unwrap_or(100);
        let major = leads(lo, hi, &[1]).filter(|(_, e, _)| e.rem_euclid(stride) == 0).collect();
        // Minor ticks show what kind of axis it is; beyond some sixty they would be a grey edge.
        let minor = match stride {
            1 => leads(lo, hi, &[2, 3, 4, 5, 6, 7, 8, 9]).map(|(_, _, at)| at).collect(),
            2..=10 => (first..=last).filter(|e| e % stride != 0).map(f64::from).collect(),
            _ => Vec::new(),
        };
        return Ticks { major: labelled(major), minor };
    }

    // Two decades or fewer: labels inside the decades, as dense as there is room for.
    for digits in [&[1, 2, 5][..], &[1, 3]] {
        let major: Vec<_> = leads(lo, hi, digits).collect();
        if (3..=target.max(3)).contains(&major.len()) {
            let others = leads(lo, hi, &[1, 2, 3, 4, 5, 6, 7, 8, 9])
                .filter(|(digit, ..)| !digits.contains(digit));
            return Ticks { major: labelled(major), minor: others.map(|(.., at)| at).collect() };
        }
    }

    // So little of a decade that it is nearly linear: round values at their logarithms.
    let (from, to) = (10f64.powf(lo), 10f64.powf(hi));
    let mut ticks = ticks(AxisScale::Linear, from, to, target);
    ticks.major.retain(|tick| tick.at > 0.0);
    ticks.major.iter_mut().for_each(|tick| tick.at = tick.at.log10());
    ticks
}

/// Every digit × 10^e between two ends in decades, as (digit, e, log10).
fn leads(lo: f64, hi: f64, digits: &[u32]) -> impl Iterator<Item = (u32, i32, f64)> {
    (lo.floor() as i32..=(hi + SLACK).floor() as i32)
        .flat_map(move |e| digits.iter().map(move |&d| (d, e, f64::from(e) + f64::from(d).log10())))
        .filter(move |&(.., at)| at >= lo - SLACK && at <= hi + SLACK)
}

/// Ticks at every digit × 10^e. Where all are from 0.001 to 1000 they are written out, otherwise only
/// 0.1, 1 and 10 go without an exponent.
fn labelled(leads: Vec<(u32, i32, f64)>) -> Vec<Tick> {
    let plain = leads.iter().all(|(_, e, _)| (-3..=3).contains(e));
    let label = |digit: u32, e: i32| match digit {
        _ if plain || (-1..=1).contains(&e) => {
            format!("{:.*}", (-e).max(0) as usize, f64::from(digit) * ten_to(e))
        }
        1 => power(e),
        _ => format!("{digit}×{}", power(e)),
    };
    leads.iter().map(|&(digit, e, at)| Tick { at, label: label(digit, e) }).collect()
}

/// A value for people, to four significant digits.
pub(super) fn value_label(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return minus(format!("{value}"));
    }
    // Through the printed form, so that 9.9999 becomes 10 and not 10.00.
    let printed = format!("{value:.3e}");
    let (lead, exponent) = printed.split_once('e').unwrap_or((&printed, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-3..5).contains(&exponent) {
        minus(trimmed(&format!("{value:.*}", (3 - exponent).max(0) as usize)))
    } else {
        format!("{}×{}", minus(trimmed(lead)), power(exponent))
    }
}

fn trimmed(number: &str) -> String {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').into(),
        false => number.into(),
    }
}

fn power(exponent: i32) -> String {
    let raise = |c| SUPERSCRIPTS.iter().find(|(_, plain)| *plain == c).map_or(c, |pair| pair.0);
    format!("10{}", minus(exponent.to_string()).chars().map(raise).collect::<String>())
}

/// A minus sign as wide as a plus, where a hyphen would be easy to miss.
fn minus(number: String) -> String {
    number.replace('-', "−")
}

fn ten_to(exponent: i32) -> f64 {
    10f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: AxisScale, lo: f64, hi: f64, target: usize) -> Vec<String> {
        ticks(scale, lo, hi, target).major.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn linear_labels_are_round_and_share_their_decimals() {
        assert_eq!(
            labels(AxisScale::Linear, 0.0, 15.0, 8),
            ["0", "2", "4", "6", "8", "10", "12", "14"]
        );
        assert_eq!(labels(AxisScale::Linear, 0.42, 2.55, 6), ["0.5", "1.0", "1.5", "2.0", "2.5"]);
        assert_eq!(labels(AxisScale::Linear, -0.3, 0.3, 3), ["−0.2", "0", "0.2"]);
        assert_eq!(
            labels(AxisScale::Linear, 0.0, 3.1e-5, 4),
            ["0", "1×10⁻⁵", "2×10⁻⁵", "3×10⁻⁵"].map(|s| s.replace("1×", ""))
        );
        assert_eq!(labels(AxisScale::Linear, 0.0, 2.2e6, 3), ["0", "10⁶", "2×10⁶"]);
        assert_eq!(
            labels(AxisScale::Linear, 1.0, 1.0 + 2.9e-9, 3),
            ["1.000000000", "1.000000001", "1.000000002"]
        );
    }

    #[test]
    fn linear_ticks_are_the_nearest_doubles_to_their_labels() {
        for (lo, hi) in [(0.0, 1.0), (-0.7, 0.3), (1e-4, 9e-4), (0.0, 0.06), (3e4, 8e4)] {
            for tick in ticks(AxisScale::Linear, lo, hi, 7).major {
                if let Ok(read) = tick.label.replace('−', "-").parse::<f64>() {
                    assert_eq!(tick.at, read, "{}", tick.label);
                }
            }
        }
    }

    #[test]
    fn every_axis_has_ticks_inside_it_and_not_too_many() {
        let mut lo: f64 = 1e-290;
        while lo < 1e290 {
            for ratio in [1.0 + 1e-9, 1.01, 1.5, 3.0, 40.0, 1e3, 1e9] {
                let hi = lo * ratio;
                for target in 2..9 {
                    let (a, b) = (lo.log10(), hi.log10());
                    for (scale, a, b) in [(AxisScale::Linear, lo, hi), (AxisScale::Log, a, b)] {
                        let found = ticks(scale, a, b, target).major;
                        let slack = (b - a) * 1e-6;
                        assert!(found.len() <= target.max(3) + 1, "{scale:?} {lo} {hi} {target}");
                        assert!(found.iter().all(|t| t.at >= a - slack && t.at <= b + slack));
                        assert!(found.is_sorted_by(|s, t| s.at < t.at && s.label != t.label));
                        if target >= 5 {
                            assert!(found.len() >= 2, "{scale:?} {lo} {hi} {target}: {found:?}");
                        }
                    }
                }
            }
            lo *= 7e9;
        }
    }

    #[test]
    fn log_labels_go_by_decades() {
        assert_eq!(labels(AxisScale::Log, -2.1, 1.0, 8), ["0.01", "0.1", "1", "10"]);
        assert_eq!(
            labels(AxisScale::Log, -5.0, 1.2, 8),
            ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "0.1", "1", "10"]
        );
        assert_eq!(
            labels(AxisScale::Log, -20.0, 5.0, 6),
            ["10⁻²⁰", "10⁻¹⁵", "10⁻¹⁰", "10⁻⁵", "1", "10⁵"]
        );
        assert_eq!(labels(AxisScale::Log, -300.0, 300.0, 7).len(), 7);
    }

    #[test]
    fn short_log_axes_have_labels_inside_the_decade() {
        assert_eq!(labels(AxisScale::Log, 0.7f64.log10(), 12f64.log10(), 6), ["1", "2", "5", "10"]);
        assert_eq!(
            labels(AxisScale::Log, 3.1f64.log10(), 3.9f64.log10(), 4),
            ["3.2", "3.4", "3.6", "3.8"]
        );
        assert_eq!(labels(AxisScale::Log, -6.2, -5.0, 6), ["10⁻⁶", "2×10⁻⁶", "5×10⁻⁶", "10⁻⁵"]);
        let minor = ticks(AxisScale::Log, 0.0, 1.0, 5).minor;
        assert_eq!(minor, [3f64, 4.0, 6.0, 7.0, 8.0, 9.0].map(f64::log10));
    }

    #[test]
    fn values_under_the_pointer_have_four_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (1.0, "1"),
            (9.99999, "10"),
            (-0.5, "−0.5"),
            (1234.56, "1235"),
            (0.00123456, "0.001235"),
            (1.23456e-7, "1.235×10⁻⁷"),
            (-2e30, "−2×10³⁰"),
            (99999.9, "1×10⁵"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(value_label(value), expected);
        }
    }
}
