//! Clip in classification? Logistic regression with and without flipped labels.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use rayon::prelude::*;
use toclip::Problem;
use toclip::dynamics::{Sgd, Simulator, Trajectory};
use toclip::ensemble::{Ensemble, Summary};
use toclip::model::{Logistic, Overlaps, Quantity, ccc, fixed_point};
use toclip::policy::{OpenLoop, Schedule};
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::tuning::{RateShape, tune_rate};

use super::facts::Facts;
use super::figure_file::{ChartFile, FigureFile};
use super::tuned::{
    self, Simulated, Tuned, TunedCurve, agreement_claim, line_and_points, log_spaced,
};
use super::{FigureSection, RunSizes, digits};
use crate::plot::{Chart, Series};
use toclip_words::percent;

const FLIPS: [f64; 3] = [0.0, 0.1, 0.2];
const SHAPES: [(RateShape, &str); 2] =
    [(RateShape::Constant, "constant rate"), (RateShape::Cosine, "cosine rate")];
const TIME: f64 = 10.0;
/// The points of a curve that are simulated.
const SIMULATED: [usize; 3] = [3, 8, 13];
/// The error allowed to the theory, as a share of the loss and in units of 1/d.
const ALLOWED: f64 = 1.0;

/// One share of flipped labels and one shape of the rate.
struct LossCurve {
    flips: f64,
    /// Residuals are below one: the last point, at c = 1, is unclipped.
    curve: TunedCurve,
    /// The losses at the end of all runs, at the points that were simulated.
    losses: Vec<Vec<f64>>,
}

impl LossCurve {
    fn new(
        (modes, flips): (&Modes, f64),
        (shape, name): (RateShape, &str),
        (c, ensemble): (&[f64], &Ensemble),
    ) -> Result<Self> {
        let open = OpenLoop::constant(1.0, f64::INFINITY)?;
        let problem = Problem::of_model(modes.clone(), Logistic::new(flips)?, open)?;
        let tuned = |&c: &f64| {
            let best = tune_rate(&problem, c, shape, TIME)?;
            Ok(Tuned { c: best.c, eta: best.eta, risk: best.end })
        };
        let points = c.par_iter().map(tuned).collect::<Result<Vec<_>>>()?;
        let (mut runs, mut losses) = (Vec::new(), Vec::new());
        let name = format!("{}, {name}", labels(flips));
        for at in SIMULATED.iter().filter_map(|&k| points.get(k)) {
            let policy = OpenLoop::new(shape.schedule(at.eta, TIME)?, Schedule::constant(at.c)?);
            let sgd = Sgd::new(&problem.with_policy(policy)?)?;
            let run = |index: u64| (index, sgd.run(ensemble.seed, index, &[TIME]));
            let paths: BTreeMap<_, _> = (0..ensemble.runs).into_par_iter().map(run).collect();
            let band = Summary::of(&[TIME], &paths, &ensemble.probabilities)?;
            let loss = band.get(Quantity::Loss).context("the runs have no loss")?;
            let end = |path: &Trajectory| Some(path.measures.as_ref()?.last()?.loss);
            losses.push(paths.values().filter_map(end).collect());
            let name = format!("{name}, c = {}", digits(at.c));
            let (finished, allowed) = (band.diverged.is_empty(), (ALLOWED, modes.dim()));
            runs.push(Simulated::of(name, *at, loss, finished, allowed));
        }
        Ok(LossCurve { flips, curve: TunedCurve { name, points, runs }, losses })
    }

    /// The loss relative to no clipping, in percent. Runs are compared with runs: in this dimension
    /// their loss is not exactly that of the theory.
    fn draw(&self, mut chart: Chart, slot: usize) -> Chart {
        let (Some(free), Some((open, clipped))) =
            (self.curve.points.last(), self.losses.split_last())
        else {
            return chart;
        };
        let theory = self.curve.points.iter().map(|at| (at.c, 100.0 * (at.risk / free.risk - 1.0)));
        let at = self.curve.runs.iter().map(|run| run.at.c);
        let runs = at.zip(clipped.iter().map(|losses| change_of_mean(losses, open)));
        let means = runs.clone().map(|(c, (change, _))| (c, 100.0 * change));
        chart = line_and_points(chart, (&labels(self.flips), slot), theory, means);
        for (c, (change, error)) in runs {
            let ends = [change - 2.0 * error, change + 2.0 * error].map(|x| 100.0 * x);
            chart = chart.series(Series::line("", &[c, c], &ends).slot(slot));
        }
        chart
    }
}

/// The change of the mean of runs from that of others with the same seeds, as a share, and its standard
/// error.
fn change_of_mean(runs: &[f64], others: &[f64]) -> (f64, f64) {
    let (total, of_others): (f64, f64) = (runs.iter().sum(), others.iter().sum());
    let (ratio, n) = (total / of_others, runs.len() as f64);
    let squares: f64 = runs.iter().zip(others).map(|(x, y)| (x - ratio * y).powi(2)).sum();
    (ratio - 1.0, (squares / (n * (n - 1.0))).sqrt() * n / of_others)
}

fn labels(flips: f64) -> String {
    match flips {
        0.0 => "clean labels".into(),
        flips => format!("{} flipped", percent(flips)),
    }
}

/// A curve against the threshold for every share of flipped labels.
fn threshold_chart(
    file: &ChartFile,
    c: &[f64],
    of: impl Fn(&Logistic, f64) -> toclip::Result<f64>,
) -> Result<Chart> {
    let mut chart = file.chart().hline(1.0, "");
    for (slot, flips) in FLIPS.into_iter().enumerate() {
        let model = Logistic::new(flips)?;
        let values: Vec<f64> = c.iter().map(|&c| of(&model, c)).collect::<toclip::Result<_>>()?;
        chart = chart.series(Series::line(&labels(flips), c, &values).slot(slot));
    }
    Ok(chart)
}

pub fn clip_or_not(file: &FigureFile, sizes: &RunSizes) -> Result<FigureSection> {
    let thresholds = file.thresholds.as_ref().context("the figure has no thresholds")?;
    let range = (thresholds.from, thresholds.to);
    let (teacher, start) = (Start::Uniform { norm: 3.0 }, Start::Uniform { norm: 0.0 });
    let modes = Modes::with_teacher(&Spectrum::isotropic(400)?, &teacher, &start)?;
    let start = Overlaps::at_start(&modes).context("the modes have no teacher")?;
    let (v, c, ensemble) = (start.v, log_spaced(range, thresholds.count), &file.ensemble(sizes));
    let [constant, cosine, fixed_points, direction] = &file.charts[..] else {
        anyhow::bail!("expected four charts");
    };
    let kappa = |model: &Logistic, c: f64| Ok(fixed_point(model, v, c)?.kappa);
    let (mut facts, mut charts, mut all) = (Facts::default(), Vec::new(), Vec::new());
    for (shape, of) in SHAPES.into_iter().zip([constant, cosine]) {
        let mut chart = of.chart();
        for (slot, flips) in FLIPS.into_iter().enumerate() {
            let one = LossCurve::new((&modes, flips), shape, (&c, ensemble))?;
            one.curve.facts(&mut facts)?;
            chart = one.draw(chart, slot);
            all.push(one);
        }
        charts.push(chart.hline(0.0, "no clipping"));
    }
    for flips in FLIPS {
        let model = Logistic::new(flips)?;
        let ends = [kappa(&model, f64::INFINITY)?, kappa(&model, range.0)?];
        facts.add(&labels(flips), [("kappa", ends[0]), ("clipped_kappa", ends[1])]);
    }
    // Halfway to the teacher.
    let halfway = Overlaps::new(0.5 * v, 0.6 * v, v)?;
    let fine = log_spaced(range, 60);
    charts.push(threshold_chart(fixed_points, &fine, kappa)?);
    charts.push(threshold_chart(direction, &fine, |model, c| ccc(model, &halfway, c))?);
    let runs = all.iter().flat_map(|one| &one.curve.runs);
    Ok(file
        .section(charts, &facts, sizes)?
        .claims([agreement_claim(&file.agreement, runs, ensemble.runs)])
        .table(tuned::table(all.iter().map(|one| &one.curve))))
}
