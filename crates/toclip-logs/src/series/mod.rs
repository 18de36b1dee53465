//! The series of a log in memory: at most half a million points, in the order of their steps.

mod layer_norms;
mod order;

use std::io::Read;

use serde::Serialize;

use crate::findings::median;
use crate::{Error, Finding, Format, LogRow, ReadOptions, ReadSummary, Result, read};
use layer_norms::LayerCollector;
pub use layer_norms::LayerNorms;
use order::in_order;

/// Points kept; a longer log is thinned.
const CAPACITY: usize = 1 << 19;

/// Fewer rows of NaN at the end of a table are empty cells, such as of a last validation.
const ENDED: usize = 3;

/// One step. Values that are missing are NaN, except the loss, which may have been logged as NaN.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LogPoint {
    /// The step.
    pub step: f64,
    /// The norm of the gradient, $\Vert g \Vert$.
    pub norm: f64,
    /// The training loss as it was logged, NaN and infinity included; `None` if it was not logged.
    pub loss: Option<f64>,
    /// The learning rate.
    pub learning_rate: f64,
    /// The loss scale.
    pub loss_scale: f64,
    /// The epoch.
    pub epoch: f64,
}

impl LogPoint {
    fn new(row: &LogRow) -> Self {
        let or_nan = |x: Option<f64>| x.unwrap_or(f64::NAN);
        LogPoint {
            step: or_nan(row.step),
            norm: or_nan(row.norm),
            loss: row.loss,
            learning_rate: or_nan(row.learning_rate),
            loss_scale: or_nan(row.loss_scale),
            epoch: or_nan(row.epoch),
        }
    }

    /// The loss, if it was logged and is finite.
    pub fn finite_loss(&self) -> Option<f64> {
        self.loss.filter(|loss| loss.is_finite())
    }

    /// Whether the loss was logged as NaN or infinite.
    pub(crate) fn loss_broke(&self) -> bool {
        self.loss.is_some_and(|loss| !loss.is_finite())
    }

    /// Whether the loss was logged as NaN.
    fn loss_is_nan(&self) -> bool {
        self.loss.is_some_and(f64::is_nan)
    }
}

/// A log, read and put in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// How it was read.
    pub summary: ReadSummary,
    /// The steps with a finite norm, in order.
    pub points: Vec<LogPoint>,
    /// The steps whose norm or loss is NaN or infinite, in order.
    pub non_finite: Vec<LogPoint>,
    /// The norms of single layers, if the log has them.
    pub layers: LayerNorms,
    /// What a reader of the numbers must know about the log as a file.
    pub findings: Vec<Finding>,
}

impl Log {
    /// The norms in order.
    pub fn norms(&self) -> Vec<f64> {
        self.points.iter().map(|p| p.norm).collect()
    }

    /// The largest norm; zero without norms.
    pub(crate) fn largest_norm(&self) -> f64 {
        self.points.iter().map(|p| p.norm).fold(0.0, f64::max)
    }

    /// The positive learning rates in order.
    pub(crate) fn learning_rates(&self) -> impl DoubleEndedIterator<Item = f64> {
        self.points.iter().map(|p| p.learning_rate).filter(|r| r.is_finite() && *r > 0.0)
    }
}

/// Loads a log: rows in order, restarts resolved.
///
/// ```
/// let log = "{'loss': 1.5, 'grad_norm': '2.5', 'epoch': 0.1}\n{'loss': 1.4, 'grad_norm': 'nan'}\n";
/// let log = toclip_logs::load(log.as_bytes(), &Default::default())?;
/// assert_eq!(log.norms(), [2.5]);
/// assert_eq!(log.non_finite.len(), 1);
/// # Ok::<(), toclip_logs::Error>(())
/// ```
///
/// # Errors
///
/// As [`read()`]; and if no row has a norm.
pub fn load(reader: impl Read, options: &ReadOptions) -> Result<Log> {
    collect(options, |visit| read(reader, options, visit))
}

/// Collects the rows that `read` passes on.
pub(crate) fn collect(
    options: &ReadOptions,
    read: impl FnOnce(&mut dyn FnMut(&LogRow)) -> Result<ReadSummary>,
) -> Result<Log> {
    let mut collector = Collector::new(CAPACITY, options.unscale);
    let summary = read(&mut |row| collector.add(row))?;
    collector.finish(summary)
}

#[derive(Default)]
struct Collector {
    capacity: usize,
    unscale: bool,
    /// Steps as logged, finite or not.
    points: Vec<LogPoint>,
    /// One point of this many is kept.
    every: u64,
    seen: u64,
    negative: u64,
    zero: u64,
    layers: LayerCollector,
    missing: Missing,
}

/// Whether a norm must not be lost when a long log is thinned: a spike, or a norm that is not finite.
fn stands_out(norm: f64, before: f64) -> bool {
    norm > 8.0 * before || !norm.is_finite()
}

/// Rows with a step but neither loss nor norm. Some writers leave out NaN: if the
/// rows have no numbers to the end of the log, the run diverged.
#[derive(Default)]
struct Missing {
    rows: Vec<LogPoint>,
    longest: usize,
}

impl Missing {
    fn add(&mut self, row: &LogRow) {
        // Enough to tell; their number does not matter.
        if self.rows.len() < 10_000 {
            self.rows.push(LogPoint { loss: Some(f64::NAN), ..LogPoint::new(row) });
        }
    }

    fn end_run(&mut self) {
        self.longest = self.longest.max(self.rows.len());
        self.rows.clear();
    }

    /// The rows at the end, if there are more of them than anywhere before.
    fn at_the_end(&mut self) -> Vec<LogPoint> {
        match self.rows.len() >= 2 * ENDED && self.rows.len() > 2 * self.longest {
            true => std::mem::take(&mut self.rows),
            false => Vec::new(),
        }
    }
}

impl Collector {
    fn new(capacity: usize, unscale: bool) -> Self {
        Self { capacity, unscale, every: 1, ..Self::default() }
    }

    fn add(&mut self, row: &LogRow) {
        self.layers.add(row);
        let mut point = LogPoint::new(row);
        // A row without a norm counts only if its loss is not finite.
        if row.norm.is_none() && !point.loss_broke() {
            if row.loss.is_none() && row.step.is_some() && row.layers.is_empty() {
                self.missing.add(row);
            }
            return;
        }
        self.missing.end_run();
        // Before any check: the quotient can be infinite where the norm is not.
        if self.unscale
            && let Some(scale) = row.loss_scale.filter(|s| *s > 0.0 && s.is_finite())
        {
            point.norm /= scale;
        }
        if point.norm < 0.0 {
            self.negative += 1;
            return;
        }
        self.zero += u64::from(point.norm == 0.0);
        self.seen += 1;
        let before = self.points.last().map_or(f64::NAN, |p| p.norm);
        if !self.seen.is_multiple_of(self.every) && !stands_out(point.norm, before) {
            return;
        }
        self.points.push(point);
        if self.points.len() == self.capacity {
            self.thin();
        }
    }

    /// Drops every second point, but keeps those that stand out, unless they are many.
    fn thin(&mut self) {
        let many = {
            let pairs = self.points.windows(2);
            8 * pairs.filter(|w| stands_out(w[1].norm, w[0].norm)).count() > self.points.len()
        };
        let (mut odd, mut before) = (false, f64::NAN);
        self.points.retain(|point| {
            odd = !odd;
            let keep = !odd || !many && stands_out(point.norm, before);
            before = point.norm;
            keep
        });
        self.every *= 2;
    }

    fn finish(mut self, summary: ReadSummary) -> Result<Log> {
        let mut findings = summary.findings.clone();
        self.points.extend(self.missing.at_the_end());
        let found = self.points.len() as u64 + self.negative;
        if summary.format == Format::Csv {
            let blank = remove_empty_cells(&mut self.points);
            findings.extend((blank > 0).then_some(Finding::Blank { count: blank }));
        }
        if self.points.is_empty() {
            let why = format!("all norms are NaN, infinite or negative ({found} found)");
            return Err(Error::NoNorm { format: summary.format, why, hint: None });
        }
        for (count, finding) in [
            (self.negative, Finding::Negative { count: self.negative }),
            (self.zero, Finding::Zero { count: self.zero }),
            (self.every - 1, Finding::Thinned { every: self.every }),
        ] {
            findings.extend((count > 0).then_some(finding));
        }
        let mut points = in_order(self.points, &mut findings);
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
            findings.push(Finding::Subsampled { stride });
        }
        let non_finite = |p: &&LogPoint| !p.norm.is_finite() || p.loss_broke();
        let non_finite = points.iter().filter(non_finite).copied().collect();
        points.retain(|p| p.norm.is_finite());
        let layers = self.layers.finish(summary.layers.clone());
        Ok(Log { summary, points, non_finite, layers, findings })
    }
}

/// Removes the NaN of a table that are empty cells, and returns how many rows had them in place of
/// both numbers.
///
/// Tables written by pandas have NaN for empty cells: in most rows, or where the loss is NaN too. If
/// the norms end with more of them than anywhere before, training diverged.
fn remove_empty_cells(points: &mut Vec<LogPoint>) -> u64 {
    let (mut run, mut longest) = (0, 0);
    for point in points.iter() {
        if point.norm.is_nan() {
            run += 1;
        } else {
            longest = longest.max(run);
            run = 0;
        }
    }
    let ended = run >= ENDED && run > 2 * longest;
    let last = points.len() - if ended { run } else { 0 };
    let nan = points.iter().filter(|p| p.norm.is_nan()).count();
    let infinite = points.iter().any(|p| p.norm.is_infinite());
    let sparse = !ended && !infinite && 2 * nan >= points.len();
    let blank = |p: &LogPoint| p.norm.is_nan() && p.loss_is_nan();
    let removed = points[..last].iter().filter(|p| blank(p)).count() as u64;
    let mut i = 0;
    points.retain(|point| {
        i += 1;
        i > last || !(blank(point) || sparse && point.norm.is_nan())
    });
    // The loss may be logged less often than the norm.
    let without_loss = points.iter().filter(|p| p.loss_is_nan()).count();
    if !ended && 2 * without_loss >= points.len() {
        points.iter_mut().filter(|p| p.loss_broke()).for_each(|p| p.loss = None);
    }
    if sparse { 0 } else { removed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_cells_are_told_from_steps_that_broke() {
        let read = |rows: &str| {
            let text = format!("step,loss,grad_norm,eval\n{rows}");
            load(text.as_bytes(), &ReadOptions::default()).unwrap()
        };
        let rows = "1,2.5,1.5,NaN\n2,2.5,1.5,NaN\n3,NaN,NaN,0.5\n4,2.5,1.6,NaN\n5,NaN,NaN,0.5\n";
        let log = read(rows);
        assert_eq!((log.points.len(), log.non_finite.len()), (3, 0));
        assert!(log.findings.contains(&Finding::Blank { count: 2 }), "{:?}", log.findings);
        // Its loss is there, so its norm is NaN.
        let more: String = (6..12).map(|i| format!("{i},2.5,1.5,NaN\n")).collect();
        assert_eq!(read(&format!("{rows}{more}12,2.5,NaN,NaN\n")).non_finite.len(), 1);
        // It went on without either to the end, however long that was.
        for steps in [5, 50] {
            let broken: String = (0..steps).map(|i| format!("{},NaN,NaN,NaN\n", 12 + i)).collect();
            assert_eq!(read(&format!("{rows}{more}{broken}")).non_finite.len(), steps);
        }
    }

    #[test]
    fn a_missing_loss_is_told_from_one_that_is_not_finite() {
        let text = "{'grad_norm': 1.0, 'loss': 2.5}\n{'grad_norm': 1.0}\n\
                    {'grad_norm': 1.0, 'loss': nan}\n{'grad_norm': 1.0, 'loss': -inf}\n";
        let log = load(text.as_bytes(), &ReadOptions::default()).unwrap();
        let losses: Vec<Option<f64>> = log.points.iter().map(|p| p.loss).collect();
        assert_eq!(losses[..2], [Some(2.5), None]);
        assert!(losses[2].is_some_and(f64::is_nan) && losses[3] == Some(f64::NEG_INFINITY));
        assert_eq!(log.non_finite.iter().map(|p| p.step).collect::<Vec<_>>(), [2.0, 3.0]);
    }

    #[test]
    fn a_long_log_is_thinned_evenly() {
        let mut collector = Collector::new(64, false);
        for i in 1..=1000 {
            let row = LogRow { step: Some(f64::from(i)), norm: Some(1.0), ..LogRow::default() };
            collector.add(&row);
        }
        assert!(collector.points.len() < 64 && collector.points.len() > 16);
        let every = collector.every as f64;
        assert!(collector.points.windows(2).all(|w| w[1].step - w[0].step == every));
    }
}
