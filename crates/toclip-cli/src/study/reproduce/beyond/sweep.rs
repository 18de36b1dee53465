//! The risk at the end against the threshold, each with the rate that is best for it, and runs of
//! C-SGD beside it.

use std::sync::Arc;

use anyhow::{Context, Result};
use rayon::prelude::*;
use toclip::Step;
use toclip::dynamics::Simulator;
use toclip::ensemble::Ensemble;
use toclip::schedule::{OpenLoop, Policy, Schedule, TunedRate, tune_rate};
use toclip::spectrum::Modes;

use super::super::agreement::{Agreement, ERRORS};
use super::super::claims::check;
use crate::output::numbers::{percent, significant};
use crate::report::Claim;

/// What the theory leaves open, as a share of the risk and in units of 1/d: C-SGD without clipping
/// on two scales ends 1.4% lower than its ODE at d = 350.
const OPEN: f64 = 5.0;

/// A threshold, the constant rate that ends lowest with it, and where it ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuned {
    pub c: f64,
    pub eta: f64,
    pub risk: f64,
}

impl Tuned {
    pub fn policy(&self) -> toclip::Result<Arc<dyn Policy>> {
        let eta = Schedule::constant(self.eta)?;
        Ok(Arc::new(match self.c.is_finite() {
            true => OpenLoop::new(eta, Schedule::constant(self.c)?),
            false => OpenLoop::unclipped(eta),
        }))
    }
}

/// Thresholds at equal ratios, both ends included.
pub fn log_spaced((low, high): (f64, f64), points: usize) -> Vec<f64> {
    let at = |k: usize| low * (high / low).powf(k as f64 / (points - 1) as f64);
    (0..points).map(at).collect()
}

/// R(T) at every threshold, with the best rate for it.
pub fn sweep(modes: &Modes, step: &Step<'_>, c: &[f64], time: f64) -> Result<Vec<Tuned>> {
    let at = |&c: &f64| {
        let TunedRate { eta, risk } = tune_rate(modes, step, c, time)?;
        Ok(Tuned { c, eta, risk })
    };
    c.par_iter().map(at).collect()
}

/// The threshold that ends lowest.
pub fn best(all: &[Tuned]) -> Result<Tuned> {
    let lowest = all.iter().min_by(|a, b| a.risk.total_cmp(&b.risk));
    lowest.copied().context("no thresholds")
}

/// The mean of runs at a point of a sweep.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// "clip at c = 0.3".
    pub name: String,
    pub at: Tuned,
    pub mean: f64,
    pub standard_error: f64,
    agreement: Agreement,
}

impl Simulated {
    /// How far the mean is from the theory, as a share of it, and the standard error of that.
    pub fn gap(&self) -> (f64, f64) {
        (self.agreement.gap, self.standard_error / self.at.risk)
    }
}

/// How C-SGD is simulated under a policy.
pub type Simulate<'a> = &'a dyn Fn(Arc<dyn Policy>) -> toclip::Result<Box<dyn Simulator>>;

impl Simulated {
    pub fn new(
        name: String,
        (modes, time): (&Modes, f64),
        at: Tuned,
        simulator: Simulate<'_>,
        ensemble: &Ensemble,
    ) -> Result<Self> {
        let band = ensemble.run(&*simulator(at.policy()?)?, &[time], None)?;
        let agreement = Agreement::new(&[at.risk], &band, OPEN * at.risk / modes.dim());
        let first = |values: &[f64]| values.first().copied().unwrap_or(f64::NAN);
        let (mean, standard_error) = (first(&band.risk.mean), first(&band.risk.standard_error));
        Ok(Simulated { name, at, mean, standard_error, agreement })
    }
}

/// That theory and simulation agree at all of these points.
pub fn agreement_claim(name: &str, all: &[Simulated], runs: u64) -> Claim {
    let Some(worst) = all.iter().max_by(|a, b| a.agreement.errors.total_cmp(&b.agreement.errors))
    else {
        return check(name, "nothing was simulated", false);
    };
    let largest = all.iter().map(|one| one.agreement.gap).fold(0.0, f64::max);
    let Agreement { errors, gap, .. } = worst.agreement;
    let measured = format!(
        "mean of {runs} runs at each of {} points: largest difference from the ODE {}; worst {} \
         ({}), {errors:.1} standard errors beyond {OPEN}/d (allowed: {ERRORS})",
        all.len(),
        percent(largest),
        worst.name,
        percent(gap)
    );
    check(name, measured, errors <= ERRORS)
}

/// A number as a claim has it.
pub fn digits(x: f64) -> String {
    significant(x, 3)
}

/// How much lower or higher the second is than the first: "−12%".
pub fn change(from: f64, to: f64) -> String {
    let share = to / from - 1.0;
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;
    use toclip::dynamics::Collapsed;
    use toclip::noise::Gaussian;
    use toclip::spectrum::{Spectrum, Start};

    #[test]
    fn a_wrong_prediction_fails_the_claim() {
        let modes =
            Modes::new(&Spectrum::isotropic(400).unwrap(), &Start::Uniform { norm: 1.0 }).unwrap();
        let noise = Arc::new(Gaussian::new(0.5).unwrap());
        let step = Step::new(noise);
        let (time, c) = (2.0, log_spaced((0.1, 10.0), 5));
        let all = sweep(&modes, &step, &c, time).unwrap();
        let right = best(&all).unwrap();
        // Under Gaussian noise not clipping is best.
        assert_eq!((right.c, c.len()), (10.0, 5));
        let simulator = |policy| -> toclip::Result<Box<dyn Simulator>> {
            Ok(Box::new(Collapsed::new(&modes, step.clone(), policy)?))
        };
        let run = |at| {
            let ensemble = Ensemble::new(40, 3);
            Simulated::new("clip".into(), (&modes, time), at, &simulator, &ensemble).unwrap()
        };
        let wrong = Tuned { risk: 1.2 * right.risk, ..right };
        let verdict = |all: &[Simulated]| agreement_claim("p", all, 40).verdict;
        assert_eq!(verdict(&[run(right)]), Verdict::Holds);
        assert_eq!(verdict(&[run(right), run(wrong)]), Verdict::Fails);
        assert_eq!(verdict(&[]), Verdict::Fails);
        assert_eq!((change(2.0, 1.5), change(2.0, 2.5)), ("−25%".into(), "+25%".into()));
    }
}
