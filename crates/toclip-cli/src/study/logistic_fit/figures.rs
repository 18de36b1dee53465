//! The pictures of a logistic fit.

use toclip::model::{Measures, Quantity};

use super::LogisticFit;
use crate::plot::{Axis, Chart, Figure, Series};
use crate::study::fit::figures::{one_pass, spectrum};

/// A quantity, predicted and measured.
fn chart(fit: &LogisticFit, quantity: Quantity, title: &str, axis: Axis) -> Chart {
    let mut chart = Chart::new(title).x(Axis::log("time t = k/d")).y(axis);
    // Nothing before the first time at which all of the band is positive: a start at zero has no
    // calibration, and a log axis no zero.
    let low = fit.one_pass().and_then(|pass| pass.band.get(quantity)?.quantiles.first());
    let shown = |k: usize| low.and_then(|low| low.get(k)).is_none_or(|low| *low > 0.0);
    let first =
        (0..fit.data.times.len()).rev().take_while(|&k| shown(k) && fit.data.times[k] > 0.0).last();
    let kept = |times: &[f64], values: Vec<Option<f64>>| -> (Vec<f64>, Vec<f64>) {
        let pairs = times.iter().zip(values).skip(first.unwrap_or(0));
        pairs.filter_map(|(t, x)| Some((*t, x.filter(|x| !x.is_nan())?))).unzip()
    };
    if let Some(pass) = fit.one_pass()
        && let Some(statistics) = pass.band.get(quantity)
        && let [low, .., high] = &statistics.quantiles[..]
    {
        let column = |x: &[f64]| kept(&pass.band.times, x.iter().copied().map(Some).collect());
        let ((t, low), (_, high)) = (column(low), column(high));
        let label = "C-SGD, one pass: 80% band and mean";
        let series = Series::band(label, &t, &low, &high);
        chart = chart.series(series.middle(&column(&statistics.mean).1).slot(0));
    }
    let mut curve = |label: &str, measures: &[Measures], slot: usize| {
        let (t, y) = kept(&fit.data.times, measures.iter().map(|m| m.get(quantity)).collect());
        let series = if slot == 2 { Series::line } else { Series::dashed };
        chart = chart.clone().series(series(label, &t, &y).slot(slot));
    };
    curve("ODE", &fit.predicted, 2);
    if fit.data.settings.clip.is_finite() {
        curve("ODE without clipping", &fit.unclipped, 3);
    }
    chart
}

/// The cross-entropy over that of θ*, which a linear axis hides: every ensemble over the ODE.
fn ratio(fit: &LogisticFit) -> Chart {
    let mut chart = Chart::new("Measured over predicted, one cause at a time")
        .subtitle("mean cross-entropy of the runs over that of θ*, divided by the same of the ODE")
        .x(Axis::log("time t = k/d"))
        .y(Axis::linear("runs / ODE"))
        .hline(1.0, "");
    for (slot, ensemble) in fit.ensembles.iter().enumerate() {
        let points = ensemble.band.times.iter().zip(&ensemble.excess).zip(&fit.predicted);
        let (t, y): (Vec<f64>, Vec<f64>) = points
            .filter(|((t, _), _)| **t > 0.0)
            .map(|((t, mean), ode)| (*t, mean / (ode.loss - fit.best_of_model.loss)))
            .unzip();
        let pass = slot + 1 == fit.ensembles.len();
        let series = if pass { Series::line } else { Series::dashed };
        let slot = if pass { 0 } else { slot + 2 };
        chart = chart.series(series(ensemble.label, &t, &y).slot(slot));
    }
    chart
}

/// Whether labels follow the model at θ*.
fn reliability(fit: &LogisticFit) -> Chart {
    let column = |j: usize| fit.reliability.iter().map(|bin| bin[j]).collect::<Vec<f64>>();
    Chart::new("Do labels follow the model?")
        .subtitle("each point: one fifteenth of the samples, by their probability at θ*")
        .x(Axis::linear("probability σ(⟨x, θ*⟩)").range(0.0, 1.0))
        .y(Axis::linear("share with label 1").range(0.0, 1.0))
        .points("samples", &column(0), &column(1))
        .dashed("as predicted", &[0.0, 1.0], &[0.0, 1.0])
}

/// All of them, with the names of their files.
pub fn all(fit: &LogisticFit) -> Vec<(&'static str, Figure)> {
    let loss = chart(
        fit,
        Quantity::Loss,
        "Cross-entropy: predicted and measured",
        Axis::linear("cross-entropy (nats)"),
    );
    let error_rate = chart(fit, Quantity::ErrorRate, "Error rate", Axis::linear("error rate"));
    let calibration =
        chart(fit, Quantity::Calibration, "Calibration", Axis::log("calibration slope"));
    let curves = Figure::new(&fit.data.name)
        .columns(2)
        .chart(loss.subtitle(&one_pass(&fit.data)))
        .chart(error_rate)
        .chart(calibration.hline(1.0, "calibrated"))
        .chart(ratio(fit));
    let data = Figure::default().columns(2).chart(spectrum(&fit.data)).chart(reliability(fit));
    vec![("cross-entropy", curves), ("data", data)]
}
