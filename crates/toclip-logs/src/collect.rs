//! A log in memory: at most a million points, in the order of their steps.

use std::io::Read;

use serde::Serialize;

use crate::{Error, Finding, Format, Options, Reading, Result, Row, read, traps};

/// Points kept; a longer log is thinned.
const KEEP: usize = 1 << 20;

/// One step with a finite gradient norm. What is missing is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The step.
    pub step: f64,
    /// The norm of the gradient, $\Vert g \Vert$.
    pub norm: f64,
    /// The training loss.
    pub loss: f64,
    /// The learning rate.
    pub learning_rate: f64,
    /// The loss scale.
    pub loss_scale: f64,
    /// The epoch.
    pub epoch: f64,
}

/// A log, read and put in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// How it was read.
    pub reading: Reading,
    /// The steps with a finite norm, in order.
    pub points: Vec<Point>,
    /// All that a reader of the numbers must know.
    pub findings: Vec<Finding>,
    /// Steps from one row to the next.
    pub stride: f64,
    /// Norms that were NaN or infinite.
    pub not_finite: u64,
}

impl Log {
    /// The norms in order.
    pub fn norms(&self) -> Vec<f64> {
        self.points.iter().map(|p| p.norm).collect()
    }
}

/// Reads a log whole: rows in order, restarts resolved, traps named.
///
/// ```
/// let log = "{'loss': 1.5, 'grad_norm': '2.5', 'epoch': 0.1}\n{'loss': 1.4, 'grad_norm': 'nan'}\n";
/// let log = toclip_logs::load(log.as_bytes(), &Default::default())?;
/// assert_eq!(log.norms(), [2.5]);
/// assert_eq!(log.not_finite, 1);
/// # Ok::<(), toclip_logs::Error>(())
/// ```
///
/// # Errors
///
/// As [`read()`]; and if not a single norm is finite.
pub fn load(reader: impl Read, options: &Options) -> Result<Log> {
    let mut collector = Collector::new(KEEP, options.unscale);
    let reading = read(reader, options, &mut |row| collector.add(row))?;
    collector.finish(reading)
}

struct Collector {
    keep: usize,
    unscale: bool,
    points: Vec<Point>,
    /// One point of this many is kept.
    every: u64,
    seen: u64,
    not_a_number: u64,
    infinite: u64,
    first_odd: Option<f64>,
    negative: u64,
    zero: u64,
}

impl Collector {
    fn new(keep: usize, unscale: bool) -> Self {
        Self {
            keep,
            unscale,
            points: Vec::new(),
            every: 1,
            seen: 0,
            not_a_number: 0,
            infinite: 0,
            first_odd: None,
            negative: 0,
            zero: 0,
        }
    }

    fn add(&mut self, row: &Row) {
        let Some(mut norm) = row.norm else { return };
        // Before anything is asked of the norm: the quotient can be infinite where it was not.
        if self.unscale
            && let Some(scale) = row.loss_scale.filter(|s| *s > 0.0 && s.is_finite())
        {
            norm /= scale;
        }
        if !norm.is_finite() {
            self.not_a_number += u64::from(norm.is_nan());
            self.infinite += u64::from(norm.is_infinite());
            self.first_odd = self.first_odd.or(row.step);
            return;
        }
        if norm < 0.0 {
            self.negative += 1;
            return;
        }
        self.zero += u64::from(norm == 0.0);
        self.seen += 1;
        if !self.seen.is_multiple_of(self.every) {
            return;
        }
        let or_nan = |x: Option<f64>| x.unwrap_or(f64::NAN);
        self.points.push(Point {
            step: or_nan(row.step),
            norm,
            loss: or_nan(row.loss),
            learning_rate: or_nan(row.learning_rate),
            loss_scale: or_nan(row.loss_scale),
            epoch: or_nan(row.epoch),
        });
        if self.points.len() == self.keep {
            let mut odd = false;
            self.points.retain(|_| {
                odd = !odd;
                !odd
            });
            self.every *= 2;
        }
    }

    fn finish(self, reading: Reading) -> Result<Log> {
        let mut findings = reading.findings.clone();
        if self.points.is_empty() {
            let why = format!(
                "none of its {} norms is a finite, positive number",
                self.not_a_number + self.infinite + self.negative
            );
            return Err(Error::NoNorm { format: reading.format, why });
        }
        // Tables written by pandas have NaN where a cell is empty.
        let empty_cells =
            reading.format == Format::Csv && self.infinite == 0 && self.not_a_number >= self.seen;
        let not_finite = if empty_cells { 0 } else { self.not_a_number + self.infinite };
        if not_finite > 0 {
            findings.push(Finding::NotFinite { count: not_finite, first: self.first_odd });
        }
        if self.negative > 0 {
            findings.push(Finding::Negative { count: self.negative });
        }
        if self.zero > 0 {
            findings.push(Finding::Zero { count: self.zero });
        }
        if self.every > 1 {
            findings.push(Finding::Thinned { every: self.every });
        }
        let points = in_order(self.points, &mut findings);
        let scaled = points.iter().any(|p| p.loss_scale > 0.0);
        if self.unscale {
            if !scaled {
                return Err(Error::Invalid(
                    "the log has no loss scale to divide the norms by".into(),
                ));
            }
            findings.push(Finding::Unscaled);
        }
        let stride = traps::find(&points, self.unscale, self.every, &mut findings);
        Ok(Log { reading, points, findings, stride, not_finite })
    }
}

/// Orders the points by step: what a restart repeats replaces what stood there before.
fn in_order(mut points: Vec<Point>, findings: &mut Vec<Finding>) -> Vec<Point> {
    let without = points.iter().filter(|p| p.step.is_nan()).count();
    if 2 * without > points.len() {
        findings.push(Finding::StepsCounted);
        for (i, point) in points.iter_mut().enumerate() {
            point.step = i as f64;
        }
        return points;
    }
    if without > 0 {
        points.retain(|p| !p.step.is_nan());
        findings.push(Finding::WithoutStep { count: without as u64 });
    }
    let epochs = join_epochs(&mut points);
    if epochs > 1 {
        findings.push(Finding::StepsByEpoch { epochs });
    }
    let back = points.windows(2).filter(|w| w[1].step < w[0].step).count();
    let forth = points.windows(2).filter(|w| w[1].step > w[0].step).count();
    if back > forth {
        points.reverse();
        findings.push(Finding::Reversed);
    } else if back > 20 && 10 * back > points.len() {
        // Stable: of equal steps the later row comes later, and stays.
        points.sort_by(|a, b| a.step.total_cmp(&b.step));
        findings.push(Finding::Unordered);
    }
    let mut runs: Vec<Vec<Point>> = Vec::new();
    let mut run: Vec<Point> = Vec::new();
    let (mut restarts, mut replaced) = (0, 0);
    for point in points {
        let Some(last) = run.last() else {
            run.push(point);
            continue;
        };
        if point.step < last.step && run.len() > 1 && point.step <= run[0].step {
            runs.push(std::mem::take(&mut run));
        } else if point.step < last.step {
            restarts += 1;
        }
        while run.last().is_some_and(|last| last.step >= point.step) {
            run.pop();
            replaced += 1;
        }
        run.push(point);
    }
    runs.push(run);
    if runs.len() > 1 {
        findings.push(Finding::SeveralRuns { runs: runs.len() as u64 });
    }
    if restarts > 0 || replaced > 0 {
        findings.push(Finding::Restarts { count: restarts, replaced });
    }
    runs.into_iter().max_by_key(Vec::len).unwrap_or_default()
}

/// Where the step starts again with each epoch, lets it go on counting instead; gives the number of
/// epochs joined, one for a log that is not so.
fn join_epochs(points: &mut [Point]) -> u64 {
    let mut backs = points.windows(2).filter(|w| w[1].step < w[0].step).peekable();
    // After a restart, or in another run, the epoch goes back as well or stays.
    if backs.peek().is_none() || !backs.all(|w| w[1].epoch > w[0].epoch) {
        return 1;
    }
    let (mut epochs, mut before) = (1, 0.0);
    for i in 1..points.len() {
        if points[i].step + before < points[i - 1].step {
            epochs += 1;
            before = points[i - 1].step + 1.0 - points[i].step;
        }
        points[i].step += before;
    }
    epochs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(step: f64, norm: f64) -> Point {
        let nan = f64::NAN;
        Point { step, norm, loss: nan, learning_rate: nan, loss_scale: nan, epoch: nan }
    }

    #[test]
    fn steps_of_each_epoch_are_joined() {
        let by_epoch = |epochs: &[f64]| {
            let mut points: Vec<Point> = (0..epochs.len())
                .map(|i| Point { epoch: epochs[i], ..point((i % 3) as f64, i as f64) })
                .collect();
            let joined = join_epochs(&mut points);
            (joined, points.iter().map(|p| p.step).collect::<Vec<_>>())
        };
        let (joined, steps) = by_epoch(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0]);
        assert_eq!((joined, steps), (3, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]));
        // Two runs: the epoch starts again as well.
        assert_eq!(by_epoch(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).0, 1);
        assert_eq!(by_epoch(&[0.0, 0.5, 1.0, 0.0, 0.5, 1.0]).0, 1);
        assert_eq!(by_epoch(&[f64::NAN; 6]).0, 1);
    }

    fn order(steps: &[f64]) -> (Vec<(f64, f64)>, Vec<Finding>) {
        let points = steps.iter().enumerate().map(|(i, s)| point(*s, i as f64)).collect();
        let mut findings = Vec::new();
        let points = in_order(points, &mut findings);
        (points.iter().map(|p| (p.step, p.norm)).collect(), findings)
    }

    #[test]
    fn the_later_rows_of_a_restart_count() {
        let (points, findings) = order(&[1.0, 2.0, 3.0, 4.0, 3.0, 4.0, 5.0]);
        assert_eq!(points, [(1.0, 0.0), (2.0, 1.0), (3.0, 4.0), (4.0, 5.0), (5.0, 6.0)]);
        assert_eq!(findings, [Finding::Restarts { count: 1, replaced: 2 }]);
    }

    #[test]
    fn of_several_runs_the_longest() {
        let (points, findings) = order(&[1.0, 2.0, 3.0, 1.0, 2.0]);
        assert_eq!(points, [(1.0, 0.0), (2.0, 1.0), (3.0, 2.0)]);
        assert_eq!(findings, [Finding::SeveralRuns { runs: 2 }]);
    }

    #[test]
    fn turned_round_or_without_steps() {
        let (points, findings) = order(&[3.0, 2.0, 1.0]);
        assert_eq!(points, [(1.0, 2.0), (2.0, 1.0), (3.0, 0.0)]);
        assert_eq!(findings, [Finding::Reversed]);
        let (points, findings) = order(&[f64::NAN; 3]);
        assert_eq!(points, [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]);
        assert_eq!(findings, [Finding::StepsCounted]);
        let shuffled: Vec<f64> = (0..200).map(|i| f64::from(i * 77 % 200)).collect();
        let (points, findings) = order(&shuffled);
        assert_eq!(points.len(), 200);
        assert_eq!(findings, [Finding::Unordered]);
    }

    #[test]
    fn a_long_log_is_thinned_evenly() {
        let mut collector = Collector::new(64, false);
        for i in 1..=1000 {
            let row = Row { step: Some(f64::from(i)), norm: Some(1.0), ..Row::default() };
            collector.add(&row);
        }
        assert!(collector.points.len() < 64 && collector.points.len() > 16);
        let every = collector.every as f64;
        assert!(collector.points.windows(2).all(|w| w[1].step - w[0].step == every));
    }
}
