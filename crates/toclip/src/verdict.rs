//! Should this problem clip, where, at which learning rate, and what does it gain?
//!
//! A [`Verdict`] is the answer as data, with the [`Evidence`] it rests on. There are two kinds of
//! evidence: CCC at one moment ([`Verdict::at_risk`], [`Verdict::at_overlaps`]), and the final risks of
//! whole paths ([`Comparison::verdict`]). [`WORTH_IT`] decides for both. The words for people are in
//! the crate `toclip-words`.
//!
//! ```
//! use toclip::noise::{Gaussian, StudentT};
//! use toclip::verdict::{Choice, Verdict};
//! assert_eq!(Verdict::at_risk(&Gaussian::new(1.0)?, 0.1)?.choice, Choice::DoNotClip);
//! let heavy = Verdict::at_risk(&StudentT::from_sigma(2.5, 1.0)?, 0.1)?;
//! assert!(heavy.clips() && heavy.gain > 0.45); // nearly half of the noise goes, at equal descent
//! # Ok::<(), toclip::Error>(())
//! ```

use serde::{Serialize, Serializer};

use crate::criteria::{FisherLimit, best_threshold, fisher_limit};
use crate::error::{Error, Result};
use crate::factors::step::Step;
use crate::model::{self, Model, Overlaps};
use crate::rule::Rule;

/// The smallest [gain](Verdict::gain) that is worth clipping for: one per cent of the noise at equal
/// descent, or of the final risk.
///
/// A threshold is one more number to choose and to keep right. A gain of less than a per cent is also
/// below what runs can show: the theory and the mean of a hundred runs of SGD differ by more.
pub const WORTH_IT: f64 = 0.01;

/// What to do, what it gains, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What to do.
    pub choice: Choice,
    /// The share of the noise at equal descent ($1 - 1/$CCC), or of the final risk, that the best
    /// threshold removes from unclipped SGD, whether that is worth it or not: from zero to one, which
    /// stands for unclipped SGD that diverges or is not allowed.
    pub gain: f64,
    /// Why.
    pub evidence: Evidence,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Choice {
    /// No threshold gains more than [`WORTH_IT`] over unclipped SGD.
    DoNotClip,
    /// Clip, or use the rule that was asked about.
    Clip {
        /// Where.
        threshold: Threshold,
        /// At which learning rate: the gain holds for this rate.
        rate: Rate,
    },
    /// Use a smaller learning rate: the risk grows, clipped or not.
    LowerRate,
}

/// A threshold, constant or not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Threshold {
    /// At this value.
    At(f64),
    /// The smaller the better.
    TowardsZero,
    /// The gain of the rule does not depend on the threshold.
    Any,
    /// At every moment that with the largest CCC.
    MaxCcc,
    /// $\kappa$ times the root mean square of the residual.
    Proportional(f64),
    /// Any other schedule.
    Schedule,
}

/// A learning rate, relative to the one that was given.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rate {
    /// Unchanged.
    Keep,
    /// Divided by $\mu$, which makes up for the descent that clipping removes.
    Compensated,
    /// This one, the best for its threshold.
    Best(f64),
    /// From this one, the best for its threshold, along half a cosine to zero.
    BestCosine(f64),
    /// At every moment that of the fastest descent.
    Fastest,
}

/// What a verdict rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Evidence {
    /// CCC at one risk.
    AtRisk(AtMoment),
    /// CCC of the direction at one moment of classification.
    OfDirection(AtMoment),
    /// Final risks or losses.
    FinalRisks {
        /// What was compared.
        compared: Comparison,
        /// The candidate with the lowest end among those that may be preferred.
        best: Option<usize>,
    },
}

/// The best threshold at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtMoment {
    /// $R$; for classification the loss.
    pub risk: f64,
    /// The rule.
    #[serde(serialize_with = "rule_name")]
    pub rule: Rule,
    /// The threshold with the largest CCC: zero if CCC grows as $c \to 0$, infinite if not clipping
    /// is best or the rule has no threshold.
    pub c: f64,
    /// The share of the descent that is left at $c$.
    pub mu: f64,
    /// CCC at $c$; infinite for noise of infinite variance.
    pub ccc: f64,
    /// Whether the noise has infinite variance: unclipped SGD then has no finite risk.
    pub infinite_variance: bool,
    /// The limit on any rule, where it was asked for and the density of the noise is known.
    pub fisher: Option<FisherLimit>,
}

/// Ways to train, by their ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What ends are compared.
    pub judged_by: JudgedBy,
    /// It at the start.
    pub start: f64,
    /// SGD without clipping; `None` where that is not allowed, as in private SGD.
    pub unclipped: Option<Unclipped>,
    /// The others.
    pub candidates: Vec<Candidate>,
}

/// The quantity whose ends are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JudgedBy {
    /// $R$.
    Risk,
    /// The loss of classification.
    Loss,
    /// The loss over that of the best solution.
    ExcessLoss,
}

/// SGD without clipping.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Unclipped {
    /// At which learning rate: [`Rate::Keep`] for the one that was given.
    pub rate: Rate,
    /// Its end.
    pub end: End,
}

/// A threshold and a learning rate, and where they end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// For programs.
    pub name: &'static str,
    /// The rule.
    #[serde(serialize_with = "rule_name")]
    pub rule: Rule,
    /// Where to clip.
    pub threshold: Threshold,
    /// At which learning rate.
    pub rate: Rate,
    /// The end.
    pub end: End,
}

/// The end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The last risk, loss or excess loss.
    Risk(f64),
    /// Diverged, at this time.
    Diverged(f64),
}

impl End {
    /// The last risk; `None` if the path diverged.
    pub fn risk(self) -> Option<f64> {
        match self {
            End::Risk(risk) if risk.is_finite() => Some(risk),
            _ => None,
        }
    }
}

impl Verdict {
    /// Whether to clip, by the largest CCC at risk $R$. The gain is at equal descent, so it needs the
    /// [compensated](Rate::Compensated) learning rate.
    ///
    /// # Errors
    /// As [`best_threshold`].
    ///
    /// ```
    /// use toclip::noise::StudentT;
    /// use toclip::verdict::{Choice, Rate, Threshold, Verdict};
    /// // Under Cauchy noise unclipped SGD diverges: not clipping is never the answer.
    /// let verdict = Verdict::at_risk(&StudentT::new(1.0, 0.5)?, 0.1)?;
    /// let Choice::Clip { threshold: Threshold::At(c), rate } = verdict.choice else { panic!() };
    /// assert!(c < 2.0 && rate == Rate::Compensated && verdict.gain == 1.0);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn at_risk<'a>(step: impl Into<Step<'a>>, r: f64) -> Result<Self> {
        let step = step.into();
        let best = best_threshold(&step, r)?;
        Ok(Self::of_moment(Evidence::AtRisk(AtMoment {
            risk: r,
            rule: step.rule().clone(),
            c: best.c,
            mu: best.mu,
            ccc: best.ccc,
            infinite_variance: step.noise().second_moment().is_infinite(),
            fisher: None,
        })))
    }

    /// Adds the [limit](fisher_limit) on any rule to the evidence at a risk, where the density of the
    /// noise is known.
    ///
    /// # Errors
    /// As [`fisher_limit`].
    ///
    /// ```
    /// use toclip::{noise::Laplace, verdict::Verdict};
    /// let noise = Laplace::new(1.0)?;
    /// let verdict = Verdict::at_risk(&noise, 0.01)?.with_fisher_limit(&noise)?;
    /// assert!(verdict.moment().and_then(|at| at.fisher).is_some_and(|limit| limit.reached > 0.9));
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn with_fisher_limit<'a>(mut self, step: impl Into<Step<'a>>) -> Result<Self> {
        if let Evidence::AtRisk(at) = &mut self.evidence {
            at.fisher = match fisher_limit(step, at.risk) {
                Ok(limit) => Some(limit),
                Err(Error::NotProvided { .. }) => None,
                Err(error) => return Err(error),
            };
        }
        Ok(self)
    }

    /// Whether clipping learns the teacher's direction faster, by the largest
    /// [CCC of the direction](crate::model::ccc) at $(Q, P, V)$.
    ///
    /// # Errors
    /// As [`model::best_threshold`].
    ///
    /// ```
    /// use toclip::{model::{Logistic, Overlaps}, verdict::Verdict};
    /// let at = Overlaps::new(4.0, 5.4, 9.0)?;
    /// assert!(!Verdict::at_overlaps(&Logistic::new(0.0)?, &at)?.clips());
    /// assert!(Verdict::at_overlaps(&Logistic::new(0.2)?, &at)?.clips()); // wrong labels
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn at_overlaps(model: &dyn Model, at: &Overlaps) -> Result<Self> {
        let best = model::best_threshold(model, at)?;
        let [kept, all] = [best.c, f64::INFINITY].map(|c| model.coefficients(at, c).b);
        Ok(Self::of_moment(Evidence::OfDirection(AtMoment {
            risk: model.expected_loss(at),
            rule: Rule::Clip,
            c: best.c,
            mu: kept / all,
            ccc: best.ccc,
            infinite_variance: false,
            fisher: None,
        })))
    }

    fn of_moment(evidence: Evidence) -> Self {
        let (Evidence::AtRisk(at) | Evidence::OfDirection(at)) = &evidence else {
            return Verdict { choice: Choice::DoNotClip, gain: 0.0, evidence };
        };
        let gain = if at.infinite_variance { 1.0 } else { (1.0 - 1.0 / at.ccc).max(0.0) };
        let threshold = match at.rule {
            Rule::Normalise | Rule::Optimal => Threshold::Any,
            _ if at.c == 0.0 => Threshold::TowardsZero,
            _ => Threshold::At(at.c),
        };
        let choice = match gain > WORTH_IT {
            true => Choice::Clip { threshold, rate: Rate::Compensated },
            false => Choice::DoNotClip,
        };
        Verdict { choice, gain, evidence }
    }

    /// The same where unclipped SGD diverges at its learning rate, which a moment does not show: not
    /// clipping is then no answer, but a smaller rate is, which does what a threshold would.
    ///
    /// ```
    /// use toclip::{noise::Gaussian, verdict::{Choice, Verdict}};
    /// let verdict = Verdict::at_risk(&Gaussian::new(1.0)?, 0.1)?.where_unclipped_diverges();
    /// assert_eq!(verdict.choice, Choice::LowerRate);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn where_unclipped_diverges(mut self) -> Self {
        if self.choice == Choice::DoNotClip {
            self.choice = Choice::LowerRate;
        }
        self
    }

    /// Whether the verdict is to clip.
    pub fn clips(&self) -> bool {
        matches!(self.choice, Choice::Clip { .. })
    }

    /// The best threshold at a moment, if that is the evidence.
    pub fn moment(&self) -> Option<&AtMoment> {
        match &self.evidence {
            Evidence::AtRisk(at) | Evidence::OfDirection(at) => Some(at),
            Evidence::FinalRisks { .. } => None,
        }
    }

    /// The best candidate, if ends were compared and any reached the end.
    pub fn best(&self) -> Option<&Candidate> {
        match &self.evidence {
            Evidence::FinalRisks { compared, best } => compared.candidates.get((*best)?),
            _ => None,
        }
    }

    /// The same with constant thresholds in another unit, such as that of the user's data.
    pub fn in_units(mut self, convert: impl Fn(f64) -> f64) -> Self {
        let change = |threshold: &mut Threshold| {
            if let Threshold::At(c) = threshold {
                *c = convert(*c);
            }
        };
        if let Choice::Clip { threshold, .. } = &mut self.choice {
            change(threshold);
        }
        match &mut self.evidence {
            Evidence::AtRisk(at) | Evidence::OfDirection(at) => at.c = convert(at.c),
            Evidence::FinalRisks { compared, .. } => {
                compared.candidates.iter_mut().for_each(|other| change(&mut other.threshold));
            }
        }
        self
    }
}

impl Comparison {
    /// Whether to clip, by the ends. Nothing that diverges is preferred, and nothing at all if the risk
    /// grows from the start.
    ///
    /// Where unclipped SGD has the rate that was given, thresholds at that same rate are not preferred
    /// to it: they only make steps smaller, as a smaller rate would. Where unclipped SGD diverges, every
    /// candidate that reaches the end may be preferred.
    ///
    /// ```
    /// use toclip::Rule;
    /// use toclip::verdict::{Candidate, Choice, Comparison, End, JudgedBy, Rate, Threshold, Unclipped};
    /// let of = |threshold, rate, end| Candidate {
    ///     name: "", rule: Rule::Clip, threshold, rate, end: End::Risk(end),
    /// };
    /// let verdict = Comparison {
    ///     judged_by: JudgedBy::Risk,
    ///     start: 1.0,
    ///     unclipped: Some(Unclipped { rate: Rate::Keep, end: End::Risk(0.5) }),
    ///     candidates: vec![
    ///         of(Threshold::At(1.0), Rate::Keep, 0.05), // at a smaller effective rate
    ///         of(Threshold::MaxCcc, Rate::Compensated, 0.125),
    ///     ],
    /// }
    /// .verdict();
    /// let clip = Choice::Clip { threshold: Threshold::MaxCcc, rate: Rate::Compensated };
    /// assert_eq!((verdict.choice, verdict.gain), (clip, 0.75));
    /// ```
    pub fn verdict(self) -> Verdict {
        let open = self.unclipped.and_then(|open| open.end.risk());
        let is_fair = |other: &Candidate| match self.unclipped {
            Some(Unclipped { rate: Rate::Keep, .. }) => open.is_none() || other.rate != Rate::Keep,
            _ => true,
        };
        let fair = self.candidates.iter().enumerate().filter(|(_, other)| is_fair(other));
        let ended = fair.filter_map(|(k, other)| Some((k, other, other.end.risk()?)));
        let best = ended.min_by(|a, b| a.2.total_cmp(&b.2));
        let gain = match (best, open) {
            (None, _) => 0.0,
            (Some(_), None) => 1.0,
            // Losses may be negative.
            (Some((.., end)), Some(open)) if open != 0.0 => {
                ((open - end) / open.abs()).clamp(0.0, 1.0)
            }
            _ => 0.0,
        };
        let lowest = best.map(|best| best.2).into_iter().chain(open).reduce(f64::min);
        let choice = match best {
            _ if lowest.is_none_or(|end| end > self.start) => Choice::LowerRate,
            Some((_, Candidate { threshold, rate, .. }, _)) if gain > WORTH_IT => {
                Choice::Clip { threshold: *threshold, rate: *rate }
            }
            _ => Choice::DoNotClip,
        };
        let best = best.map(|(k, ..)| k);
        Verdict { choice, gain, evidence: Evidence::FinalRisks { compared: self, best } }
    }
}

fn rule_name<S: Serializer>(rule: &Rule, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(rule.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Family, Noise, Rademacher};
    use proptest::prelude::*;

    fn family() -> impl Strategy<Value = Family> {
        let text = prop_oneof![
            (0.1..5.0f64).prop_map(|s| format!(r#"{{"family":"gaussian","sigma":{s}}}"#)),
            (0.1..5.0f64).prop_map(|s| format!(r#"{{"family":"laplace","sigma":{s}}}"#)),
            (0.6..8.0f64, 0.1..3.0f64)
                .prop_map(|(df, s)| format!(r#"{{"family":"student_t","df":{df},"scale":{s}}}"#)),
            (0.1..5.0f64, 0.05..0.9f64)
                .prop_map(|(s, p)| format!(r#"{{"family":"rademacher","sigma":{s},"p":{p}}}"#)),
        ];
        text.prop_map(|text| serde_json::from_str(&text).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn not_clipping_is_right_at_every_threshold(
            noise in family(), log_r in -4.0..1.0f64, log_c in -3.0..3.0f64,
        ) {
            let (r, c) = (10f64.powf(log_r), 10f64.powf(log_c));
            let verdict = Verdict::at_risk(&noise, r).unwrap();
            let x = noise.clipped(r, c);
            let second = 2.0 * r + noise.second_moment();
            prop_assert!((0.0..=1.0).contains(&verdict.gain));
            prop_assert_eq!(verdict.clips(), verdict.gain > WORTH_IT);
            if second.is_infinite() {
                prop_assert!(verdict.clips(), "{:?}", verdict);
            }
            // No threshold gains more, so none gains one per cent where the verdict is not to clip.
            let gain = 1.0 - x.m2 / (x.mu * x.mu) / second;
            prop_assert!(!(gain > verdict.gain + 1e-9), "c = {} gains {}, {:?}", c, gain, verdict);
        }

        #[test]
        fn ends_are_compared_truthfully(
            start in 0.5..2.0f64,
            open in prop::option::of(0.01..3.0f64),
            tuned in any::<bool>(),
            others in prop::collection::vec((prop::option::of(0.01..3.0f64), any::<bool>()), 0..6),
        ) {
            let end = |risk: Option<f64>| risk.map_or(End::Diverged(0.5), End::Risk);
            let rate = if tuned { Rate::Best(0.3) } else { Rate::Keep };
            let candidates: Vec<Candidate> = others.iter().map(|&(risk, keeps)| Candidate {
                name: "", rule: Rule::Clip, threshold: Threshold::MaxCcc, end: end(risk),
                rate: if keeps { Rate::Keep } else { Rate::Compensated },
            }).collect();
            let unclipped = Some(Unclipped { rate, end: end(open) });
            let judged_by = JudgedBy::Risk;
            let verdict =
                Comparison { judged_by, start, unclipped, candidates: candidates.clone() }.verdict();
            let fair = |other: &&Candidate| tuned || open.is_none() || other.rate != Rate::Keep;
            let ends = || candidates.iter().filter(fair).filter_map(|other| other.end.risk());
            let lowest = ends().reduce(f64::min);
            prop_assert_eq!(verdict.best().and_then(|best| best.end.risk()), lowest);
            let grows = lowest.into_iter().chain(open).all(|end| end > start);
            let gains = |end: f64| open.is_none_or(|open| open - end > WORTH_IT * open);
            match verdict.choice {
                Choice::LowerRate => prop_assert!(grows),
                Choice::DoNotClip => prop_assert!(!grows && !ends().any(gains)),
                Choice::Clip { .. } => prop_assert!(!grows && lowest.is_some_and(gains)),
            }
        }
    }

    #[test]
    fn a_rule_without_a_threshold_has_none_to_choose() {
        let noise = Rademacher::new(1.0, 0.3).unwrap();
        let of = |rule: Rule, r: f64| {
            let step = Step::from(&noise as &dyn Noise).with_rule(rule).unwrap();
            Verdict::at_risk(&step, r).unwrap().choice
        };
        let rate = Rate::Compensated;
        assert_eq!(of(Rule::Optimal, 0.1), Choice::Clip { threshold: Threshold::Any, rate });
        assert_eq!(of(Rule::Clip, 0.0), Choice::Clip { threshold: Threshold::TowardsZero, rate });
    }

    #[test]
    fn programs_read_the_choice_and_its_units() {
        let noise = Rademacher::from_sigma(5.0, 0.2).unwrap();
        let verdict = Verdict::at_risk(&noise, 3.0).unwrap();
        let c = verdict.moment().unwrap().c;
        let json = serde_json::to_value(verdict.in_units(|c| 10.0 * c)).unwrap();
        assert_eq!(json["choice"]["do"], "clip");
        assert_eq!(json["choice"]["rate"], "compensated");
        assert_eq!(json["choice"]["threshold"]["at"], 10.0 * c);
        assert_eq!(
            (&json["evidence"]["kind"], &json["evidence"]["rule"]),
            (&"at_risk".into(), &"clip".into())
        );
        assert_eq!(json["evidence"]["c"], 10.0 * c);
    }
}
