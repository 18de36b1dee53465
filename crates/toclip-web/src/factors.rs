//! What clipping does at one risk: the factors against the threshold, the best threshold, and the
//! density of the residual.

use serde::Serialize;
use toclip::criteria::{best_threshold, fisher_limit};
use toclip::{Error, Factors};

use crate::setting::Setting;

/// The factors at every threshold; what is not finite is null in JSON.
#[derive(Debug, Serialize)]
pub struct Curves {
    pub mu: Vec<f64>,
    pub m2: Vec<f64>,
    pub nu: Vec<Option<f64>>,
    pub csc: Vec<Option<f64>>,
    pub ccc: Vec<Option<f64>>,
    /// Whether the noise has no variance to compare with.
    pub infinite_variance: bool,
}

/// The factors at a risk, thresholds in the units of the experiment.
pub fn curves(setting: &Setting, risk: f64, thresholds: &[f64]) -> Result<Curves, String> {
    let points: Vec<(f64, f64)> =
        thresholds.iter().map(|&c| (risk, setting.threshold(c))).collect();
    let all = Factors::at_points(&setting.problem.step, &points).map_err(|e| e.to_string())?;
    let each = |of: fn(&Factors) -> toclip::Result<f64>| all.iter().map(|f| of(f).ok()).collect();
    Ok(Curves {
        mu: all.iter().map(|f| f.mu).collect(),
        m2: all.iter().map(|f| f.m2).collect(),
        nu: each(Factors::nu),
        csc: each(Factors::csc),
        ccc: each(Factors::ccc),
        infinite_variance: setting.problem.step.noise().second_moment().is_infinite(),
    })
}

/// Where to clip at a risk, and what that gains.
#[derive(Debug, Serialize)]
pub struct Verdict {
    /// c*, null where not clipping is best.
    pub c: Option<f64>,
    pub mu: f64,
    /// The largest CCC; null where it is infinite.
    pub ccc: Option<f64>,
    /// The largest CCC of any rule; null where it is infinite or not known.
    pub limit: Option<f64>,
    /// The share of it that the best threshold reaches.
    pub reached: Option<f64>,
    pub infinite_variance: bool,
}

/// The best threshold at a risk, in the units of the experiment.
pub fn verdict(setting: &Setting, risk: f64) -> Result<Verdict, String> {
    let step = &setting.problem.step;
    let best = best_threshold(step, risk).map_err(|error| error.to_string())?;
    let fisher = match fisher_limit(step, risk) {
        Ok(limit) => Some(limit),
        Err(Error::NotProvided { .. } | Error::Invalid(_)) => None,
        Err(error) => return Err(error.to_string()),
    };
    let finite = |x: f64| x.is_finite().then_some(x);
    Ok(Verdict {
        c: finite(setting.user_threshold(best.c)),
        mu: best.mu,
        ccc: finite(best.ccc),
        limit: fisher.and_then(|f| finite(f.limit)),
        reached: fisher.map(|f| f.reached),
        infinite_variance: step.noise().second_moment().is_infinite(),
    })
}

/// The density of the residual, in the units of the experiment.
#[derive(Debug, Serialize)]
pub struct Density {
    x: Vec<f64>,
    density: Vec<f64>,
}

/// Even points, and more about every feature, of which a narrow one would be missed.
const EVEN: usize = 240;
const ABOUT_FEATURE: [f64; 17] =
    [-4.0, -3.5, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0];
const MOST_FEATURES: usize = 40;

/// The density of the residual of one sample at a risk; `reach` is in the picture.
pub fn density(setting: &Setting, risk: f64, reach: f64) -> Result<Density, String> {
    let noise = setting.problem.step.noise();
    let mut features = noise.features(risk);
    let wide = features.iter().map(|f| f.at.abs() + 4.0 * f.width).fold(0.0, f64::max);
    let reach = setting.threshold(reach);
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
    let unit = setting.user_threshold(1.0);
    let (x, density) = (x.iter().map(|x| x * unit).collect(), density.iter().map(|f| f / unit));
    Ok(Density { x, density: density.collect() })
}
