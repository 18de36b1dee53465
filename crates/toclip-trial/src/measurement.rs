//! A contender on a problem: tuned on some runs, measured on others.

use crate::statistics::MeanInterval;
use crate::train::{train, tune};
use crate::{Contender, Problem};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use toclip::internals::on_threads;
use toclip::{Error, Result};

/// How much work a trial is.
///
/// | field | quick | default | full |
/// |---|---|---|---|
/// | `steps` | 600 | 3000 | 3000 |
/// | `tuning` | 2 | 6 | 16 |
/// | `runs` | 8 | 40 | 200 |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// Steps of each run.
    pub steps: u32,
    /// Runs for each learning rate that is tried.
    pub tuning: u32,
    /// Fresh runs with the learning rate that was found.
    pub runs: u32,
    /// The seed of all.
    pub seed: u64,
}

impl Effort {
    /// Enough to tell differences of a few percent.
    pub fn standard(seed: u64) -> Self {
        Effort { steps: 3000, tuning: 6, runs: 40, seed }
    }

    /// A look: few runs, and short ones.
    pub fn quick(seed: u64) -> Self {
        Effort { steps: 600, tuning: 2, runs: 8, seed }
    }

    /// Enough to tell differences of a percent.
    pub fn full(seed: u64) -> Self {
        Effort { steps: 3000, tuning: 16, runs: 200, seed }
    }

    fn check(&self) -> Result<()> {
        let fields = [("steps", self.steps, 1), ("tuning", self.tuning, 1), ("runs", self.runs, 2)];
        for (name, value, least) in fields {
            if value < least {
                let expected = "at least one, and two runs for an interval";
                return Err(Error::parameter(name, f64::from(value), expected));
            }
        }
        Ok(())
    }
}

/// What a contender reached on a problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// [`Problem::name`].
    pub problem: String,
    /// The contender.
    #[serde(rename = "rule")]
    pub contender: Contender,
    /// $\eta$ that was best on the tuning runs.
    pub eta: f64,
    /// Whether that was the least or the largest of the grid.
    pub at_edge: bool,
    /// $\log R$ at the end of each run.
    pub log_risk: Vec<f64>,
    /// How many of them diverged; they count as a million times the start.
    pub diverged: u32,
    /// The share of all steps that were clipped.
    pub clipped: f64,
    /// The share of the runs in which any step was clipped.
    pub acted: f64,
    /// The mean over those of the first step that was clipped.
    pub began: Option<f64>,
    /// The mean factor of the steps: the clip factor times the rate factor of the rule.
    pub shrunk: f64,
}

impl Measurement {
    /// Tunes and measures. The result depends on the arguments only.
    ///
    /// # Errors
    /// [`Error::Parameter`] for no steps, no tuning runs or fewer than two runs.
    ///
    /// ```
    /// use toclip_trial::{Measurement, Effort, Problem, Contender};
    /// let problems = Problem::standard()?;
    /// let effort = Effort { steps: 300, tuning: 1, runs: 4, seed: 1 };
    /// let cauchy = problems.iter().find(|p| p.name() == "cauchy/8").unwrap();
    /// let open = Measurement::measure(cauchy, Contender::Unclipped, &effort)?;
    /// let huber = Measurement::measure(cauchy, Contender::Huber, &effort)?;
    /// assert!(huber.ratio(&open, 0.95)?.mean < 0.5);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn measure(problem: &Problem, contender: Contender, effort: &Effort) -> Result<Self> {
        effort.check()?;
        let name = problem.name();
        // Tuning and measuring use different runs, and so do different problems.
        let seed = |tag: &str| effort.seed ^ digest(&[name.as_bytes(), tag.as_bytes()]);
        let best = tune(problem, contender, effort.steps, effort.tuning, seed(" tuning"))?;
        let mut measured = Measurement {
            problem: name.clone(),
            contender,
            eta: best.eta,
            at_edge: best.at_edge,
            log_risk: Vec::with_capacity(effort.runs as usize),
            diverged: 0,
            clipped: 0.0,
            acted: 0.0,
            began: None,
            shrunk: 0.0,
        };
        let share = 1.0 / f64::from(effort.runs);
        let mut began = Vec::new();
        for index in 0..u64::from(effort.runs) {
            let mut clipper = contender.start(problem)?;
            let run = (seed(" measuring"), index);
            let end = train(problem, &mut *clipper, best.eta, effort.steps, run);
            measured.log_risk.push(end.log_risk);
            measured.diverged += u32::from(end.diverged);
            measured.clipped += share * end.clipped;
            began.extend(end.began.map(f64::from));
            measured.shrunk += share * end.shrunk;
        }
        measured.acted = share * began.len() as f64;
        measured.began =
            (!began.is_empty()).then(|| began.iter().sum::<f64>() / began.len() as f64);
        Ok(measured)
    }

    /// The geometric mean of the final risk, with its interval.
    ///
    /// # Errors
    /// As [`MeanInterval::student`].
    pub fn risk(&self, confidence: f64) -> Result<MeanInterval> {
        Ok(MeanInterval::student(&self.log_risk, confidence)?.map(f64::exp))
    }

    /// The geometric mean of the ratio of final risks to those of `base`, run by run: below one,
    /// this rule is better.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless both have the same runs of the same problem, and as
    /// [`MeanInterval::student`].
    pub fn ratio(&self, base: &Measurement, confidence: f64) -> Result<MeanInterval> {
        if self.problem != base.problem || self.log_risk.len() != base.log_risk.len() {
            return Err(Error::Invalid(format!(
                "{} runs of {} cannot be compared with {} of {}",
                self.log_risk.len(),
                self.problem,
                base.log_risk.len(),
                base.problem
            )));
        }
        let gaps: Vec<f64> = self.log_risk.iter().zip(&base.log_risk).map(|(a, b)| a - b).collect();
        Ok(MeanInterval::student(&gaps, confidence)?.map(f64::exp))
    }
}

/// Measures those of the pairs (problem, contender) that are asked for, each handed to
/// `on_finished` from whichever thread and in whichever order they end.
///
/// Once `cancel` is set no further pair is begun.
///
/// # Errors
/// As [`Measurement::measure`], and for threads that cannot be started.
pub fn measure_all(
    asked: &[(&Problem, Contender)],
    effort: &Effort,
    threads: Option<usize>,
    cancel: &AtomicBool,
    on_finished: &(dyn Fn(Measurement) + Sync),
) -> Result<()> {
    effort.check()?;
    on_threads(threads, || {
        asked.par_iter().with_max_len(1).try_for_each(|(problem, contender)| {
            if !cancel.load(Ordering::Relaxed) {
                on_finished(Measurement::measure(problem, *contender, effort)?);
            }
            Ok(())
        })
    })?
}

/// The 64-bit hash of Fowler, Noll and Vo (FNV-1a): a seed from a name.
fn digest(parts: &[&[u8]]) -> u64 {
    parts.iter().flat_map(|part| *part).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
