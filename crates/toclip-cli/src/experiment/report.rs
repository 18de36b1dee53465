//! The results of an experiment, in numbers and in words.

use std::fmt;

use serde::Serialize;
use toclip::Factors;
use toclip::dynamics::{Stop, effective_moments};
use toclip::ensemble::Summary;
use toclip::verdict::Verdict;
use toclip_words::verdict::best_threshold_line;

use super::run::MethodCurve;
use super::{Experiment, Method, Prepared};
use crate::output::terminal::columns;
use toclip_words::short;
use toclip_words::{bounds, percent};

/// A band has no width where all runs start: rounding must not put the theory outside.
const ROUNDING: f64 = 1e-9;

/// The results of an experiment. It contains no time of day and no duration: the same experiment
/// gives the same report.
#[derive(Debug, Clone, Serialize)]
pub struct ExperimentReport {
    pub name: String,
    pub intrinsic_dim: f64,
    pub ambient_dim: u64,
    pub distinct_eigenvalues: usize,
    /// R(0).
    pub risk: f64,
    /// D(0), in the coordinates of the file.
    pub distance: f64,
    pub at_start: StartReport,
    pub notes: Vec<String>,
    pub methods: Vec<MethodReport>,
    /// The largest gap between the theory and an ensemble.
    pub largest_gap: Option<RiskGap>,
    #[serde(skip)]
    noise: String,
    #[serde(skip)]
    confidence: f64,
    #[serde(skip)]
    clipped: bool,
}

/// Learning rate, threshold and factors at the start. CSC and CCC are missing where the noise has no
/// variance.
#[derive(Debug, Clone, Serialize)]
pub struct StartReport {
    pub eta: f64,
    /// Missing where nothing is clipped.
    pub c: Option<f64>,
    /// Of a rule without one μ for all directions, their average at the start.
    pub mu: f64,
    #[serde(skip)]
    has_one_mu: bool,
    pub csc: Option<f64>,
    pub ccc: Option<f64>,
    /// Whether to clip at the start; missing for private SGD, which must, and for rules without one μ.
    pub decision: Option<Verdict>,
}

/// One method.
#[derive(Debug, Clone, Serialize)]
pub struct MethodReport {
    pub method: Method,
    pub form: String,
    /// The last time reached, and R there; of an ensemble the median.
    pub end: Option<CurveEnd>,
    /// When the curve diverged, or the first run of the ensemble did.
    pub diverged_at: Option<f64>,
    #[serde(skip)]
    stop: Option<Stop>,
    pub runs: Option<u64>,
    pub diverged_runs: Option<u64>,
    /// Against the theory: the largest relative gap of the median and of the mean.
    pub median_gap: Option<RiskGap>,
    pub mean_gap: Option<RiskGap>,
    /// The share of the saved times at which the theory lies in the band.
    pub theory_in_band: Option<f64>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct CurveEnd {
    pub t: f64,
    pub risk: f64,
    /// The band there.
    pub band: Option<(f64, f64)>,
}

/// |R − R_theory| / R_theory, where it is largest.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RiskGap {
    pub method: Method,
    pub relative: f64,
    pub t: f64,
}

impl ExperimentReport {
    pub fn new(experiment: &Experiment, prepared: &Prepared, curves: &[MethodCurve]) -> Self {
        let theory = [Method::Ode, Method::Volterra]
            .into_iter()
            .find_map(|method| curves.iter().find(|curve| curve.method == method));
        let methods: Vec<MethodReport> =
            curves.iter().map(|curve| MethodReport::new(curve, theory)).collect();
        let gaps = methods.iter().filter(|l| l.method.is_ensemble()).filter_map(|l| l.median_gap);
        ExperimentReport {
            name: experiment.name.clone(),
            intrinsic_dim: prepared.spectrum.intrinsic_dim(),
            ambient_dim: prepared.spectrum.ambient_dim(),
            distinct_eigenvalues: prepared.problem.modes().modes().len(),
            risk: prepared.problem.risk(),
            distance: prepared.distance(),
            at_start: StartReport::new(prepared),
            notes: [
                prepared.source.map(|source| format!("the spectrum file has {source}")),
                prepared.problem.optimizer().momentum().map(|momentum| {
                    let d = prepared.problem.dim();
                    let (beta, delta) = (short(momentum.beta(d)), short(momentum.delta(d)));
                    format!("momentum with β = {beta}, δ = (1 − β)d = {delta}")
                }),
                prepared.problem.step().privacy().map(|privacy| {
                    let sigma = short(privacy.noise_multiplier());
                    format!(
                        "private, with a noise multiplier of {sigma}; CCC does not count that noise"
                    )
                }),
                prepared.rescaled(),
                prepared.other_covariates(),
                prepared.compression().filter(|_| curves.iter().any(|c| !c.method.is_ensemble())),
            ]
            .into_iter()
            .flatten()
            .collect(),
            largest_gap: gaps.max_by(|a, b| a.relative.total_cmp(&b.relative)),
            methods,
            noise: prepared.problem.step().describe(),
            confidence: experiment.ensemble.confidence,
            clipped: experiment.clip.clips(),
        }
    }
}

impl StartReport {
    fn new(prepared: &Prepared) -> Self {
        let control = prepared.control_at_start();
        let (step, c) = (prepared.problem.step(), prepared.threshold_at_start());
        let factors = Factors::new(step, prepared.problem.risk(), c).ok();
        let effective = || effective_moments(&prepared.problem, c).map_or(f64::NAN, |at| at.mu);
        StartReport {
            eta: control.eta,
            c: control.c.is_finite().then_some(control.c),
            mu: factors.map_or_else(effective, |f| f.mu),
            has_one_mu: step.rule().is_radial(),
            csc: factors.and_then(|f| f.csc().ok()),
            ccc: factors.and_then(|f| f.ccc().ok()),
            decision: verdict_at_start(prepared),
        }
    }
}

/// Whether to clip at the start, in the units of the file.
fn verdict_at_start(prepared: &Prepared) -> Option<Verdict> {
    let problem = &prepared.problem;
    let step = Some(problem.step()).filter(|step| step.privacy().is_none())?;
    let back = prepared.rescaling().inverse();
    let verdict = Verdict::at_risk(step, problem.risk()).ok()?;
    Some(verdict.in_units(|c| back.threshold(c)))
}

impl MethodReport {
    fn new(curve: &MethodCurve, theory: Option<&MethodCurve>) -> Self {
        let method = curve.method;
        let compared = theory.filter(|t| t.method != method && method != Method::Unclipped);
        let (stop, band) = (curve.path().map(|path| path.stop), curve.band());
        let first_run = |band: &Summary| band.diverged.values().copied().min_by(f64::total_cmp);
        let last = curve.times().last().zip(curve.risk().last());
        let edges = band.and_then(|band| {
            let [low, high] = band_edges(band);
            low.last().copied().zip(high.last().copied())
        });
        MethodReport {
            method,
            form: curve.form.clone(),
            end: last.map(|(&t, &risk)| CurveEnd { t, risk, band: edges }),
            diverged_at: stop.and_then(|stop| stop.diverged_at()).or_else(|| first_run(band?)),
            stop,
            runs: band.map(|band| band.runs),
            diverged_runs: band.map(|band| band.diverged.len() as u64),
            median_gap: compared.and_then(|theory| gap(method, curve.risk(), theory)),
            mean_gap: compared.and_then(|theory| gap(method, &band?.risk.mean, theory)),
            theory_in_band: compared.and_then(|theory| theory_in_band(theory.risk(), band?)),
        }
    }
}

/// The lower and the upper edge of the band of R.
pub fn band_edges(band: &Summary) -> [&[f64]; 2] {
    let quantiles = &band.risk.quantiles;
    [&quantiles[0], &quantiles[quantiles.len() - 1]]
}

fn gap(method: Method, risk: &[f64], theory: &MethodCurve) -> Option<RiskGap> {
    let all = risk.iter().zip(theory.risk()).zip(theory.times());
    all.filter(|((_, theory), _)| **theory > 0.0)
        .map(|((r, theory), &t)| RiskGap { method, relative: (r / theory - 1.0).abs(), t })
        .max_by(|a, b| a.relative.total_cmp(&b.relative))
}

/// The share of the saved times at which a theory lies in the band of an ensemble; `None` without
/// times to compare.
pub fn theory_in_band(theory: &[f64], band: &Summary) -> Option<f64> {
    share_between(theory, band_edges(band))
}

/// The share of the times at which a curve lies between two others; `None` without any.
pub fn share_between(theory: &[f64], [low, high]: [&[f64]; 2]) -> Option<f64> {
    let compared = low.len().min(theory.len());
    let within = |k: &usize| {
        low[*k] <= theory[*k] * (1.0 + ROUNDING) && theory[*k] <= high[*k] * (1.0 + ROUNDING)
    };
    let count = (0..compared).filter(within).count();
    (compared > 0).then(|| count as f64 / compared as f64)
}

/// When and why a curve diverged; none if it did not.
pub(super) fn diverged(stop: Stop) -> Option<String> {
    let t = stop.diverged_at()?;
    Some(match stop {
        Stop::InfiniteVariance { .. } => {
            format!("diverged at t = {}: the noise has no finite variance", short(t))
        }
        _ if t == 0.0 => "diverged at the first step: the learning rate is too large".into(),
        _ => format!("diverged at t = {}", short(t)),
    })
}

/// The summary for the terminal.
impl fmt::Display for ExperimentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        write!(f, "  data    {} dimensions", self.ambient_dim)?;
        if self.distinct_eigenvalues as u64 != self.ambient_dim {
            write!(f, " ({} distinct eigenvalues)", self.distinct_eigenvalues)?;
        }
        writeln!(f, ", d = {}", short(self.intrinsic_dim))?;
        writeln!(f, "  noise   {}", self.noise)?;
        writeln!(f, "  start   R = {}, D = {}", short(self.risk), short(self.distance))?;
        let at = &self.at_start;
        let clip = at.c.map_or("no clipping".into(), |c| format!("c = {}", short(c)));
        write!(f, "          η = {}, {clip}, μ = {}", short(at.eta), short(at.mu))?;
        match (at.csc, at.ccc) {
            _ if at.mu < 0.0 => {
                writeln!(
                    f,
                    " below 0: the rule moves away from the solution at any learning rate"
                )?;
            }
            (Some(csc), Some(ccc)) => writeln!(f, ", CSC = {}, CCC = {}", short(csc), short(ccc))?,
            _ if !at.has_one_mu => writeln!(f, " on average over the directions")?,
            _ => writeln!(f, "; CSC and CCC need a finite variance")?,
        }
        if let Some(best) = at.decision.as_ref().and_then(best_threshold_line) {
            writeln!(f, "  best    at the start: {best}")?;
        }
        for note in &self.notes {
            writeln!(f, "  note    {note}")?;
        }
        writeln!(f)?;
        f.write_str(&self.table())?;
        if let Some(gap) = self.largest_gap {
            let title = gap.method.title(self.clipped);
            let (size, t) = (percent(gap.relative), short(gap.t));
            writeln!(
                f,
                "\nLargest gap to the theory: {size} of R at t = {t} (median of {title})."
            )?;
        }
        for line in &self.methods {
            let title = line.method.title(self.clipped);
            if let (Some(t), Some(count), Some(runs)) =
                (line.diverged_at, line.diverged_runs, line.runs)
            {
                writeln!(
                    f,
                    "{title}: {count} of {runs} runs diverged, the first at t = {}; the statistics \
                     cover the runs that had not diverged by then",
                    short(t)
                )?;
            }
            if let Some(when) = line.stop.and_then(diverged) {
                writeln!(f, "{title}: {when}")?;
            }
        }
        Ok(())
    }
}

impl ExperimentReport {
    fn table(&self) -> String {
        let band = format!("{:.0}% band", 100.0 * self.confidence);
        let header = ["method", "t", "R", &band, "gap", "theory in band"];
        let rows = self.methods.iter().map(|line| {
            let or = |text: Option<String>| text.unwrap_or("-".into());
            let runs = line.runs.map_or(String::new(), |n| format!(" ({n} runs)"));
            let range = |(low, high)| bounds(low, high);
            [
                format!("{}{runs}", line.method.title(self.clipped)),
                or(line.end.map(|e| short(e.t))),
                or(line.end.map(|e| short(e.risk))),
                or(line.end.and_then(|e| e.band).map(range)),
                or(line.median_gap.map(|g| percent(g.relative))),
                or(line.theory_in_band.map(percent)),
            ]
        });
        columns("llllll", header, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip::ensemble::Statistics;

    #[test]
    fn the_theory_is_inside_up_to_rounding() {
        let share = |theory: &[f64], low: &[f64], high: &[f64]| {
            let quantiles = vec![low.to_vec(), high.to_vec()];
            let band = Summary {
                times: vec![0.0; low.len()],
                runs: 9,
                alive: vec![9; low.len()],
                diverged: Default::default(),
                probabilities: vec![0.1, 0.9],
                risk: Statistics { quantiles, ..Default::default() },
                distance: Default::default(),
                measures: None,
            };
            theory_in_band(theory, &band)
        };
        let (low, high) = ([1.0, 1.0, 2.0, 1.0], [1.0, 2.0, 3.0, 2.0]);
        assert_eq!(share(&[1.0 + 1e-15, 1.5, 1.0], &low, &high), Some(2.0 / 3.0));
        assert_eq!(share(&[1.0], &[], &[]), None);
    }
}
