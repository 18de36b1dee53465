//! Claims about one pass over real data.

use super::fit::{Fit, PredictionGap};
use super::{check, differs};
use crate::report::Claim;

/// How far the runs are from each prediction.
pub struct Gaps {
    /// The ODE with the fitted distribution.
    fitted: PredictionGap,
    /// The ODE with the residuals themselves.
    own: PredictionGap,
    /// Corrected for the bias of clipping alone.
    replaced: PredictionGap,
    /// Corrected for both.
    corrected: PredictionGap,
}

impl Gaps {
    /// `None` where a path did not reach the end.
    pub fn of(study: &Fit) -> Option<Self> {
        let gap = |key| study.curve(key).and_then(|curve| curve.gap);
        Some(Gaps {
            fitted: gap("ode_fitted")?,
            own: gap("ode_residuals")?,
            replaced: gap("with_replacement")?,
            corrected: gap("one_pass")?,
        })
    }

    /// The claims that the runs decide, and what they say of the two corrections.
    pub fn judge(gaps: Option<Self>) -> (Vec<Claim>, Option<String>) {
        match gaps {
            None => (vec![check("ode_is_close", "a path did not reach the end", false)], None),
            Some(gaps) => {
                let claims = std::iter::once(gaps.close()).chain(gaps.ours()).collect();
                (claims, Some(gaps.parts()))
            }
        }
    }

    /// The ODE is close if the runs cannot tell it from their mean. Where they can, that is known
    /// to be so if the corrected curve is nearer.
    fn close(&self) -> Claim {
        let [fitted, own] = [&self.fitted, &self.own].map(PredictionGap::words);
        let [fitted_mean, own_mean] = [&self.fitted, &self.own].map(PredictionGap::mean_words);
        let measured = format!(
            "over the second half of the pass the mean of the runs is {fitted} the ODE with the fitted \
             distribution ({fitted_mean}), and {own} the ODE with the measured residuals ({own_mean}); \
             allowed: three standard errors"
        );
        let nearer = |gap: &PredictionGap| self.corrected.mean.abs() < gap.mean.abs();
        match [&self.fitted, &self.own].into_iter().filter(|gap| gap.is_off()).collect::<Vec<_>>() {
            apart if apart.is_empty() => check("ode_is_close", measured, true),
            apart => differs("ode_is_close", measured, apart.into_iter().all(nearer)),
        }
    }

    /// Nothing is claimed where the runs refuse neither the ODE nor the corrected curve.
    fn ours(&self) -> Option<Claim> {
        let (plain, corrected) = (&self.own, &self.corrected);
        (plain.is_off() || corrected.is_off()).then(|| {
            let [from_ode, from_curve] = [plain, corrected].map(PredictionGap::mean_words);
            let measured = format!(
                "the mean of the runs differs from the ODE with the measured residuals by {from_ode}, from \
                 the corrected curve by {from_curve}"
            );
            check("corrections_help", measured, corrected.mean.abs() < plain.mean.abs())
        })
    }

    /// Whether both corrections are needed, as far as the runs tell.
    fn parts(&self) -> String {
        let (one, both) = (&self.replaced, &self.corrected);
        let errors = 3.0 * (one.standard_error.unwrap_or(1.0) + both.standard_error.unwrap_or(1.0));
        let further = one.mean.abs() - both.mean.abs();
        let second = if further > errors {
            "the second correction is needed too"
        } else if -further > errors {
            "the first correction alone does better; the second is not confirmed here"
        } else {
            "these runs do not decide whether the second correction is needed"
        };
        let left = match both.is_off() {
            true => ". The difference that remains is significant, and we cannot explain it",
            false => "",
        };
        let [own, one, both] = [&self.own, one, both].map(PredictionGap::mean_words);
        format!(
            "The runs differ from the ODE with the measured residuals by {own}, corrected for the bias of \
             clipping by {one}, with both corrections by {both}: {second}{left}."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    /// Gaps with these means, in standard errors.
    fn gaps(fitted: f64, own: f64, replaced: f64, corrected: f64) -> Gaps {
        let gap = |mean: f64| PredictionGap {
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

    fn verdicts(gaps: Gaps) -> (Vec<Verdict>, String) {
        let (claims, said) = Gaps::judge(Some(gaps));
        (claims.iter().map(|c| c.verdict).collect(), said.unwrap())
    }

    #[test]
    fn a_finding_needs_runs_that_decide() {
        // All within chance: the ODE is close, and nothing more is known.
        let (found, said) = verdicts(gaps(1.0, 1.0, -1.0, 0.5));
        assert_eq!(found, [Verdict::Holds]);
        assert!(said.contains("do not decide") && !said.contains("remains"), "{said}");
        // The ODE is refused, one of the corrections alone is not.
        let (found, said) = verdicts(gaps(5.0, 4.0, -2.0, 1.0));
        assert_eq!(found, [Verdict::Differs, Verdict::Holds]);
        assert!(said.contains("do not decide"), "{said}");
        // Only both corrections will do.
        let (found, said) = verdicts(gaps(16.0, 15.0, -9.0, 1.0));
        assert_eq!(found, [Verdict::Differs, Verdict::Holds]);
        assert!(said.contains("is needed too"), "{said}");
        // The second makes it worse.
        let (found, said) = verdicts(gaps(16.0, 15.0, -1.0, 9.0));
        assert_eq!(found, [Verdict::Differs, Verdict::Holds]);
        assert!(said.contains("not confirmed here. The difference"), "{said}");
        // The corrected curve is worse than what it corrects.
        assert_eq!(verdicts(gaps(4.0, 4.0, 1.0, 9.0)).0, [Verdict::Fails, Verdict::Fails]);
        assert_eq!(verdicts(gaps(1.0, 1.0, 1.0, -4.0)).0, [Verdict::Holds, Verdict::Fails]);
        assert_eq!(Gaps::judge(None).0[0].verdict, Verdict::Fails);
    }
}
