//! One moment of an experiment: the factors against the threshold, the verdict, and the density of
//! the residual.
//!
//! For least squares the risk is the whole state. A generalised linear model has the state (Q, P, V), so
//! questions about it go by their time.

use toclip::model::{Model, Overlaps};
use toclip::verdict::Verdict;
use toclip::{Error, Factors};

use crate::answers::{DensityCurve, FactorCurves, JudgedMoment, finite};
use crate::explored::{Explored, LEAST_SQUARES_ONLY, say};

/// The density is drawn at even points, and at more about every feature, since a narrow one would be missed.
const EVEN: usize = 240;
const ABOUT_FEATURE: [f64; 17] =
    [-4.0, -3.5, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0];
const MOST_FEATURES: usize = 40;

impl Explored {
    /// The factors at a moment against the threshold.
    pub fn factors(
        &self,
        risk: f64,
        time: f64,
        thresholds: &[f64],
    ) -> Result<FactorCurves, String> {
        if let Some(model) = self.problem.model() {
            return self.model_factors(model, &self.overlaps(time)?, thresholds);
        }
        let points: Vec<(f64, f64)> =
            thresholds.iter().map(|&c| (risk, self.threshold(c))).collect();
        let step = self.problem.step();
        let all = Factors::at_points(step, &points).map_err(say)?;
        let each =
            |of: fn(&Factors) -> toclip::Result<f64>| all.iter().map(|f| of(f).ok()).collect();
        Ok(FactorCurves {
            mu: all.iter().map(|f| f.mu).collect(),
            m2: all.iter().map(|f| f.m2).collect(),
            nu: each(Factors::nu),
            csc: each(Factors::csc),
            ccc: each(Factors::ccc),
            infinite_variance: step.noise().second_moment().is_infinite(),
        })
    }

    /// The share that clipping keeps of b, the progress towards the teacher's direction, and of m2, the
    /// noise; their CCC.
    fn model_factors(
        &self,
        model: &dyn Model,
        at: &Overlaps,
        thresholds: &[f64],
    ) -> Result<FactorCurves, String> {
        let open = model.coefficients(at, f64::INFINITY);
        let each = |&c: &f64| {
            let x = model.coefficients(at, self.threshold(c));
            (x.b / open.b, x.m2, x.m2 / open.m2)
        };
        let all: Vec<(f64, f64, f64)> = thresholds.iter().map(each).collect();
        Ok(FactorCurves {
            mu: all.iter().map(|x| x.0).collect(),
            m2: all.iter().map(|x| x.1).collect(),
            nu: all.iter().map(|x| finite(x.2)).collect(),
            csc: all.iter().map(|x| finite(x.0 / x.2)).collect(),
            ccc: all.iter().map(|x| finite(x.0 * x.0 / x.2)).collect(),
            infinite_variance: open.m2.is_infinite(),
        })
    }

    /// Whether to clip at a moment.
    pub fn verdict(&self, risk: f64, time: f64) -> Result<JudgedMoment, String> {
        if let Some(model) = self.problem.model() {
            let verdict = Verdict::at_overlaps(model, &self.overlaps(time)?).map_err(say)?;
            return Ok(verdict.in_units(|c| self.user_threshold(c)).into());
        }
        let step = self.problem.step();
        let verdict = Verdict::at_risk(step, risk).map_err(say)?;
        let verdict = match verdict.clone().with_fisher_limit(step) {
            Ok(known) => known,
            Err(Error::NotProvided { .. } | Error::Step(_)) => verdict,
            Err(error) => return Err(say(error)),
        };
        let verdict = verdict.in_units(|c| self.user_threshold(c));
        Ok(match verdict.clips() || !self.diverges_unclipped()? {
            true => verdict,
            false => verdict.where_unclipped_diverges(),
        }
        .into())
    }

    /// The density of the residual of one sample at a risk; `reach` is in the picture.
    pub fn density(&self, risk: f64, reach: f64) -> Result<DensityCurve, String> {
        if self.problem.model().is_some() {
            return Err(LEAST_SQUARES_ONLY.into());
        }
        let noise = self.problem.step().noise();
        let mut features = noise.features(risk);
        let wide = features.iter().map(|f| f.at.abs() + 4.0 * f.width).fold(0.0, f64::max);
        let reach = self.threshold(reach);
        // A threshold far out would flatten the density to a spike.
        let half = wide.max(reach.min(2.0 * wide)) * 1.05;
        if !(half > 0.0 && half.is_finite()) {
            return Err("the residual has no density to draw".into());
        }
        features.truncate(MOST_FEATURES);
        let even = (0..=EVEN).map(|k| half * (2.0 * k as f64 / EVEN as f64 - 1.0));
        let about = features.iter().flat_map(|f| ABOUT_FEATURE.map(|k| f.at + k * f.width));
        let mut x: Vec<f64> = even.chain(about).filter(|x| x.abs() <= half).collect();
        x.sort_by(f64::total_cmp);
        x.dedup();
        let at = |&x: &f64| noise.residual_density(risk, x).map(|(f, _)| f);
        let density: Option<Vec<f64>> = x.iter().map(at).collect();
        let density = density.ok_or("the density of the residual is not known for this noise")?;
        let unit = self.user_threshold(1.0);
        let (x, density) = (x.iter().map(|x| x * unit).collect(), density.iter().map(|f| f / unit));
        Ok(DensityCurve { x, density: density.collect() })
    }

    /// (Q, P, V) of a model at a time, by straight lines.
    fn overlaps(&self, time: f64) -> Result<Overlaps, String> {
        let path = self.path()?;
        let (times, overlaps) = (&path.times, path.overlaps.as_deref().unwrap_or_default());
        let after = times.partition_point(|t| *t < time).min(times.len().saturating_sub(1));
        let before = after.saturating_sub(1);
        let (Some(next), Some(last)) = (overlaps.get(after), overlaps.get(before)) else {
            return Err("the path has no times".into());
        };
        let (from, to) = (times[before], times[after]);
        let share = if to > from { ((time - from) / (to - from)).clamp(0.0, 1.0) } else { 1.0 };
        let between = |a: f64, b: f64| a + share * (b - a);
        Overlaps::new(between(last.q, next.q), between(last.p, next.p), next.v).map_err(say)
    }
}
