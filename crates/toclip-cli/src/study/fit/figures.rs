//! The pictures of a fit.

use toclip::Factors;

use crate::plot::{Axis, Chart, Figure, Series, SeriesKind};
use toclip_words::short;

use super::{Fit, FittedData, RiskPrediction};
use crate::study::noise_fit_figure;

/// The band of the runs and the predictions, as the paper draws figures 1c and 1d.
pub fn risk(fit: &Fit) -> Chart {
    let band = &fit.band;
    let ends = [band.risk.quantiles.first(), band.risk.quantiles.last()];
    let mut chart = Chart::new("Risk: predicted and measured")
        .subtitle(&one_pass(&fit.data))
        .x(Axis::log("time t = k/d"))
        .y(Axis::log("risk R(t)"));
    if let [Some(low), Some(high)] = ends {
        let series = Series::band("C-SGD, 80% band and mean", &band.times, low, high);
        chart = chart.series(series.middle(&band.risk.mean).slot(0));
    }
    for (slot, curve) in drawn(fit) {
        let series = if curve.key == "one_pass" { Series::line } else { Series::dashed };
        chart = chart.series(series(&curve.label, &curve.times, &curve.risk).slot(slot));
    }
    chart
}

/// The predictions with their colours, without "with_replacement", which is in the table only: four curves
/// on top of each other cannot be told apart.
fn drawn(fit: &Fit) -> impl Iterator<Item = (usize, &RiskPrediction)> {
    (1..).zip(&fit.curves).filter(|(_, curve)| curve.key != "with_replacement")
}

/// Measured over predicted, which a log axis does not show.
pub fn ratio(fit: &Fit) -> Chart {
    let band = &fit.band;
    let mut chart = Chart::new("Measured over predicted")
        .subtitle("mean of the runs over each curve; the band is ± 2 standard errors of the mean")
        .x(Axis::log("time t = k/d"))
        .y(Axis::linear("mean of the runs / prediction"))
        .hline(1.0, "");
    for (slot, curve) in drawn(fit) {
        let n = curve.risk.len().min(band.risk.mean.len());
        let over =
            |y: &dyn Fn(usize) -> f64| (0..n).map(|k| y(k) / curve.risk[k]).collect::<Vec<f64>>();
        let (mean, error) = (&band.risk.mean, &band.risk.standard_error);
        let times = &curve.times[..n];
        let middle = over(&|k| mean[k]);
        if curve.key == "one_pass" {
            let low = over(&|k| mean[k] - 2.0 * error[k]);
            let high = over(&|k| mean[k] + 2.0 * error[k]);
            let series = Series::band(&curve.label, times, &low, &high);
            chart = chart.series(series.middle(&middle).slot(slot));
        } else {
            chart = chart.series(Series::dashed(&curve.label, times, &middle).slot(slot));
        }
    }
    chart
}

/// Eigenvalues by rank.
pub fn spectrum(data: &FittedData) -> Chart {
    let rank: Vec<f64> = (1..=data.eigenvalues.len()).map(|k| k as f64).collect();
    Chart::new("Spectrum of K")
        .subtitle(&format!("{} features, ‖K‖ = 1, d = Tr K = {}", data.cols, short(data.dim)))
        .x(Axis::log("rank i"))
        .y(Axis::log("eigenvalue λ"))
        .line("λ", &rank, &data.eigenvalues)
}

/// CSC and CCC along the predicted path.
pub fn criteria(fit: &Fit) -> Chart {
    let times = fit.curve("ode_residuals").map_or(&[][..], |curve| &curve.times);
    Chart::new("Does clipping help along the path?")
        .subtitle(&format!("measured residuals, c = {}", clip(fit.data.settings.clip)))
        .x(Axis::log("time t = k/d"))
        .y(Axis::linear("ratio"))
        .line("CSC = μ/ν: stability", times, &fit.along(Factors::csc))
        .line("CCC = μ²/ν: efficiency", times, &fit.along(Factors::ccc))
        .hline(1.0, "no clipping")
}

/// The residuals with the fitted distributions, as in figure 8.
pub fn noise(fit: &Fit) -> Figure {
    let requested = fit.data.settings.components;
    let [mut whole, tails] = noise_fit_figure::charts(&fit.residuals.values, &fit.noise, requested);
    if let Some(top) = below_atoms(&whole.series[0]) {
        whole.y = Axis::linear("density").range(0.0, top);
        whole.note = Some("Bars of repeated residuals are cut off at the top.".into());
    }
    Figure::new("Residuals of least squares").chart(whole).chart(tails)
}

/// The end of the axis, if a few repeated values would press all other bars flat.
fn below_atoms(bars: &Series) -> Option<f64> {
    let SeriesKind::Band { high, .. } = &bars.kind else { return None };
    // Two points to a bar.
    let mut heights: Vec<f64> = high.iter().step_by(2).copied().collect();
    heights.sort_by(|a, b| b.total_cmp(a));
    let (first, fourth) = (heights.first()?, heights.get(3)?);
    (*first > 3.0 * fourth).then_some(1.5 * fourth)
}

/// All of them, with the names of their files.
pub fn all(fit: &Fit) -> Vec<(&'static str, Figure)> {
    vec![
        ("risk", Figure::new(&fit.data.name).chart(risk(fit)).chart(ratio(fit))),
        ("noise", noise(fit)),
        ("spectrum", Figure::default().chart(spectrum(&fit.data)).chart(criteria(fit))),
    ]
}

/// The pass that the curves show, for a subtitle.
pub fn one_pass(data: &FittedData) -> String {
    let FittedData { rows, settings, .. } = data;
    let [dim, eta] = [data.dim, settings.eta].map(short);
    let (c, runs) = (clip(settings.clip), settings.runs);
    format!("d = {dim}, η = {eta}, c = {c}; one pass over {rows} samples, {runs} runs")
}

/// A threshold in words.
pub fn clip(c: f64) -> String {
    if c.is_finite() { short(c) } else { "∞".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atom_ends_the_axis_and_a_hill_does_not() {
        let edges: Vec<f64> = (0..=6).map(f64::from).collect();
        let atom = Series::histogram("", &edges, &[0.1, 0.2, 7.7, 0.3, 0.4, 0.2]);
        assert!((below_atoms(&atom).unwrap() - 1.5 * 0.2).abs() < 1e-12);
        let hill = Series::histogram("", &edges, &[0.1, 0.2, 0.5, 0.5, 0.2, 0.1]);
        assert!(below_atoms(&hill).is_none());
    }
}
