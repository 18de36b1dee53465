//! Figures 2a, 2b, 3 and 5: the criteria, without any dynamics.

use std::path::Path;

use anyhow::{Context, Result};

use super::{FigureSection, check, differs, near, stem};
use crate::experiment::{
    self, CriteriaCurves, Criterion, Extremum, criteria_chart, criteria_table, extremes,
};
use crate::plot::Figure;
use crate::report::Claim;
use toclip_words::short;

/// A figure with one chart for each criterion, and the tables behind it.
fn figure(
    id: &str,
    text: &'static str,
    points: usize,
    subtitle: &str,
    claims: fn(&CriteriaCurves) -> Vec<Claim>,
) -> Result<FigureSection> {
    let path = format!("experiments/{}.toml", stem(id));
    let (file, origin) = experiment::parse_file(text, Path::new(&path))?;
    let mut criteria = file.criteria().context("the file asks for no criteria")?.clone();
    criteria.points = points;
    let curves = criteria.curves(&origin)?;
    let noises: Vec<String> = criteria.noises.iter().map(|n| n.noise.describe()).collect();
    let place = if id == "5" { "appendix, Student-t noise" } else { "main paper" };
    let settings = experiment::settings(&criteria);
    let section = FigureSection::new(id, file.name())
        .settings(format!("{settings}; {} ({place})", noises.join("; ")))
        .claims(claims(&curves))
        .experiment(text);
    let chart =
        |criterion, title: &str| criteria_chart(&curves, criterion, title).subtitle(subtitle);
    if let [only] = criteria.curves[..] {
        return Ok(section.figure(chart(only, file.name())).table(criteria_table(&curves)));
    }
    let mut section = section.figure(
        Figure::new(file.name())
            .chart(chart(Criterion::Csc, "Stability, CSC = μ/ν"))
            .chart(chart(Criterion::Ccc, "Comparison, CCC = μ²/ν"))
            .columns(2),
    );
    for (key, criterion) in [("csc", Criterion::Csc), ("ccc", Criterion::Ccc)] {
        let table = criteria_table(&curves.of(criterion));
        section.tables.push((format!("{}-{key}", stem(id)), table));
    }
    Ok(section)
}

pub fn figure_2a(text: &'static str, points: usize) -> Result<FigureSection> {
    figure("2a", text, points, "R = 3, σ = 9; Rademacher-like p = 0.7", claims_2a)
}

pub fn figure_2b(text: &'static str, points: usize) -> Result<FigureSection> {
    figure("2b", text, points, "R = 3, σ = 5; Rademacher-like p = 0.2", claims_2b)
}

pub fn figure_3(text: &'static str, points: usize) -> Result<FigureSection> {
    figure("3", text, points, "σ = 7; Rademacher-like p = 0.5", claims_3)
}

pub fn figure_5(text: &'static str, points: usize) -> Result<FigureSection> {
    figure("5", text, points, "R = 3, σ = 5", |curves| {
        claims_5(&curves.of(Criterion::Csc), &curves.of(Criterion::Ccc))
    })
}

/// Where a curve first falls below a level, by straight lines.
fn falls_below(x: &[f64], y: &[f64], level: f64) -> Option<f64> {
    let k = (1..y.len()).find(|&k| y[k - 1] > level && y[k] <= level)?;
    Some(x[k - 1] + (x[k] - x[k - 1]) * (y[k - 1] - level) / (y[k - 1] - y[k]))
}

fn claims_2a(curves: &CriteriaCurves) -> Vec<Claim> {
    let first = curves.curves.iter().map(|curve| (curve.label.as_str(), curve.y[0]));
    let (label, least) = first.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("", f64::NAN));
    let [low, _] = extremes(&curves.x, curves.named("Rademacher-like"));
    vec![
        check(
            "csc_above_1_at_small_c",
            format!("at c = {} the smallest CSC is {} ({label})", curves.x[0], short(least)),
            least > 1.0,
        ),
        check(
            "csc_below_1_for_rademacher",
            format!("smallest CSC {} at c = {}", short(low.value), short(low.at)),
            low.value < 1.0,
        ),
    ]
}

fn claims_2b(curves: &CriteriaCurves) -> Vec<Claim> {
    let top = |label: &str| extremes(&curves.x, curves.named(label))[1];
    let (rademacher, gaussian, laplace) = (top("Rademacher-like"), top("Gaussian"), top("Laplace"));
    let peak = |top: Extremum| format!("peak {} at c = {}", short(top.value), short(top.at));
    vec![
        check(
            "ccc_peak_for_rademacher",
            peak(rademacher),
            near(rademacher.value, 2.5, 0.04) && near(rademacher.at, 2.0, 0.2),
        ),
        check(
            "ccc_at_most_1_for_gaussian",
            format!("largest CCC 1 − {:.1e}", 1.0 - gaussian.value),
            // Beyond one there may be the rounding of two factors, no more.
            gaussian.value <= 1.0 + 1e-12,
        ),
        check("ccc_above_1_for_laplace", peak(laplace), laplace.value > 1.0),
    ]
}

fn claims_3(curves: &CriteriaCurves) -> Vec<Claim> {
    let off =
        |label: &str| curves.named(label).iter().map(|y| (y - 1.0).abs()).fold(f64::NAN, f64::max);
    let (gaussian, uniform) = (off("Gaussian"), off("uniform"));
    let crossing = falls_below(&curves.x, curves.named("Rademacher-like"), 1.0 + 1e-9);
    let laplace = extremes(&curves.x, curves.named("Laplace"))[0].value;
    let [gauss, flat, least] = [gaussian, uniform, laplace].map(short);
    vec![
        check(
            "max_ccc_is_1",
            format!("largest distance from 1: Gaussian {gauss}, uniform {flat}"),
            gaussian == 0.0 && uniform == 0.0,
        ),
        check(
            "max_ccc_crosses_1_for_rademacher",
            match crossing {
                Some(r) => format!("CCC > 1 below R = {}", short(r)),
                None => "the curve does not cross 1".into(),
            },
            crossing.is_some_and(|r| near(r, 5.0, 0.05)),
        ),
        check("max_ccc_above_1_for_laplace", format!("smallest maximum {least}"), laplace > 1.0),
    ]
}

/// Whether each curve lies above the one before it, everywhere.
fn ordered(curves: &CriteriaCurves) -> bool {
    let above = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a < b);
    curves.curves.windows(2).all(|w| above(&w[0].y, &w[1].y))
}

fn claims_5(csc: &CriteriaCurves, ccc: &CriteriaCurves) -> Vec<Claim> {
    let peak = |label: &str| extremes(&ccc.x, ccc.named(label))[1].value;
    let [high, five, small] = ["df = 50", "df = 5", "df = 2.1"].map(peak);
    let rising = ordered(csc) && ordered(ccc);
    let extent = if rising { "at every c shown" } else { "but not at every c" };
    let [at_five, at_small] = [five, small].map(short);
    vec![
        differs(
            "criteria_grow_with_df",
            format!(
                "the opposite, {extent}: largest CCC {high:.4} at df = 50, {at_five} at 5, {at_small} at 2.1"
            ),
            rising,
        ),
        check("no_gain_at_high_df", format!("largest CCC at df = 50: {high:.4}"), high < 1.01),
        check("gain_at_small_df", format!("largest CCC at df = 2.1: {at_small}"), small > 3.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    fn curves(labels: &[&str], y: &[&[f64]]) -> CriteriaCurves {
        let x = (0..y[0].len()).map(|k| 1.0 + k as f64).collect();
        let curve = |(label, y): (&&str, &&[f64])| experiment::CriterionCurve {
            criterion: Criterion::Ccc,
            label: (*label).to_owned(),
            y: y.to_vec(),
        };
        CriteriaCurves { against: "c", x, curves: labels.iter().zip(y).map(curve).collect() }
    }

    fn verdicts(claims: Vec<Claim>) -> Vec<Verdict> {
        claims.iter().map(|c| c.verdict).collect()
    }

    #[test]
    fn claims_of_2a_fail_on_other_curves() {
        let labels = ["Gaussian", "Rademacher-like"];
        let good = curves(&labels, &[&[9.0, 2.0], &[8.0, 0.8]]);
        assert_eq!(verdicts(claims_2a(&good)), [Verdict::Holds, Verdict::Holds]);
        let bad = curves(&labels, &[&[0.9, 2.0], &[8.0, 1.1]]);
        assert_eq!(verdicts(claims_2a(&bad)), [Verdict::Fails, Verdict::Fails]);
    }

    #[test]
    fn claims_of_2b_and_3_fail_on_other_curves() {
        let labels = ["Gaussian", "Rademacher-like", "uniform", "Laplace"];
        let good = curves(&labels, &[&[0.9, 1.0], &[2.0, 2.5], &[0.5, 1.0], &[0.9, 1.2]]);
        assert!(claims_2b(&good).iter().all(|c| c.verdict == Verdict::Holds));
        let bad = curves(&labels, &[&[0.9, 1.01], &[2.5, 2.0], &[0.5, 1.0], &[0.9, 0.99]]);
        assert!(claims_2b(&bad).iter().all(|c| c.verdict == Verdict::Fails));
        let ones: &[f64] = &[1.0; 6];
        let crossing: &[f64] = &[9.0, 5.0, 3.0, 2.0, 1.0, 1.0];
        let good = curves(&labels, &[ones, crossing, ones, &[1.1; 6]]);
        assert_eq!(verdicts(claims_3(&good)), [Verdict::Holds; 3]);
        let off: &[f64] = &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0 + 1e-9];
        let late: &[f64] = &[9.0, 5.0, 3.0, 2.0, 1.9, 1.8];
        let bad = curves(&labels, &[ones, late, off, &[0.9; 6]]);
        assert_eq!(verdicts(claims_3(&bad)), [Verdict::Fails; 3]);
        assert_eq!(falls_below(&good.x, late, 1.0), None);
    }

    #[test]
    fn the_order_of_figure_5_is_checked_at_every_threshold() {
        let labels = ["df = 50", "df = 5", "df = 2.1"];
        let good = curves(&labels, &[&[0.6, 1.0], &[0.9, 1.2], &[2.0, 3.2]]);
        let crossed = curves(&labels, &[&[0.6, 1.0], &[0.5, 1.2], &[2.0, 3.2]]);
        assert_eq!(claims_5(&good, &good)[0].verdict, Verdict::Differs);
        assert_eq!(claims_5(&good, &crossed)[0].verdict, Verdict::Fails);
    }
}
