//! Figure 6: what clipping keeps in networks along training, by three estimators.

use std::collections::BTreeMap;

use super::run::{Networks, Run};
use super::table::{Estimate, Estimator, FactorLine};
use crate::plot::{Axis, Chart, Figure, Series};

/// The three thresholds of a run to show: those measured most often, of which the smallest, the
/// largest (10 in the paper) and the one nearest to the middle between them on a log axis.
pub fn thresholds(run: &Run, batch: u64) -> Vec<f64> {
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    let of = |line: &&FactorLine| line.batch == batch;
    // Positive numbers are in the order of their bits.
    run.factors
        .iter()
        .filter(of)
        .for_each(|line| *seen.entry(line.threshold.to_bits()).or_default() += 1);
    let most = seen.values().max().copied().unwrap_or(0);
    // A killed run may lack some at its last step.
    let often = |(bits, count): (u64, usize)| (count + 1 >= most).then(|| f64::from_bits(bits));
    let all: Vec<f64> = match most {
        // With one or two steps, multiples of the median norm cannot be told by their number.
        0..=2 => seen.into_keys().map(f64::from_bits).filter(|c| is_round(*c)).collect(),
        _ => seen.into_iter().filter_map(often).collect(),
    };
    let (Some(&least), Some(&largest)) = (all.first(), all.last()) else { return Vec::new() };
    let off = |c: f64| (c / (least * largest).sqrt()).ln().abs();
    let middle = all.iter().copied().min_by(|a, b| off(*a).total_cmp(&off(*b)));
    let mut three = vec![least, middle.unwrap_or(least), largest];
    three.dedup();
    three
}

/// Whether a threshold was chosen by hand: one digit.
fn is_round(c: f64) -> bool {
    let digit = c / 10f64.powf(c.log10().floor());
    (digit - digit.round()).abs() < 1e-9
}

/// The lines of a run at one batch size and threshold, in order of time.
pub fn at(run: &Run, batch: u64, threshold: f64) -> Vec<&FactorLine> {
    run.factors.iter().filter(|line| line.batch == batch && line.threshold == threshold).collect()
}

/// The lines at which the threshold is the median norm.
pub fn at_median(run: &Run, batch: u64) -> Vec<&FactorLine> {
    // The threshold was rounded to four digits.
    let median = |line: &&FactorLine| (line.threshold / line.median_norm - 1.0).abs() < 1e-3;
    run.factors.iter().filter(|line| line.batch == batch).filter(median).collect()
}

/// The smallest batch that was measured beside that of the training.
pub fn small_batch(run: &Run) -> Option<u64> {
    run.factors.iter().map(|line| line.batch).filter(|b| *b < run.settings.batch).min()
}

/// A curve along training, with gaps where nothing can be said.
fn draw(
    chart: Chart,
    (label, slot): (&str, usize),
    lines: &[&FactorLine],
    of: impl Fn(&FactorLine) -> Option<Estimate>,
) -> Chart {
    let gap = Estimate { value: f64::NAN, error: f64::NAN };
    let along: Vec<&&FactorLine> = lines.iter().filter(|line| line.epoch > 0.0).collect();
    let x: Vec<f64> = along.iter().map(|line| line.epoch).collect();
    let found: Vec<Estimate> = along.iter().map(|line| of(line).unwrap_or(gap)).collect();
    let column = |of: fn(Estimate) -> f64| found.iter().map(|e| of(*e)).collect::<Vec<f64>>();
    let band = Series::band(label, &x, &column(Estimate::low), &column(Estimate::high));
    chart.series(band.middle(&column(|e| e.value)).slot(slot))
}

/// Marks for what was measured before training; called in the opposite order of the curves, so that the
/// direct estimate, the first, lies on top.
fn draw_start(
    mut chart: Chart,
    slot: usize,
    lines: &[&FactorLine],
    of: impl Fn(&FactorLine) -> Option<Estimate>,
) -> Chart {
    for found in lines.iter().filter(|line| line.epoch == 0.0).filter_map(|line| of(line)) {
        let (x, low, high) = ([start(lines); 2], [found.low(); 2], [found.high(); 2]);
        chart = chart
            .series(Series::band("", &x, &low, &high).slot(slot))
            .series(Series::points("", &x[..1], &[found.value]).slot(slot));
    }
    chart
}

/// Where what was measured before training is drawn.
fn start(lines: &[&FactorLine]) -> f64 {
    let epochs = lines.iter().map(|line| line.epoch).filter(|epoch| *epoch > 0.0);
    let first = epochs.fold(f64::INFINITY, f64::min);
    if first.is_finite() { first / 3.0 } else { 1.0 }
}

/// A chart along training, with a line at the start where something was measured there.
fn along_training(title: &str, y: Axis, lines: &[&FactorLine]) -> Chart {
    let chart = Chart::new(title).y(y);
    if lines.iter().all(|line| line.epoch > 0.0) {
        return chart.x(Axis::log("epoch"));
    }
    let at = start(lines);
    chart.x(Axis::log("epoch").range(0.8 * at, f64::NAN)).vline(at, "before training")
}

const NU: &str = "ν";
const NU_SLOT: usize = 3;
/// The lower end of the axes: a line at zero is seen above the frame.
const FLOOR: f64 = -0.03;

fn mu_chart(title: &str, lines: &[&FactorLine]) -> Chart {
    let y = Axis::linear("share kept, μ and ν").range(FLOOR, 1.05);
    let mut chart = along_training(title, y, lines);
    for (slot, by) in Estimator::ALL.into_iter().enumerate() {
        let of = |line: &FactorLine| line.says(by).then(|| line.mu(by));
        chart = draw(chart, (&format!("μ, {}", by.label()), slot), lines, of);
    }
    chart = draw(chart, (NU, NU_SLOT), lines, |line| Some(line.nu));
    chart = draw_start(chart, NU_SLOT, lines, |line| Some(line.nu));
    for (slot, by) in Estimator::ALL.into_iter().enumerate().rev() {
        chart = draw_start(chart, slot, lines, |line| line.says(by).then(|| line.mu(by)));
    }
    chart
}

fn ccc_chart(title: &str, lines: &[&FactorLine]) -> Chart {
    let y = Axis::linear("CCC = μ²/ν").range(FLOOR, f64::NAN);
    let mut chart = along_training(title, y, lines);
    for (slot, by) in Estimator::ALL.into_iter().enumerate() {
        let of = |line: &FactorLine| line.says(by).then(|| line.ccc(by));
        chart = draw(chart, (&format!("μ, {}", by.label()), slot), lines, of);
    }
    for (slot, by) in Estimator::ALL.into_iter().enumerate().rev() {
        chart = draw_start(chart, slot, lines, |line| line.says(by).then(|| line.ccc(by)));
    }
    // One legend serves the charts beside it: ν has its place there, and no line.
    draw(chart, (NU, NU_SLOT), lines, |_| None).hline(1.0, "1")
}

/// One picture for each network: μ and ν to the left, CCC to the right, a row for each threshold.
pub fn figures(networks: &Networks) -> Vec<Figure> {
    let all = &networks.runs;
    let mut figures: Vec<Figure> = all
        .iter()
        .map(|run| {
            let batch = run.settings.batch;
            let mut figure = Figure::new(&format!(
                "{} along training, batch {batch}: bands are 95 % intervals",
                run.name(all)
            ));
            for c in thresholds(run, batch) {
                let lines = at(run, batch, c);
                figure = figure
                    .chart(mu_chart(&format!("What is kept at c = {c}"), &lines))
                    .chart(ccc_chart(&format!("CCC at c = {c}"), &lines));
            }
            figure.columns(2)
        })
        .collect();
    figures.extend(beyond(all));
    figures
}

/// Beyond the paper: thresholds that follow the norms, and small batches.
fn beyond(all: &[Run]) -> Option<Figure> {
    let mut figure = Figure::new("Beyond the paper's figure: the median norm, and small batches");
    for run in all {
        let (name, batch) = (run.name(all), run.settings.batch);
        let median = at_median(run, batch);
        let (Some(small), false) = (small_batch(run), median.is_empty()) else { continue };
        let Some(&c) = thresholds(run, small).first() else { continue };
        let ccc = format!("{name}: CCC at c = {c}, batch {small}");
        figure = figure
            .chart(mu_chart(&format!("{name}: c = median norm, batch {batch}"), &median))
            .chart(ccc_chart(&ccc, &at(run, small, c)));
    }
    (!figure.charts.is_empty()).then(|| figure.columns(2))
}

/// The numbers behind the figure, a table for each network.
pub fn tables(networks: &Networks) -> Vec<(String, crate::output::Table)> {
    let table = |run: &Run| {
        let column = |of: &dyn Fn(&FactorLine) -> f64| run.factors.iter().map(of).collect();
        let mut columns: Vec<(String, Vec<f64>)> = vec![
            ("step".into(), column(&|l| l.step as f64)),
            ("epoch".into(), column(&|l| l.epoch)),
            ("batch".into(), column(&|l| l.batch as f64)),
            ("threshold".into(), column(&|l| l.threshold)),
            ("median_norm".into(), column(&|l| l.median_norm)),
            ("clip_fraction".into(), column(&|l| l.clip_fraction)),
            ("nu".into(), column(&|l| l.nu.value)),
            ("nu_stderr".into(), column(&|l| l.nu.error)),
        ];
        for by in Estimator::ALL {
            let key = by.key();
            columns.extend([
                (format!("mu_{key}"), column(&|l| l.mu(by).value)),
                (format!("mu_{key}_stderr"), column(&|l| l.mu(by).error)),
                (format!("ccc_{key}"), column(&|l| l.ccc(by).value)),
                (format!("ccc_{key}_stderr"), column(&|l| l.ccc(by).error)),
            ]);
        }
        columns
            .push(("direct_determined".into(), column(&|l| f64::from(u8::from(l.determined())))));
        let columns: Vec<(String, &[f64])> =
            columns.iter().map(|(name, column)| (name.clone(), column.as_slice())).collect();
        (format!("figure-6-{}", run.file_name()), super::super::part::table(&columns))
    };
    networks.runs.iter().map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Kind;

    fn networks() -> Networks {
        Networks::load(None).unwrap()
    }

    #[test]
    fn the_thresholds_are_those_of_the_paper_even_in_a_killed_run() {
        let mut run = networks().runs[0].clone();
        assert_eq!(thresholds(&run, 128), [0.1, 1.0, 10.0]);
        // Only the first line of the last measurement was written.
        let last = run.factors.last().unwrap().step;
        let first = run.factors.iter().position(|l| l.step == last).unwrap();
        run.factors.truncate(first + 1);
        assert_eq!(thresholds(&run, 128), [0.1, 1.0, 10.0]);
        // One measurement: multiples of the median norm are there as often.
        let step = run.factors[0].step;
        run.factors.retain(|l| l.step == step);
        assert_eq!(thresholds(&run, 128), [0.1, 1.0, 10.0]);
        assert!(thresholds(&run, 77).is_empty());
    }

    #[test]
    fn every_estimator_is_drawn_with_its_interval() {
        let networks = networks();
        let figures = figures(&networks);
        assert_eq!(figures.len(), 4);
        let mu = &figures[0].charts[0];
        assert_eq!(mu.series.len(), 12, "four curves, each with a mark at the start");
        assert_eq!(figures[1].charts[0].series.len(), 4, "where nothing was measured there");
        let mut lines = at(&networks.runs[0], 128, 0.1);
        lines.retain(|line| line.epoch > 0.0);
        let first = lines[0].mu(Estimator::Direct);
        let Kind::Band { low, high } = &mu.series[0].kind else { panic!("no band") };
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
    fn a_direct_estimate_without_a_mean_gradient_is_left_out() {
        let mut networks = networks();
        let along = |l: &FactorLine| l.clip_fraction == 1.0 && l.epoch > 0.0;
        let line = networks.runs[0].factors.iter().position(along).unwrap();
        let (step, c) = {
            let l = &networks.runs[0].factors[line];
            (l.step, l.threshold)
        };
        assert!(networks.runs[0].factors[line].determined());
        networks.runs[0].factors[line].gradient_norm = 0.0;
        let changed = &networks.runs[0].factors[line];
        assert!(!changed.says(Estimator::Direct) && changed.says(Estimator::Batch));
        let lines: Vec<&FactorLine> = networks.runs[0]
            .factors
            .iter()
            .filter(|l| l.step == step && l.threshold == c)
            .collect();
        let chart = mu_chart("x", &lines);
        assert!(chart.series[0].y[0].is_nan() && chart.series[1].y[0].is_finite());
    }

    #[test]
    fn what_was_measured_before_training_stands_at_the_left() {
        let networks = networks();
        let mut lines = at(&networks.runs[0], 128, 0.1);
        assert_eq!((lines[0].step, lines[0].epoch), (0, 0.0));
        let chart = mu_chart("x", &lines);
        let drawn: Vec<f64> = chart.series.iter().flat_map(|s| s.x.clone()).collect();
        let place = lines[1].epoch / 3.0;
        assert!(drawn.iter().all(|x| *x >= place), "no zero on a log axis");
        let points = |s: &&Series| matches!(s.kind, Kind::Points) && s.x == [place];
        assert_eq!(chart.series.iter().filter(points).count(), 4, "three estimates and ν");
        let top = chart.series.iter().rfind(points).unwrap();
        assert_eq!(top.y, [lines[0].mu(Estimator::Direct).value], "the direct one lies on top");
        assert!(chart.lines.iter().any(|line| line.label == "before training"));
        assert_eq!(chart.series.iter().filter(|s| !s.label.is_empty()).count(), 4);
        lines.remove(0);
        assert!(mu_chart("x", &lines).lines.is_empty(), "nothing was measured there");
    }

    #[test]
    fn tables_have_all_lines() {
        let networks = networks();
        for (run, (name, text)) in networks.runs.iter().zip(tables(&networks)) {
            assert_eq!(name, format!("figure-6-{}", run.file_name()));
            assert_eq!(text.rows(), run.factors.len());
        }
    }
}
