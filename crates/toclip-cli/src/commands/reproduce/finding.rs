//! What the runs on real data say about the predictions.

use super::claims::{check, differs};
use crate::commands::fit::Gap;
use crate::commands::fit::study::Study;
use crate::report::Claim;

const CLOSE: &str = "In all cases the deterministic equivalent ODE closely matches the actual path of \
                     clipped SGD.";
const OURS: &str = "What parts theory and data is where clipped SGD goes, and that one pass draws \
                    without replacement (our finding, not the paper's).";

/// How far the runs are from each prediction.
pub struct Gaps {
    /// The ODE with the fitted law.
    fitted: Gap,
    /// The ODE with the residuals themselves.
    own: Gap,
    /// Corrected for the destination alone.
    replaced: Gap,
    /// Corrected for both.
    corrected: Gap,
}

impl Gaps {
    /// `None` where a path did not reach the end.
    pub fn of(study: &Study) -> Option<Self> {
        let gap = |key| study.curve(key).and_then(|curve| curve.gap);
        Some(Gaps {
            fitted: gap("ode_fitted")?,
            own: gap("ode_residuals")?,
            replaced: gap("with_replacement")?,
            corrected: gap("one_pass")?,
        })
    }

    /// The claims that can be decided, and what is said of those that cannot.
    pub fn judge(gaps: Option<Self>) -> (Vec<Claim>, Option<String>) {
        match gaps {
            None => (vec![check(CLOSE, "a path did not reach the end", false)], None),
            Some(gaps) => {
                let (ours, undecided) = gaps.ours();
                (std::iter::once(gaps.close()).chain(ours).collect(), undecided)
            }
        }
    }

    /// The ODE is close if the runs cannot tell it from their mean. Where they can, that is known
    /// to be so if the corrected curve is nearer.
    fn close(&self) -> Claim {
        let measured = format!(
            "over the second half of the pass the mean of the runs is {} the ODE with the fitted law \
             ({}), {} that with the residuals themselves ({}); beyond three standard errors they part",
            self.fitted.words(),
            self.fitted.mean_words(),
            self.own.words(),
            self.own.mean_words()
        );
        let off = |gap: &Gap| gap.is_off();
        let nearer = |gap: &Gap| self.corrected.mean.abs() < gap.mean.abs();
        match [&self.fitted, &self.own].into_iter().filter(|gap| off(gap)).collect::<Vec<_>>() {
            apart if apart.is_empty() => check(CLOSE, measured, true),
            apart => differs(CLOSE, measured, apart.into_iter().all(nearer)),
        }
    }

    /// Both corrections are needed if the runs refuse the curves without them and not that with.
    fn ours(&self) -> (Option<Claim>, Option<String>) {
        let measured = format!(
            "the mean of the runs parts from the ODE by {}, from the curve with the destination alone \
             by {}, from that with both corrections by {}",
            self.own.mean_words(),
            self.replaced.mean_words(),
            self.corrected.mean_words()
        );
        let others = [&self.own, &self.replaced];
        let refused = others.iter().all(|gap| gap.is_off());
        let nearest = others.iter().all(|gap| self.corrected.mean.abs() < gap.mean.abs());
        if !refused && !self.corrected.is_off() {
            let text = format!(
                "Whether it is the destination of clipped SGD and drawing without replacement that \
                 part theory and data, these runs do not decide: {measured}. More runs would \
                 (--full)."
            );
            return (None, Some(text));
        }
        (Some(check(OURS, measured, refused && nearest)), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    /// Gaps with these means, in standard errors.
    fn gaps(fitted: f64, own: f64, replaced: f64, corrected: f64) -> Gaps {
        let gap = |mean: f64| Gap {
            least: mean,
            most: mean,
            mean: 0.01 * mean,
            standard_error: Some(0.01),
            inside: 1.0,
        };
        Gaps {
            fitted: gap(fitted),
            own: gap(own),
            replaced: gap(replaced),
            corrected: gap(corrected),
        }
    }

    fn verdicts(gaps: Gaps) -> (Vec<Verdict>, bool) {
        let (claims, undecided) = Gaps::judge(Some(gaps));
        (claims.iter().map(|c| c.verdict).collect(), undecided.is_some())
    }

    #[test]
    fn a_finding_needs_runs_that_decide() {
        // All within chance: the ODE is close, and nothing more is known.
        assert_eq!(verdicts(gaps(1.0, 1.0, -1.0, 0.5)), (vec![Verdict::Holds], true));
        // The ODE is refused, one of the corrections alone is not.
        assert_eq!(verdicts(gaps(5.0, 4.0, -2.0, 1.0)), (vec![Verdict::Differs], true));
        // Only both corrections will do.
        let found = (vec![Verdict::Differs, Verdict::Holds], false);
        assert_eq!(verdicts(gaps(6.0, 5.0, -4.0, 1.0)), found);
        // The corrected curve is worse than what it corrects.
        assert_eq!(verdicts(gaps(4.0, 4.0, 1.0, 9.0)).0, [Verdict::Fails, Verdict::Fails]);
        assert_eq!(verdicts(gaps(1.0, 1.0, 1.0, -4.0)).0, [Verdict::Holds, Verdict::Fails]);
        assert_eq!(Gaps::judge(None).0[0].verdict, Verdict::Fails);
    }
}
