//! The claims of figure 6.

use super::factors::{at, at_median, thresholds};
use super::measurements::{Estimator, FactorLine};
use super::runs::{Networks, Run};
use super::{epoch, mean, most, of_paper};
use crate::output::numbers::{percent, short};
use crate::report::Claim;
use crate::study::claims::{check, differs};

/// Standard errors beyond which a difference counts. They are jackknife errors of eight blocks, so
/// chance follows Student's t with seven degrees of freedom: 5 is exceeded upwards about eight times
/// in ten thousand, and in some twenty-five comparisons once in fifty.
const ERRORS: f64 = 5.0;
/// A CCC above 1 by no more than this is real, but no reason to clip.
const SLIGHT: f64 = 0.05;
/// How near the batch form is to the direct estimate at the batch of the training.
const NEAR: f64 = 0.1;
/// The share of clipped gradients from which the paper's estimate must be seen to be too small.
const CLIPPED: f64 = 0.2;

pub fn claims(networks: &Networks) -> Vec<Claim> {
    let [resnets, vits] = ["resnet18", "vit_s16"].map(|model| of_paper(networks, model));
    let mut claims = Vec::from_iter(rarely_clipped(&[&resnets[..], &vits[..]].concat()));
    claims.extend(resnets.into_iter().map(resnet_gains));
    claims.extend(vits.into_iter().map(vit_does_not_gain));
    claims.extend(fraction_is_too_small(networks));
    claims.extend(batch_form_is_near(networks));
    claims
}

fn rarely_clipped(runs: &[&Run]) -> Option<Claim> {
    let of_run = |run: &&Run| thresholds(run, run.settings.batch).last().copied();
    let c = runs.iter().find_map(of_run)?;
    let lines: Vec<&FactorLine> =
        runs.iter().flat_map(|run| at(run, run.settings.batch, of_run(run).unwrap_or(c))).collect();
    // A NaN must not hide behind the others.
    let smallest = |of: &dyn Fn(&FactorLine) -> f64| {
        lines.iter().map(|line| of(line)).fold(1.0, |a, b| if b < a || b.is_nan() { b } else { a })
    };
    let clipped = 1.0 - smallest(&|line| 1.0 - line.clip_fraction);
    let mu = smallest(&|line| line.mu(Estimator::Direct).value);
    let nu = smallest(&|line| line.nu().value);
    Some(check(
        "With the threshold c = 10 gradients are rarely clipped, and μ ≈ ν ≈ 1.",
        format!(
            "at c = {c} at most {} were clipped in any of {} measurements; smallest μ {}, smallest ν {}",
            percent(clipped),
            lines.len(),
            short(mu),
            short(nu)
        ),
        clipped <= 0.01 && mu >= 0.99 && nu >= 0.99,
    ))
}

/// CCC at the batch of the training and the smaller thresholds, where anything was clipped: elsewhere
/// every estimate is 1.
struct Ccc {
    measured: String,
    /// Whether the paper's estimate is above 1 in most measurements.
    mostly_above: bool,
    /// Measurements with a direct estimate above 1 by more than chance.
    above: usize,
    largest: f64,
}

impl Ccc {
    /// `None` where nothing was clipped or no mean gradient was seen.
    fn new(run: &Run) -> Option<Self> {
        let shown = thresholds(run, run.settings.batch);
        let smaller = &shown[..shown.len().saturating_sub(1)];
        let lines = smaller.iter().flat_map(|&c| at(run, run.settings.batch, c));
        let lines: Vec<&FactorLine> = lines.filter(|line| line.clip_fraction > 0.0).collect();
        let known = |by: Estimator| {
            lines.iter().filter(move |line| line.has(by) && line.ccc(by).value.is_finite())
        };
        let largest = |by: Estimator| {
            let line = most(known(by), |line| line.ccc(by).value)?;
            let place = format!("at c = {}, epoch {}", short(line.threshold), epoch(line.epoch));
            Some((line.ccc(by), format!("{} {place}", line.ccc(by))))
        };
        let above_one = |line: &&&FactorLine| {
            let ccc = line.ccc(Estimator::Direct);
            ccc.value - 1.0 > ERRORS * ccc.error
        };
        let above = known(Estimator::Direct).filter(above_one).count();
        let over = |line: &&&FactorLine| line.ccc(Estimator::Fraction).value > 1.0;
        let over = lines.iter().filter(over).count();
        let (ccc, direct) = largest(Estimator::Direct)?;
        let measured = format!(
            "by the paper's estimate above 1 in {over} of {} measurements with clipping, largest {}; by \
             the direct estimate above 1 by more than {ERRORS} standard errors in {above}, largest \
             {direct}",
            lines.len(),
            largest(Estimator::Fraction)?.1
        );
        Some(Ccc { measured, mostly_above: 2 * over > lines.len(), above, largest: ccc.value })
    }
}

const NO_CCC: &str = "nothing was clipped, or no mean gradient was seen";

fn resnet_gains(run: &Run) -> Claim {
    let paper = "For ResNet-18 the CCC is above 1 at the smaller thresholds: clipping would help.";
    match Ccc::new(run) {
        None => check(paper, NO_CCC, false),
        Some(ccc) if ccc.above == 0 => check(paper, ccc.measured, false),
        Some(ccc) if ccc.mostly_above => check(paper, ccc.measured, true),
        Some(ccc) => differs(paper, ccc.measured, ccc.largest > 1.0 + SLIGHT),
    }
}

fn vit_does_not_gain(run: &Run) -> Claim {
    let paper = "For ViT S/16 the CCC stays at or below 1: clipping would not help.";
    match Ccc::new(run) {
        None => check(paper, NO_CCC, false),
        Some(ccc) if ccc.above == 0 => check(paper, ccc.measured, true),
        Some(ccc) => differs(paper, ccc.measured, ccc.largest <= 1.0 + SLIGHT),
    }
}

fn fraction_is_too_small(networks: &Networks) -> Option<Claim> {
    let mu = |line: &FactorLine| [Estimator::Direct, Estimator::Fraction].map(|by| line.mu(by));
    let known = |line: &&FactorLine| line.clip_fraction >= CLIPPED && line.determined();
    let lines: Vec<&FactorLine> =
        networks.runs.iter().flat_map(of_training).filter(known).collect();
    let median = networks.runs.iter().flat_map(|run| at_median(run, run.settings.batch));
    let median: Vec<&FactorLine> = median.filter(|line| line.determined()).collect();
    if lines.is_empty() || median.is_empty() {
        return None;
    }
    let too_small = |line: &&&FactorLine| {
        let [direct, fraction] = mu(line);
        let error = direct.error.hypot(fraction.error).max(1e-12);
        (direct.value - fraction.value) / error > ERRORS
    };
    let seen = lines.iter().filter(too_small).count();
    let [direct, fraction] = [0, 1].map(|i| mean(median.iter().map(|line| mu(line)[i].value)));
    let all_clipped = lines.iter().filter(|line| line.clip_fraction == 1.0);
    Some(check(
        "For batches the fraction of unclipped gradients is far below μ (our finding, not the paper's).",
        format!(
            "below the direct μ by more than {ERRORS} standard errors in {seen} of {} measurements with \
             at least {} clipped; at the median norm {} on average against {}; 0 where all are clipped, \
             where the direct μ is {} on average",
            lines.len(),
            percent(CLIPPED),
            short(fraction),
            short(direct),
            short(mean(all_clipped.map(|line| mu(line)[0].value)))
        ),
        seen as f64 >= 0.95 * lines.len() as f64,
    ))
}

fn batch_form_is_near(networks: &Networks) -> Option<Claim> {
    let off = |line: &FactorLine| {
        line.mu(Estimator::Batch).value / line.mu(Estimator::Direct).value - 1.0
    };
    let known = |line: &&FactorLine| line.clip_fraction > 0.0 && line.determined();
    let all = &networks.runs;
    let mut worst = Vec::new();
    for run in all {
        let line = most(of_training(run).filter(known), |line| off(line).abs());
        worst.extend(
            line.map(|line| (off(line), format!("{} {:+.1}%", run.name(all), 100.0 * off(line)))),
        );
    }
    let lines: Vec<&FactorLine> = all.iter().flat_map(of_training).filter(known).collect();
    let runs: Vec<&str> = worst.iter().map(|(_, run)| run.as_str()).collect();
    (!lines.is_empty()).then(|| {
        check(
            "The batch form of μ is within 10% of the direct one at the batch of the training (our \
             finding, not the paper's).",
            format!(
                "largest difference: {}; above the direct one in {} of {} measurements",
                runs.join(", "),
                lines.iter().filter(|line| off(line) > 0.0).count(),
                lines.len()
            ),
            worst.iter().all(|(off, _)| off.abs() <= NEAR),
        )
    })
}

/// The lines at the batch of the training.
fn of_training(run: &Run) -> impl Iterator<Item = &FactorLine> {
    run.factors.iter().filter(|line| line.batch == run.settings.batch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    fn verdicts(networks: &Networks) -> Vec<Verdict> {
        claims(networks).iter().map(|c| c.verdict).collect()
    }

    /// The tables with every line of a model changed.
    fn with(model: &str, change: impl Fn(&mut FactorLine)) -> Networks {
        let mut networks = Networks::load(None).unwrap();
        for run in networks.runs.iter_mut().filter(|run| run.settings.model == model) {
            run.factors.iter_mut().for_each(&change);
        }
        networks
    }

    fn set(line: &mut FactorLine, name: &str, value: f64, error: f64) {
        line.estimates.insert(name.into(), value.into());
        line.estimates.insert(format!("{name}_stderr"), error.into());
    }

    #[test]
    fn what_was_measured() {
        use Verdict::{Differs, Holds};
        let networks = Networks::load(None).unwrap();
        assert_eq!(verdicts(&networks), [Holds, Differs, Differs, Holds, Holds]);
    }

    #[test]
    fn other_tables_give_other_verdicts() {
        use Estimator::Direct;
        use Verdict::{Fails, Holds};
        let often = with("resnet18", |line| line.clip_fraction = line.clip_fraction.max(0.5));
        assert_eq!(verdicts(&often)[0], Fails);
        let gap = with("resnet18", |line| set(line, "nu", f64::NAN, 0.0));
        assert_eq!(verdicts(&gap)[0], Fails);
        // By the paper's estimate above 1, as it says.
        let as_printed = with("resnet18", |line| set(line, "ccc_fraction", 1.2, 0.01));
        assert_eq!(verdicts(&as_printed)[1], Holds);
        // Above 1 by no estimate.
        let none = with("resnet18", |line| set(line, "ccc_direct", 0.99, 0.01));
        assert_eq!(verdicts(&none)[1], Fails);
        let below = with("vit_s16", |line| set(line, "ccc_direct", 1.01, 0.01));
        assert_eq!(verdicts(&below)[2], Holds, "above 1, but not by more than chance");
        let far = with("vit_s16", |line| set(line, "ccc_direct", 1.3, 0.01));
        assert_eq!(verdicts(&far)[2], Fails);
        let right = with("vit_s4", |line| {
            let direct = line.mu(Direct);
            set(line, "mu_fraction", direct.value, direct.error);
        });
        assert_eq!(verdicts(&right)[3], Fails);
        let off = with("vit_s4", |line| {
            let direct = line.mu(Direct);
            set(line, "mu_batch", 1.2 * direct.value, direct.error);
        });
        assert_eq!(verdicts(&off)[4], Fails);
    }

    #[test]
    fn networks_that_are_not_the_papers_are_not_held_against_it() {
        let mut networks = Networks::load(None).unwrap();
        networks.runs.retain(|run| run.settings.model == "vit_s4");
        assert_eq!(verdicts(&networks), [Verdict::Holds; 2], "our two findings only");
        networks.runs[0].factors.retain(|line| line.clip_fraction == 0.0);
        assert!(claims(&networks).is_empty(), "nothing was clipped: nothing to say");
        assert!(claims(&Networks::default()).is_empty());
    }
}
