//! Gaussian mixtures by maximum likelihood.

use super::cells::{Cell, cells};
use super::em::{climb, ln_density};
use super::sample::Sample;
use super::starts::starts;
use super::{Components, Law};
use toclip::noise::{Component, Family, Mixture};

/// Starts climb this far before the best of them goes on.
const TRIAL: usize = 50;
/// Steps on cells, at most.
const ROUGH: usize = 1000;
/// Steps on finer cells, at most.
const FINE: usize = 200;
/// Rough cells: none wider than this in units of the spread, and at least so many of them.
const ROUGH_CELLS: (f64, usize) = (0.02, 1024);
/// Widest fine cell in units of the narrowest component. A variance then is too small by less than
/// one part in 10⁵, a hundredth of its standard error with a million residuals.
const FINE_CELL: f64 = 0.01;

/// $\sum_j w_j N(m_j, s_j^2)$, sorted by mean.
#[derive(Debug)]
pub(super) struct Fitted {
    /// In units of the spread, from the median.
    components: Vec<Component>,
    median: f64,
    spread: f64,
}

/// The largest likelihood EM finds, with the number of components given or of least BIC.
///
/// Six starts climb on the residuals merged into a few thousand cells; the best of them then climbs
/// to the end on cells that are narrow against every component, so the cost hardly grows with the
/// number of residuals. No standard deviation may fall below a thousandth of the spread (or
/// spread/$n$ for few residuals), where the likelihood would have no bound.
pub(super) fn fit(sample: &Sample, components: Components) -> Fitted {
    let standard = |x: &f64| (x - sample.median) / sample.spread;
    let values: Vec<f64> = sample.values.iter().map(standard).collect();
    let floor = sample.floor / sample.spread;
    let (width, count) = ROUGH_CELLS;
    let rough = cells(&values, width, values.len().div_ceil(count));
    let mut found = match components {
        Components::Exactly(k) => with(k, &rough, &values, floor).1,
        Components::UpTo(most) => by_bic(most, values.len(), |k| with(k, &rough, &values, floor)),
    };
    found.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    Fitted { components: found, median: sample.median, spread: sample.spread }
}

/// Tries 1, 2, … components until BIC has risen twice in a row.
fn by_bic(most: usize, n: usize, fit: impl Fn(usize) -> (f64, Vec<Component>)) -> Vec<Component> {
    let (mut least, mut best, mut worse) = (f64::INFINITY, Vec::new(), 0);
    for k in 1..=most {
        let (log_likelihood, components) = fit(k);
        let bic = (3 * k - 1) as f64 * (n as f64).ln() - 2.0 * log_likelihood;
        if bic < least {
            (least, best, worse) = (bic, components, 0);
        } else {
            worse += 1;
            if worse == 2 {
                break;
            }
        }
    }
    best
}

fn with(k: usize, rough: &[Cell], values: &[f64], floor: f64) -> (f64, Vec<Component>) {
    let trials = starts(rough, k, floor).into_iter().map(|start| climb(start, rough, floor, TRIAL));
    let best = trials.max_by(|a, b| a.0.total_cmp(&b.0)).map(|trial| trial.1).unwrap_or_default();
    let (_, best) = climb(best, rough, floor, ROUGH);
    let narrowest = best.iter().map(|c| c.std).fold(f64::INFINITY, f64::min);
    let fine = cells(values, FINE_CELL * narrowest, values.len());
    let (log_likelihood, mut best) = climb(best, &fine, floor, FINE);
    best.retain(|c| c.weight > 0.0);
    (log_likelihood, best)
}

impl Law for Fitted {
    fn ln_density(&self, x: f64) -> f64 {
        ln_density(&self.components, (x - self.median) / self.spread) - self.spread.ln()
    }

    fn family(&self, _: &[f64]) -> toclip::Result<Family> {
        let back = |c: &Component| Component {
            weight: c.weight,
            mean: self.median + self.spread * c.mean,
            std: self.spread * c.std,
        };
        Mixture::new(&self.components.iter().map(back).collect::<Vec<_>>()).map(Family::from)
    }

    fn parameters(&self) -> usize {
        3 * self.components.len() - 1
    }
}
