//! Damage to a log file, counted while it is read.

use crate::Finding;

/// The number of faults, and the place of the first.
#[derive(Clone, Copy, Default)]
pub(super) struct Faults {
    count: u64,
    first: u64,
}

impl Faults {
    pub fn add(&mut self, at: u64) {
        if self.count == 0 {
            self.first = at;
        }
        self.count += 1;
    }

    /// The finding about their number and the first place, if there are any.
    fn finding(self, about: impl Fn(u64, u64) -> Finding) -> Option<Finding> {
        (self.count > 0).then(|| about(self.count, self.first))
    }
}

/// Damage to the files of a log.
#[derive(Default)]
pub(super) struct FileDamage {
    /// JSON objects that follow another on the same line.
    pub concatenated: u64,
    /// Records with a wrong checksum, by byte.
    pub checksums: Faults,
    /// A wrong length made it impossible to read on.
    pub stopped: bool,
    /// Rows or cells that could not be read, by line.
    pub unreadable: Faults,
    /// Records of an event file that could not be read, by byte.
    pub unreadable_records: Faults,
    /// Some numbers have a decimal comma.
    pub decimal_comma: bool,
    /// The last row is incomplete.
    pub truncated: bool,
}

impl FileDamage {
    pub fn findings(&self) -> Vec<Finding> {
        let &FileDamage { concatenated, stopped, .. } = self;
        let found = [
            (concatenated > 0).then_some(Finding::Concatenated { count: concatenated }),
            self.checksums.finding(|count, first| Finding::WrongChecksum { count, first, stopped }),
            self.unreadable.finding(|count, first| Finding::Unreadable { count, first }),
            (self.unreadable_records)
                .finding(|count, first| Finding::UnreadableRecords { count, first }),
            self.decimal_comma.then_some(Finding::DecimalComma),
            self.truncated.then_some(Finding::Truncated),
        ];
        found.into_iter().flatten().collect()
    }
}
