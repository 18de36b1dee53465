//! Where skipping beats clipping, and where it fails.

use anyhow::{Context, Result};
use rayon::prelude::*;
use toclip::criteria::best_threshold;
use toclip::noise::{Component, Mixture};
use toclip::{Rule, Step};

use super::figure_file::FigureFile;
use super::threshold_curves;
use super::tuned::log_spaced;
use super::{FigureSection, RunSizes};
use crate::output::Table;
use toclip_words::percent;

/// Shares of samples with larger noise, and how many times as large it is.
const SHARES: [f64; 3] = [0.01, 0.1, 0.3];
const SIZES: (f64, f64) = (1.2, 100.0);
const USUAL: f64 = 0.5;
const RISK: f64 = 0.01;
/// The size of the outliers of the second chart: a fifth of the samples, of variance one.
const OUTLIER: f64 = 2.236_067_977_499_79;

/// The largest CCC of skipping over that of clipping, where a share of the samples has noise that is
/// larger by a factor.
fn gain(share: f64, size: f64) -> Result<f64> {
    let component = |weight, std| Component { weight, mean: 0.0, std };
    let noise = Mixture::new(&[component(1.0 - share, USUAL), component(share, size * USUAL)])?;
    let ccc = |rule| -> Result<f64> {
        Ok(best_threshold(&Step::new(&noise).with_rule(rule)?, RISK)?.ccc)
    };
    Ok(ccc(Rule::Skip)? / ccc(Rule::Clip)?)
}

pub fn skip_or_clip(file: &FigureFile, sizes: &RunSizes) -> Result<FigureSection> {
    let all = threshold_curves::curves(file, sizes)?;
    let mut facts = threshold_curves::facts(&all)?;
    let start = all.first().context("the figure has no curves")?.problem.risk();
    let mut charts = threshold_curves::charts(file, &all).into_iter();
    let gains = charts.next().context("the figure has no charts")?;
    let mut gains = gains.hline(1.0, "");
    let factors = log_spaced(SIZES, sizes.points.min(120));
    let mut table = Table::default().numbers("outlier_size", factors.iter().copied());
    for share in SHARES {
        let gain: Vec<f64> =
            factors.par_iter().map(|&size| gain(share, size)).collect::<Result<_>>()?;
        let name = format!("{} of samples", percent(share));
        // Skipping gains more from this size on.
        let below = gain.iter().rposition(|gain| *gain <= 1.0);
        let crossing = below.and_then(|k| factors.get(k + 1)).copied().unwrap_or(f64::NAN);
        let largest = gain.iter().copied().fold(0.0, f64::max);
        facts.add(&name, [("crossing", crossing), ("largest_gain", largest)]);
        gains = gains.line(&name, &factors, &gain);
        table = table.numbers(format!("gain_at_{share}"), gain);
    }
    let ends = charts.map(|chart| chart.hline(start, "R(0)").vline(OUTLIER, "outliers"));
    let charts = std::iter::once(gains).chain(ends).collect();
    let mut section = threshold_curves::section(file, (charts, &all, &facts), sizes)?;
    for (name, _) in &mut section.tables {
        *name += "-failure";
    }
    Ok(section.table(table))
}
