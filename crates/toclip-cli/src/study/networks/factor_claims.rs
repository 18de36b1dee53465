//! The claims of figure 6.

use super::factors::{at, at_median, thresholds};
use super::record::Record;
use super::runs::NetworkRun;
use super::{epoch, of_paper};
use crate::report::{Claim, Verdict};
use crate::study::claims::check;
use toclip_words::{percent, short, signed_percent};

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

pub fn claims(networks: &[NetworkRun]) -> Vec<Claim> {
    let [resnets, vits] = ["resnet18", "vit_s16"].map(|model| of_paper(networks, model));
    let mut claims = Vec::from_iter(rarely_clipped(&[&resnets[..], &vits[..]].concat()));
    claims.extend(resnets.iter().map(|run| ccc_claim(run, "ccc_above_1_for_resnet", true)));
    claims.extend(vits.iter().map(|run| ccc_claim(run, "ccc_at_most_1_for_vit", false)));
    claims.extend(fraction_is_too_small(networks));
    claims.extend(batch_form_is_near(networks));
    claims
}

/// At the largest threshold of each run.
fn rarely_clipped(runs: &[&NetworkRun]) -> Option<Claim> {
    let largest = |run: &NetworkRun| thresholds(run, run.batch()).last().copied();
    let lines = runs.iter().filter_map(|run| Some(at(run, run.batch(), largest(run)?)));
    let lines: Vec<&Record> = lines.flatten().collect();
    let c = lines.first()?["threshold"];
    // A NaN must not hide behind the others.
    let smallest = |of: fn(&Record) -> f64| {
        lines.iter().map(|line| of(line)).fold(1.0, |a, b| if b < a || b.is_nan() { b } else { a })
    };
    let clipped = 1.0 - smallest(|line| 1.0 - line["clip_fraction"]);
    let [mu, nu] = [smallest(|line| line["mu_direct"]), smallest(|line| line["nu"])];
    let holds = clipped <= 0.01 && mu >= 0.99 && nu >= 0.99;
    let (clipped, [mu, nu], count) = (percent(clipped), [mu, nu].map(short), lines.len());
    let measured = format!(
        "at c = {c} at most {clipped} were clipped in any of {count} measurements; smallest μ {mu}, \
         smallest ν {nu}"
    );
    Some(check("rarely_clipped", measured, holds))
}

/// CCC at the batch of the training and the smaller thresholds, where anything was clipped: elsewhere
/// every estimate is 1. `helps` is whether the paper says that it is above 1.
fn ccc_claim(run: &NetworkRun, paper: &str, helps: bool) -> Claim {
    let shown = thresholds(run, run.batch());
    let smaller = &shown[..shown.len().saturating_sub(1)];
    let lines = smaller.iter().flat_map(|&c| at(run, run.batch(), c));
    let lines: Vec<&Record> = lines.filter(|line| line["clip_fraction"] > 0.0).collect();
    let largest = |name: &str| {
        let known = lines.iter().map(|line| (line, line.estimate(name)));
        let known = known.filter(|(_, ccc)| ccc.value.is_finite());
        let (line, ccc) = known.max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
        let (c, epoch) = (short(line["threshold"]), epoch(line["epoch"]));
        Some((ccc.value, format!("{} at c = {c}, epoch {epoch}", ccc.describe())))
    };
    let (Some((largest, direct)), Some((_, fraction))) =
        (largest("ccc_direct"), largest("ccc_fraction"))
    else {
        return check(paper, "nothing was clipped, or no mean gradient was seen", false);
    };
    let directly =
        lines.iter().map(|line| line.estimate("ccc_direct")).filter(|ccc| ccc.value.is_finite());
    let above = directly.filter(|ccc| ccc.value - 1.0 > ERRORS * ccc.error).count();
    let over = lines.iter().filter(|line| line["ccc_fraction"] > 1.0).count();
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
fn determined(run: &NetworkRun, counts: fn(f64) -> bool) -> impl Iterator<Item = &Record> {
    let lines = run.at_batch(run.batch());
    lines.filter(move |line| counts(line["clip_fraction"]) && line.determined())
}

fn fraction_is_too_small(networks: &[NetworkRun]) -> Option<Claim> {
    let (mut lines, mut median) = (Vec::new(), Vec::new());
    for run in networks {
        lines.extend(determined(run, |share| share >= CLIPPED));
        median.extend(at_median(run, run.batch()).into_iter().filter(|l| l.determined()));
    }
    if lines.is_empty() || median.is_empty() {
        return None;
    }
    let too_small = |line: &&&Record| {
        let [direct, fraction] = ["mu_direct", "mu_fraction"].map(|name| line.estimate(name));
        let error = direct.error.hypot(fraction.error).max(1e-12);
        (direct.value - fraction.value) / error > ERRORS
    };
    let (seen, count) = (lines.iter().filter(too_small).count(), lines.len());
    let mean_mu = |lines: &[&Record], name| {
        short(lines.iter().map(|line| line[name]).sum::<f64>() / lines.len() as f64)
    };
    let [fraction, direct] = ["mu_fraction", "mu_direct"].map(|name| mean_mu(&median, name));
    let share = percent(CLIPPED);
    lines.retain(|line| line["clip_fraction"] == 1.0);
    let left = mean_mu(&lines, "mu_direct");
    let measured = format!(
        "below the direct μ by more than {ERRORS} standard errors in {seen} of {count} measurements with \
         at least {share} clipped; at the median norm {fraction} on average against {direct}; 0 where all \
         are clipped, where the direct μ is {left} on average"
    );
    Some(check("fraction_is_too_small", measured, seen as f64 >= 0.95 * count as f64))
}

fn batch_form_is_near(networks: &[NetworkRun]) -> Option<Claim> {
    let off = |line: &Record| line["mu_batch"] / line["mu_direct"] - 1.0;
    let (mut largest, mut all) = (Vec::new(), Vec::new());
    for run in networks {
        let offs: Vec<f64> = determined(run, |share| share > 0.0).map(off).collect();
        let worst = offs.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
        let name = || run.name();
        largest.extend(worst.map(|worst| format!("{} {}", name(), signed_percent(worst))));
        all.extend(offs);
    }
    let measured = format!(
        "largest difference: {}; above the direct one in {} of {} measurements",
        largest.join(", "),
        all.iter().filter(|off| **off > 0.0).count(),
        all.len()
    );
    let near = all.iter().all(|off| off.abs() <= NEAR);
    (!all.is_empty()).then(|| check("batch_form_is_near", measured, near))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;
    use crate::study::networks::runs::measured;

    fn verdicts(networks: &[NetworkRun]) -> Vec<Verdict> {
        claims(networks).iter().map(|c| c.verdict).collect()
    }

    /// The tables with every line of a model changed.
    fn with(model: &str, change: impl Fn(&mut Record)) -> Vec<NetworkRun> {
        let mut networks = measured().unwrap();
        for run in networks.iter_mut().filter(|run| run.settings.words["model"] == model) {
            run.factors.iter_mut().for_each(&change);
        }
        networks
    }

    fn set(line: &mut Record, name: &str, value: f64, error: f64) {
        line.numbers.insert(name.into(), value);
        line.numbers.insert(format!("{name}_stderr"), error);
    }

    #[test]
    fn what_was_measured() {
        use Verdict::{Differs, Holds};
        let networks = measured().unwrap();
        assert_eq!(verdicts(&networks), [Holds, Differs, Differs, Holds, Holds]);
    }

    #[test]
    fn other_tables_give_other_verdicts() {
        use Verdict::{Fails, Holds};
        let often = with("resnet18", |line| {
            let share = line["clip_fraction"].max(0.5);
            line.numbers.insert("clip_fraction".into(), share);
        });
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
            let direct = line.estimate("mu_direct");
            set(line, "mu_fraction", direct.value, direct.error);
        });
        assert_eq!(verdicts(&right)[3], Fails);
        let off = with("vit_s4", |line| {
            let direct = line.estimate("mu_direct");
            set(line, "mu_batch", 1.2 * direct.value, direct.error);
        });
        assert_eq!(verdicts(&off)[4], Fails);
    }

    #[test]
    fn networks_that_are_not_the_papers_are_not_held_against_it() {
        let mut networks = measured().unwrap();
        networks.retain(|run| run.settings.words["model"] == "vit_s4");
        assert_eq!(verdicts(&networks), [Verdict::Holds; 2], "our two findings only");
        networks[0].factors.retain(|line| line["clip_fraction"] == 0.0);
        assert!(claims(&networks).is_empty(), "nothing was clipped: nothing to say");
        assert!(claims(&[]).is_empty());
    }
}
