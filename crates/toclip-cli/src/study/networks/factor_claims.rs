//! The claims of figure 6.

use super::factors::{at, at_median, thresholds};
use super::measurements::{Estimator, FactorLine};
use super::runs::{NetworkRun, Networks};
use super::{epoch, mean, most, of_paper};
use crate::output::numbers::{percent, short, signed_percent};
use crate::report::{Claim, Verdict};
use crate::study::claims::check;
use Estimator::{Batch, Direct, Fraction};

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
    let paper = "ccc_above_1_for_resnet";
    claims.extend(resnets.into_iter().map(|run| ccc_claim(run, paper, true)));
    let paper = "ccc_at_most_1_for_vit";
    claims.extend(vits.into_iter().map(|run| ccc_claim(run, paper, false)));
    claims.extend(fraction_is_too_small(networks));
    claims.extend(batch_form_is_near(networks));
    claims
}

fn rarely_clipped(runs: &[&NetworkRun]) -> Option<Claim> {
    let largest = |run: &NetworkRun| thresholds(run, run.settings.batch).last().copied();
    let c = runs.iter().find_map(|run| largest(run))?;
    let lines = runs.iter().flat_map(|run| at(run, run.settings.batch, largest(run).unwrap_or(c)));
    let lines: Vec<&FactorLine> = lines.collect();
    // A NaN must not hide behind the others.
    let smallest = |of: fn(&FactorLine) -> f64| {
        lines.iter().map(|line| of(line)).fold(1.0, |a, b| if b < a || b.is_nan() { b } else { a })
    };
    let clipped = 1.0 - smallest(|line| 1.0 - line.clip_fraction);
    let [mu, nu] = [smallest(|line| line.mu(Direct).value), smallest(|line| line.nu().value)];
    let holds = clipped <= 0.01 && mu >= 0.99 && nu >= 0.99;
    let (clipped, mu, nu, count) = (percent(clipped), short(mu), short(nu), lines.len());
    let measured = format!(
        "at c = {c} at most {clipped} were clipped in any of {count} measurements; smallest μ {mu}, \
         smallest ν {nu}"
    );
    let paper = "rarely_clipped";
    Some(check(paper, measured, holds))
}

/// CCC at the batch of the training and the smaller thresholds, where anything was clipped: elsewhere
/// every estimate is 1. `helps` is whether the paper says that it is above 1.
fn ccc_claim(run: &NetworkRun, paper: &str, helps: bool) -> Claim {
    let shown = thresholds(run, run.settings.batch);
    let smaller = &shown[..shown.len().saturating_sub(1)];
    let lines = smaller.iter().flat_map(|&c| at(run, run.settings.batch, c));
    let lines: Vec<&FactorLine> = lines.filter(|line| line.clip_fraction > 0.0).collect();
    let largest = |by: Estimator| {
        let known = |line: &&&FactorLine| line.has(by) && line.ccc(by).value.is_finite();
        let line = most(lines.iter().filter(known), |line| line.ccc(by).value)?;
        let (ccc, c, epoch) = (line.ccc(by), short(line.threshold), epoch(line.epoch));
        Some((ccc.value, format!("{ccc} at c = {c}, epoch {epoch}")))
    };
    let (Some((largest, direct)), Some((_, fraction))) = (largest(Direct), largest(Fraction))
    else {
        return check(paper, "nothing was clipped, or no mean gradient was seen", false);
    };
    let above_one = |line: &&&FactorLine| {
        let ccc = line.ccc(Direct);
        line.determined() && ccc.value.is_finite() && ccc.value - 1.0 > ERRORS * ccc.error
    };
    let above = lines.iter().filter(above_one).count();
    let over = lines.iter().filter(|line| line.ccc(Fraction).value > 1.0).count();
    let (count, clearly) = (lines.len(), largest > 1.0 + SLIGHT);
    let verdict = match (helps, above) {
        (false, 0) => Verdict::Holds,
        (true, 1..) if 2 * over > count => Verdict::Holds,
        (true, 1..) if clearly => Verdict::Differs,
        (false, _) if !clearly => Verdict::Differs,
        _ => Verdict::Fails,
    };
    let measured = format!(
        "by the paper's estimate above 1 in {over} of {count} measurements with clipping, largest \
         {fraction}; by the direct estimate above 1 by more than {ERRORS} standard errors in {above}, \
         largest {direct}"
    );
    Claim { paper: paper.into(), verdict, measured }
}

/// Lines at the batch of the training with a clipped share that counts and a direct estimate.
fn determined(run: &NetworkRun, clipped: fn(f64) -> bool) -> impl Iterator<Item = &FactorLine> {
    let lines = run.at_batch(run.settings.batch);
    lines.filter(move |line| clipped(line.clip_fraction) && line.determined())
}

fn fraction_is_too_small(networks: &Networks) -> Option<Claim> {
    let runs = || networks.runs.iter();
    let lines: Vec<&FactorLine> =
        runs().flat_map(|run| determined(run, |share| share >= CLIPPED)).collect();
    let median = runs().flat_map(|run| at_median(run, run.settings.batch));
    let median: Vec<&FactorLine> = median.filter(|line| line.determined()).collect();
    if lines.is_empty() || median.is_empty() {
        return None;
    }
    let too_small = |line: &&&FactorLine| {
        let [direct, fraction] = [Direct, Fraction].map(|by| line.mu(by));
        let error = direct.error.hypot(fraction.error).max(1e-12);
        (direct.value - fraction.value) / error > ERRORS
    };
    let (seen, count) = (lines.iter().filter(too_small).count(), lines.len());
    let at_median = |by| short(mean(median.iter().map(|line| line.mu(by).value)));
    let [fraction, direct] = [Fraction, Direct].map(at_median);
    let all_clipped = lines.iter().filter(|line| line.clip_fraction == 1.0);
    let (share, left) =
        (percent(CLIPPED), short(mean(all_clipped.map(|line| line.mu(Direct).value))));
    let measured = format!(
        "below the direct μ by more than {ERRORS} standard errors in {seen} of {count} measurements with \
         at least {share} clipped; at the median norm {fraction} on average against {direct}; 0 where all \
         are clipped, where the direct μ is {left} on average"
    );
    let paper = "fraction_is_too_small";
    Some(check(paper, measured, seen as f64 >= 0.95 * count as f64))
}

fn batch_form_is_near(networks: &Networks) -> Option<Claim> {
    let off = |line: &FactorLine| line.mu(Batch).value / line.mu(Direct).value - 1.0;
    let all = &networks.runs;
    let (mut largest, mut near, mut above, mut count) = (Vec::new(), true, 0, 0);
    for run in all {
        let offs: Vec<f64> = determined(run, |share| share > 0.0).map(off).collect();
        let Some(worst) = most(offs.iter().copied(), |off| off.abs()) else { continue };
        largest.push(format!("{} {}", run.name(all), signed_percent(worst)));
        near &= worst.abs() <= NEAR;
        above += offs.iter().filter(|off| **off > 0.0).count();
        count += offs.len();
    }
    let paper = "batch_form_is_near";
    let largest = largest.join(", ");
    let measured = format!(
        "largest difference: {largest}; above the direct one in {above} of {count} measurements"
    );
    (count > 0).then(|| check(paper, measured, near))
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
