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
        let Faults { count, first } = self.checksums;
        let checksums = Finding::WrongChecksum { count, first, stopped };
        let Faults { count, first } = self.unreadable;
        let unreadable = Finding::Unreadable { count, first };
        let Faults { count, first } = self.unreadable_records;
        let records = Finding::UnreadableRecords { count, first };
        let all = [
            (concatenated > 0, Finding::Concatenated { count: concatenated }),
            (self.checksums.count > 0, checksums),
            (self.unreadable.count > 0, unreadable),
            (self.unreadable_records.count > 0, records),
            (self.decimal_comma, Finding::DecimalComma),
            (self.truncated, Finding::Truncated),
        ];
        all.into_iter().filter(|(seen, _)| *seen).map(|(_, finding)| finding).collect()
    }
}
