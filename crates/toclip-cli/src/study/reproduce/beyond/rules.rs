//! Clip, skip, normalise or smooth? The CCC of each rule against its threshold, and its limit.

use anyhow::{Context, Result};
use toclip::criteria::fisher_limit;
use toclip::{Factors, Rule, Step};

use super::facts::Facts;
use super::figure_file::{ChartFile, FigureFile};
use super::tuned::log_spaced;
use super::{FigureSection, RunSizes};
use crate::output::Table;
use crate::plot::Chart;

/// The risk at which rules are compared, with noise of variance one.
const RISK: f64 = 0.01;

/// The best threshold of a rule under a noise.
struct Row<'a> {
    noise: &'a str,
    rule: &'a str,
    c: f64,
    ccc: f64,
    limit: f64,
}

/// CCC where the rule descends; elsewhere it means nothing.
fn ccc(at: &Factors) -> f64 {
    if at.mu > 0.0 { at.ccc().unwrap_or(f64::NAN) } else { f64::NAN }
}

/// One noise: a chart of its rules.
fn compare<'a>(
    file: &'a FigureFile,
    of: &'a ChartFile,
    points: &[(f64, f64)],
    facts: &mut Facts,
) -> Result<(Chart, Vec<Row<'a>>)> {
    let (noise, mut rows) = (of.title.as_str(), Vec::new());
    let mut chart = of.chart();
    let (mut limit, mut normalise) = (f64::NAN, f64::NAN);
    for curve in &of.curves {
        let step = file.prepared_of(curve)?.1.problem.step().clone();
        if rows.is_empty() {
            let plain = step.clone().with_rule(Rule::Normalise)?;
            limit = fisher_limit(Step::new(step.noise()), RISK)?.limit;
            // The same for every threshold.
            normalise = Factors::new(plain, RISK, 1.0)?.ccc()?;
            chart = chart.hline(limit, "limit of any rule").hline(normalise, "normalise");
        }
        let found = Factors::at_points(step, points)?;
        let (x, y): (Vec<f64>, Vec<f64>) = found.iter().map(|at| (at.c, ccc(at))).unzip();
        chart = chart.line(&curve.name, &x, &y);
        let descending = found.iter().filter(|at| at.mu > 0.0);
        let best = descending.max_by(|a, b| ccc(a).total_cmp(&ccc(b))).context("no descent")?;
        let lowest = found.iter().min_by(|a, b| a.mu.total_cmp(&b.mu)).context("no thresholds")?;
        let name = format!("{noise}, {}", curve.name);
        facts.add(&name, [("ccc", ccc(best)), ("lowest_mu", lowest.mu), ("lowest_c", lowest.c)]);
        rows.push(Row { noise, rule: &curve.name, c: best.c, ccc: ccc(best), limit });
    }
    rows.push(Row { noise, rule: "normalise", c: f64::NAN, ccc: normalise, limit });
    let highest = rows.iter().map(|row| row.ccc).fold(f64::NEG_INFINITY, f64::max);
    facts.add(noise, [("highest", highest), ("limit", limit)]);
    Ok((chart, rows))
}

pub fn criteria(file: &FigureFile, sizes: &RunSizes) -> Result<FigureSection> {
    let thresholds = file.thresholds.as_ref().context("the figure has no thresholds")?;
    let c = log_spaced((thresholds.from, thresholds.to), sizes.points);
    let points: Vec<(f64, f64)> = c.into_iter().map(|c| (RISK, c)).collect();
    let (mut facts, mut charts, mut rows) = (Facts::default(), Vec::new(), Vec::new());
    for of in &file.charts {
        let (chart, more) = compare(file, of, &points, &mut facts)?;
        charts.push(chart);
        rows.extend(more);
    }
    let table = Table::default()
        .text("noise", rows.iter().map(|row| row.noise.to_owned()))
        .text("rule", rows.iter().map(|row| row.rule.to_owned()))
        .numbers("best_c", rows.iter().map(|row| row.c))
        .numbers("ccc", rows.iter().map(|row| row.ccc))
        .numbers("share_of_limit", rows.iter().map(|row| row.ccc / row.limit));
    Ok(file.section(charts, &facts, sizes)?.table(table))
}
