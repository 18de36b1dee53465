//! Figure 6: μ, ν and CCC of networks along training, by three estimators.

use super::chart;
use super::record::{ESTIMATORS, Estimate, FACTOR_COLUMNS, Record};
use super::runs::NetworkRun;
use crate::output::Table;
use crate::plot::{Axis, Chart, Figure};

/// The three thresholds of a run to show: the smallest and the largest (10 in the paper) that were
/// chosen by hand, and the one nearest to the middle between them on a log axis.
pub fn thresholds(run: &NetworkRun, batch: f64) -> Vec<f64> {
    // Thresholds that follow the median norm have four digits.
    let one_digit = |c: &f64| {
        let digit = c / 10f64.powf(c.log10().floor());
        (digit - digit.round()).abs() < 1e-9
    };
    let lines = run.at_batch(batch);
    let mut all: Vec<f64> = lines.map(|line| line["threshold"]).filter(one_digit).collect();
    all.sort_by(f64::total_cmp);
    let (Some(&smallest), Some(&largest)) = (all.first(), all.last()) else { return Vec::new() };
    let off = |c: &f64| (c / (smallest * largest).sqrt()).ln().abs();
    let middle = all.into_iter().min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(smallest);
    let mut three = vec![smallest, middle, largest];
    three.dedup();
    three
}

/// The lines of a run at one batch size and threshold, in order of time.
pub fn at(run: &NetworkRun, batch: f64, threshold: f64) -> Vec<&Record> {
    run.at_batch(batch).filter(|line| line["threshold"] == threshold).collect()
}

/// The lines at which the threshold is the median norm.
pub fn at_median(run: &NetworkRun, batch: f64) -> Vec<&Record> {
    // The threshold was rounded to four digits.
    let is_median = |line: &&Record| (line["threshold"] / line["median_norm"] - 1.0).abs() < 1e-3;
    run.at_batch(batch).filter(is_median).collect()
}

/// A curve for each estimator of μ or CCC and, in the last colour, for ν.
fn draw(chart: Chart, lines: &[&Record], name: &str, nu: fn(&Record) -> Estimate) -> Chart {
    let points = |of: &dyn Fn(&Record) -> Estimate| {
        lines.iter().map(|line| (line["epoch"], of(line))).collect::<Vec<_>>()
    };
    let estimator = |(by, label): (&str, &str)| {
        let name = format!("{name}_{by}");
        (label.to_owned(), points(&|line| line.estimate(&name)))
    };
    let mut curves: Vec<_> = ESTIMATORS.map(estimator).into();
    curves.push(("ν".into(), points(&nu)));
    chart::draw(chart, &curves)
}

fn mu_chart(title: &str, lines: &[&Record]) -> Chart {
    // A line at zero is seen above the frame.
    let y = Axis::linear("share kept, μ and ν").range(-0.03, 1.05);
    draw(Chart::new(title).y(y), lines, "mu", |line| line.estimate("nu"))
}

/// Values nearer to 1 than this cannot be told from 1.
const VISIBLE: f64 = 0.005;

/// The axis of CCC: from the lowest to the highest interval of the estimators that are right for
/// batches, with 1 inside. The fraction of unclipped gradients is often 0 and would flatten the rest.
fn ccc_axis(lines: &[&Record]) -> Axis {
    let shown =
        lines.iter().flat_map(|line| ["ccc_direct", "ccc_batch"].map(|name| line.estimate(name)));
    let (mut low, mut high) = (1.0 - 2.0 * VISIBLE, 1.0 + 2.0 * VISIBLE);
    for ccc in shown.filter(|ccc| (ccc.value + ccc.error).is_finite()) {
        (low, high) = (low.min(ccc.low()), high.max(ccc.high()));
    }
    let air = 0.06 * (high - low);
    Axis::linear("CCC = μ²/ν").range(low - air, high + air)
}

/// ν has its place in the legend, which the charts share, and no line.
fn ccc_chart(title: &str, lines: &[&Record]) -> Chart {
    let axis = ccc_axis(lines);
    let lowest = axis.range.map_or(f64::NEG_INFINITY, |(low, _)| low);
    let paper = lines.iter().map(|line| line["ccc_fraction"]);
    let chart = Chart::new(title).y(axis);
    let chart = draw(chart, lines, "ccc", |_| Estimate::MISSING).hline(1.0, "1");
    if paper.fold(f64::INFINITY, f64::min) >= lowest {
        return chart;
    }
    chart.note("CCC by the unclipped fraction falls below this axis, to 0 where all are clipped.")
}

/// Whether clipping changes anything that can be seen, once training has begun.
fn is_visible(lines: &[&Record]) -> bool {
    let along = lines.iter().filter(|line| line["epoch"] > 0.0);
    along
        .flat_map(|line| ["mu_direct", "mu_batch"].map(|name| line.estimate(name).value))
        .any(|mu| (mu - 1.0).abs() > VISIBLE)
}

/// One picture for each network: μ and ν to the left, CCC to the right, a row for each threshold
/// at which there is something to see.
pub fn figures(networks: &[NetworkRun]) -> Vec<Figure> {
    networks.iter().map(network_figure).chain(beyond_paper(networks)).collect()
}

fn network_figure(run: &NetworkRun) -> Figure {
    let batch = run.batch();
    let mut title = format!("{} along training, batch {batch}; 95% intervals", run.name());
    let mut shown = thresholds(run, batch);
    let visible = |c: &f64| is_visible(&at(run, batch, *c));
    // A picture without charts would be empty.
    if shown.iter().any(visible) && !shown.iter().all(visible) {
        let hidden: Vec<String> =
            shown.extract_if(.., |c| !visible(c)).map(|c| c.to_string()).collect();
        title += &format!("; clipping changes less than 0.5% at c = {}", hidden.join(" and "));
    }
    let add = |figure: Figure, c: f64| {
        let lines = at(run, batch, c);
        figure
            .chart(mu_chart(&format!("μ and ν at c = {c}"), &lines))
            .chart(ccc_chart(&format!("CCC at c = {c}"), &lines))
    };
    shown.into_iter().fold(Figure::new(&title), add).columns(2)
}

/// Thresholds that follow the norms, and the smallest batch that was measured beside that of the
/// training.
fn beyond_paper(all: &[NetworkRun]) -> Option<Figure> {
    let mut figure = Figure::new("Beyond the paper's figure: the median norm, and small batches");
    for run in all {
        let (name, batch) = (run.name(), run.batch());
        let median = at_median(run, batch);
        let small = run.factors.iter().map(|line| line["batch"]).filter(|small| *small < batch);
        let small = small.reduce(f64::min);
        let (Some(small), false) = (small, median.is_empty()) else { continue };
        let Some(&c) = thresholds(run, small).first() else { continue };
        let ccc = format!("{name}: CCC at c = {c}, batch {small}");
        figure = figure
            .chart(mu_chart(&format!("{name}: c = median norm, batch {batch}"), &median))
            .chart(ccc_chart(&ccc, &at(run, small, c)));
    }
    (!figure.charts.is_empty()).then(|| figure.columns(2))
}

/// The numbers behind the figure, a table for each network.
pub fn tables(networks: &[NetworkRun]) -> Vec<(String, Table)> {
    let table = |run: &NetworkRun| {
        let lines: Vec<&Record> = run.factors.iter().collect();
        let determined = lines.iter().map(|line| f64::from(line.determined()));
        let table = Record::table(&lines, FACTOR_COLUMNS).numbers("direct_determined", determined);
        (format!("figure-6-{}", run.folder), table)
    };
    networks.iter().map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Series, SeriesKind};
    use crate::study::networks::runs::measured;

    fn networks() -> Vec<NetworkRun> {
        measured().unwrap()
    }

    #[test]
    fn the_thresholds_are_those_of_the_paper_even_in_a_killed_run() {
        let mut run = networks()[0].clone();
        assert_eq!(thresholds(&run, 128.0), [0.1, 1.0, 10.0]);
        // Only the first line of the last measurement was written.
        let last = run.factors.last().unwrap()["step"];
        let first = run.factors.iter().position(|l| l["step"] == last).unwrap();
        run.factors.truncate(first + 1);
        assert_eq!(thresholds(&run, 128.0), [0.1, 1.0, 10.0]);
        // One measurement.
        let step = run.factors[0]["step"];
        run.factors.retain(|l| l["step"] == step);
        assert_eq!(thresholds(&run, 128.0), [0.1, 1.0, 10.0]);
        assert!(thresholds(&run, 77.0).is_empty());
    }

    #[test]
    fn every_estimator_is_drawn_with_its_interval() {
        let networks = networks();
        let figures = figures(&networks);
        assert_eq!(figures.len(), 4);
        let mu = &figures[0].charts[0];
        assert_eq!(mu.series.len(), 12, "four curves, each with a mark at the start");
        assert_eq!(figures[1].charts[0].series.len(), 4, "where nothing was measured there");
        let mut lines = at(&networks[0], 128.0, 0.1);
        lines.retain(|line| line["epoch"] > 0.0);
        let first = lines[0].estimate("mu_direct");
        let SeriesKind::Band { low, high } = &mu.series[0].kind else { panic!("no band") };
        assert!((low[0] - (first.value - 1.96 * first.error)).abs() < 1e-12);
        assert!((high[0] - (first.value + 1.96 * first.error)).abs() < 1e-12);
        assert_eq!(mu.series[0].y[0], first.value);
        // With one legend for all charts of a picture.
        for chart in &figures[0].charts {
            let mut labels: Vec<&str> = chart.series.iter().map(|s| s.label.as_str()).collect();
            labels.retain(|label| !label.is_empty());
            assert_eq!(labels.len(), 4);
            assert_eq!(labels[2], "μ, unclipped fraction (the paper's)");
        }
    }

    #[test]
    fn axes_show_the_effect() {
        let networks = networks();
        let ccc = &figures(&networks)[0].charts[1];
        let (low, high) = ccc.y.range.unwrap();
        assert!(low > 0.9 && low < 1.0 && high > 1.2 && high < 1.5, "{low} {high}");
        assert!(ccc.note.as_deref().is_some_and(|note| note.contains("falls below")), "{ccc:?}");
        // At c = 10 every curve would be a line at 1.
        assert!(!is_visible(&at(&networks[0], 128.0, 10.0)));
        let figure = &figures(&networks)[0];
        assert!(
            figure.title.ends_with("clipping changes less than 0.5% at c = 10"),
            "{}",
            figure.title
        );
        assert!(figure.charts.iter().all(|chart| !chart.title.contains("c = 10")));
    }

    #[test]
    fn a_direct_estimate_without_a_mean_gradient_is_left_out() {
        let mut networks = networks();
        let along = |l: &Record| l["clip_fraction"] == 1.0 && l["epoch"] > 0.0;
        let line = networks[0].factors.iter().position(along).unwrap();
        let (step, c) = {
            let l = &networks[0].factors[line];
            (l["step"], l["threshold"])
        };
        assert!(networks[0].factors[line].determined());
        networks[0].factors[line].numbers.insert("gradient_norm".into(), 0.0);
        let changed = &networks[0].factors[line];
        assert!(changed.estimate("mu_direct").value.is_nan() && !changed.determined());
        let lines: Vec<&Record> = networks[0]
            .factors
            .iter()
            .filter(|l| l["step"] == step && l["threshold"] == c)
            .collect();
        let chart = mu_chart("x", &lines);
        assert!(chart.series[0].y[0].is_nan() && chart.series[1].y[0].is_finite());
    }

    #[test]
    fn what_was_measured_before_training_stands_at_the_left() {
        let networks = networks();
        let mut lines = at(&networks[0], 128.0, 0.1);
        assert_eq!((lines[0]["step"], lines[0]["epoch"]), (0.0, 0.0));
        let chart = mu_chart("x", &lines);
        let drawn: Vec<f64> = chart.series.iter().flat_map(|s| s.x.clone()).collect();
        let place = lines[1]["epoch"] / 3.0;
        assert!(drawn.iter().all(|x| *x >= place), "no zero on a log axis");
        let points = |s: &&Series| matches!(s.kind, SeriesKind::Points) && s.x == [place];
        assert_eq!(chart.series.iter().filter(points).count(), 4, "three estimates and ν");
        let top = chart.series.iter().rfind(points).unwrap();
        assert_eq!(top.y, [lines[0].estimate("mu_direct").value], "the direct one lies on top");
        assert!(chart.lines.iter().any(|line| line.label == "before training"));
        assert_eq!(chart.series.iter().filter(|s| !s.label.is_empty()).count(), 4);
        lines.remove(0);
        assert!(mu_chart("x", &lines).lines.is_empty(), "nothing was measured there");
    }

    #[test]
    fn tables_have_all_lines() {
        let networks = networks();
        for (run, (name, text)) in networks.iter().zip(tables(&networks)) {
            assert_eq!(name, format!("figure-6-{}", run.folder));
            assert_eq!(text.rows(), run.factors.len());
        }
    }
}
