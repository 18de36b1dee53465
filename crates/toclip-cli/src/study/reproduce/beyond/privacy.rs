//! What privacy costs: the risk of one pass of private SGD, against the threshold and against ε.

use anyhow::{Context, Result};
use toclip::dynamics::Ode;
use toclip::ensemble::Ensemble;
use toclip::policy::PrivateGreedy;
use toclip::privacy::{Privacy, noise_multiplier};
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Batch, Step};

use super::tuned_rate::{
    Tuned, TunedCurve, TuningProblem, agreement_claim, change, log_spaced, point_columns, rows,
};
use super::{FigureSection, RunSizes, check, contaminated, digits, last, small_ensemble};
use crate::output::Table;
use crate::plot::{Axis, Chart, Figure, Series};
use crate::report::Claim;

const EPSILONS: [f64; 6] = [8.0, 4.0, 2.0, 1.0, 0.5, 0.25];
/// Those that are drawn against the threshold and simulated.
const DRAWN: [f64; 3] = [8.0, 2.0, 0.5];
const DELTA: f64 = 1e-6;
const DIM: u64 = 250;
const BATCH: u64 = 128;
const TIME: f64 = 3.0;
const THRESHOLDS: (f64, f64) = (0.01, 10.0);
const POINTS: usize = 25;
/// The points of a curve that are simulated.
const SIMULATED: [usize; 3] = [4, 12, 20];

/// One pass at one ε.
struct Pass {
    /// None for a pass without privacy.
    epsilon: Option<f64>,
    noise_multiplier: f64,
    /// With runs if it is drawn.
    curve: TunedCurve,
    /// R(T) of the best schedule η(t), c(t).
    schedule: f64,
}

impl Pass {
    fn new(modes: &Modes, epsilon: Option<f64>, ensemble: &Ensemble) -> Result<Self> {
        let sigma = epsilon.map_or(Ok(0.0), |epsilon| noise_multiplier(epsilon, DELTA))?;
        let step = Step::new(contaminated()?).with_batch(Batch::per_sample(BATCH)?)?;
        let step = step.with_privacy(Privacy::new(sigma)?)?;
        let problem =
            TuningProblem { modes, step: step.clone(), time: TIME, collapsed: true, ensemble };
        let curve = TunedCurve::new(&problem, &log_spaced(THRESHOLDS, POINTS))?;
        let mut pass = Pass { epsilon, noise_multiplier: sigma, curve, schedule: f64::NAN };
        if sigma > 0.0 {
            let greedy = PrivateGreedy::new(step.clone(), DIM)?;
            let ode = Ode::new(modes, &step, &greedy).tolerance(1e-6, 0.0);
            pass.schedule = last(&ode.solve(&[TIME])?);
        }
        if epsilon.is_none_or(|epsilon| DRAWN.contains(&epsilon)) {
            let name = pass.name();
            pass.curve.simulate(SIMULATED, &name, &problem)?;
        }
        Ok(pass)
    }

    fn name(&self) -> String {
        match self.epsilon {
            Some(epsilon) => format!("ε = {epsilon}"),
            None => "no privacy".into(),
        }
    }
}

fn against_threshold(drawn: &[&Pass]) -> Result<Chart> {
    let mut chart = Chart::new("Against the threshold")
        .subtitle("theory (lines), C-SGD (points)")
        .x(Axis::log("threshold c"))
        .y(Axis::log("R(T) at the best rate"));
    for (slot, pass) in drawn.iter().enumerate() {
        chart = pass.curve.draw(chart, &pass.name(), slot);
    }
    let best = drawn.iter().map(|pass| pass.curve.best()).collect::<Result<Vec<_>>>()?;
    let (c, risk): (Vec<f64>, Vec<f64>) = best.iter().map(|at| (at.c, at.risk)).unzip();
    Ok(chart.series(Series::points("best threshold", &c, &risk).slot(drawn.len())))
}

fn against_epsilon(private: &[Pass], none: &Pass) -> Result<Chart> {
    let epsilon: Vec<f64> = private.iter().filter_map(|pass| pass.epsilon).collect();
    let constants =
        private.iter().map(|pass| Ok(pass.curve.best()?.risk)).collect::<Result<Vec<f64>>>()?;
    let schedule: Vec<f64> = private.iter().map(|pass| pass.schedule).collect();
    Ok(Chart::new("Against ε")
        .x(Axis::log("ε of one pass"))
        .y(Axis::log("R(T)"))
        .line("best constant c and η", &epsilon, &constants)
        .line("best schedule", &epsilon, &schedule)
        .hline(none.curve.best()?.risk, "constants, no privacy"))
}

/// The numbers of one pass that the claims are about.
struct Ends {
    name: String,
    best: Tuned,
    /// R(T) at the smallest and the largest threshold of the sweep, over the best.
    small: f64,
    large: f64,
    schedule: f64,
}

impl Ends {
    fn new(pass: &Pass) -> Result<Self> {
        let best = pass.curve.best()?;
        let over = |at: Option<&Tuned>| at.map_or(f64::NAN, |at| at.risk / best.risk);
        let (small, large) = (over(pass.curve.points.first()), over(pass.curve.points.last()));
        Ok(Ends { name: pass.name(), best, small, large, schedule: pass.schedule })
    }
}

/// Without privacy first, then in the order of falling ε.
fn claims(all: &[Ends]) -> Vec<Claim> {
    let listed = |of: &dyn Fn(&Ends) -> String| {
        all.iter().map(|one| format!("{}: {}", one.name, of(one))).collect::<Vec<_>>().join("; ")
    };
    let pairs = || all.iter().zip(all.iter().skip(1));
    let private = all.get(1..).unwrap_or_default();
    let none = all.first().map_or(f64::NAN, |one| one.best.risk);
    let threshold = |one: &Ends| match one.best.c <= THRESHOLDS.0 {
        true => format!("{} or less", THRESHOLDS.0),
        false => digits(one.best.c),
    };
    let spread = |of: fn(&Ends) -> f64| {
        let values = private.iter().map(of);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)))
    };
    let (small, large) = (spread(|one| one.small), spread(|one| one.large));
    let gains = spread(|one| one.schedule / one.best.risk);
    let ((smallest, largest), small_cost) = (THRESHOLDS, change(1.0, small.1));
    let [from, to] = [large.0, large.1].map(digits);
    let [least, most] = [gains.0, gains.1].map(|gain| change(1.0, gain));
    vec![
        check(
            "best_threshold_falls_with_privacy",
            format!("best c: {}", listed(&threshold)),
            !private.is_empty()
                && pairs().all(|(weaker, stronger)| stronger.best.c <= weaker.best.c)
                && private.iter().all(|one| one.best.c < all[0].best.c),
        ),
        check(
            "small_thresholds_are_safe",
            format!(
                "R(T) over its lowest, each at the best rate: at c = {smallest} at most {small_cost}; at \
                 c = {largest} from {from} to {to}"
            ),
            small.1 < 1.1 && large.0 > 1.25,
        ),
        check(
            "privacy_costs_risk",
            format!(
                "lowest R(T), over that without privacy: {}",
                listed(&|one| digits(one.best.risk / none))
            ),
            !private.is_empty()
                && pairs().all(|(weaker, stronger)| stronger.best.risk > 1.2 * weaker.best.risk),
        ),
        check(
            "schedules_gain_in_private",
            format!("R(T) of the best schedule relative to the best constants: {least} to {most}"),
            gains.1 < 1.0,
        ),
    ]
}

fn table(all: &[Pass]) -> Table {
    let rows = rows(all.iter().map(|pass| (pass, &pass.curve)));
    let table = Table::default()
        .numbers("epsilon", rows.iter().map(|row| row.0.epsilon.unwrap_or(f64::INFINITY)))
        .numbers("noise_multiplier", rows.iter().map(|row| row.0.noise_multiplier));
    point_columns(table, &rows).numbers("best_schedule", rows.iter().map(|row| row.0.schedule))
}

pub fn what_it_costs(sizes: &RunSizes) -> Result<FigureSection> {
    let modes = Modes::new(&Spectrum::isotropic(DIM)?, &Start::Uniform { norm: 1.0 })?;
    let ensemble = small_ensemble(sizes);
    let epsilons = std::iter::once(None).chain(EPSILONS.map(Some));
    let all = epsilons
        .map(|epsilon| Pass::new(&modes, epsilon, &ensemble))
        .collect::<Result<Vec<_>>>()?;
    let samples = (TIME * modes.dim()).round() * BATCH as f64;
    let Ensemble { runs, seed, .. } = ensemble;
    let (none, private) = all.split_first().context("nothing was computed")?;
    let multipliers: Vec<String> =
        private.iter().map(|pass| digits(pass.noise_multiplier)).collect();
    let drawn: Vec<&Pass> = all.iter().filter(|pass| !pass.curve.runs.is_empty()).collect();
    let figure = Figure::new("What privacy costs: one pass of private SGD")
        .columns(2)
        .chart(against_threshold(&drawn)?)
        .chart(against_epsilon(private, none)?);
    let simulated = all.iter().flat_map(|pass| &pass.curve.runs);
    Ok(FigureSection::new("beyond-privacy", "what privacy costs")
        .settings(format!(
            "isotropic, d = {DIM}; noise 90% σ = 0.3, 10% σ = 3; batches of {BATCH}, T = {TIME}: one pass over \
             {samples} samples; δ = {DELTA:e}; noise multipliers {}; constant c and the constant η that \
             ends lowest with it; {runs} runs for each point, seed {seed}",
            multipliers.join(", ")
        ))
        .claims(claims(&all.iter().map(Ends::new).collect::<Result<Vec<_>>>()?))
        .claims([agreement_claim("private_follows_its_ode", simulated, runs)])
        .figure(figure)
        .table(table(&all)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict::{Fails, Holds};

    #[test]
    fn claims_can_fail() {
        let ends = |c, risk, small, large, schedule| {
            let best = Tuned { c, eta: 1.0, risk };
            Ends { name: "ε = 1".into(), best, small, large, schedule }
        };
        let none = || ends(0.8, 1.0, 1.4, 3.0, f64::NAN);
        let verdicts = |all: &[Ends]| claims(all).iter().map(|c| c.verdict).collect::<Vec<_>>();
        let good = [none(), ends(0.1, 2.0, 1.01, 20.0, 1.8), ends(0.05, 5.0, 1.0, 9.0, 4.0)];
        assert_eq!(verdicts(&good), [Holds; 4]);
        let bad = [none(), ends(0.1, 2.0, 1.5, 1.1, 2.1), ends(0.2, 1.5, 1.0, 9.0, 1.6)];
        assert_eq!(verdicts(&bad), [Fails; 4]);
        assert_eq!(verdicts(&[none()])[0], Fails);
    }
}
