//! What one step of training left in a log.

/// One row: what the log says about one step. Anything may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// The step, iteration or update.
    pub step: Option<f64>,
    /// The norm of the gradient, $\Vert g \Vert$; may be NaN or infinite where training broke.
    pub norm: Option<f64>,
    /// The training loss.
    pub loss: Option<f64>,
    /// The learning rate.
    pub learning_rate: Option<f64>,
    /// The factor by which mixed-precision training multiplied the loss.
    pub loss_scale: Option<f64>,
    /// The epoch.
    pub epoch: Option<f64>,
    /// The threshold in force, where the log says it.
    pub clip: Option<f64>,
    /// The global batch size, where the log says it.
    pub batch_size: Option<f64>,
}

impl Row {
    /// Fills what is missing here with what `other` has; false if both have the same field, and
    /// then nothing is changed.
    pub(crate) fn merge(&mut self, other: &Row) -> bool {
        let mine = self.fields();
        let theirs = other.fields();
        // The step is what they are merged by; settings repeat in every row of a step.
        let clash = |i: usize| mine[i].is_some() && theirs[i].is_some();
        if (1..5).any(clash) {
            return false;
        }
        for (mine, theirs) in self.fields_mut().into_iter().zip(theirs) {
            *mine = mine.or(theirs);
        }
        true
    }

    fn fields(&self) -> [Option<f64>; 8] {
        let mut copy = *self;
        copy.fields_mut().map(|field| *field)
    }

    pub(crate) fn fields_mut(&mut self) -> [&mut Option<f64>; 8] {
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

/// A number as logs write it: what Rust reads, with blanks around it.
pub(crate) fn number(text: &[u8]) -> Option<f64> {
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
        assert!(row.merge(&Row { step: Some(3.0), loss: Some(0.5), ..Row::default() }));
        assert_eq!((row.norm, row.loss), (Some(1.0), Some(0.5)));
        let before = row;
        assert!(!row.merge(&Row { step: Some(3.0), norm: Some(2.0), ..Row::default() }));
        assert_eq!(row, before);
    }

    #[test]
    fn numbers_as_logs_write_them() {
        assert_eq!(number(b" 1.6E-08 "), Some(1.6e-8));
        assert_eq!(number(b"-inf"), Some(f64::NEG_INFINITY));
        assert!(number(b"NaN").unwrap().is_nan());
        for none in [&b""[..], b"None", b"null", b"1,5", b"0x10", b"\xff", b"12h"] {
            assert_eq!(number(none), None, "{none:?}");
        }
    }
}
