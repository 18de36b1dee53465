//! One row of a log.

/// One row: the values logged for one step. Any of them may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The step, iteration or update.
    pub step: Option<f64>,
    /// The norm of the gradient, $\Vert g \Vert$; may be NaN or infinite.
    pub norm: Option<f64>,
    /// The training loss.
    pub loss: Option<f64>,
    /// The learning rate.
    pub learning_rate: Option<f64>,
    /// The factor by which mixed-precision training multiplied the loss.
    pub loss_scale: Option<f64>,
    /// The epoch.
    pub epoch: Option<f64>,
    /// The threshold in force, if the log has it.
    pub clip: Option<f64>,
    /// The global batch size, if the log has it.
    pub batch_size: Option<f64>,
    /// Gradient norms of single layers: the place of the layer in
    /// [`ReadSummary::layers`](crate::ReadSummary::layers), and its norm, in any order. Empty for a
    /// model with more than 512 layers.
    pub layers: Vec<(u32, f64)>,
}

impl Row {
    /// A row of values in the order of [`super::role::ROLES`].
    #[inline]
    pub(super) fn new(values: [Option<f64>; 8], layers: Vec<(u32, f64)>) -> Self {
        let [step, norm, loss, learning_rate, loss_scale, epoch, clip, batch_size] = values;
        Row { step, norm, loss, learning_rate, loss_scale, epoch, clip, batch_size, layers }
    }

    /// Fills missing values with those of `other`; false, and no change, if both have one.
    pub(super) fn merge(&mut self, other: &mut Row) -> bool {
        let has = |layer: u32| self.layers.iter().any(|(mine, _)| *mine == layer);
        if other.layers.iter().any(|(layer, _)| has(*layer)) {
            return false;
        }
        let mut layers = std::mem::take(&mut other.layers);
        let theirs = other.values_mut();
        let mine = self.values_mut();
        // Rows are merged by their step; epochs and settings repeat in every row of a step.
        if (1..5).any(|i| mine[i].is_some() && theirs[i].is_some()) {
            return false;
        }
        mine.into_iter().zip(theirs).for_each(|(mine, theirs)| *mine = mine.or(*theirs));
        self.layers.append(&mut layers);
        true
    }

    /// The values in the order of [`super::role::ROLES`].
    fn values_mut(&mut self) -> [&mut Option<f64>; 8] {
        [
            &mut self.step,
            &mut self.norm,
            &mut self.loss,
            &mut self.learning_rate,
            &mut self.loss_scale,
            &mut self.epoch,
            &mut self.clip,
            &mut self.batch_size,
        ]
    }
}

/// Parses a number as logs write it, with spaces around it allowed.
pub(super) fn parse_number(text: &[u8]) -> Option<f64> {
    let text = text.trim_ascii();
    match text.first()? {
        b'0'..=b'9' | b'-' | b'+' | b'.' | b'n' | b'N' | b'i' | b'I' => {
            std::str::from_utf8(text).ok()?.parse().ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_step_are_one() {
        let mut row = Row { step: Some(3.0), norm: Some(1.0), ..Row::default() };
        assert!(row.merge(&mut Row { step: Some(3.0), loss: Some(0.5), ..Row::default() }));
        assert_eq!((row.norm, row.loss), (Some(1.0), Some(0.5)));
        let before = row.clone();
        assert!(!row.merge(&mut Row { step: Some(3.0), norm: Some(2.0), ..Row::default() }));
        assert_eq!(row, before);
    }

    #[test]
    fn numbers_as_logs_write_them() {
        assert_eq!(parse_number(b" 1.6E-08 "), Some(1.6e-8));
        assert_eq!(parse_number(b"-inf"), Some(f64::NEG_INFINITY));
        assert!(parse_number(b"NaN").unwrap().is_nan());
        for none in [&b""[..], b"None", b"null", b"1,5", b"0x10", b"\xff", b"12h"] {
            assert_eq!(parse_number(none), None, "{none:?}");
        }
    }
}
