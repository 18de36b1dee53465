//! Plots of a log.

use toclip::monitor::{Estimates, Interval};
use toclip_logs::{LogPoint, median, running_scales};

use super::LogReport;
use crate::plot::{Axis, Chart, Figure, Series};
use toclip_words::short;

/// More points than this are drawn as a band, which does not hide the lines.
const POINTS: usize = 250;
/// Parts of a band.
const BINS: usize = 200;

/// The names of the plots as files.
pub const NAMES: [&str; 3] = ["training", "distribution", "criteria"];

/// All plots of a log, as far as they can be drawn.
pub fn of(report: &LogReport) -> Vec<Figure> {
    let mut figures = vec![training(report)];
    let analysis = &report.advice.analysis;
    if analysis.distribution.is_some() && report.log.points.len() > 1 {
        figures.push(distribution(report));
        if analysis.components.is_some() && !analysis.curve.is_empty() {
            figures.push(criteria(report));
        }
    }
    figures
}

/// Loss and norm along training, with the spikes and the thresholds.
fn training(report: &LogReport) -> Figure {
    let points = &report.log.points;
    let mut norm =
        Chart::new("Gradient norm").x(Axis::linear("step")).y(Axis::log("gradient norm"));
    norm = with_values(norm, "norm", points.iter().map(|p| (p.step, p.norm)));
    let spikes = report.advice.spikes();
    let steps: Vec<f64> = spikes.iter().map(|spike| spike.first).collect();
    if !spikes.is_empty() {
        let peaks: Vec<f64> = spikes.iter().map(|spike| spike.norm).collect();
        norm = norm.series(Series::points("spike", &steps, &peaks).slot(1));
        if let Some(c) = report.advice.recommendation.threshold {
            // As the threshold would act: every norm above is cut down to it.
            let clipped: Vec<f64> = peaks.iter().map(|peak| peak.min(c)).collect();
            norm = norm.series(Series::points("the same, clipped", &steps, &clipped).slot(2));
        }
    }
    norm = marked(report, thresholds(report, norm, true));
    let mut figure = Figure::new("").columns(1).chart(norm);
    let losses = || points.iter().filter_map(|p| Some((p.step, p.finite_loss()?)));
    if losses().count() > 1 {
        let positive = losses().all(|(_, loss)| loss > 0.0);
        let axis = if positive { Axis::log("loss") } else { Axis::linear("loss") };
        let loss = Chart::new("Loss").x(Axis::linear("step")).y(axis);
        let mut loss = with_values(loss, "loss", losses());
        if !spikes.is_empty() {
            let peaks = spikes.iter().map(|spike| spike.loss_peak.unwrap_or(f64::NAN));
            loss = loss.series(Series::points("spike", &steps, &peaks.collect::<Vec<_>>()).slot(1));
        }
        figure = figure.chart(marked(report, loss));
    }
    figure
}

/// Whether the threshold of the recommendation is a new one.
fn recommends(report: &LogReport) -> bool {
    let now = report.advice.analysis.current.as_ref().map(|now| now.threshold);
    report.advice.recommendation.threshold.is_some_and(|c| now != Some(c))
}

/// Values along training, each with its step: points, or a band if there are many.
fn with_values(chart: Chart, name: &str, values: impl Iterator<Item = (f64, f64)>) -> Chart {
    let (steps, values): (Vec<f64>, Vec<f64>) = values.unzip();
    if values.len() <= POINTS {
        return chart.series(Series::points(name, &steps, &values).slot(0));
    }
    let (x, low, middle, high) = band(&steps, &values);
    let each = values.len().div_ceil(x.len());
    let label = format!("{name}: smallest, median and largest of {each} steps");
    chart.series(Series::band(&label, &x, &low, &high).slot(0).middle(&middle))
}

/// Marks the step to go back to.
fn marked(report: &LogReport, chart: Chart) -> Chart {
    match report.advice.recommendation.roll_back_to {
        Some(step) => chart.vline(step, &format!("go back to {}", short(step))),
        None => chart,
    }
}

/// Steps, losses and norms by the medians of at most `parts` parts.
pub fn medians(points: &[LogPoint], parts: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let size = points.len().div_ceil(parts).max(1);
    let mut out = (Vec::new(), Vec::new(), Vec::new());
    for part in points.chunks(size) {
        out.0.push(part[part.len() / 2].step);
        out.1.push(
            median(part.iter().filter_map(|p| p.finite_loss()).collect()).unwrap_or(f64::NAN),
        );
        out.2.push(median(part.iter().map(|p| p.norm).collect()).unwrap_or(f64::NAN));
    }
    out
}

/// Marks the current threshold and the recommended one.
fn thresholds(report: &LogReport, chart: Chart, horizontal: bool) -> Chart {
    let mark = |chart: Chart, at: f64, label: String| match horizontal {
        true => chart.hline(at, &label),
        false => chart.vline(at, &label),
    };
    let mut chart = chart;
    let current = report.advice.analysis.current.as_ref();
    if let Some(now) = current.filter(|now| now.threshold.is_finite()) {
        chart = mark(chart, now.threshold, format!("current {}", short(now.threshold)));
    }
    if let Some(c) = report.advice.recommendation.threshold.filter(|_| recommends(report)) {
        chart = mark(chart, c, format!("recommended {}", short(c)));
    }
    chart
}

/// The positions, minima, medians and maxima of consecutive parts.
fn band(x: &[f64], y: &[f64]) -> (Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>) {
    let size = x.len().div_ceil(BINS).max(4);
    let mut out = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (x, y) in x.chunks(size).zip(y.chunks(size)) {
        let mut sorted = y.to_vec();
        sorted.sort_by(f64::total_cmp);
        out.0.push(x[x.len() / 2]);
        out.1.push(sorted[0]);
        out.2.push(sorted[sorted.len() / 2]);
        out.3.push(sorted[sorted.len() - 1]);
    }
    out
}

/// The distribution of the norms relative to their scale: a histogram, and the share above.
fn distribution(report: &LogReport) -> Figure {
    // What the tail is estimated from: without the warm-up and the spikes.
    let in_spike = |step: f64| {
        report.advice.spikes().iter().any(|spike| (spike.first..=spike.last).contains(&step))
    };
    let points = report.log.points.iter().skip(report.advice.analysis.warm_up);
    let norms: Vec<f64> = points.filter(|p| !in_spike(p.step)).map(|p| p.norm).collect();
    let scale = running_scales(&norms);
    let mut over: Vec<f64> = norms
        .iter()
        .zip(&scale)
        .map(|(n, s)| n / s)
        .filter(|u| *u > 0.0 && u.is_finite())
        .collect();
    over.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (over.first().copied(), over.last().copied()) else {
        return Figure::default();
    };
    let bins = (over.len() as f64).sqrt().clamp(12.0, 60.0) as usize;
    let width = ((high / low).ln() / bins as f64).max(1e-9);
    let mut counts = vec![0.0; bins];
    for u in &over {
        counts[(((u / low).ln() / width) as usize).min(bins - 1)] += 1.0;
    }
    let n = over.len();
    let edges: Vec<f64> = (0..=bins).map(|k| low * (k as f64 * width).exp()).collect();
    let heights: Vec<f64> = counts.iter().map(|count| 100.0 * count / n as f64).collect();
    let every = n.div_ceil(1500).max(1);
    // Every point of the tail is drawn, where they are few and matter.
    let kept: Vec<usize> = (0..n).filter(|i| i % every == 0 || n - i <= 300).collect();
    let above: Vec<f64> = kept.iter().map(|i| (n - i) as f64 / n as f64).collect();
    let at: Vec<f64> = kept.iter().map(|i| over[*i]).collect();
    let mut tail = Chart::new("Share of norms above")
        .x(Axis::log("norm over running scale"))
        .y(Axis::log("share of steps"))
        .line("log", &at, &above);
    if let Some(index) = report.advice.analysis.distribution.as_ref().and_then(|d| d.tail) {
        let start = index.multiple;
        let share = index.exceedances as f64 / n as f64;
        let end = high.max(start * 1.01);
        let fit = [share, share * (end / start).powf(-index.index.value)];
        let label = format!("tail index {}", report.advice.interval(&index.index));
        tail = tail.dashed(&label, &[start, end], &fit);
    }
    let histogram = Chart::new("Distribution of the norms")
        .x(Axis::log("norm over running scale"))
        .y(Axis::linear("steps (% per bin)"))
        .series(Series::histogram("log", &edges, &heights));
    Figure::new("").chart(histogram).chart(tail)
}

/// CSC and CCC against the threshold.
fn criteria(report: &LogReport) -> Figure {
    let curve = &report.advice.analysis.curve;
    // Below the threshold that clips everything the curves are flat.
    let all = |e: &Estimates| e.clip_fraction.value > 0.995;
    let from = curve.iter().rposition(all).unwrap_or(0).saturating_sub(6);
    let drawn = |e: &&Estimates| e.exceedances >= 10 && e.ccc.value.is_finite();
    let rows: Vec<&Estimates> = curve[from..].iter().filter(drawn).collect();
    let c: Vec<f64> = rows.iter().map(|e| e.threshold).collect();
    // With heavy tails the upper limits are far up; the curve must be visible.
    let highest = |f: fn(&Estimates) -> f64| rows.iter().map(|e| f(e)).fold(1.0, f64::max);
    let room = 1.0 + 3.0 * (highest(|e| e.ccc.value) - 1.0).max(0.05);
    let gains = Axis::linear("CCC = μ²/ν").range(f64::NAN, room.min(highest(|e| e.ccc.high)));
    let chart = |title: &str, y: Axis, name: &str, of: fn(&Estimates) -> Interval| {
        let column =
            |f: fn(Interval) -> f64| -> Vec<f64> { rows.iter().map(|e| f(of(e))).collect() };
        let label = format!("{:.0}% interval", 100.0 * report.advice.analysis.confidence);
        let chart = Chart::new(title)
            .x(Axis::log("threshold c"))
            .y(y)
            .series(Series::band(&label, &c, &column(|i| i.low), &column(|i| i.high)).slot(0))
            .series(Series::line(name, &c, &column(|i| i.value)).slot(0))
            .hline(1.0, "no clipping");
        thresholds(report, chart, false)
    };
    Figure::new("").chart(chart("CCC: what clipping gains", gains, "CCC", |e| e.ccc)).chart(chart(
        "CSC: how much larger a step may be",
        Axis::log("CSC = μ/ν"),
        "CSC",
        |e| e.csc,
    ))
}
