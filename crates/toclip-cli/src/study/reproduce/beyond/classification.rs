//! Clip in classification? Logistic regression with and without flipped labels.

use std::sync::Arc;

use anyhow::{Context, Result};
use rayon::prelude::*;
use toclip::Batch;
use toclip::ensemble::Ensemble;
use toclip::model::{
    GlmOde, GlmPath, GlmSgd, GlmSummary, Logistic, Overlaps, RateShape, TeacherModes, best_rate,
    ccc, fixed_point,
};
use toclip::policy::{OpenLoop, Schedule};
use toclip::spectrum::{Spectrum, Start};

use super::tuned_rate::{
    Simulated, Tuned, TunedCurve, agreement_claim, change, line_and_points, log_spaced,
    point_columns, rows,
};
use super::{FigureSection, RunSizes, check, digits, small_ensemble};
use crate::output::Table;
use crate::plot::{Axis, Chart, Figure, Series};
use crate::report::Claim;
use toclip_words::percent;

const FLIPS: [f64; 3] = [0.0, 0.1, 0.2];
const SHAPES: [(RateShape, &str); 2] =
    [(RateShape::Constant, "constant rate"), (RateShape::Cosine, "cosine rate")];
const DIM: u64 = 400;
const NORM: f64 = 3.0;
const TIME: f64 = 10.0;
/// Residuals of logistic regression are below one: the last is as good as no threshold.
const THRESHOLDS: (f64, f64) = (0.05, 1.0);
const POINTS: usize = 14;
/// The points of a curve that are simulated.
const SIMULATED: [usize; 3] = [3, 8, 13];
/// The error allowed to the theory, as a share of the loss and in units of 1/d.
const ALLOWED: f64 = 1.0;

/// One share of flipped labels and one shape of the rate.
struct LossCurve {
    flips: f64,
    shape: &'static str,
    /// The last point is unclipped.
    curve: TunedCurve,
    /// The losses at the end of all runs, at the points that were simulated.
    losses: Vec<Vec<f64>>,
}

/// The change of the mean of runs from that of others with the same seeds, as a share, and its standard
/// error.
fn change_of_mean(runs: &[f64], others: &[f64]) -> (f64, f64) {
    let (total, of_others): (f64, f64) = (runs.iter().sum(), others.iter().sum());
    let (ratio, n) = (total / of_others, runs.len() as f64);
    let squares: f64 = runs.iter().zip(others).map(|(x, y)| (x - ratio * y).powi(2)).sum();
    (ratio - 1.0, (squares / (n * (n - 1.0))).sqrt() * n / of_others)
}

impl LossCurve {
    fn new(
        modes: &TeacherModes,
        flips: f64,
        (shape, name): (RateShape, &'static str),
        ensemble: &Ensemble,
    ) -> Result<Self> {
        let model = Logistic::new(flips)?;
        let thresholds = log_spaced(THRESHOLDS, POINTS);
        let tuned = |&c: &f64| {
            let best = best_rate(modes, &model, Batch::single(), c, shape, TIME)?;
            Ok(Tuned { c: best.c, eta: best.eta, risk: best.loss })
        };
        let points = thresholds.par_iter().map(tuned).collect::<Result<Vec<_>>>()?;
        let (mut runs, mut losses) = (Vec::new(), Vec::new());
        for at in SIMULATED.iter().filter_map(|&k| points.get(k)) {
            let eta = shape.schedule(at.eta, TIME)?;
            let policy = Arc::new(OpenLoop::new(eta, Schedule::constant(at.c)?));
            let sgd = GlmSgd::new(modes, Arc::new(Logistic::new(flips)?), policy)?;
            let paths = sgd.runs(ensemble, &[TIME], &|| ())?;
            let band = GlmSummary::of(&sgd, &[TIME], &paths, &ensemble.probabilities)?;
            let end = |path: &GlmPath| Some(path.measures(sgd.model()).last()?.loss);
            losses.push(paths.values().filter_map(end).collect());
            let name = format!("{} at the best {name}, c = {}", labels(flips), digits(at.c));
            let (finished, allowed) = (band.diverged.is_empty(), (ALLOWED, modes.dim()));
            runs.push(Simulated::of(name, *at, &band.loss, finished, allowed));
        }
        Ok(LossCurve { flips, shape: name, curve: TunedCurve { points, runs }, losses })
    }

    fn unclipped(&self) -> Result<f64> {
        Ok(self.curve.points.last().context("no thresholds")?.risk)
    }
}

fn labels(flips: f64) -> String {
    match flips {
        0.0 => "clean labels".into(),
        flips => format!("{} flipped", percent(flips)),
    }
}

/// The loss relative to no clipping, in percent. Runs are compared with runs: in this dimension their
/// loss is not exactly that of the theory.
fn loss_chart(all: &[&LossCurve]) -> Result<Chart> {
    let shape = all.first().map_or("", |one| one.shape);
    let mut chart = Chart::new(&format!("Loss at the best {shape}"))
        .subtitle("theory (lines), C-SGD (points, ± 2 standard errors)")
        .x(Axis::log("threshold c"))
        .y(Axis::linear("change of the loss (%)"));
    for (slot, one) in all.iter().enumerate() {
        let free = one.unclipped()?;
        let relative = |loss: f64| 100.0 * (loss / free - 1.0);
        let theory = one.curve.points.iter().map(|at| (at.c, relative(at.risk)));
        let Some((open, clipped)) = one.losses.split_last() else { continue };
        let change = |losses: &Vec<f64>| change_of_mean(losses, open);
        let changes: Vec<(f64, f64)> = clipped.iter().map(change).collect();
        let at = one.curve.runs.iter().map(|run| run.at.c);
        let means = at.clone().zip(changes.iter().map(|change| 100.0 * change.0));
        chart = line_and_points(chart, (&labels(one.flips), slot), theory, means);
        for (c, (change, error)) in at.zip(&changes) {
            let ends = [change - 2.0 * error, change + 2.0 * error].map(|x| 100.0 * x);
            chart = chart.series(Series::line("", &[c, c], &ends).slot(slot));
        }
    }
    Ok(chart.hline(0.0, "no clipping"))
}

/// A curve against the threshold for every share of flipped labels.
fn threshold_chart(
    title: &str,
    y: Axis,
    of: impl Fn(&Logistic, f64) -> toclip::Result<f64>,
) -> Result<Chart> {
    let c = log_spaced(THRESHOLDS, 60);
    let mut chart = Chart::new(title).x(Axis::log("threshold c")).y(y);
    for (slot, flips) in FLIPS.into_iter().enumerate() {
        let model = Logistic::new(flips)?;
        let values: Vec<f64> = c.iter().map(|&c| of(&model, c)).collect::<toclip::Result<_>>()?;
        chart = chart.series(Series::line(&labels(flips), &c, &values).slot(slot));
    }
    Ok(chart.hline(1.0, ""))
}

/// The numbers that the claims are about.
struct Facts {
    /// (L(best c)/L(no clipping), L(smallest c)/L(no clipping)), at the constant rate and at the cosine.
    constant: Vec<(f64, f64)>,
    cosine: Vec<(f64, f64)>,
    /// κ at the smallest threshold with clean labels, and without clipping, in the order of the flips.
    stretched: f64,
    free: Vec<f64>,
    /// The largest difference of L(T) at c = 1 from that without clipping, relatively.
    at_one: f64,
}

fn claims(facts: &Facts) -> Vec<Claim> {
    let both = || facts.constant.iter().chain(&facts.cosine);
    let least = both().map(|x| x.0).fold(f64::INFINITY, f64::min);
    let costs: Vec<String> = facts.cosine.iter().map(|x| change(1.0, x.1)).collect();
    let shrinks = facts.cosine.windows(2).all(|w| w[1].1 < w[0].1);
    let free: Vec<String> = facts.free.iter().map(|&kappa| digits(kappa)).collect();
    let falls = facts.free.windows(2).all(|w| w[1] < w[0]);
    vec![
        check(
            "classification_gains_little",
            format!("lowest loss of any threshold, over that without: {}", change(1.0, least)),
            !facts.constant.is_empty() && least > 0.98 && least <= 1.0,
        ),
        check(
            "small_thresholds_cost",
            format!(
                "loss at c = {} over that without, best cosine rates, for flips {FLIPS:?}: {}",
                THRESHOLDS.0,
                costs.join(", ")
            ),
            shrinks && facts.cosine.first().is_some_and(|x| x.1 > 1.05),
        ),
        check(
            "clipping_stretches_the_norm",
            format!(
                "κ with clean labels: {} at c = {}; without clipping, for flips {FLIPS:?}: {}",
                digits(facts.stretched),
                THRESHOLDS.0,
                free.join(", ")
            ),
            facts.stretched > 2.0
                && falls
                && facts.free.first().is_some_and(|k| (k - 1.0).abs() < 1e-9),
        ),
        check(
            "residuals_are_below_one",
            format!(
                "largest difference of the loss at c = 1 from that without clipping: {:.1e}",
                facts.at_one
            ),
            facts.at_one < 1e-9,
        ),
    ]
}

fn table(all: &[LossCurve]) -> Table {
    let rows = rows(all.iter().map(|one| (one, &one.curve)));
    let table = Table::default()
        .numbers("flips", rows.iter().map(|row| row.0.flips))
        .text("rate", rows.iter().map(|row| row.0.shape.to_owned()));
    point_columns(table, &rows)
}

/// L(T) without a threshold, at the rate of the last point, which has c = 1.
fn without_threshold(modes: &TeacherModes, one: &LossCurve, shape: RateShape) -> Result<f64> {
    let at = one.curve.points.last().context("no thresholds")?;
    let policy = OpenLoop::unclipped(shape.schedule(at.eta, TIME)?);
    let model = Logistic::new(one.flips)?;
    let clipped = OpenLoop::new(shape.schedule(at.eta, TIME)?, Schedule::constant(at.c)?);
    let end = |policy: &OpenLoop| -> Result<f64> {
        let path = GlmOde::new(modes, &model, policy).solve(&[TIME])?;
        Ok(path.measures(&model).last().context("the ODE diverges")?.loss)
    };
    Ok((end(&clipped)? / end(&policy)? - 1.0).abs())
}

pub fn clip_or_not(sizes: &RunSizes) -> Result<FigureSection> {
    let modes = TeacherModes::new(&Spectrum::isotropic(DIM)?, &Start::Uniform { norm: NORM })?;
    let v = modes.overlaps().v;
    let ensemble = small_ensemble(sizes);
    let mut all = Vec::new();
    let mut at_one = 0.0f64;
    for shape in SHAPES {
        for flips in FLIPS {
            let one = LossCurve::new(&modes, flips, shape, &ensemble)?;
            at_one = at_one.max(without_threshold(&modes, &one, shape.0)?);
            all.push(one);
        }
    }
    let ends = |shape: &str| -> Result<Vec<(f64, f64)>> {
        let ratios = |one: &LossCurve| {
            let free = one.unclipped()?;
            let least = one.curve.points.iter().map(|at| at.risk).fold(f64::INFINITY, f64::min);
            let first = one.curve.points.first().context("no thresholds")?.risk;
            Ok((least / free, first / free))
        };
        all.iter().filter(|one| one.shape == shape).map(ratios).collect()
    };
    let kappa = |flips: f64, c: f64| -> Result<f64> {
        Ok(fixed_point(&Logistic::new(flips)?, v, c)?.kappa)
    };
    let facts = Facts {
        constant: ends(SHAPES[0].1)?,
        cosine: ends(SHAPES[1].1)?,
        stretched: kappa(0.0, THRESHOLDS.0)?,
        free: FLIPS.map(|flips| kappa(flips, f64::INFINITY)).into_iter().collect::<Result<_>>()?,
        at_one,
    };
    let of = |shape: &str| all.iter().filter(|one| one.shape == shape).collect::<Vec<_>>();
    // Halfway to the teacher.
    let halfway = Overlaps::new(0.5 * v, 0.6 * v, v)?;
    let figure = Figure::new("Clip in classification? Logistic regression")
        .columns(2)
        .chart(loss_chart(&of(SHAPES[0].1))?)
        .chart(loss_chart(&of(SHAPES[1].1))?)
        .chart(threshold_chart("Where small rates end: κθ*", Axis::linear("κ"), |model, c| {
            Ok(fixed_point(model, v, c)?.kappa)
        })?)
        .chart(threshold_chart(
            "CCC of the direction, halfway to the teacher",
            Axis::linear("CCC"),
            |model, c| ccc(model, &halfway, c),
        )?);
    let Ensemble { runs, seed, .. } = ensemble;
    let simulated = all.iter().flat_map(|one| &one.curve.runs);
    Ok(FigureSection::new("beyond-classification", "clip in classification?")
        .settings(format!(
            "logistic regression, isotropic, d = {DIM}, ‖θ*‖ = {NORM}, start at zero, T = {TIME}; constant c and \
             the rate that ends lowest with it; {runs} runs for each point, seed {seed}"
        ))
        .claims(claims(&facts))
        .claims([agreement_claim("classification_follows_its_ode", simulated, runs)])
        .figure(figure)
        .table(table(&all)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict::{Fails, Holds};

    #[test]
    fn claims_can_fail() {
        let verdicts = |facts: &Facts| claims(facts).iter().map(|c| c.verdict).collect::<Vec<_>>();
        let good = Facts {
            constant: vec![(0.99, 1.02)],
            cosine: vec![(1.0, 1.08), (1.0, 1.02)],
            stretched: 2.8,
            free: vec![1.0, 0.5, 0.3],
            at_one: 1e-15,
        };
        assert_eq!(verdicts(&good), [Holds; 4]);
        let bad = Facts {
            constant: vec![(0.8, 1.0)],
            cosine: vec![(1.0, 1.0)],
            stretched: 1.1,
            free: vec![1.0, 1.0],
            at_one: 1e-3,
        };
        assert_eq!(verdicts(&bad), [Fails; 4]);
        let none = Facts {
            constant: vec![],
            cosine: vec![],
            stretched: f64::NAN,
            free: vec![],
            at_one: f64::NAN,
        };
        assert_eq!(verdicts(&none), [Fails; 4]);
    }
}
