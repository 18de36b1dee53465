//! A log in memory: at most a million points, in the order of their steps.

use std::io::Read;

use serde::Serialize;

use crate::order::in_order;
use crate::{Error, Finding, Format, Options, Reading, Result, Row, read, traps};

/// Points kept; a longer log is thinned.
const KEEP: usize = 1 << 20;

/// Fewer rows of NaN at the end of a log are empty cells, of a last validation.
const ENDED: u64 = 3;

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
    /// Rows with NaN for both norm and loss.
    blank: u64,
    /// NaN norms in a row: since the last number, of them blank, and most between two numbers.
    last: u64,
    last_blank: u64,
    longest: u64,
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
            blank: 0,
            last: 0,
            last_blank: 0,
            longest: 0,
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
            let blank = norm.is_nan() && row.loss.is_some_and(f64::is_nan);
            self.blank += u64::from(blank);
            self.last_blank += u64::from(blank);
            self.last += u64::from(norm.is_nan());
            self.not_a_number += u64::from(norm.is_nan());
            self.infinite += u64::from(norm.is_infinite());
            self.first_odd = self.first_odd.or(row.step);
            return;
        }
        self.longest = self.longest.max(self.last);
        (self.last, self.last_blank) = (0, 0);
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
        // Tables written by pandas have NaN where a cell is empty: mostly, or where the loss is NaN too.
        // Where norms end with more of them than stood anywhere before, training broke.
        let broke = self.last >= ENDED && self.last > 2 * self.longest;
        let cells = reading.format == Format::Csv && self.infinite == 0;
        let empty_cells = cells && self.not_a_number >= self.seen && !broke;
        let blank = match reading.format == Format::Csv {
            true => self.blank - if broke { self.last_blank } else { 0 },
            false => 0,
        };
        let not_finite = match empty_cells {
            true => 0,
            false => self.not_a_number + self.infinite - blank,
        };
        if not_finite > 0 {
            let first = self.first_odd.filter(|_| blank == 0);
            findings.push(Finding::NotFinite { count: not_finite, first });
        }
        if blank > 0 && !empty_cells {
            findings.push(Finding::Blank { count: blank });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_cells_are_told_from_steps_that_broke() {
        let read = |rows: &str| {
            let text = format!("step,loss,grad_norm,eval\n{rows}");
            load(text.as_bytes(), &Options::default()).unwrap()
        };
        let rows = "1,2.5,1.5,NaN\n2,2.5,1.5,NaN\n3,NaN,NaN,0.5\n4,2.5,1.6,NaN\n5,NaN,NaN,0.5\n";
        let log = read(rows);
        assert_eq!((log.points.len(), log.not_finite), (3, 0));
        assert!(log.findings.contains(&Finding::Blank { count: 2 }), "{:?}", log.findings);
        // Its loss is there, so its norm is NaN.
        let more: String = (6..12).map(|i| format!("{i},2.5,1.5,NaN\n")).collect();
        assert_eq!(read(&format!("{rows}{more}12,2.5,NaN,NaN\n")).not_finite, 1);
        // It went on without either to the end, however long that was.
        for steps in [5, 50] {
            let broken: String = (0..steps).map(|i| format!("{},NaN,NaN,NaN\n", 12 + i)).collect();
            assert_eq!(read(&format!("{rows}{more}{broken}")).not_finite, steps);
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
