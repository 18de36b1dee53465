//! Beyond the paper: the rules that people use, by the same theory.

mod paths;
mod rules;

use super::Item;

/// In the order of the report.
pub const ITEMS: [Item; 2] = [
    ("beyond-rules", |i| rules::criteria(&i.effort)),
    ("beyond-paths", |i| paths::theory_and_simulation(&i.effort)),
];
