//! Beyond the paper: the rules that people use, by the same theory.

mod by_value;
mod classification;
mod groups;
mod momentum;
mod privacy;
mod risk_under_rules;
mod rules;
mod skip;
mod tuned_rate;

use std::sync::Arc;

use anyhow::Result;
use toclip::ensemble::Ensemble;
use toclip::noise::{Component, Mixture, Noise};
use toclip::spectrum::{Block, Spectrum};

use super::agreement::{Agreement, ERRORS, add_path};
use super::paper_experiment::last;
use super::{FigureEntry, FigureSection, RunSizes, check};
use toclip_words::significant;

/// In the order of the report.
pub const FIGURES: [FigureEntry; 8] = [
    ("beyond-rules", |i| rules::criteria(&i.sizes)),
    ("beyond-skip", |i| skip::skip_or_clip(&i.sizes)),
    ("beyond-paths", |i| risk_under_rules::theory_and_simulation(&i.sizes)),
    ("beyond-by-value", |i| by_value::by_value_or_norm(&i.sizes)),
    ("beyond-groups", |i| groups::global_or_per_group(&i.sizes)),
    ("beyond-momentum", |i| momentum::with_or_without(&i.sizes)),
    ("beyond-privacy", |i| privacy::what_it_costs(&i.sizes)),
    ("beyond-classification", |i| classification::clip_or_not(&i.sizes)),
];

/// Noise with outliers, of variance one: nine in ten have σ = 0.3, the others about 3.
fn outliers() -> toclip::Result<Mixture> {
    let wide = ((1.0 - 0.9 * 0.09) / 0.1_f64).sqrt();
    let component = |weight, std| Component { weight, mean: 0.0, std };
    Mixture::new(&[component(0.9, 0.3), component(0.1, wide)])
}

fn contaminated() -> toclip::Result<Arc<dyn Noise>> {
    Ok(Arc::new(outliers()?))
}

/// Two groups of coordinates on different scales.
const SCALES: [Block; 2] =
    [Block { value: 1.0, multiplicity: 300 }, Block { value: 0.1, multiplicity: 500 }];

fn two_scales() -> Result<Spectrum> {
    Ok(Spectrum::from_blocks(&SCALES)?)
}

/// Where many points are simulated, fewer runs of each.
fn small_ensemble(sizes: &RunSizes) -> Ensemble {
    Ensemble::new(sizes.runs.div_ceil(4), sizes.seed)
}

/// A number as a claim has it.
fn digits(x: f64) -> String {
    significant(x, 3)
}
