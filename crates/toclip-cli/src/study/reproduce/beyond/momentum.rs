//! What momentum changes, and when it is only another learning rate.

use anyhow::{Context, Result};
use rayon::prelude::*;
use toclip::dynamics::{Ode, Sgd, Simulator, linear_times};
use toclip::policy::OpenLoop;
use toclip::{Memory, Momentum, Optimizer};

use super::facts::Facts;
use super::figure_file::FigureFile;
use super::paths::Paths;
use super::{ERRORS, FigureSection, RunSizes, last};
use crate::experiment::Prepared;
use crate::output::Table;

const BETAS: [f64; 5] = [0.5, 0.8, 0.9, 0.95, 0.98];
/// Over this time β is compared with plain SGD, where the risk falls.
const DESCENT: f64 = 5.0;
/// Long enough to have forgotten the start at every δ.
const LONG: f64 = 60.0;

/// Heavy ball at lr = η(1−β), against plain SGD at η.
struct Rescaled {
    beta: f64,
    /// When the ODEs differ most, and by how much of R.
    at: f64,
    ode: f64,
    /// The same of C-SGD at that time, both with the same samples, and its standard error.
    sgd: f64,
    standard_error: f64,
    /// ½·β/((1−β)d).
    expected: f64,
}

impl Rescaled {
    fn new(beta: f64, prepared: &Prepared, runs: u64, seed: u64) -> Result<Self> {
        let control = prepared.control_at_start();
        let slow = OpenLoop::constant(control.eta * (1.0 - beta), control.c)?;
        let fast = OpenLoop::constant(control.eta, control.c)?;
        let heavy_ball = Momentum::heavy_ball(Memory::Beta(beta))?;
        let times = linear_times(DESCENT, 101)?;
        let (plain, problem) = (Optimizer::Sgd, prepared.problem.clone());
        let fast = problem.with_policy(fast)?.with_optimizer(plain)?;
        let slow = problem.with_policy(slow)?.with_optimizer(heavy_ball)?;
        let plain = Ode::new(&fast)?.solve(&times)?;
        let with = Ode::new(&slow)?.solve(&times)?;
        let gaps = with.risk.iter().zip(&plain.risk).map(|(with, plain)| with / plain - 1.0);
        let largest = times.iter().zip(gaps).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        let (&at, ode) = largest.context("no times")?;
        let (sgd, ball) = (Sgd::new(&fast)?, Sgd::new(&slow)?);
        let run = |index: u64| {
            let end = |sgd: &Sgd| last(&sgd.run(seed, index, &[at]));
            (end(&ball), end(&sgd))
        };
        let pairs: Vec<(f64, f64)> = (0..runs).into_par_iter().map(run).collect();
        let (sgd, standard_error) = paired(&pairs);
        let expected = 0.5 * beta / ((1.0 - beta) * problem.dim());
        Ok(Rescaled { beta, at, ode, sgd, standard_error, expected })
    }

    /// How far both are from what is expected, in units of what is allowed: a third of it, four standard
    /// errors and the 1/d that an ODE is off.
    fn facts(&self, dim: f64, facts: &mut Facts) {
        let off = |gap: f64, errors: f64| {
            let open = self.expected / 3.0 + 0.5 / dim + ERRORS * errors;
            (gap - self.expected).abs() / open
        };
        let name = format!("β = {}", self.beta);
        facts.add(&name, [("sgd", self.sgd), ("ode", self.ode), ("expected", self.expected)]);
        facts.add(&name, [("sgd_off", off(self.sgd, self.standard_error))]);
        facts.add(&name, [("ode_off", off(self.ode, 0.0)), ("error", self.standard_error)]);
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

pub fn what_it_changes(file: &FigureFile, sizes: &RunSizes) -> Result<FigureSection> {
    let [over_time, against_beta] = &file.charts[..] else {
        anyhow::bail!("expected two charts");
    };
    let mut facts = Facts::default();
    let paths = Paths::new(file, over_time, (Some(LONG), &mut facts), sizes)?;
    let problem = file.prepared_of(over_time.curves.first().context("no curves")?)?.1;
    let few = sizes.runs.div_ceil(4);
    let all = BETAS.map(|beta| Rescaled::new(beta, &problem, few, sizes.seed));
    let all = all.into_iter().collect::<Result<Vec<_>>>()?;
    for one in &all {
        one.facts(problem.problem.dim(), &mut facts);
    }
    let column = |of: fn(&Rescaled) -> f64| all.iter().map(of).collect::<Vec<_>>();
    let steps = column(|one| 1.0 / (1.0 - one.beta));
    let rescaled = against_beta
        .chart()
        .line("ODE", &steps, &column(|one| one.ode.abs()))
        .points("C-SGD", &steps, &column(|one| one.sgd.abs()))
        .dashed("½β/((1−β)d)", &steps, &column(|one| one.expected));
    let mut section = file.section([paths.chart, rescaled], &facts, sizes)?.claims(paths.agreement);
    let by_beta = Table::default()
        .numbers("beta", column(|one| one.beta))
        .numbers("t", column(|one| one.at))
        .numbers("ode", column(|one| one.ode))
        .numbers("sgd", column(|one| one.sgd))
        .numbers("sgd_standard_error", column(|one| one.standard_error));
    section.tables.push((format!("{}-beta", file.id), by_beta));
    Ok(section.table(paths.table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_share_their_noise() {
        let (gap, error) = paired(&[(1.1, 1.0), (2.1, 2.0), (3.1, 3.0)]);
        assert!((gap - 0.05).abs() < 1e-12 && error < 1e-12);
    }
}
