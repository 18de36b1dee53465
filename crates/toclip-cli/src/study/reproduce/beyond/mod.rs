//! Beyond the paper: the rules that people use, by the same theory.
//!
//! A figure is a file beside this one: its experiment, charts, curves and claims. To add one, write
//! such a file and list it in [`FIGURES`] with the function that computes its numbers.

mod classification;
mod facts;
mod figure_file;
mod groups;
mod momentum;
mod paths;
mod privacy;
mod rules;
mod skip;
mod threshold_curves;
mod tuned;

use super::agreement::{Agreement, ERRORS, add_path};
use super::paper_experiment::last;
use super::{FigureEntry, FigureSection, RunSizes, check};
use figure_file::FigureFile;
use toclip_words::significant;

macro_rules! file {
    ($name:literal) => {
        FigureFile::read($name, include_str!(concat!($name, ".toml")))
    };
}

/// In the order of the report.
pub const FIGURES: [FigureEntry; 8] = [
    ("beyond-rules", |i| rules::criteria(&file!("beyond-rules")?, &i.sizes)),
    ("beyond-skip", |i| skip::skip_or_clip(&file!("beyond-skip")?, &i.sizes)),
    ("beyond-paths", |i| paths::figure(&file!("beyond-paths")?, &i.sizes)),
    ("beyond-by-value", |i| threshold_curves::figure(&file!("beyond-by-value")?, &i.sizes)),
    ("beyond-groups", |i| groups::global_or_per_group(&file!("beyond-groups")?, &i.sizes)),
    ("beyond-momentum", |i| momentum::what_it_changes(&file!("beyond-momentum")?, &i.sizes)),
    ("beyond-privacy", |i| privacy::what_it_costs(&file!("beyond-privacy")?, &i.sizes)),
    ("beyond-classification", |i| {
        classification::clip_or_not(&file!("beyond-classification")?, &i.sizes)
    }),
];

/// A number as a claim has it.
fn digits(x: f64) -> String {
    significant(x, 3)
}
