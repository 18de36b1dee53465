//! One training run, and the search for its learning rate.

use crate::Problem;
use crate::contender::{Clipper, Contender};
use crate::sgd_run::SgdRun;
use toclip::Result;
use toclip::threshold_rules::clip_factor;

/// Risks below this share of the start count as this share: the problem is solved, and smaller
/// differences do not matter.
const SOLVED: f64 = 1e-12;
/// A run that diverged, or ended higher, counts as this multiple of the start.
const LOST: f64 = 1e6;
/// The coarse grid of $\eta$ is $4^j$ for these $j$; it spans all that was ever best.
const COARSE: std::ops::RangeInclusive<i32> = -5..=5;
/// Then the best is multiplied and divided by these in turn.
const FINER: [f64; 2] = [2.0, std::f64::consts::SQRT_2];

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RunEnd {
    /// $\log R$, between [`SOLVED`] and [`LOST`] times the start.
    pub log_risk: f64,
    pub diverged: bool,
    /// The share of the steps that were clipped.
    pub clipped: f64,
    /// The first step that was clipped.
    pub began: Option<u32>,
    /// The mean factor of the steps: the clip factor times the rate factor of the rule.
    pub shrunk: f64,
}

/// Run `index` of `seed` for so many steps with the learning rate $\eta(1 - k/n)$, that is, steps
/// of $\frac{\eta}{d}(1 - k/n)$.
pub(crate) fn train(
    problem: &Problem,
    clipper: &mut dyn Clipper,
    eta: f64,
    steps: u32,
    (seed, index): (u64, u64),
) -> RunEnd {
    let mut run = SgdRun::new(problem, seed, index);
    let (mut clipped, mut shrunk, mut began) = (0.0, 0.0, None);
    let steps_f = f64::from(steps);
    let log_start = problem.start_risk().ln();
    for k in 0..steps {
        let norm = run.draw();
        if !run.is_bounded() || !norm.is_finite() {
            let done = f64::from(k).max(1.0);
            let (clipped, shrunk) = (clipped / done, shrunk / done);
            return RunEnd {
                log_risk: log_start + LOST.ln(),
                diverged: true,
                clipped,
                began,
                shrunk,
            };
        }
        let action = clipper.act(norm, &run);
        let factor = clip_factor(norm, action.threshold);
        let eta = eta * (1.0 - f64::from(k) / steps_f);
        run.step(eta / problem.dim() * action.rate_factor * factor);
        if factor < 1.0 {
            clipped += 1.0;
            began.get_or_insert(k);
        }
        shrunk += factor * action.rate_factor;
    }
    let log_risk = (run.risk().ln() - log_start).clamp(SOLVED.ln(), LOST.ln());
    let log_risk = if log_risk.is_nan() { LOST.ln() } else { log_risk };
    RunEnd {
        log_risk: log_start + log_risk,
        diverged: false,
        clipped: clipped / steps_f,
        began,
        shrunk: shrunk / steps_f,
    }
}

/// A learning rate and the mean of $\log R$ over the tuning runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tuned {
    pub eta: f64,
    pub score: f64,
    /// Whether it is the least or the largest of the grid.
    pub at_edge: bool,
}

/// The best of the coarse grid, then of its neighbours at the finer ratios: fifteen learning rates
/// for every rule; only the last four depend on the rule.
///
/// Runs `0..runs` of `seed` are used for each.
pub(crate) fn tune(
    problem: &Problem,
    contender: Contender,
    steps: u32,
    runs: u32,
    seed: u64,
) -> Result<Tuned> {
    let score = |eta: f64| -> Result<Tuned> {
        let mut sum = 0.0;
        for index in 0..u64::from(runs) {
            let mut clipper = contender.start(problem)?;
            sum += train(problem, &mut *clipper, eta, steps, (seed, index)).log_risk;
        }
        Ok(Tuned { eta, score: sum / f64::from(runs), at_edge: false })
    };
    // The smaller of equals.
    let better = |a: Tuned, b: Tuned| if b.score < a.score { b } else { a };
    let mut best = score(4.0_f64.powi(*COARSE.start()))?;
    for j in COARSE.skip(1) {
        best = better(best, score(4.0_f64.powi(j))?);
    }
    let edges = [*COARSE.start(), *COARSE.end()].map(|j| 4.0_f64.powi(j));
    let at_edge = edges.contains(&best.eta);
    for ratio in FINER {
        let centre = best.eta;
        best = better(best, score(centre / ratio)?);
        best = better(best, score(centre * ratio)?);
    }
    Ok(Tuned { at_edge, ..best })
}
