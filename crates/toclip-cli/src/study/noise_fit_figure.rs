//! Fitted noise: the histogram of the residuals with the densities, and the comparison as JSON.

use serde_json::{Value, json};
use toclip::noise::Family;
use toclip_data::noise_fit::{NoiseComparison, NoiseFit, NoiseModel};

use crate::plot::{Axis, Chart, Series};
use toclip_words::short;

/// Points of a density.
const POINTS: usize = 400;
/// The bins reach this many interquartile ranges from the median, at most.
const REACH: f64 = 6.0;

/// Residuals counted in bins of equal width.
struct Histogram {
    edges: Vec<f64>,
    /// Share of all residuals for each unit of the axis.
    heights: Vec<f64>,
    /// Residuals beyond the bins.
    outside: usize,
}

/// The density, and its logarithm to see the tails. A mixture of as many components as were requested
/// is not called advised.
pub fn charts(
    residuals: &[f64],
    comparison: &NoiseComparison,
    requested: Option<usize>,
) -> [Chart; 2] {
    let histogram = Histogram::new(residuals);
    let top = 2.0 * histogram.heights.iter().copied().fold(0.0, f64::max);
    let shown: Vec<&NoiseFit> = shown(comparison);
    let (low, high) = histogram.ends();
    let curves: Vec<(Vec<f64>, Vec<f64>)> = shown.iter().map(|fit| curve(fit, low, high)).collect();
    // A distribution that shrank onto a few residuals would flatten the rest.
    let spike = curves.iter().flat_map(|c| &c.1).any(|&y| y > top);
    let top = if spike { top } else { f64::NAN };
    let linear = Axis::linear("density").range(0.0, top);
    // Below a third of one residual in a bin there is nothing to compare with.
    let one = 1.0 / (residuals.len() as f64 * (histogram.edges[1] - histogram.edges[0]));
    let log = Axis::log("density").range(one / 3.0, top);
    let chart = |title: &str, subtitle: &str, y: Axis| {
        let series = Series::histogram("residuals", &histogram.edges, &histogram.heights);
        let mut chart = Chart::new(title)
            .subtitle(subtitle)
            .x(Axis::linear("residual").range(low, high))
            .y(y)
            .series(series.slot(6));
        for (fit, (x, y)) in shown.iter().zip(&curves) {
            chart = chart.series(
                Series::line(&label(fit, comparison, requested), x, y).slot(slot(fit.model)),
            );
        }
        chart
    };
    let mut count = format!("{} residuals", residuals.len());
    if histogram.outside > 0 {
        let [from, to] = histogram.reach().map(short);
        count += &format!(", {} of them outside {from} to {to}", histogram.outside);
    }
    [chart("Noise", &count, linear), chart("Its tails", "logarithmic", log)]
}

/// The best fit first, which makes its line the solid one. Distributions that would lie on another
/// are left out: a mean near zero, a Student-t that is Gaussian.
fn shown(comparison: &NoiseComparison) -> Vec<&NoiseFit> {
    let best = comparison.best();
    let others = comparison.fits.iter().filter(|fit| {
        let same = match fit.model {
            NoiseModel::GaussianWithMean => comparison.mean.abs() < 0.05 * comparison.std,
            NoiseModel::StudentT => fit.tails_are_gaussian,
            NoiseModel::Empirical => true,
            _ => false,
        };
        fit.model != best.model && !same
    });
    std::iter::once(best).chain(others).collect()
}

fn label(fit: &NoiseFit, comparison: &NoiseComparison, requested: Option<usize>) -> String {
    let numbers = match &fit.family {
        Family::GaussianMixture(mixture) if fit.model == NoiseModel::GaussianMixture => {
            format!("Gaussian mixture of {}", mixture.components().len())
        }
        _ => fit.describe(),
    };
    match requested.filter(|_| fit.model == NoiseModel::GaussianMixture) {
        _ if fit.model != comparison.best().model => numbers,
        Some(k) => format!("{numbers}, {k} components requested"),
        None => format!("{numbers}, advised"),
    }
}

/// The same distribution has the same colour in every plot.
fn slot(kind: NoiseModel) -> usize {
    match kind {
        NoiseModel::GaussianMixture => 1,
        NoiseModel::StudentT => 2,
        NoiseModel::Laplace => 3,
        NoiseModel::Gaussian => 4,
        _ => 5,
    }
}

/// A density over the bins, with points of its own where a component is narrow.
fn curve(fit: &NoiseFit, low: f64, high: f64) -> (Vec<f64>, Vec<f64>) {
    let mut x: Vec<f64> =
        (0..=POINTS).map(|i| low + (high - low) * i as f64 / POINTS as f64).collect();
    // The Laplace density has its kink at zero.
    x.push(0.0);
    if let Family::GaussianMixture(mixture) = &fit.family {
        for c in mixture.components() {
            x.extend((-16..=16).map(|i| c.mean + 0.25 * f64::from(i) * c.std));
        }
    }
    x.retain(|x| (low..=high).contains(x));
    x.sort_by(f64::total_cmp);
    let y = x.iter().map(|&x| fit.density(x)).collect();
    (x, y)
}

impl Histogram {
    /// Bins of Freedman and Diaconis (1981), 10 to 200 of them.
    fn new(residuals: &[f64]) -> Self {
        let mut sorted = residuals.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let at = |share: f64| sorted[((n - 1) as f64 * share) as usize];
        let quartiles = at(0.75) - at(0.25);
        let (mut low, mut high) = (sorted[0], sorted[n - 1]);
        if quartiles > 0.0 {
            low = low.max(at(0.5) - REACH * quartiles);
            high = high.min(at(0.5) + REACH * quartiles);
        }
        let width = 2.0 * quartiles / (n as f64).cbrt();
        let bins = ((high - low) / width).ceil().clamp(10.0, 200.0) as usize;
        let width = (high - low) / bins as f64;
        let mut counts = vec![0.0; bins];
        let mut outside = 0;
        for e in sorted {
            if (low..=high).contains(&e) {
                counts[(((e - low) / width) as usize).min(bins - 1)] += 1.0;
            } else {
                outside += 1;
            }
        }
        let heights = counts.iter().map(|count| count / (n as f64 * width)).collect();
        let edges = (0..=bins).map(|i| low + width * i as f64).collect();
        Histogram { edges, heights, outside }
    }

    fn reach(&self) -> [f64; 2] {
        [self.edges[0], self.edges[self.edges.len() - 1]]
    }

    /// The axis: the bins and a little more.
    fn ends(&self) -> (f64, f64) {
        let [low, high] = self.reach();
        let more = 0.08 * (high - low);
        (low - more, high + more)
    }
}

/// The comparison for scripts. The residuals themselves are not repeated.
pub fn json(comparison: &NoiseComparison) -> Value {
    let fit = |fit: &NoiseFit| {
        let noise = (fit.model != NoiseModel::Empirical).then_some(&fit.family);
        json!({
            "kind": fit.model.name(),
            "noise": noise,
            "parameters": fit.parameters,
            "log_likelihood": fit.log_likelihood,
            "held_out": fit.held_out,
            "behind": fit.behind.mean,
            "behind_standard_error": fit.behind.standard_error,
            "bic": fit.bic,
            "note": fit.note,
        })
    };
    json!({
        "count": comparison.count,
        "mean": comparison.mean,
        "std": comparison.std,
        "best": comparison.best().model.name(),
        "fits": comparison.fits.iter().map(fit).collect::<Vec<_>>(),
        "notes": comparison.notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip_data::noise_fit::{NoiseFitOptions, fit_all};

    #[test]
    fn a_histogram_has_area_one_less_what_is_outside() {
        let mut values: Vec<f64> = (0..999).map(|i| (f64::from(i) * 0.618).fract()).collect();
        values.push(1e6);
        let histogram = Histogram::new(&values);
        let area: f64 = (0..histogram.heights.len())
            .map(|i| histogram.heights[i] * (histogram.edges[i + 1] - histogram.edges[i]))
            .sum();
        assert_eq!(histogram.outside, 1);
        assert!((area - 0.999).abs() < 1e-12, "{area}");
        // Ties that leave no distance between quartiles.
        let tied: Vec<f64> = (0..100).map(|i| if i == 3 { 2.0 } else { 0.0 }).collect();
        assert_eq!(Histogram::new(&tied).heights.len(), 200);
    }

    #[test]
    fn the_advised_law_leads_and_each_law_is_drawn_once() {
        let values: Vec<f64> = (0..400)
            .map(|i| (f64::from(i) * 0.618_034).fract() + if i % 2 == 0 { 4.0 } else { -5.0 })
            .collect();
        let comparison = fit_all(&values, &NoiseFitOptions::default()).unwrap();
        let [whole, tails] = charts(&values, &comparison, None);
        assert!(whole.series[1].label.ends_with("advised"), "{}", whole.series[1].label);
        assert_eq!(whole.series.len(), tails.series.len());
        let colours: std::collections::BTreeSet<_> = whole.series.iter().map(|s| s.slot).collect();
        assert_eq!(colours.len(), whole.series.len());
    }
}
