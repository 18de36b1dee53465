//! One threshold for the whole gradient, or one for each group of coordinates?

use std::sync::Arc;

use anyhow::{Context, Result};
use rayon::prelude::*;
use toclip::dynamics::{Ode, linear_times};
use toclip::ensemble::Ensemble;
use toclip::noise::{Gaussian, Noise};
use toclip::spectrum::{Modes, Start};
use toclip::{Group, Groups, Rule, Step};

use super::tuned_rate::{
    Simulated, Tuned, TunedCurve, TuningProblem, agreement_claim, change, line_and_points,
    log_spaced,
};
use super::{
    FigureSection, RunSizes, SCALES, check, contaminated, digits, small_ensemble, two_scales,
};
use crate::output::Table;
use crate::plot::{Axis, Chart};
use crate::report::Claim;

const THRESHOLDS: (f64, f64) = (0.05, 5.0);
const POINTS: usize = 17;
/// c₂/c₁ from a tenth to a hundred, with 1 among them.
const RATIOS: (f64, f64) = (0.1, 100.0);
const RATIO_POINTS: usize = 13;
const TIME: f64 = 20.0;

/// The lowest R(T) at every ratio of the two thresholds, under one noise.
struct RatioCurve {
    name: &'static str,
    noise: Arc<dyn Noise>,
    at: Vec<(f64, Tuned)>,
    /// Clipped by the norm of the whole gradient.
    global: Tuned,
}

fn groups(ratio: f64) -> toclip::Result<Groups> {
    let [first, second] = SCALES.map(|block| block.multiplicity);
    Groups::new(&[Group { size: first, ratio: 1.0 }, Group { size: second, ratio }])
}

fn modes() -> Result<Modes> {
    Ok(Modes::grouped(&two_scales()?, &Start::Uniform { norm: 1.0 }, &groups(1.0)?.sizes())?)
}

/// A step that clips each group at its own threshold.
fn per_group(noise: &Arc<dyn Noise>, ratio: f64) -> toclip::Result<Step<'static>> {
    Step::new(Arc::clone(noise)).with_rule(Rule::PerGroup(groups(ratio)?))
}

fn problem<'a>(modes: &'a Modes, step: Step<'static>, ensemble: &'a Ensemble) -> TuningProblem<'a> {
    TuningProblem { modes, step, time: TIME, collapsed: false, ensemble }
}

impl RatioCurve {
    fn new(
        name: &'static str,
        noise: Arc<dyn Noise>,
        modes: &Modes,
        ensemble: &Ensemble,
    ) -> Result<Self> {
        let c = log_spaced(THRESHOLDS, POINTS);
        let lowest = |step| TunedCurve::new(&problem(modes, step, ensemble), &c)?.best();
        let at = log_spaced(RATIOS, RATIO_POINTS)
            .into_par_iter()
            .map(|ratio| Ok((ratio, lowest(per_group(&noise, ratio)?)?)))
            .collect::<Result<_>>()?;
        let global = lowest(Step::new(Arc::clone(&noise)))?;
        Ok(RatioCurve { name, noise, at, global })
    }

    /// The mean of runs at the point nearest to a ratio.
    fn simulate(&self, ratio: f64, modes: &Modes, ensemble: &Ensemble) -> Result<(f64, Simulated)> {
        let (ratio, at) = self.near(ratio)?;
        let name = format!("c₂/c₁ = {} ({})", digits(ratio), self.name);
        let problem = problem(modes, per_group(&self.noise, ratio)?, ensemble);
        Ok((ratio, Simulated::new(name, at, &problem)?))
    }

    /// The ratio that ends lowest.
    fn best(&self) -> Result<(f64, Tuned)> {
        let lowest = self.at.iter().min_by(|a, b| a.1.risk.total_cmp(&b.1.risk));
        lowest.copied().context("no ratios")
    }

    /// The point nearest to a ratio.
    fn near(&self, ratio: f64) -> Result<(f64, Tuned)> {
        let off = |at: &&(f64, Tuned)| (at.0 / ratio).ln().abs();
        let nearest = self.at.iter().min_by(|a, b| off(a).total_cmp(&off(b)));
        nearest.copied().context("no ratios")
    }
}

/// The largest relative difference of R between one threshold for each group, all equal, and one
/// for the whole gradient.
fn off_global(modes: &Modes, curve: &RatioCurve) -> Result<f64> {
    let (times, policy) = (linear_times(TIME, 21)?, curve.global.policy()?);
    let whole = Ode::new(modes, Step::new(Arc::clone(&curve.noise)), &*policy).solve(&times)?;
    let each = Ode::new(modes, per_group(&curve.noise, 1.0)?, &*policy).solve(&times)?;
    let off = whole.risk.iter().zip(&each.risk).map(|(a, b)| (b / a - 1.0).abs());
    Ok(off.fold(0.0, f64::max))
}

/// R(T) of one curve: clipped globally, at the best ratio and with the second group unclipped.
struct Ends {
    global: f64,
    ratio: f64,
    best: f64,
    open: f64,
}

impl Ends {
    fn new(curve: &RatioCurve) -> Result<Self> {
        let (ratio, at) = curve.best()?;
        let open = curve.near(RATIOS.1)?.1.risk;
        Ok(Ends { global: curve.global.risk, ratio, best: at.risk, open })
    }
}

fn claims(off: f64, gaussian: &Ends, outliers: &Ends) -> Vec<Claim> {
    let measured = |ends: &Ends| {
        let [global, best, ratio] = [ends.global, ends.best, ends.ratio].map(digits);
        let change = change(ends.global, ends.best);
        format!("R(T) {global} globally, {best} at c₂/c₁ = {ratio} ({change})")
    };
    let (open, change) = (digits(outliers.open), change(outliers.global, outliers.open));
    let gains = |ends: &Ends| ends.best < 0.95 * ends.global && ends.ratio > 1.0;
    vec![
        check(
            "equal_thresholds_are_global",
            format!("largest difference of R over t ≤ {TIME}: {off:.0e}"),
            off < 1e-6,
        ),
        check("groups_gain_without_outliers", measured(gaussian), gains(gaussian)),
        check("groups_gain_with_outliers", measured(outliers), gains(outliers)),
        check(
            "an_open_group_lets_outliers_in",
            format!("R(T) with the second group at 100 c₁: {open} ({change} from global)"),
            outliers.open > outliers.global,
        ),
    ]
}

pub fn global_or_per_group(sizes: &RunSizes) -> Result<FigureSection> {
    let modes = modes()?;
    let dims = modes.group_dims();
    let same = (dims[0] / dims[1]).sqrt();
    let ensemble = small_ensemble(sizes);
    let curve = |name, noise| RatioCurve::new(name, noise, &modes, &ensemble);
    let curves = [
        curve("Gaussian noise, σ = 0.5", Arc::new(Gaussian::new(0.5)?))?,
        curve("90% σ = 0.3, 10% σ = 3", contaminated()?)?,
    ];
    let mut simulated: Vec<Vec<(f64, Simulated)>> = Vec::new();
    for curve in &curves {
        let runs = [0.25, 1.0, 4.0].map(|ratio| curve.simulate(ratio, &modes, &ensemble));
        simulated.push(runs.into_iter().collect::<Result<_>>()?);
    }
    let mut chart = Chart::new("One threshold for each group of coordinates")
        .subtitle("λ = 1 at c₁, λ = 0.1 at c₂; theory (lines), C-SGD (points)")
        .x(Axis::log("ratio of the thresholds c₂/c₁"))
        .y(Axis::log("R(T) at the best c₁ and rate"))
        .vline(1.0, "as global")
        .vline(same, "same norm");
    let mut table = Table::default().numbers("ratio", curves[0].at.iter().map(|(ratio, _)| *ratio));
    for (slot, (curve, runs)) in curves.iter().zip(&simulated).enumerate() {
        let theory = curve.at.iter().map(|(ratio, at)| (*ratio, at.risk));
        let means = runs.iter().map(|(ratio, run)| (*ratio, run.mean));
        chart = line_and_points(chart, (curve.name, slot), theory, means);
        let name = ["gaussian", "outliers"][slot];
        let mean =
            |ratio: f64| runs.iter().find(|run| run.0 == ratio).map_or(f64::NAN, |r| r.1.mean);
        table = table
            .numbers(format!("{name}_c1"), curve.at.iter().map(|(_, at)| at.c))
            .numbers(format!("{name}_eta"), curve.at.iter().map(|(_, at)| at.eta))
            .numbers(format!("{name}_ode"), curve.at.iter().map(|(_, at)| at.risk))
            .numbers(format!("{name}_sgd"), curve.at.iter().map(|(ratio, _)| mean(*ratio)));
    }
    let off = off_global(&modes, &curves[1])?;
    let Ensemble { runs, seed, .. } = ensemble;
    let simulated = simulated.iter().flatten().map(|(_, run)| run);
    Ok(FigureSection::new("beyond-groups", "clip globally or per group?")
        .settings(format!(
            "300 dimensions with λ = 1 (d₁ = {}) and 500 with λ = 0.1 (d₂ = {}), clipped at c₁√d₁ and \
             c₂√d₂; the best constant c₁ and η for each ratio; T = {TIME}; {runs} runs for each point, \
             seed {seed}",
            dims[0], dims[1]
        ))
        .claims(claims(off, &Ends::new(&curves[0])?, &Ends::new(&curves[1])?))
        .claims([agreement_claim("groups_follow_their_ode", simulated, runs)])
        .figure(chart)
        .table(table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict::{Fails, Holds};

    #[test]
    fn claims_can_fail() {
        let ends = |ratio, best, open| Ends { global: 1.0, ratio, best, open };
        let verdicts = |off, a: &Ends, b: &Ends| {
            claims(off, a, b).iter().map(|c| c.verdict).collect::<Vec<_>>()
        };
        let good = ends(3.0, 0.8, 1.1);
        assert_eq!(verdicts(1e-10, &good, &good), [Holds; 4]);
        // Equal to global nowhere, no gain, a gain on the other side, an open group that helps.
        let (none, other) = (ends(1.0, 1.0, 1.0), ends(0.5, 0.8, 0.9));
        assert_eq!(verdicts(1e-3, &none, &other), [Fails; 4]);
    }
}
