//! The answers to the page. Numbers that are not finite are null in JSON.

use serde::Serialize;
use toclip::dynamics::Stop;
use toclip::verdict::Verdict;
use toclip_words::verdict as words;

/// The factors at every threshold.
#[derive(Debug, Serialize)]
pub struct FactorCurves {
    pub mu: Vec<f64>,
    pub m2: Vec<f64>,
    pub nu: Vec<Option<f64>>,
    pub csc: Vec<Option<f64>>,
    pub ccc: Vec<Option<f64>>,
    /// Whether the noise has no variance to compare with.
    pub infinite_variance: bool,
}

/// Whether to clip at a moment, as data and in words.
#[derive(Debug, Serialize)]
pub struct JudgedMoment {
    #[serde(flatten)]
    pub verdict: Verdict,
    pub headline: String,
    pub reason: String,
    /// The limit on any rule; null where it is not known.
    pub limit: Option<String>,
}

impl From<Verdict> for JudgedMoment {
    fn from(verdict: Verdict) -> Self {
        let limit = words::limit(&verdict);
        let (headline, reason) = (words::headline(&verdict), words::reason(&verdict));
        JudgedMoment { verdict, headline, reason, limit }
    }
}

/// The density of the residual.
#[derive(Debug, Serialize)]
pub struct DensityCurve {
    pub x: Vec<f64>,
    pub density: Vec<f64>,
}

/// The final risks at one threshold.
#[derive(Debug, Serialize)]
pub struct MapColumn {
    /// At each rate; null where the risk diverged.
    pub risk: Vec<Option<f64>>,
    /// The largest rate at which the risk falls at the start; null where it has no limit or is not
    /// known for the rule.
    pub stable: Option<f64>,
}

/// The number, unless it is infinite or NaN.
pub fn finite(x: f64) -> Option<f64> {
    Some(x).filter(|x| x.is_finite())
}

/// Why a curve ends before the last time, and when; null where it does not.
pub fn early_end(stop: Stop) -> (Option<&'static str>, Option<f64>) {
    match stop {
        Stop::Diverged { t } => (Some("diverged"), Some(t)),
        Stop::InfiniteVariance { t } => (Some("infinite variance"), Some(t)),
        _ => (None, None),
    }
}
