//! One threshold for the whole gradient, or one for each group of coordinates?

use anyhow::{Context, Result};
use rayon::prelude::*;
use toclip::dynamics::{Ode, linear_times};
use toclip::ensemble::Ensemble;
use toclip::policy::OpenLoop;
use toml::Table as Toml;

use super::facts::Facts;
use super::figure_file::{CurveFile, FigureFile};
use super::tuned::{
    Simulated, Tuned, TunedCurve, TuningProblem, agreement_claim, line_and_points, log_spaced,
};
use super::{FigureSection, RunSizes, digits};
use crate::experiment::{Experiment, Prepared};
use crate::output::Table;

/// c₂/c₁ from a tenth to a hundred, with 1 among them.
const RATIOS: (f64, f64) = (0.1, 100.0);
const RATIO_POINTS: usize = 13;

/// The ratios that are simulated.
const SIMULATED: [usize; 3] = [2, 4, 6];

/// The groups of the spectrum's two scales, the second with its threshold at this ratio to the first.
fn groups(ratio: f64) -> Result<Toml> {
    Ok(format!("groups = [{{ size = 300 }}, {{ size = 500, ratio = {ratio:?} }}]").parse()?)
}

/// A noise, and the lowest R(T) at every ratio of the two thresholds.
struct RatioCurve<'a> {
    file: &'a FigureFile,
    curve: &'a CurveFile,
    ensemble: &'a Ensemble,
}

impl RatioCurve<'_> {
    /// With groups at this ratio; without groups if there is none.
    fn prepared(&self, ratio: Option<f64>) -> Result<(Experiment, Prepared)> {
        let mut set = self.curve.set.clone();
        if let Some(ratio) = ratio {
            set.extend(groups(ratio)?);
        }
        self.file.prepared(&set)
    }

    /// The threshold that ends lowest, and the mean of runs with it if asked for.
    fn best(&self, ratio: Option<f64>, c: &[f64], run: bool) -> Result<(Tuned, Option<Simulated>)> {
        let (Experiment { time, .. }, Prepared { problem, .. }) = self.prepared(ratio)?;
        let (problem, ensemble) = (&problem, self.ensemble);
        let tuning = TuningProblem { problem, time, rate: None, collapsed: false, ensemble };
        let best = TunedCurve::new("", &tuning, c, &[])?.best()?;
        let name = || format!("c₂/c₁ = {} ({})", ratio.map_or("1".into(), digits), self.curve.name);
        let runs = run.then(|| tuning.simulate(&name(), best)).transpose()?;
        Ok((best, runs))
    }

    /// The largest relative difference of R between one threshold for each group, all equal, and one
    /// for the whole gradient.
    fn off_global(&self, at: &Tuned) -> Result<f64> {
        let policy = OpenLoop::constant(at.eta, at.c)?;
        let path = |ratio| -> Result<Vec<f64>> {
            let (experiment, prepared) = self.prepared(ratio)?;
            let times = linear_times(experiment.time, 21)?;
            let problem = prepared.problem.with_policy(policy.clone())?;
            Ok(Ode::new(&problem)?.solve(&times)?.risk)
        };
        let (whole, each) = (path(None)?, path(Some(1.0))?);
        Ok(whole.iter().zip(&each).map(|(a, b)| (b / a - 1.0).abs()).fold(0.0, f64::max))
    }
}

pub fn global_or_per_group(file: &FigureFile, sizes: &RunSizes) -> Result<FigureSection> {
    let thresholds = file.thresholds.as_ref().context("the figure has no thresholds")?;
    let of = file.charts.first().context("the figure has no charts")?;
    let (ratios, ensemble) = (log_spaced(RATIOS, RATIO_POINTS), &file.ensemble(sizes));
    let c = log_spaced((thresholds.from, thresholds.to), thresholds.count);
    let mut chart = of.chart().vline(1.0, "as global").vline(6.0_f64.sqrt(), "same norm");
    let mut table = Table::default().numbers("ratio", ratios.iter().copied());
    let (mut facts, mut simulated) = (Facts::default(), Vec::new());
    for (slot, curve) in of.curves.iter().enumerate() {
        let key = curve.key.as_deref().unwrap_or(&curve.name);
        let noise = RatioCurve { file, curve, ensemble };
        let (global, _) = noise.best(None, &c, false)?;
        let at = ratios.par_iter().enumerate();
        let at = at.map(|(k, &ratio)| noise.best(Some(ratio), &c, SIMULATED.contains(&k)));
        let at = at.collect::<Result<Vec<_>>>()?;
        let risk = |k: usize| at[k].0.risk;
        let best = (0..at.len()).min_by(|&a, &b| risk(a).total_cmp(&risk(b)));
        let best = best.context("no ratios")?;
        let open = at.last().context("no ratios")?.0.risk;
        facts.add(key, [("global", global.risk), ("best", risk(best)), ("ratio", ratios[best])]);
        facts.add(key, [("open", open), ("off_global", noise.off_global(&global)?)]);
        let mean = |run: &Option<Simulated>| run.as_ref().map_or(f64::NAN, |run| run.mean);
        let theory = ratios.iter().zip(&at).map(|(ratio, at)| (*ratio, at.0.risk));
        let runs = ratios.iter().zip(&at).filter(|(_, at)| at.1.is_some());
        let runs = runs.map(|(ratio, at)| (*ratio, mean(&at.1)));
        chart = line_and_points(chart, (&curve.name, slot), theory, runs);
        table = table
            .numbers(format!("{key}_c1"), at.iter().map(|at| at.0.c))
            .numbers(format!("{key}_eta"), at.iter().map(|at| at.0.eta))
            .numbers(format!("{key}_ode"), at.iter().map(|at| at.0.risk))
            .numbers(format!("{key}_sgd"), at.iter().map(|at| mean(&at.1)));
        simulated.extend(at.into_iter().filter_map(|at| at.1));
    }
    Ok(file
        .section([chart], &facts, sizes)?
        .claims([agreement_claim(&file.agreement, &simulated, ensemble.runs)])
        .table(table))
}
