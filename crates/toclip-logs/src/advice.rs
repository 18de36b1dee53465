//! Advice from a log: findings, then a recommendation.

use serde::Serialize;
use serde_json::{Value, json};

use crate::findings::{self, Analysis, TrainingCourse};
use crate::recommendation::{self, Recommendation};
use crate::{
    AdviceOptions, Finding, Log, NormScaleCause, OptimizerKind, Result, RunContext, Spike,
    ThresholdOrigin, Verdict,
};

/// Findings in a log, and a recommendation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The findings, the most important first.
    pub findings: Vec<Finding>,
    /// What to do.
    pub recommendation: Recommendation,
    /// The estimates.
    pub analysis: Analysis,
}

/// An option that would give a better answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Hint {
    /// The name of the column with the gradient norm.
    NormColumn,
    /// To divide the norms by the loss scale.
    Unscale,
    /// The current threshold.
    Threshold,
    /// The batch size, and the outputs per sample.
    BatchSize,
    /// The optimizer.
    Optimizer,
}

/// Gives advice about clipping.
///
/// ```
/// use toclip_logs::{Action, AdviceOptions, advise};
/// // Norms logged after clipping at one: larger norms are not known.
/// let mut text = String::from("step,grad_norm\n");
/// for k in 0..100 {
///     let norm = (0.5 + (k as f64 * 0.618).fract()).min(1.0);
///     text.push_str(&format!("{k},{norm}\n"));
/// }
/// let log = toclip_logs::load(text.as_bytes(), &Default::default())?;
/// let advice = advise(&log, &AdviceOptions::default())?;
/// assert_eq!(advice.recommendation.action, Action::FixLogging);
/// # Ok::<(), toclip_logs::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Invalid`](crate::Error::Invalid) for an invalid value in `options`.
pub fn advise(log: &Log, options: &AdviceOptions) -> Result<Advice> {
    options.check()?;
    let now = RunContext::new(log, options);
    let course = TrainingCourse::new(log);
    let mut analysis = Analysis::new(log, &course, &now)?;
    let findings = findings::all(log, &course, &analysis, &now);
    let recommendation = recommendation::decide(log, &course, &findings, &analysis, &now);
    analysis.compare(log, &now, recommendation.threshold)?;
    Ok(Advice { findings, recommendation, analysis })
}

impl Advice {
    /// The spikes of the log, in order.
    pub fn spikes(&self) -> &[Spike] {
        let events = self.findings.iter().find_map(|finding| match finding {
            Finding::Spikes { events, .. } => Some(&events[..]),
            _ => None,
        });
        events.unwrap_or_default()
    }

    /// Everything for programs: how the log was read, findings, recommendation, verdict and estimates.
    pub fn to_json(&self, log: &Log, verdict: &Verdict) -> Value {
        let finding = |finding: &Finding| {
            let mut value = serde_json::to_value(finding).unwrap_or_default();
            value["sentence"] = finding.sentence().into();
            value
        };
        json!({
            "format": log.summary.format,
            "columns": log.summary.columns,
            "findings": self.findings.iter().map(finding).collect::<Vec<Value>>(),
            "recommendation": self.recommendation,
            "verdict": verdict,
            "analysis": self.analysis,
            "details": self.details(),
        })
    }

    /// An option that would give a better answer.
    pub fn hints(&self) -> Vec<Hint> {
        use ThresholdOrigin::{Default, PileUp};
        let scaled = |f: &Finding| match f {
            Finding::NormScale { cause, .. } => {
                matches!(cause, NormScaleCause::LossScale { column: true, .. })
            }
            _ => false,
        };
        let origin = self.analysis.current.as_ref().map(|now| now.origin);
        // The criteria, which need the batch size, are those of SGD.
        let adam = self.analysis.optimizer == Some(OptimizerKind::Adam);
        let usable = self.analysis.distribution.is_some();
        let hints = [
            (Hint::Unscale, self.findings.iter().any(scaled)),
            (Hint::Threshold, matches!(origin, None | Some(Default | PileUp))),
            (Hint::Optimizer, self.analysis.optimizer.is_none()),
            (Hint::BatchSize, self.analysis.components.is_none() && usable && !adam),
        ];
        hints.into_iter().filter(|(_, wanted)| *wanted).map(|(hint, _)| hint).collect()
    }
}
