//! Finds spikes: norms far above their running median, losses far above theirs.

use serde::Serialize;
use toclip::threshold_rules::SlidingWindow;

use super::finding::as_integer;
use super::median;
use super::spread::upper_spread;
use crate::LogPoint;

/// Values that a running median remembers.
const MEMORY: usize = 100;
/// Fewer values give no reliable median.
const LEAST: usize = 20;
/// A spike is at least this many times the running median, ...
const TIMES: f64 = 4.0;
/// ... and this many standard deviations of ln(norm) above it: heavy tails have no spikes.
const DEVIATIONS: f64 = 5.0;
/// A loss must rise by this share of its running median, ...
const LOSS_SHARE: f64 = 0.3;
/// ... and by this many standard deviations, ...
const LOSS_DEVIATIONS: f64 = 8.0;
/// ... for this many points in a row: a single large loss is a hard batch.
const LOSS_POINTS: usize = 3;
/// Affected points this close belong to one spike.
const CLOSE: usize = 10;
/// More affected points in a row are a new level and no spike.
const LONGEST: usize = 40;
/// Points after a spike in which the loss may come back.
const WAIT: usize = 50;
/// Points before and after a spike that give the usual loss.
const SIDE: usize = 20;

/// A spike: one or several affected steps close to each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spike {
    /// The first affected step.
    #[serde(serialize_with = "as_integer")]
    pub first: f64,
    /// The last.
    #[serde(serialize_with = "as_integer")]
    pub last: f64,
    /// How many steps were affected.
    pub count: usize,
    /// The largest norm.
    pub norm: f64,
    /// The largest norm over the running median.
    pub times_median: f64,
    /// The loss before: a median.
    pub loss_before: Option<f64>,
    /// The largest loss.
    pub loss_peak: Option<f64>,
    /// How many steps after the first the loss was as before; `None` if it never was, or is unknown.
    pub recovered_after: Option<f64>,
    /// The points from the first affected to the last.
    #[serde(skip)]
    pub(crate) range: (usize, usize),
    /// How many points follow.
    #[serde(skip)]
    points_after: usize,
}

impl Spike {
    /// Whether the loss stayed above its level before the spike, for long enough to say so.
    pub(crate) fn not_recovered(&self) -> bool {
        self.loss_before.is_some() && self.recovered_after.is_none() && self.points_after >= WAIT
    }
}

/// The spikes after the warm-up, and every point that is affected.
pub(super) fn find(points: &[LogPoint], warm_up: usize) -> (Vec<Spike>, Vec<bool>) {
    let norms: Vec<f64> = points.iter().map(|p| p.norm.max(f64::MIN_POSITIVE).ln()).collect();
    let losses: Vec<f64> = points.iter().map(|p| p.finite_loss().unwrap_or(f64::NAN)).collect();
    let usual_norm = running_medians(&norms);
    let above = |values: &[f64], usual: &[f64]| -> Vec<f64> {
        let pairs = values.iter().zip(usual).skip(warm_up).map(|(x, m)| x - m);
        pairs.filter(|x| x.is_finite()).collect()
    };
    let limit = TIMES.ln().max(DEVIATIONS * upper_spread(above(&norms, &usual_norm)));
    let (mut affected, usual) = far_above(&norms, warm_up, |_| limit);
    let spread = upper_spread(above(&losses, &running_medians(&losses)));
    let (high, _) = far_above(&losses, warm_up, |usual| {
        (LOSS_DEVIATIONS * spread).max(LOSS_SHARE * usual.abs())
    });
    for run in runs(&high, 1) {
        // A loss that is nearly always the same has no spread to compare with.
        if spread > 0.0 && run.1 - run.0 + 1 >= LOSS_POINTS {
            affected[run.0..=run.1].fill(true);
        }
    }
    let spikes = runs(&affected, CLOSE);
    let spikes = spikes.into_iter().map(|range| spike(points, &affected, &usual, range, spread));
    (spikes.collect(), affected)
}

/// The median of the values before each; NaN while there are too few.
fn running_medians(values: &[f64]) -> Vec<f64> {
    let mut window = SlidingWindow::new(MEMORY);
    let step = |value: &f64| {
        let usual = usual_of(&window).unwrap_or(f64::NAN);
        if value.is_finite() {
            window.add(*value);
        }
        usual
    };
    values.iter().map(step).collect()
}

/// The median of a window that has enough values.
fn usual_of(window: &SlidingWindow) -> Option<f64> {
    window.quantile(0.5).filter(|_| window.len() >= LEAST)
}

/// Which values are above the running median by more than the limit, and that median. Values above are
/// not remembered, unless they stay.
fn far_above(values: &[f64], from: usize, limit: impl Fn(f64) -> f64) -> (Vec<bool>, Vec<f64>) {
    let mut window = SlidingWindow::new(MEMORY);
    let (mut above, mut usual) = (vec![false; values.len()], vec![f64::NAN; values.len()]);
    let mut in_a_row = 0;
    for (i, value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
        let known = usual_of(&window);
        usual[i] = known.unwrap_or(f64::NAN);
        above[i] = i >= from && known.is_some_and(|m| *value > m + limit(m));
        in_a_row = if above[i] { in_a_row + 1 } else { 0 };
        if in_a_row == LONGEST {
            // A new level is usual now.
            window = SlidingWindow::new(MEMORY);
            let first = i + 1 - LONGEST;
            above[first + LONGEST / 2..=i].fill(false);
            values[first..=i].iter().filter(|x| x.is_finite()).for_each(|x| window.add(*x));
            in_a_row = 0;
        } else if !above[i] {
            window.add(*value);
        }
    }
    (above, usual)
}

/// The first and last index of each run of true values, gaps of fewer than `close` closed.
fn runs(values: &[bool], close: usize) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (i, _) in values.iter().enumerate().filter(|(_, value)| **value) {
        match runs.last_mut() {
            Some(run) if i - run.1 <= close => run.1 = i,
            _ => runs.push((i, i)),
        }
    }
    runs
}

fn spike(
    points: &[LogPoint],
    affected: &[bool],
    usual: &[f64],
    (first, last): (usize, usize),
    loss_spread: f64,
) -> Spike {
    let finite = |range: &[LogPoint]| -> Vec<f64> {
        range.iter().filter_map(LogPoint::finite_loss).collect()
    };
    let norm = points[first..=last].iter().map(|p| p.norm).fold(0.0, f64::max);
    let before = &points[first.saturating_sub(SIDE)..first];
    let loss_before = median(finite(before));
    let during = finite(&points[first..=last]).into_iter().fold(f64::NEG_INFINITY, f64::max);
    let recovered = loss_before.and_then(|before| {
        let level = before + 2.0 * loss_spread;
        let after = (last + 1..points.len()).find(|i| {
            let next = finite(&points[*i..(*i + 5).min(points.len())]);
            median(next).is_some_and(|loss| loss <= level)
        })?;
        Some(points[after].step - points[first].step)
    });
    Spike {
        first: points[first].step,
        last: points[last].step,
        count: affected[first..=last].iter().filter(|a| **a).count(),
        norm,
        times_median: norm / usual[first].exp(),
        loss_before,
        loss_peak: (during.is_finite() && loss_before.is_some()).then_some(during),
        recovered_after: recovered,
        range: (first, last),
        points_after: points.len() - 1 - last,
    }
}
