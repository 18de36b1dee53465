//! Damage to a log file, counted while it is read.

use crate::Finding;

/// How many of something there were, and where the first one was.
#[derive(Default)]
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

/// What is wrong with a log as a file.
#[derive(Default)]
pub(super) struct Damage {
    /// JSON objects that follow another on the same line.
    pub concatenated: u64,
    /// Records with a wrong checksum.
    pub checksums: Faults,
    /// A wrong length made it impossible to read on.
    pub stopped: bool,
    /// Rows or cells that could not be read.
    pub unreadable: Faults,
    /// Some numbers have a decimal comma.
    pub decimal_comma: bool,
    /// The last row is incomplete.
    pub truncated: bool,
}

impl Damage {
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.concatenated > 0 {
            findings.push(Finding::Concatenated { count: self.concatenated });
        }
        if self.checksums.count > 0 {
            let Faults { count, first } = self.checksums;
            findings.push(Finding::WrongChecksum { count, first, stopped: self.stopped });
        }
        if self.unreadable.count > 0 {
            let Faults { count, first } = self.unreadable;
            findings.push(Finding::Unreadable { count, first });
        }
        if self.decimal_comma {
            findings.push(Finding::DecimalComma);
        }
        if self.truncated {
            findings.push(Finding::Truncated);
        }
        findings
    }
}
