//! The cells of a trial, by problem and rule.

use anyhow::{Context, Result};
use serde::Serialize;
use toclip_trial::{Contender, Effort, MeanInterval, Measurement, Problem};

/// The results of a finished trial.
#[derive(Debug, Serialize)]
pub struct Results {
    pub effort: Effort,
    pub confidence: f64,
    pub rows: Vec<Row>,
}

/// A problem with the results of all rules.
#[derive(Debug, Serialize)]
pub struct Row {
    pub problem: String,
    pub group: &'static str,
    pub describe: String,
    pub batch: usize,
    /// In the order of the rules; unclipped is the first.
    pub entries: Vec<Entry>,
}

/// A rule on a problem.
#[derive(Debug, Serialize)]
pub struct Entry {
    #[serde(flatten)]
    pub cell: Measurement,
    /// The geometric mean of the final risk.
    pub risk: MeanInterval,
    /// Its ratio to that of unclipped SGD, run by run.
    pub ratio: MeanInterval,
}

/// Whether a rule differs from unclipped SGD, by the interval of the ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    Better,
    Same,
    Worse,
}

impl Entry {
    /// `Same` if the interval of the ratio contains one.
    pub fn difference(&self) -> Difference {
        if self.ratio.high < 1.0 {
            Difference::Better
        } else if self.ratio.low > 1.0 {
            Difference::Worse
        } else {
            Difference::Same
        }
    }
}

impl Results {
    /// Puts the cells in the order of problems and rules.
    pub fn new(
        problems: &[Problem],
        rules: &[Contender],
        cells: Vec<Measurement>,
        effort: Effort,
        confidence: f64,
    ) -> Result<Self> {
        let find = |problem: &str, rule: Contender| {
            let found = cells.iter().find(|c| c.problem == problem && c.contender == rule);
            found.with_context(|| format!("{} on {problem} is missing", rule.name()))
        };
        let rows = problems.iter().map(|problem| {
            let name = problem.name();
            let base = find(&name, Contender::Unclipped)?;
            let entries = rules.iter().map(|&rule| {
                let cell = find(&name, rule)?.clone();
                let (risk, ratio) = (cell.risk(confidence)?, cell.ratio(base, confidence)?);
                Ok(Entry { cell, risk, ratio })
            });
            Ok(Row {
                entries: entries.collect::<Result<_>>()?,
                problem: name,
                group: problem.group(),
                describe: problem.describe().into(),
                batch: problem.batch(),
            })
        });
        Ok(Results { effort, confidence, rows: rows.collect::<Result<_>>()? })
    }

    /// The rules, in the order of the entries.
    pub fn rules(&self) -> Vec<Contender> {
        self.rows
            .first()
            .map(|r| r.entries.iter().map(|e| e.cell.contender).collect())
            .unwrap_or_default()
    }

    /// The entries of a rule.
    pub fn of(&self, rule: Contender) -> impl Iterator<Item = (&Row, &Entry)> {
        self.rows.iter().flat_map(move |row| {
            row.entries.iter().filter(move |e| e.cell.contender == rule).map(move |e| (row, e))
        })
    }

    /// How often a rule was better, the same and worse than unclipped, and the geometric mean of its
    /// ratios over the problems.
    pub fn score(&self, rule: Contender) -> ([usize; 3], f64) {
        let mut counts = [0; 3];
        let (mut sum, mut n) = (0.0, 0.0);
        for (_, entry) in self.of(rule) {
            counts[entry.difference() as usize] += 1;
            sum += entry.ratio.mean.ln();
            n += 1.0;
        }
        (counts, (sum / f64::max(n, 1.0)).exp())
    }
}
