//! Where skipping beats clipping, and where it fails.

use std::sync::Arc;

use anyhow::Result;
use rayon::prelude::*;
use toclip::criteria::best_threshold;
use toclip::dynamics::Ode;
use toclip::ensemble::Ensemble;
use toclip::noise::{Component, Mixture, Rademacher};
use toclip::policy::OpenLoop;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Rule, Step};

use super::tuned_rate::{Simulated, Tuned, TunedCurve, TuningProblem, agreement_claim, log_spaced};
use super::{ERRORS, FigureSection, RunSizes, check, digits, last, small_ensemble};
use crate::output::Table;
use crate::plot::{Axis, Chart, Figure};
use crate::report::Claim;
use toclip_words::percent;

const RULES: [Rule; 2] = [Rule::Clip, Rule::Skip];
/// Shares of samples with larger noise, and how many times as large it is.
const SHARES: [f64; 3] = [0.01, 0.1, 0.3];
const SIZES: (f64, f64) = (1.2, 100.0);
const USUAL: f64 = 0.5;
const RISK: f64 = 0.01;
/// Outliers of one size, for the failure: noise of variance one, one sample in five.
const OUTLIERS: f64 = 0.2;
const START: f64 = 0.1;
const DIM: u64 = 1000;
const ETA: f64 = 0.02;
const TIME: f64 = 60.0;
const THRESHOLDS: (f64, f64) = (0.3, 6.0);
const POINTS: usize = 121;
/// So near to the outliers, in units of their size, a threshold is among them.
const AMONG: f64 = 0.15;

/// The largest CCC of skipping over that of clipping, against the size of the outliers.
struct Gain {
    share: f64,
    sizes: Vec<f64>,
    gain: Vec<f64>,
}

impl Gain {
    fn new(share: f64, points: usize) -> Result<Self> {
        let sizes = log_spaced(SIZES, points);
        let component = |weight, std| Component { weight, mean: 0.0, std };
        let at = |size: &f64| -> Result<f64> {
            let (usual, wide) = (component(1.0 - share, USUAL), component(share, size * USUAL));
            let noise = Mixture::new(&[usual, wide])?;
            let ccc = |rule| Ok(best_threshold(&Step::new(&noise).with_rule(rule)?, RISK)?.ccc);
            let [clip, skip]: [Result<f64>; 2] = RULES.map(ccc);
            Ok(skip? / clip?)
        };
        let gain = sizes.par_iter().map(at).collect::<Result<_>>()?;
        Ok(Gain { share, sizes, gain })
    }

    /// The size from which on skipping gains more.
    fn crossing(&self) -> Option<f64> {
        let below = self.gain.iter().rposition(|gain| *gain <= 1.0)?;
        self.sizes.get(below + 1).copied()
    }
}

/// R(T) at a fixed rate against the threshold, of one rule.
struct Ends {
    rule: Rule,
    curve: TunedCurve,
}

fn modes(dim: u64) -> Result<Modes> {
    Ok(Modes::new(&Spectrum::isotropic(dim)?, &Start::Uniform { norm: START })?)
}

/// The size of the outliers.
fn outlier() -> f64 {
    OUTLIERS.sqrt().recip()
}

fn is_among_outliers(c: f64) -> bool {
    (c / outlier() - 1.0).abs() < AMONG
}

impl Ends {
    fn new(rule: Rule, modes: &Modes, c: &[f64], ensemble: &Ensemble) -> Result<Self> {
        let noise = Arc::new(Rademacher::from_sigma(1.0, OUTLIERS)?);
        let step = Step::new(noise).with_rule(rule.clone())?;
        let end = |&c: &f64| -> Result<Tuned> {
            let policy = OpenLoop::constant(ETA, c)?;
            let risk = last(&Ode::new(modes, &step, &policy).tolerance(1e-6, 0.0).solve(&[TIME])?);
            Ok(Tuned { c, eta: ETA, risk })
        };
        let points = c.par_iter().map(end).collect::<Result<Vec<_>>>()?;
        let mut curve = TunedCurve { points, runs: Vec::new() };
        let problem = TuningProblem { modes, step, time: TIME, collapsed: true, ensemble };
        let points = (0..c.len()).step_by(20);
        curve.simulate(points, rule.name(), &problem)?;
        Ok(Ends { rule, curve })
    }

    /// Runs away from the outliers, or among them.
    fn simulated(&self, among: bool) -> impl Iterator<Item = &Simulated> + Clone {
        self.curve.runs.iter().filter(move |run| is_among_outliers(run.at.c) == among)
    }

    fn worst(&self) -> Tuned {
        let none = Tuned { c: f64::NAN, eta: f64::NAN, risk: f64::NAN };
        self.curve.points.iter().copied().max_by(|a, b| a.risk.total_cmp(&b.risk)).unwrap_or(none)
    }
}

fn claims(gains: &[Gain], [clip, skip]: [Tuned; 2], start: f64) -> Vec<Claim> {
    let crossings: Vec<Option<f64>> = gains.iter().map(Gain::crossing).collect();
    let shown = |gain: &Gain| {
        let largest = gain.gain.iter().copied().fold(0.0, f64::max);
        let from =
            gain.crossing().map_or("never".into(), |size| format!("from {} times", digits(size)));
        format!("{} of samples: {from}, at most {} as much", percent(gain.share), digits(largest))
    };
    let [from, skipped, at_skip, clipped, at_clip] =
        [start, skip.risk, skip.c, clip.risk, clip.c].map(digits);
    vec![
        check(
            "skip_beats_clip_from_some_size_on",
            gains.iter().map(shown).collect::<Vec<_>>().join("; "),
            !gains.is_empty()
                && crossings.iter().all(|size| size.is_some_and(|size| (2.0..6.0).contains(&size))),
        ),
        check(
            "skip_fails_among_outliers",
            format!(
                "from R(0) = {from}: highest R({TIME}) {skipped} skipping (at c = {at_skip}), {clipped} \
                 clipping (at c = {at_clip})"
            ),
            skip.risk > 1.5 * clip.risk && skip.risk > start,
        ),
    ]
}

/// In d dimensions and in four times as many.
fn slow_claim(small: &Simulated, large: &Simulated) -> Claim {
    let [c, ode, first, second] = [small.at.c, small.at.risk, small.mean, large.mean].map(digits);
    let ([near, far], dim) = ([small.gap, large.gap].map(percent), 4 * DIM);
    let measured = format!(
        "skip at c = {c}: C-SGD ends at {first} in d = {DIM} and {second} in d = {dim}, the ODE at {ode}; \
         differences {near} and {far}"
    );
    let open = ERRORS * (large.standard_error / large.at.risk);
    check("skip_follows_slowly_among_outliers", measured, large.gap <= small.gap / 2.5 + open)
}

fn chart_of_gains(gains: &[Gain]) -> Chart {
    let chart = Chart::new("Largest CCC of skipping over that of clipping")
        .subtitle(&format!("a share of samples has larger noise; R = {RISK}"))
        .x(Axis::log("noise of the outliers over that of the others"))
        .y(Axis::linear("CCC of skip / CCC of clip"))
        .hline(1.0, "");
    let add = |chart: Chart, gain: &Gain| {
        chart.line(&format!("{} of samples", percent(gain.share)), &gain.sizes, &gain.gain)
    };
    gains.iter().fold(chart, add)
}

fn chart_of_ends(ends: &[Ends], start: f64) -> Chart {
    let mut chart = Chart::new("Outliers of one size: R(T) at the same rate")
        .subtitle("theory (lines), C-SGD (points)")
        .x(Axis::log("threshold c"))
        .y(Axis::log("R(T)"))
        .hline(start, "R(0)")
        .vline(outlier(), "outliers");
    for (slot, one) in ends.iter().enumerate() {
        chart = one.curve.draw(chart, one.rule.name(), slot);
    }
    chart
}

pub fn skip_or_clip(sizes: &RunSizes) -> Result<FigureSection> {
    let (start, c) = (modes(DIM)?, log_spaced(THRESHOLDS, POINTS));
    let gains = SHARES.map(|share| Gain::new(share, sizes.points.min(120)));
    let gains = gains.into_iter().collect::<Result<Vec<_>>>()?;
    let ensemble = small_ensemble(sizes);
    let ends = RULES.map(|rule| Ends::new(rule, &start, &c, &ensemble));
    let ends = ends.into_iter().collect::<Result<Vec<_>>>()?;
    let away = ends.iter().flat_map(|one| one.simulated(false));
    let mut claims = claims(&gains, [ends[0].worst(), ends[1].worst()], start.risk());
    claims.push(agreement_claim("skip_follows_its_ode", away, ensemble.runs));
    if let Some(among) = ends[1].simulated(true).next() {
        let larger = Ends::new(Rule::Skip, &modes(4 * DIM)?, &[among.at.c], &ensemble)?;
        claims.extend(larger.curve.runs.first().map(|larger| slow_claim(among, larger)));
    }
    let mut table = Table::default().numbers("outlier_size", gains[0].sizes.iter().copied());
    for gain in &gains {
        table = table.numbers(format!("gain_at_{}", gain.share), gain.gain.iter().copied());
    }
    let mut failure = Table::default().numbers("c", ends[0].curve.points.iter().map(|at| at.c));
    for Ends { rule, curve } in &ends {
        let mean = |at: &Tuned| curve.run_at(at).map_or(f64::NAN, |run| run.mean);
        failure = failure
            .numbers(format!("{}_ode", rule.name()), curve.points.iter().map(|at| at.risk))
            .numbers(format!("{}_sgd", rule.name()), curve.points.iter().map(mean));
    }
    let figure = Figure::new("Skip or clip?").columns(2);
    let figure = figure.chart(chart_of_gains(&gains)).chart(chart_of_ends(&ends, start.risk()));
    let title = "where skipping beats clipping, and where it fails";
    let mut section = FigureSection::new("beyond-skip", title)
        .settings(format!(
            "left: a share p of the samples has larger noise, the others σ = {USUAL}; right: Rademacher-like noise of \
             variance 1, p = {OUTLIERS}, isotropic, d = {DIM}, η = {ETA}, T = {TIME}; {} runs for \
             each point, seed {}",
            ensemble.runs, ensemble.seed
        ))
        .claims(claims)
        .figure(figure);
    section.tables.push(("beyond-skip-failure".into(), failure));
    Ok(section.table(table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict::{Fails, Holds};

    #[test]
    fn claims_can_fail() {
        let gain = |values: [f64; 3]| Gain {
            share: 0.1,
            sizes: vec![2.0, 4.0, 8.0],
            gain: values.to_vec(),
        };
        let at = |risk| Tuned { c: 1.0, eta: 0.2, risk };
        let verdicts = |values, clip, skip| {
            let all = claims(&[gain(values)], [at(clip), at(skip)], 0.05);
            all.iter().map(|c| c.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts([0.9, 1.1, 1.2], 0.05, 0.2), [Holds, Holds]);
        assert_eq!(verdicts([0.9, 0.9, 0.9], 0.05, 0.04), [Fails, Fails]);
        assert_eq!(verdicts([f64::NAN; 3], f64::NAN, f64::NAN), [Fails, Fails]);
    }
}
