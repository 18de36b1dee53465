//! Claims about the networks, decided by the tables.

use super::factors::{at, at_median, small_batch, thresholds};
use super::run::{Networks, Run};
use super::table::{Estimator, FactorLine};
use crate::commands::reproduce::claims::{check, differs};
use crate::report::{Claim, Verdict};
use crate::words::short;

/// Standard errors beyond which a difference is taken for real. They are jackknife errors of eight
/// blocks, so chance follows Student's law with seven degrees of freedom: 5 is passed upwards about
/// eight times in ten thousand, and in some twenty-five comparisons once in fifty.
const ERRORS: f64 = 5.0;
/// A CCC above 1 by no more than this is real, but no reason to clip.
const SLIGHT: f64 = 0.05;
/// How near the batch form is to the direct estimate at the batch of the training.
const NEAR: f64 = 0.1;
/// The share of clipped gradients from which the paper's estimate must be seen to be too small.
const CLIPPED: f64 = 0.2;

/// Runs of one network of the paper, with its loss.
pub fn of_paper<'a>(networks: &'a Networks, model: &str) -> Vec<&'a Run> {
    let same = |run: &&Run| run.settings.model == model && run.settings.loss == "mse";
    networks.runs.iter().filter(same).collect()
}

/// The lines at the batch of the training and the smaller of the thresholds shown, where anything
/// was clipped: elsewhere every estimate is 1.
fn smaller(run: &Run) -> Vec<&FactorLine> {
    let shown = thresholds(run, run.settings.batch);
    let less = &shown[..shown.len().saturating_sub(1)];
    let lines = less.iter().flat_map(|&c| at(run, run.settings.batch, c));
    lines.filter(|line| line.clip_fraction > 0.0).collect()
}

fn largest<'a>(lines: &[&'a FactorLine], by: Estimator) -> Option<&'a FactorLine> {
    let value = |line: &FactorLine| line.ccc(by).value;
    let known = lines.iter().copied().filter(|line| line.says(by) && value(line).is_finite());
    known.max_by(|a, b| value(a).total_cmp(&value(b)))
}

/// "1.181 ± 0.044 (c = 0.1, epoch 54)".
fn place(line: &FactorLine, by: Estimator) -> String {
    format!("{} (c = {}, epoch {})", line.ccc(by).words(), short(line.threshold), epoch(line.epoch))
}

pub fn epoch(epoch: f64) -> String {
    match epoch {
        e if e < 10.0 => format!("{e:.1}"),
        e => format!("{e:.0}"),
    }
}

/// "at epoch 54", or before the first step.
pub fn when(at: f64) -> String {
    if at == 0.0 { "before training".into() } else { format!("at epoch {}", epoch(at)) }
}

/// Lines at which the direct CCC is above 1 by more than chance.
fn above<'a>(lines: &[&'a FactorLine]) -> Vec<&'a FactorLine> {
    let real = |line: &&FactorLine| {
        let ccc = line.ccc(Estimator::Direct);
        line.says(Estimator::Direct) && ccc.value - 1.0 > ERRORS * ccc.error
    };
    lines.iter().copied().filter(real).collect()
}

/// The claims of figure 6.
pub fn figure_6(networks: &Networks) -> Vec<Claim> {
    let mut claims = Vec::new();
    let paper = ["resnet18", "vit_s16"].map(|model| of_paper(networks, model)).concat();
    if !paper.is_empty() {
        claims.push(rarely(&paper));
    }
    claims.extend(of_paper(networks, "resnet18").into_iter().map(resnet));
    claims.extend(of_paper(networks, "vit_s16").into_iter().map(vit));
    claims.extend(fraction(networks));
    claims.extend(batch_form(networks));
    claims
}

fn rarely(runs: &[&Run]) -> Claim {
    let mut lines = Vec::new();
    let mut c = f64::NAN;
    for run in runs {
        let Some(&top) = thresholds(run, run.settings.batch).last() else { continue };
        c = top;
        lines.extend(at(run, run.settings.batch, top));
    }
    let least = |of: &dyn Fn(&FactorLine) -> f64| {
        lines.iter().map(|line| of(line)).min_by(f64::total_cmp).unwrap_or(f64::NAN)
    };
    let clipped = 1.0 - least(&|line| 1.0 - line.clip_fraction);
    let (mu, nu) = (least(&|line| line.mu(Estimator::Direct).value), least(&|line| line.nu.value));
    // NaN comes last in the order: it must not hide behind the others.
    let known =
        lines.iter().all(|line| !(line.mu(Estimator::Direct).value + line.nu.value).is_nan());
    check(
        "With the threshold c = 10 gradients are rarely clipped, and μ ≈ ν ≈ 1.",
        format!(
            "at c = {c} at most {}% were clipped in any of {} measurements; least μ {}, least ν {}",
            short(100.0 * clipped),
            lines.len(),
            short(mu),
            short(nu)
        ),
        known && clipped <= 0.01 && mu >= 0.99 && nu >= 0.99,
    )
}

fn resnet(run: &Run) -> Claim {
    let paper = "For ResNet-18 the CCC is above 1 at the smaller thresholds: clipping would help.";
    let lines = smaller(run);
    let real = above(&lines);
    let over = lines.iter().filter(|line| line.ccc(Estimator::Fraction).value > 1.0).count();
    let (Some(most), Some(direct)) =
        (largest(&lines, Estimator::Fraction), largest(&real, Estimator::Direct))
    else {
        return check(paper, "no CCC is above 1 by more than chance, by any estimate", false);
    };
    let measured = format!(
        "by the paper's own estimate above 1 in {over} of {} measurements with clipping, largest {}; \
         directly, above 1 by more than {ERRORS} standard errors in {}, largest {}",
        lines.len(),
        place(most, Estimator::Fraction),
        real.len(),
        place(direct, Estimator::Direct)
    );
    match 2 * over > lines.len() {
        true => check(paper, measured, true),
        false => differs(paper, measured, direct.ccc(Estimator::Direct).value > 1.0 + SLIGHT),
    }
}

fn vit(run: &Run) -> Claim {
    let paper = "For ViT S/16 the CCC stays at or below 1: clipping would not help.";
    let lines = smaller(run);
    let known: Vec<&FactorLine> =
        lines.iter().copied().filter(|line| line.says(Estimator::Direct)).collect();
    let (Some(most), Some(direct)) =
        (largest(&lines, Estimator::Fraction), largest(&known, Estimator::Direct))
    else {
        return check(paper, "nothing was clipped, or no mean gradient was seen", false);
    };
    let real = above(&lines);
    let measured = format!(
        "by the paper's own estimate at most {}; directly at most {}, above 1 by more than {ERRORS} \
         standard errors in {} of {} measurements",
        place(most, Estimator::Fraction),
        place(direct, Estimator::Direct),
        real.len(),
        known.len()
    );
    match real.is_empty() {
        true => check(paper, measured, true),
        false => differs(paper, measured, direct.ccc(Estimator::Direct).value <= 1.0 + SLIGHT),
    }
}

/// Ours: the paper's estimate of μ is too small for batches.
fn fraction(networks: &Networks) -> Option<Claim> {
    let gap = |line: &&FactorLine| {
        let (direct, fraction) = (line.mu(Estimator::Direct), line.mu(Estimator::Fraction));
        (direct.value - fraction.value) / direct.error.hypot(fraction.error).max(1e-12)
    };
    let clipped = |line: &&FactorLine| line.clip_fraction >= CLIPPED && line.determined();
    let of_training = |run: &Run, line: &FactorLine| line.batch == run.settings.batch;
    let all: Vec<&FactorLine> = networks
        .runs
        .iter()
        .flat_map(|run| run.factors.iter().filter(move |line| of_training(run, line)))
        .filter(clipped)
        .collect();
    let seen = all.iter().filter(|line| gap(line) > ERRORS).count();
    let median: Vec<&FactorLine> = networks
        .runs
        .iter()
        .flat_map(|run| at_median(run, run.settings.batch))
        .filter(|line| line.determined())
        .collect();
    if all.is_empty() || median.is_empty() {
        return None;
    }
    let mean = |of: &dyn Fn(&FactorLine) -> f64| {
        median.iter().map(|line| of(line)).sum::<f64>() / median.len() as f64
    };
    let ratio =
        |line: &&FactorLine| line.mu(Estimator::Direct).value / line.mu(Estimator::Fraction).value;
    let low = median.iter().map(ratio).fold(f64::INFINITY, f64::min);
    let high = median.iter().map(ratio).fold(0.0, f64::max);
    Some(check(
        "The fraction of unclipped gradients is no estimate of μ for batches: it is far too small (our \
         finding, not the paper's).",
        format!(
            "too small by more than {ERRORS} standard errors in {seen} of {} measurements with at least \
             {:.0}% clipped; at the median norm {} on average against {} directly, a factor of {low:.1} to {high:.1}; \
             and 0 where all are clipped, where the direct μ is {} on average",
            all.len(),
            100.0 * CLIPPED,
            short(mean(&|line| line.mu(Estimator::Fraction).value)),
            short(mean(&|line| line.mu(Estimator::Direct).value)),
            short(all_clipped(&all))
        ),
        seen as f64 >= 0.95 * all.len() as f64,
    ))
}

fn all_clipped(lines: &[&FactorLine]) -> f64 {
    let clipped: Vec<f64> = lines
        .iter()
        .filter(|line| line.clip_fraction == 1.0)
        .map(|line| line.mu(Estimator::Direct).value)
        .collect();
    clipped.iter().sum::<f64>() / clipped.len() as f64
}

/// How far the batch form is off the direct μ at one batch, relatively, wherever that is known.
fn off(run: &Run, batch: u64) -> Vec<(f64, &FactorLine)> {
    let known =
        |line: &&FactorLine| line.batch == batch && line.clip_fraction > 0.0 && line.determined();
    let off = |line: &FactorLine| {
        line.mu(Estimator::Batch).value / line.mu(Estimator::Direct).value - 1.0
    };
    run.factors.iter().filter(known).map(|line| (off(line), line)).collect()
}

/// Ours: the form that allows for batches follows the direct estimate.
fn batch_form(networks: &Networks) -> Option<Claim> {
    let all = &networks.runs;
    let (mut worst, mut above, mut count) = (0.0_f64, 0, 0);
    let mut said = Vec::new();
    for run in all {
        for batch in std::iter::once(run.settings.batch).chain(small_batch(run)) {
            let found = off(run, batch);
            let size = |at: &&(f64, &FactorLine)| at.0.abs();
            let Some((most, line)) = found.iter().max_by(|a, b| size(a).total_cmp(&size(b))) else {
                continue;
            };
            if batch == run.settings.batch {
                worst = worst.max(most.abs());
                above += found.iter().filter(|at| at.0 > 0.0).count();
                count += found.len();
            }
            said.push(format!(
                "{} batch {batch} {:+.1}% (epoch {}, c = {})",
                run.name(all),
                100.0 * most,
                epoch(line.epoch),
                short(line.threshold)
            ));
        }
    }
    let batch = all.first()?.settings.batch;
    (!said.is_empty()).then(|| {
        check(
            &format!(
                "The batch form of μ is within {:.0}% of the direct one at batch {batch} (our finding, \
                 not the paper's).",
                100.0 * NEAR
            ),
            format!(
                "furthest off: {}; at the batch of the training it is too large in {above} of {count} \
                 measurements",
                said.join("; ")
            ),
            worst <= NEAR,
        )
    })
}

/// A user's own networks cannot refute the paper: what is otherwise there is said, and no failure.
pub fn soften(claims: &mut [Claim]) {
    for claim in claims {
        if claim.verdict == Verdict::Fails {
            claim.verdict = Verdict::Differs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Estimate;
    use super::*;

    fn verdicts(networks: &Networks) -> Vec<Verdict> {
        figure_6(networks).iter().map(|c| c.verdict).collect()
    }

    /// The tables with every line of a model changed.
    fn with(model: &str, change: impl Fn(&mut FactorLine)) -> Networks {
        let mut networks = Networks::load(None).unwrap();
        for run in networks.runs.iter_mut().filter(|run| run.settings.model == model) {
            run.factors.iter_mut().for_each(&change);
        }
        networks
    }

    #[test]
    fn what_was_measured() {
        use Verdict::{Differs, Holds};
        let networks = Networks::load(None).unwrap();
        assert_eq!(verdicts(&networks), [Holds, Differs, Differs, Holds, Holds]);
        let claims = figure_6(&networks);
        assert!(claims[1].measured.contains("in 0 of"), "{}", claims[1].measured);
    }

    #[test]
    fn other_tables_give_other_verdicts() {
        use Estimator::{Batch, Direct, Fraction};
        use Verdict::{Fails, Holds};
        let often = with("resnet18", |line| line.clip_fraction = line.clip_fraction.max(0.5));
        assert_eq!(verdicts(&often)[0], Fails);
        let gap = with("resnet18", |line| line.nu.value = f64::NAN);
        assert_eq!(verdicts(&gap)[0], Fails);
        // By the paper's estimate above 1, as it says.
        let as_printed = with("resnet18", |line| {
            line.ccc[Fraction as usize] = Estimate { value: 1.2, error: 0.01 }
        });
        assert_eq!(verdicts(&as_printed)[1], Holds);
        // Above 1 by no estimate.
        let none = with("resnet18", |line| {
            line.ccc[Direct as usize] = Estimate { value: 0.99, error: 0.01 }
        });
        assert_eq!(verdicts(&none)[1], Fails);
        let below = with("vit_s16", |line| {
            line.ccc[Direct as usize] = Estimate { value: 1.01, error: 0.01 }
        });
        assert_eq!(verdicts(&below)[2], Holds, "above 1, but not by more than chance");
        let far = with("vit_s16", |line| {
            line.ccc[Direct as usize] = Estimate { value: 1.3, error: 0.01 }
        });
        assert_eq!(verdicts(&far)[2], Fails);
        let right = with("vit_s4", |line| {
            line.mu[Fraction as usize] = line.mu(Direct);
        });
        assert_eq!(verdicts(&right)[3], Fails);
        let off = with("vit_s4", |line| {
            line.mu[Batch as usize].value = 1.2 * line.mu(Direct).value;
        });
        assert_eq!(verdicts(&off)[4], Fails);
        let mut claims = figure_6(&off);
        soften(&mut claims);
        assert_eq!(claims[4].verdict, Verdict::Differs);
    }

    #[test]
    fn networks_that_are_not_the_papers_are_not_held_against_it() {
        let mut networks = Networks::load(None).unwrap();
        networks.runs.retain(|run| run.settings.model == "vit_s4");
        assert_eq!(verdicts(&networks), [Verdict::Holds; 2], "our two findings only");
        networks.runs[0].factors.retain(|line| line.clip_fraction == 0.0);
        assert!(figure_6(&networks).is_empty(), "nothing was clipped: nothing to say");
        assert!(figure_6(&Networks::default()).is_empty());
    }
}
