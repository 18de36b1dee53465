//! Joins the records of one step into a row.

use super::layer_names;
use crate::LogRow;

/// How the norms of layers in a row are used.
#[derive(Clone, Copy)]
pub(super) struct LayerUse {
    /// The norm is their total, because the log has no other.
    pub combine: bool,
    /// They are passed on: there are not too many.
    pub keep: bool,
}

/// Rows are passed on once no other record can belong to their step.
#[derive(Default)]
pub(super) struct RowJoiner<'a> {
    pending: Option<LogRow>,
    /// The most layers in one row.
    most_layers: usize,
    /// A record without a step belongs to the step before it, as where each value has its own line.
    pub joins: bool,
    visit: Option<&'a mut dyn FnMut(&LogRow)>,
}

impl<'a> RowJoiner<'a> {
    pub fn new(visit: &'a mut dyn FnMut(&LogRow)) -> Self {
        Self { visit: Some(visit), ..Self::default() }
    }

    pub fn add(&mut self, mut row: LogRow, layers: LayerUse) {
        if let Some(pending) = &mut self.pending {
            let same = match row.step {
                Some(step) => pending.step == Some(step),
                None => self.joins && pending.step.is_some(),
            };
            if same && pending.merge(&mut row) {
                return;
            }
        }
        self.flush(layers);
        self.pending = Some(row);
    }

    /// Passes on the last row; returns the most layers in one row.
    pub fn finish(&mut self, layers: LayerUse) -> usize {
        // The log may end before all layers of its last step.
        let cut = |row: &LogRow| row.layers.len() < self.most_layers && !row.layers.is_empty();
        if layers.combine && self.pending.as_ref().is_some_and(cut) {
            self.pending = None;
        }
        self.flush(layers);
        self.most_layers
    }

    fn flush(&mut self, layers: LayerUse) {
        let Some(mut row) = self.pending.take() else { return };
        if !row.layers.is_empty() {
            self.most_layers = self.most_layers.max(row.layers.len());
            if layers.combine {
                row.norm = layer_names::total(&row.layers);
            }
            if !layers.keep {
                row.layers.clear();
            }
        }
        // A step without numbers may be one at which they were NaN.
        if let Some(visit) = &mut self.visit
            && (row.norm.is_some() || row.loss.is_some() || row.step.is_some())
        {
            visit(&row);
        }
    }
}
