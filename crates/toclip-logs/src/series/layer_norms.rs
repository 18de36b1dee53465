//! Gradient norms of single layers, in bounded memory.

use crate::LogRow;

/// Rows kept. In a longer log every second row is dropped, as often as needed.
const ROWS: usize = 4096;

/// The gradient norms of the layers of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerNorms {
    /// The layers.
    pub names: Vec<String>,
    /// For each kept row, its step and the norm of every layer; NaN where it is missing.
    pub rows: Vec<(f64, Vec<f64>)>,
}

/// Collects the layers of rows.
#[derive(Default)]
pub(super) struct LayerCollector {
    rows: Vec<(f64, Vec<f64>)>,
    /// One row of this many is kept.
    every: u64,
    seen: u64,
}

impl LayerCollector {
    /// Takes the layers of a row. The number of layers may still grow.
    pub fn add(&mut self, row: &LogRow) {
        if row.layers.is_empty() {
            return;
        }
        self.every = self.every.max(1);
        self.seen += 1;
        if !self.seen.is_multiple_of(self.every) {
            return;
        }
        let count = row.layers.iter().map(|(layer, _)| *layer as usize + 1).max().unwrap_or(0);
        let mut norms = vec![f64::NAN; count];
        row.layers.iter().for_each(|(layer, norm)| norms[*layer as usize] = *norm);
        self.rows.push((row.step.unwrap_or(self.seen as f64), norms));
        if self.rows.len() == ROWS {
            let mut odd = false;
            self.rows.retain(|_| {
                odd = !odd;
                !odd
            });
            self.every *= 2;
        }
    }

    /// All rows with all layers.
    pub fn finish(mut self, names: Vec<String>) -> LayerNorms {
        for (_, norms) in &mut self.rows {
            norms.resize(names.len(), f64::NAN);
        }
        LayerNorms { names, rows: self.rows }
    }
}
