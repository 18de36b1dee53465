//! What momentum changes, and when it is only another learning rate.

use std::sync::Arc;

use anyhow::{Context, Result};
use rayon::prelude::*;
use toclip::dynamics::{Ode, Sgd, Simulator, linear_times};
use toclip::ensemble::Ensemble;
use toclip::noise::Gaussian;
use toclip::policy::OpenLoop;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Memory, Momentum};

use super::{
    Agreement, ERRORS, FigureSection, RunSizes, add_path, check, digits, last, small_ensemble,
};
use crate::output::Table;
use crate::plot::{Axis, Chart, Figure};
use crate::report::Claim;
use toclip_words::percent;

const DELTAS: [f64; 3] = [10.0, 2.0, 0.5];
const BETAS: [f64; 5] = [0.5, 0.8, 0.9, 0.95, 0.98];
const ETA: f64 = 0.6;
const CLIP: f64 = 0.9;
const SIGMA: f64 = 0.5;
const DIM: u64 = 500;
const TIME: f64 = 12.0;
/// Over this time β is compared with plain SGD, where the risk falls.
const DESCENT: f64 = 5.0;
/// Long enough to have forgotten the start at every δ.
const LONG: f64 = 60.0;

fn problem() -> Result<(Modes, Arc<Gaussian>)> {
    let modes = Modes::new(&Spectrum::isotropic(DIM)?, &Start::Uniform { norm: 1.0 })?;
    Ok((modes, Arc::new(Gaussian::new(SIGMA)?)))
}

fn policy(eta: f64) -> toclip::Result<OpenLoop> {
    OpenLoop::constant(eta, CLIP)
}

/// Heavy ball at lr = η(1−β), against plain SGD at η.
struct Rescaled {
    beta: f64,
    /// When the ODEs differ most, and by how much of R.
    at: f64,
    ode: f64,
    /// The same of C-SGD at that time, both with the same samples, and its standard error.
    sgd: f64,
    standard_error: f64,
}

impl Rescaled {
    fn new(beta: f64, sizes: &RunSizes) -> Result<Self> {
        let (modes, noise) = problem()?;
        let (slow, fast) = (policy(ETA * (1.0 - beta))?, policy(ETA)?);
        let heavy_ball = Momentum::heavy_ball(Memory::Beta(beta))?;
        let times = linear_times(DESCENT, 101)?;
        let plain = Ode::new(&modes, &*noise, &fast).solve(&times)?;
        let with = Ode::new(&modes, &*noise, &slow).with_momentum(heavy_ball).solve(&times)?;
        let gaps = with.risk.iter().zip(&plain.risk).map(|(with, plain)| with / plain - 1.0);
        let largest = times.iter().zip(gaps).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        let (&at, ode) = largest.context("no times")?;
        let sgd = Sgd::new(&modes, Arc::clone(&noise), Arc::new(fast))?;
        let ball = Sgd::new(&modes, noise, Arc::new(slow))?.with_momentum(heavy_ball)?;
        let run = |index: u64| {
            let end = |sgd: &Sgd| last(&sgd.run(sizes.seed, index, &[at]));
            (end(&ball), end(&sgd))
        };
        let runs: Vec<(f64, f64)> =
            (0..small_ensemble(sizes).runs).into_par_iter().map(run).collect();
        let (sgd, standard_error) = paired(&runs);
        Ok(Rescaled { beta, at, ode, sgd, standard_error })
    }

    /// ½·β/((1−β)d).
    fn expected(&self) -> f64 {
        0.5 * self.beta / ((1.0 - self.beta) * DIM as f64)
    }
}

/// The relative difference of the means of pairs, and its standard error.
fn paired(runs: &[(f64, f64)]) -> (f64, f64) {
    let n = runs.len() as f64;
    let plain = runs.iter().map(|pair| pair.1).sum::<f64>() / n;
    let differences: Vec<f64> = runs.iter().map(|(with, plain)| with - plain).collect();
    let mean = differences.iter().sum::<f64>() / n;
    let squares: f64 = differences.iter().map(|x| (x - mean).powi(2)).sum();
    (mean / plain, (squares / (n - 1.0) / n).sqrt() / plain)
}

/// `memories` are δ and the risk after a long time, which is `plain` without momentum.
fn claims(all: &[Rescaled], plain: f64, memories: &[(f64, f64)]) -> Vec<Claim> {
    // Half of β/((1−β)d), within a third of it, four standard errors and the 1/d that an ODE is off.
    let near = |one: &Rescaled, gap: f64, errors: f64| {
        let open = one.expected() / 3.0 + 0.5 / DIM as f64;
        (gap - one.expected()).abs() <= open + ERRORS * errors
    };
    let describe = |one: &Rescaled| {
        let [sgd, error, ode, expected] =
            [one.sgd, one.standard_error, one.ode, one.expected()].map(percent);
        let beta = one.beta;
        format!(
            "β = {beta}: {sgd} in C-SGD (± {error}), {ode} in the ODE, ½β/((1−β)d) = {expected}"
        )
    };
    let shown: Vec<String> = all.iter().map(describe).collect();
    let deltas: Vec<String> = memories.iter().map(|(delta, _)| digits(*delta)).collect();
    let off = memories.iter().map(|(_, stationary)| (stationary / plain - 1.0).abs());
    let off = off.fold(f64::NAN, f64::max);
    vec![
        check(
            "beta_rescales_the_rate",
            format!(
                "largest difference of R over t ≤ {DESCENT} at d = {DIM}: {}",
                shown.join("; ")
            ),
            !all.is_empty()
                && all
                    .iter()
                    .all(|one| near(one, one.ode, 0.0) && near(one, one.sgd, one.standard_error)),
        ),
        check(
            "memory_does_not_change_the_end",
            format!(
                "R({LONG}) without momentum {}; δ = {}: largest difference {off:.0e}",
                digits(plain),
                deltas.join(", ")
            ),
            off < 1e-3,
        ),
    ]
}

pub fn with_or_without(sizes: &RunSizes) -> Result<FigureSection> {
    let (modes, noise) = problem()?;
    let policy = policy(ETA)?;
    let times = linear_times(TIME, 61)?;
    let saved: Vec<f64> = times.iter().copied().chain([LONG]).collect();
    let mut chart = Chart::new("Risk over time: theory (lines), C-SGD (points)")
        .subtitle("δ = (1−β)d; the memory lasts a time 1/δ")
        .x(Axis::linear("time t = k/d"))
        .y(Axis::log("risk R"));
    let mut table = Table::default().numbers("t", times.iter().copied());
    let (mut plain, mut memories, mut agreement) = (f64::NAN, Vec::new(), Vec::new());
    let ensemble = Ensemble::new(sizes.runs, sizes.seed);
    for (slot, delta) in std::iter::once(None).chain(DELTAS.map(Some)).enumerate() {
        let mut ode = Ode::new(&modes, &*noise, &policy);
        let mut sgd = Sgd::new(&modes, Arc::clone(&noise), Arc::new(policy.clone()))?;
        if let Some(delta) = delta {
            let momentum = Momentum::average(Memory::Delta(delta))?;
            (ode, sgd) = (ode.with_momentum(momentum), sgd.with_momentum(momentum)?);
        }
        let name = delta.map_or("plain SGD".into(), |delta| format!("δ = {delta}"));
        let theory = ode.solve(&saved)?;
        let stationary = last(&theory);
        match delta {
            Some(delta) => memories.push((delta, stationary)),
            None => plain = stationary,
        }
        let risk = &theory.risk[..times.len()];
        let band = ensemble.run(&sgd, &times, None)?;
        let compared = Agreement::new(risk, &band, modes.risk() / modes.dim());
        agreement.push(compared.gap_claim("momentum_follows_its_ode", &name, sizes.runs));
        let key = delta.map_or("plain".into(), |delta| format!("delta_{delta}"));
        (chart, table) = add_path((chart, table), (slot, &key, &name), risk, &band);
    }
    let all =
        BETAS.map(|beta| Rescaled::new(beta, sizes)).into_iter().collect::<Result<Vec<_>>>()?;
    let column = |of: fn(&Rescaled) -> f64| all.iter().map(of).collect::<Vec<_>>();
    let steps = column(|one| 1.0 / (1.0 - one.beta));
    let rescaled = Chart::new("Fixed β: difference from SGD at lr/(1−β)")
        .subtitle(&format!("largest over t ≤ {DESCENT}, as a share of R; d = {DIM}"))
        .x(Axis::log("memory 1/(1−β) in steps"))
        .y(Axis::log("relative difference of R"))
        .line("ODE", &steps, &column(|one| one.ode.abs()))
        .points("C-SGD", &steps, &column(|one| one.sgd.abs()))
        .dashed("½β/((1−β)d)", &steps, &column(Rescaled::expected));
    let figure = Figure::new("What momentum changes").columns(2).chart(chart).chart(rescaled);
    let mut section = FigureSection::new("beyond-momentum", "what momentum changes")
        .settings(format!(
            "isotropic, d = {DIM}; Gaussian noise, σ = {SIGMA}; clipped at c = {CLIP}; η = {ETA} of plain SGD; \
             {} runs each, seed {}",
            sizes.runs, sizes.seed
        ))
        .claims(agreement)
        .claims(claims(&all, plain, &memories))
        .figure(figure);
    section.tables.push((
        "beyond-momentum-beta".into(),
        Table::default()
            .numbers("beta", column(|one| one.beta))
            .numbers("t", column(|one| one.at))
            .numbers("ode", column(|one| one.ode))
            .numbers("sgd", column(|one| one.sgd))
            .numbers("sgd_standard_error", column(|one| one.standard_error)),
    ));
    Ok(section.table(table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict::{Fails, Holds};

    #[test]
    fn claims_can_fail() {
        let one = |ode, sgd| Rescaled { beta: 0.9, at: 1.0, ode, sgd, standard_error: 5e-4 };
        let verdicts = |one: Rescaled, end| {
            let memories = [(2.0, end)];
            claims(&[one], 0.1, &memories).iter().map(|c| c.verdict).collect::<Vec<_>>()
        };
        // ½β/((1−β)d) = 0.9% at d = 500.
        assert_eq!(verdicts(one(0.01, 0.009), 0.1), [Holds, Holds]);
        assert_eq!(verdicts(one(0.01, 0.02), 0.11), [Fails, Fails]);
        assert_eq!(verdicts(one(0.0, 0.009), f64::NAN), [Fails, Fails]);
        assert_eq!(claims(&[], 0.1, &[])[0].verdict, Fails);
    }

    #[test]
    fn pairs_share_their_noise() {
        let (gap, error) = paired(&[(1.1, 1.0), (2.1, 2.0), (3.1, 3.0)]);
        assert!((gap - 0.05).abs() < 1e-12 && error < 1e-12);
    }
}
