//! Verdicts in words: what to do, what it assumes, and why.
//!
//! ```
//! use toclip::{noise::{Gaussian, Laplace}, verdict::Verdict};
//! use toclip_words::verdict::{headline, reason};
//! assert_eq!(headline(&Verdict::at_risk(&Gaussian::new(1.0)?, 0.1)?), "Do not clip.");
//! let laplace = Verdict::at_risk(&Laplace::new(1.0)?, 0.1)?;
//! assert_eq!(headline(&laplace), "Clip at c = 0.8268, with the learning rate raised to η/μ.");
//! assert_eq!(
//!     reason(&laplace),
//!     "At risk 0.1 it keeps 62.4% of the descent, which the rate makes up for, and 80.8% of the noise at \
//!      equal descent (CCC = 1.237)."
//! );
//! # Ok::<(), toclip::Error>(())
//! ```

use toclip::Rule;
use toclip::criteria::FisherLimit;
use toclip::verdict::{
    AtMoment, Choice, Comparison, End, Evidence, JudgedBy, Rate, Threshold, Unclipped, Verdict,
    WORTH_IT,
};

use crate::{percent, short, significant};

/// What to do, in a sentence: "Clip at c = 0.2, with the learning rate raised to η/μ."
pub fn headline(verdict: &Verdict) -> String {
    capital(&action(verdict)) + "."
}

/// What to do, as a part of a sentence: "clip at c = 0.2, with the learning rate raised to η/μ".
pub fn action(verdict: &Verdict) -> String {
    let rule = verdict.moment().map(|at| &at.rule).or(verdict.best().map(|best| &best.rule));
    let rule = rule.unwrap_or(&Rule::Clip);
    match verdict.choice {
        Choice::DoNotClip if *rule == Rule::Clip || verdict.moment().is_none() => {
            "do not clip".into()
        }
        Choice::DoNotClip => format!("the rule {} does not help", rule.name()),
        Choice::Clip { threshold, rate } => way(rule, threshold, rate),
        _ => "use a smaller learning rate".into(),
    }
}

/// A rule with its threshold and its rate: "clip at κ = 0.3, with the learning rate raised to η/μ".
pub fn way(rule: &Rule, threshold: Threshold, rate: Rate) -> String {
    let verb = match rule {
        Rule::Clip => "clip".into(),
        rule => format!("use the rule {}", rule.name()),
    };
    let rate = match (rate, threshold) {
        (Rate::Keep, _) => ", at the same learning rate".into(),
        (Rate::Compensated, Threshold::Any) => ", with the learning rate η/μ".into(),
        (Rate::Compensated, _) => ", with the learning rate raised to η/μ".into(),
        (Rate::Best(eta), _) => format!(", with the learning rate η = {}", short(eta)),
        (Rate::BestCosine(eta), _) => {
            format!(", with a learning rate that falls along a cosine from η = {}", short(eta))
        }
        (Rate::Fastest, _) => ", with the learning rate of fastest descent".into(),
        _ => String::new(),
    };
    verb + &place(threshold) + &rate
}

/// " at c = 0.2"; empty where the threshold does not matter.
fn place(threshold: Threshold) -> String {
    match threshold {
        Threshold::At(c) => format!(" at c = {}", significant(c, 4)),
        Threshold::TowardsZero => " at as small a threshold as possible".into(),
        Threshold::MaxCcc => " at the threshold with the largest CCC (max-CCC)".into(),
        Threshold::Proportional(kappa) => format!(" at κ = {}", short(kappa)),
        Threshold::Any => String::new(),
        _ => " at the threshold of the file".into(),
    }
}

/// Why, in a sentence or two.
pub fn reason(verdict: &Verdict) -> String {
    match &verdict.evidence {
        Evidence::AtRisk(at) => {
            let when = format!("At risk {}", short(at.risk));
            moment_reason(verdict, at, &when, "the descent")
        }
        Evidence::OfDirection(at) => {
            moment_reason(verdict, at, "At this moment", "the progress in direction")
        }
        Evidence::FinalRisks { compared, .. } => {
            capital(&end_reason(verdict, compared).unwrap_or_default()) + "."
        }
        _ => String::new(),
    }
}

fn moment_reason(verdict: &Verdict, at: &AtMoment, when: &str, descent: &str) -> String {
    let (c, mu, ccc) = (significant(at.c, 4), percent(at.mu), significant(at.ccc, 4));
    let left = percent(1.0 - verdict.gain);
    match verdict.choice {
        Choice::Clip { threshold: Threshold::Any, .. } if at.infinite_variance => {
            "Unclipped SGD has no finite risk under this noise.".into()
        }
        Choice::Clip { threshold: Threshold::Any, .. } => {
            format!("{when} it leaves {left} of the noise at equal descent (CCC = {ccc}).")
        }
        Choice::Clip { threshold: Threshold::TowardsZero, .. } => {
            format!("{when} the smaller the threshold the better; CCC tends to {ccc}.")
        }
        Choice::Clip { .. } if at.infinite_variance => format!(
            "Unclipped SGD has no finite risk under this noise. {when} it keeps {mu} of {descent}, which \
             the rate makes up for."
        ),
        Choice::Clip { .. } => format!(
            "{when} it keeps {mu} of {descent}, which the rate makes up for, and {left} of the noise at equal \
             descent (CCC = {ccc})."
        ),
        _ => {
            let diverges = match verdict.choice {
                Choice::LowerRate => "Unclipped SGD diverges at this one. ",
                _ => "",
            };
            let gain = match at.c.is_infinite() {
                true => "no threshold has CCC above 1".into(),
                false => {
                    let gain = percent(verdict.gain);
                    format!("the best threshold, c = {c}, gains only {gain} (CCC = {ccc})")
                }
            };
            format!("{diverges}{when} {gain}.")
        }
    }
}

/// The best threshold at a moment in one line, for a table of factors; `None` for other evidence.
pub fn best_threshold_line(verdict: &Verdict) -> Option<String> {
    let at = verdict.moment()?;
    let ccc = significant(at.ccc, 4);
    Some(match (verdict.choice, &at.rule) {
        (_, Rule::Optimal) => "this rule reaches the limit".into(),
        (_, Rule::Normalise) => format!("every threshold has CCC = {ccc}"),
        (Choice::Clip { threshold: Threshold::TowardsZero, .. }, _) => {
            format!("the smaller the threshold the better; CCC tends to {ccc} as c → 0")
        }
        (Choice::Clip { .. }, _) => {
            let why = match at.infinite_variance {
                true => "unclipped SGD does not converge under this noise".into(),
                false => format!("CCC = {ccc}"),
            };
            format!("{} (μ = {}); {why}", action(verdict), short(at.mu))
        }
        _ if at.c.is_infinite() => format!("{}; no threshold has CCC above 1", action(verdict)),
        _ => {
            let (c, gain) = (significant(at.c, 4), percent(verdict.gain));
            format!("{}; the best threshold, c = {c}, gains only {gain}", action(verdict))
        }
    })
}

/// Verdicts at the start and at the end of training in one sentence.
pub fn over_training(start: &Verdict, end: &Verdict) -> String {
    let ccc = |verdict: &Verdict| verdict.moment().map_or(1.0, |at| at.ccc);
    let at = |verdict: &Verdict| {
        let Choice::Clip { threshold, .. } = verdict.choice else { return None };
        Some(format!("{} (CCC = {:.3})", place(threshold), ccc(verdict)))
    };
    let rate = "with the learning rate raised to η/μ";
    match (at(start), at(end)) {
        (None, None) => format!(
            "Do not clip for speed: the best CCC over all thresholds is {:.3} at the start and {:.3} at the \
             end, no gain of more than {}.",
            ccc(start),
            ccc(end),
            percent(WORTH_IT)
        ),
        (Some(start), Some(end)) => {
            format!("Clip{start} at the start and{end} at the end, {rate}.")
        }
        (Some(start), None) => format!("Clip{start} at the start, {rate}; do not clip at the end."),
        (None, Some(end)) => format!("Do not clip at the start; clip{end} at the end, {rate}."),
    }
}

/// The limit on any rule, as a part of a sentence; `None` where it is not known.
pub fn limit(verdict: &Verdict) -> Option<String> {
    let &FisherLimit { information, limit, reached } = verdict.moment()?.fisher.as_ref()?;
    let reached = format!("{}%", significant(100.0 * reached, 3));
    Some(if information.is_infinite() {
        "without model error this noise can be removed exactly".into()
    } else if limit.is_infinite() {
        format!("the best threshold reaches {reached} of what any rule could")
    } else {
        let most = significant(limit, 4);
        format!("no rule has CCC above {most}; the best threshold reaches {reached} of it")
    })
}

/// Headline and reason in one: "Do not clip: unclipped SGD ends at a risk of 0.3, …".
pub fn sentence(verdict: &Verdict) -> String {
    match &verdict.evidence {
        Evidence::FinalRisks { compared, .. } => match end_reason(verdict, compared) {
            Some(reason) => format!("{}: {reason}.", capital(&action(verdict))),
            None => headline(verdict),
        },
        _ => format!("{} {}", headline(verdict), reason(verdict)),
    }
}

/// The ends that decided, as a part of a sentence.
fn end_reason(verdict: &Verdict, compared: &Comparison) -> Option<String> {
    let what = match compared.judged_by {
        JudgedBy::Risk => "a risk",
        JudgedBy::ExcessLoss => "an excess loss",
        _ => "a loss",
    };
    let best = verdict.best().and_then(|best| best.end.risk());
    let open = compared.unclipped.and_then(|open| open.end.risk());
    let gain = percent(verdict.gain);
    Some(match (verdict.choice, best, compared.unclipped) {
        (Choice::Clip { .. }, Some(best), unclipped) => {
            let than = match (open, unclipped) {
                (Some(open), _) => format!("{gain} below the {} of unclipped SGD", short(open)),
                (None, Some(unclipped)) => format!("unclipped SGD {}", ending(unclipped, what)),
                (None, None) => "the lowest of what was compared".into(),
            };
            format!("it ends at {what} of {}, {than}", short(best))
        }
        (Choice::DoNotClip, None, Some(unclipped)) => {
            let others = match compared.candidates.is_empty() {
                true => "no threshold is better",
                false => "everything else diverges",
            };
            format!("unclipped SGD {}, and {others}", ending(unclipped, what))
        }
        (Choice::DoNotClip, Some(best), Some(unclipped)) => {
            let rates = match unclipped.rate {
                Rate::Keep => "at equal effective rate",
                _ => "each at its best rate",
            };
            let lower = if verdict.gain > 0.0 { format!(", {gain} lower") } else { String::new() };
            let open = ending(unclipped, what);
            format!("unclipped SGD {open}, the best threshold at {}{lower}, {rates}", short(best))
        }
        (Choice::LowerRate, ..) => match best.into_iter().chain(open).reduce(f64::min) {
            Some(lowest) => {
                let [start, lowest] = [compared.start, lowest].map(short);
                format!("from {start} training ends at {what} of {lowest} or more, clipped or not")
            }
            None => "everything diverges".into(),
        },
        _ => return None,
    })
}

/// "ends at a risk of 0.3", "diverges at once".
fn ending(open: Unclipped, what: &str) -> String {
    match open.end {
        End::Risk(risk) => format!("ends at {what} of {}", short(risk)),
        End::Diverged(t) if t > 0.0 => format!("diverges at t = {}", short(t)),
        End::Diverged(_) => "diverges at once".into(),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip::noise::{Noise, Rademacher, StudentT};
    use toclip::{Step, verdict::Candidate};

    #[test]
    fn every_kind_of_moment_has_its_words() {
        let of = |noise: &dyn Noise, rule: Rule, r: f64| {
            let step = Step::from(noise).with_rule(rule).unwrap();
            Verdict::at_risk(&step, r).unwrap()
        };
        let student = |df, scale| StudentT::new(df, scale).unwrap();
        let cauchy = of(&student(1.0, 0.5), Rule::Clip, 0.1);
        assert!(
            reason(&cauchy).starts_with("Unclipped SGD has no finite risk under this noise. At")
        );
        let optimal = of(&student(3.0, 1.0), Rule::Optimal, 0.1);
        assert_eq!(headline(&optimal), "Use the rule optimal, with the learning rate η/μ.");
        let atoms = of(&Rademacher::new(1.0, 0.3).unwrap(), Rule::Clip, 0.0);
        assert!(headline(&atoms).starts_with("Clip at as small a threshold as possible, with"));
        let light = of(&student(20.0, 1.0), Rule::Clip, 1.0);
        assert_eq!(headline(&light), "Do not clip.");
        assert!(reason(&light).contains("gains only 0.0"), "{}", reason(&light));
        let diverges = light.where_unclipped_diverges();
        assert_eq!(headline(&diverges), "Use a smaller learning rate.");
        assert!(reason(&diverges).starts_with("Unclipped SGD diverges at this one."));
    }

    #[test]
    fn ends_say_what_they_assume() {
        let compare = |open: End, ends: &[End]| {
            let candidate = |end: &End| Candidate {
                name: "",
                rule: Rule::Clip,
                threshold: Threshold::At(0.5),
                rate: Rate::Best(0.25),
                end: *end,
            };
            let unclipped = Some(Unclipped { rate: Rate::Best(0.1), end: open });
            let candidates = ends.iter().map(candidate).collect();
            let judged_by = JudgedBy::Loss;
            sentence(&Comparison { judged_by, start: 1.0, unclipped, candidates }.verdict())
        };
        assert_eq!(
            compare(End::Risk(0.5), &[End::Risk(0.25)]),
            "Clip at c = 0.5, with the learning rate η = 0.25: it ends at a loss of 0.25, 50% below the 0.5 of \
             unclipped SGD."
        );
        assert_eq!(
            compare(End::Risk(0.5), &[End::Risk(0.498)]),
            "Do not clip: unclipped SGD ends at a loss of 0.5, the best threshold at 0.498, 0.4% lower, each at \
             its best rate."
        );
        assert_eq!(
            compare(End::Risk(0.5), &[]),
            "Do not clip: unclipped SGD ends at a loss of 0.5, and no threshold is better."
        );
        assert_eq!(
            compare(End::Diverged(2.0), &[End::Risk(0.5)]),
            "Clip at c = 0.5, with the learning rate η = 0.25: it ends at a loss of 0.5, unclipped SGD diverges \
             at t = 2."
        );
    }
}
