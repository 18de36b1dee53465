//! How well the theory agrees with an ensemble.

use toclip::ensemble::{Statistics, Summary};

use super::check;
use crate::experiment::share_between;
use crate::output::Table;
use crate::plot::{Chart, Series};
use crate::report::Claim;
use toclip_words::percent;

/// The share of times demanded. The ODE is the mean up to order 1/d and a band is as wide as
/// 2.56 standard deviations of order d^(-1/2), so it is expected inside at practically every time;
/// the rest is for the sampling error of the band's edges.
const INSIDE: f64 = 0.95;
/// Standard errors that the mean of the runs may be off, beside the 1/d of the theory. At the
/// largest of some twenty independent gaps, a false alarm happens about once in a thousand.
pub const ERRORS: f64 = 4.0;

/// An ensemble against the theory, over all saved times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Share of times at which the theory lies in the band.
    pub inside: f64,
    /// The largest |mean − theory| / theory, and when.
    pub gap: f64,
    pub gap_at: f64,
    /// The largest (|mean − theory| − allowance) in standard errors.
    pub errors: f64,
}

impl Agreement {
    /// `allowance` is the error of the theory itself, of order 1/d.
    pub fn new(theory: &[f64], band: &Summary, allowance: f64) -> Self {
        Self::of(theory, &band.times, &band.risk, band.diverged.is_empty(), allowance)
    }

    /// The same for any quantity; if a run diverged, there is no agreement.
    pub fn of(
        theory: &[f64],
        times: &[f64],
        runs: &Statistics,
        all_finished: bool,
        allowance: f64,
    ) -> Self {
        let compared = theory.len().min(times.len());
        let (mut gap, mut gap_at, mut errors) = (0.0, 0.0, 0.0_f64);
        for (k, &r) in theory.iter().enumerate().take(compared) {
            let off = (runs.mean[k] - r).abs();
            if off / r > gap {
                (gap, gap_at) = (off / r, times[k]);
            }
            // NaN is no agreement.
            if !(off <= allowance) {
                let beyond = (off - allowance) / runs.standard_error[k];
                errors = if beyond.is_nan() { f64::INFINITY } else { errors.max(beyond) };
            }
        }
        let edges = [0, runs.quantiles.len() - 1].map(|k| &runs.quantiles[k][..]);
        match (all_finished && compared == theory.len(), share_between(theory, edges)) {
            (true, inside) => Agreement { inside: inside.unwrap_or(0.0), gap, gap_at, errors },
            (false, _) => Agreement { inside: 0.0, gap, gap_at, errors: f64::INFINITY },
        }
    }

    pub fn inside_claim(&self, paper: &str, method: &str, confidence: f64) -> Claim {
        let [band, inside, required] = [confidence, self.inside, INSIDE].map(percent);
        let measured = format!(
            "the ODE is inside the {band} band of {method} at {inside} of the times (required: {required})"
        );
        check(paper, measured, self.inside >= INSIDE)
    }

    pub fn gap_claim(&self, paper: &str, method: &str, runs: u64) -> Claim {
        let Agreement { gap_at, errors, .. } = self;
        let measured = format!(
            "mean of {runs} runs of {method}: largest difference from the ODE {} at t = {gap_at:.2}, \
             {errors:.1} standard errors beyond R(0)/d (allowed: {ERRORS})",
            percent(self.gap)
        );
        check(paper, measured, self.errors <= ERRORS)
    }
}

/// Adds the ODE and the mean of C-SGD along the path: a line and points of one colour, and two columns.
pub fn add_path(
    (chart, table): (Chart, Table),
    (slot, key, name): (usize, &str, &str),
    theory: &[f64],
    band: &Summary,
) -> (Chart, Table) {
    // Few enough points to see the line behind them.
    let every_fifth = |values: &[f64]| values.iter().step_by(5).copied().collect::<Vec<f64>>();
    let (times, mean) = (&band.times, &band.risk.mean);
    let points = Series::points("", &every_fifth(times), &every_fifth(mean)).slot(slot);
    let table = table
        .numbers(format!("{key}_ode"), theory.iter().copied())
        .numbers(format!("{key}_sgd"), mean.iter().copied());
    (chart.series(Series::line(name, times, theory).slot(slot)).series(points), table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;
    use std::collections::BTreeMap;
    use toclip::dynamics::{Counts, Stop, Trajectory};

    fn band(risks: &[[f64; 3]]) -> Summary {
        let run = |risk: &[f64; 3]| Trajectory {
            times: vec![0.0, 1.0, 2.0],
            risk: risk.to_vec(),
            distance: vec![1.0; 3],
            path: None,
            overlaps: None,
            measures: None,
            stop: Stop::Finished,
            counts: Counts::default(),
        };
        let runs: BTreeMap<u64, Trajectory> = (0..).zip(risks.iter().map(run)).collect();
        Summary::of(&[0.0, 1.0, 2.0], &runs, &[0.1, 0.9]).unwrap()
    }

    #[test]
    fn agreement_is_seen_and_so_is_its_absence() {
        let band = band(&[[1.0, 0.4, 0.2], [1.0, 0.5, 0.3], [1.0, 0.6, 0.4]]);
        let good = Agreement::new(&[1.0, 0.5, 0.3], &band, 0.0);
        assert_eq!((good.inside, good.gap < 1e-12), (1.0, true));
        assert_eq!(good.inside_claim("p", "m", 0.8).verdict, Verdict::Holds);
        assert_eq!(good.gap_claim("p", "m", 3).verdict, Verdict::Holds);
        let bad = Agreement::new(&[1.0, 0.5, 0.9], &band, 0.0);
        assert!((bad.inside - 2.0 / 3.0).abs() < 1e-15 && (bad.gap - 2.0 / 3.0).abs() < 1e-12);
        // The standard error is 0.1/√3 there, and 0.6 is over ten of it.
        assert!((bad.errors - 0.6 / (0.1 / 3f64.sqrt())).abs() < 1e-9);
        assert_eq!(bad.inside_claim("p", "m", 0.8).verdict, Verdict::Fails);
        assert_eq!(bad.gap_claim("p", "m", 3).verdict, Verdict::Fails);
        // A theory that goes on where no run does.
        let longer = Agreement::new(&[1.0, 0.5, 0.3, 0.2], &band, 0.0);
        assert_eq!(longer.inside_claim("p", "m", 0.8).verdict, Verdict::Fails);
        assert_eq!(longer.gap_claim("p", "m", 3).verdict, Verdict::Fails);
        let undefined = Agreement::new(&[1.0, f64::NAN, 0.3], &band, 0.0);
        assert_eq!(undefined.gap_claim("p", "m", 3).verdict, Verdict::Fails);
    }
}
