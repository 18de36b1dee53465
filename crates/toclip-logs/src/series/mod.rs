//! The series of a log in memory: at most a million points, in the order of their steps.

mod order;

use std::io::Read;

use serde::Serialize;

use crate::findings::{clipped_norms, loss_scale, median};
use crate::{Error, Finding, Format, ReadOptions, ReadSummary, Result, Row, read};
use order::in_order;

/// Points kept; a longer log is thinned.
const CAPACITY: usize = 1 << 20;

/// Fewer rows of NaN at the end of a table are empty cells, such as of a last validation.
const ENDED: u64 = 3;

/// One step with a finite gradient norm. Missing values are NaN.
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
    pub summary: ReadSummary,
    /// The steps with a finite norm, in order.
    pub points: Vec<Point>,
    /// What a reader of the numbers must know.
    pub findings: Vec<Finding>,
}

impl Log {
    /// The norms in order.
    pub fn norms(&self) -> Vec<f64> {
        self.points.iter().map(|p| p.norm).collect()
    }
}

/// Loads a log: rows in order, restarts resolved, findings listed.
///
/// ```
/// let log = "{'loss': 1.5, 'grad_norm': '2.5', 'epoch': 0.1}\n{'loss': 1.4, 'grad_norm': 'nan'}\n";
/// let log = toclip_logs::load(log.as_bytes(), &Default::default())?;
/// assert_eq!(log.norms(), [2.5]);
/// assert!(matches!(log.findings[0], toclip_logs::Finding::NotFinite { count: 1, .. }));
/// # Ok::<(), toclip_logs::Error>(())
/// ```
///
/// # Errors
///
/// As [`read()`]; and if no norm is finite.
pub fn load(reader: impl Read, options: &ReadOptions) -> Result<Log> {
    collect(options, |visit| read(reader, options, visit))
}

/// Collects the rows that `read` passes on.
pub(crate) fn collect(
    options: &ReadOptions,
    read: impl FnOnce(&mut dyn FnMut(&Row)) -> Result<ReadSummary>,
) -> Result<Log> {
    let mut collector = Collector::new(CAPACITY, options.unscale);
    let summary = read(&mut |row| collector.add(row))?;
    collector.finish(summary)
}

#[derive(Default)]
struct Collector {
    capacity: usize,
    unscale: bool,
    points: Vec<Point>,
    /// One point of this many is kept.
    every: u64,
    seen: u64,
    not_a_number: u64,
    infinite: u64,
    first_not_finite: Option<f64>,
    /// Rows with NaN for both norm and loss.
    blank: u64,
    /// Consecutive NaN norms: since the last number, how many of them are blank, and the most
    /// between two numbers.
    nan_run: u64,
    blank_run: u64,
    longest_nan_run: u64,
    negative: u64,
    zero: u64,
}

impl Collector {
    fn new(capacity: usize, unscale: bool) -> Self {
        Self { capacity, unscale, every: 1, ..Self::default() }
    }

    fn add(&mut self, row: &Row) {
        let Some(mut norm) = row.norm else { return };
        // Before any check: the quotient can be infinite where the norm is not.
        if self.unscale
            && let Some(scale) = row.loss_scale.filter(|s| *s > 0.0 && s.is_finite())
        {
            norm /= scale;
        }
        if !norm.is_finite() {
            let blank = norm.is_nan() && row.loss.is_some_and(f64::is_nan);
            self.blank += u64::from(blank);
            self.blank_run += u64::from(blank);
            self.nan_run += u64::from(norm.is_nan());
            self.not_a_number += u64::from(norm.is_nan());
            self.infinite += u64::from(norm.is_infinite());
            self.first_not_finite = self.first_not_finite.or(row.step);
            return;
        }
        self.longest_nan_run = self.longest_nan_run.max(self.nan_run);
        (self.nan_run, self.blank_run) = (0, 0);
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
        if self.points.len() == self.capacity {
            let mut odd = false;
            self.points.retain(|_| {
                odd = !odd;
                !odd
            });
            self.every *= 2;
        }
    }

    fn finish(self, summary: ReadSummary) -> Result<Log> {
        if self.points.is_empty() {
            let count = self.not_a_number + self.infinite + self.negative;
            let why = format!("all norms are NaN, infinite or negative ({count} found)");
            let format = summary.format;
            return Err(Error::NoNorm { format, why, hint: None });
        }
        let mut findings = summary.findings.clone();
        findings.extend(self.special_values(summary.format));
        let points = in_order(self.points, &mut findings);
        if self.unscale {
            if !points.iter().any(|p| p.loss_scale > 0.0) {
                let why = "the log has no loss scale to divide the norms by";
                return Err(Error::Invalid(why.into()));
            }
            findings.push(Finding::Unscaled);
        }
        // Thinning made gaps of its own.
        let stride = median(points.windows(2).map(|w| w[1].step - w[0].step).collect())
            .map_or(1.0, |s| s / self.every as f64);
        if stride > 1.0 {
            findings.push(Finding::SubSampled { stride });
        }
        findings.extend(clipped_norms::detect(points.iter().map(|p| p.norm)));
        if !self.unscale {
            findings.extend(loss_scale::detect(&points));
        }
        Ok(Log { summary, points, findings })
    }

    /// Values that need a word, and thinning.
    fn special_values(&self, format: Format) -> impl Iterator<Item = Finding> {
        // Tables written by pandas have NaN for empty cells: in most rows, or where the loss is NaN
        // too. If the norms end with more of them than anywhere before, training diverged.
        let diverged = self.nan_run >= ENDED && self.nan_run > 2 * self.longest_nan_run;
        let table = format == Format::Csv;
        let sparse = table && self.infinite == 0 && self.not_a_number >= self.seen && !diverged;
        let blank = match (table && !sparse, diverged) {
            (false, _) => 0,
            (true, false) => self.blank,
            (true, true) => self.blank - self.blank_run,
        };
        let not_finite = if sparse { 0 } else { self.not_a_number + self.infinite - blank };
        let first = self.first_not_finite.filter(|_| blank == 0);
        let reports = [
            (not_finite, Finding::NotFinite { count: not_finite, first }),
            (blank, Finding::Blank { count: blank }),
            (self.negative, Finding::Negative { count: self.negative }),
            (self.zero, Finding::Zero { count: self.zero }),
            (self.every - 1, Finding::Thinned { every: self.every }),
        ];
        reports.into_iter().filter(|(count, _)| *count > 0).map(|(_, finding)| finding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_finite(log: &Log) -> u64 {
        let count = |f: &Finding| match f {
            Finding::NotFinite { count, .. } => Some(*count),
            _ => None,
        };
        log.findings.iter().find_map(count).unwrap_or(0)
    }

    #[test]
    fn empty_cells_are_told_from_steps_that_broke() {
        let read = |rows: &str| {
            let text = format!("step,loss,grad_norm,eval\n{rows}");
            load(text.as_bytes(), &ReadOptions::default()).unwrap()
        };
        let rows = "1,2.5,1.5,NaN\n2,2.5,1.5,NaN\n3,NaN,NaN,0.5\n4,2.5,1.6,NaN\n5,NaN,NaN,0.5\n";
        let log = read(rows);
        assert_eq!((log.points.len(), not_finite(&log)), (3, 0));
        assert!(log.findings.contains(&Finding::Blank { count: 2 }), "{:?}", log.findings);
        // Its loss is there, so its norm is NaN.
        let more: String = (6..12).map(|i| format!("{i},2.5,1.5,NaN\n")).collect();
        assert_eq!(not_finite(&read(&format!("{rows}{more}12,2.5,NaN,NaN\n"))), 1);
        // It went on without either to the end, however long that was.
        for steps in [5, 50] {
            let broken: String = (0..steps).map(|i| format!("{},NaN,NaN,NaN\n", 12 + i)).collect();
            assert_eq!(not_finite(&read(&format!("{rows}{more}{broken}"))), steps);
        }
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
