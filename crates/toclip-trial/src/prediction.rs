//! What the theory says a rule does to logistic regression.

use crate::problem::Labels;
use crate::{Contender, Problem};
use toclip::dynamics::{Stop, linear_times, log_times};
use toclip::model::{GlmOde, Logistic, Overlaps, TeacherModes};
use toclip::policy::{OpenLoop, Schedule, Shape};
use toclip::spectrum::{Spectrum, Start};
use toclip::{Batch, Result};

/// The excess risk at which the ODE ends, for run parameters as those of
/// [`Measurement`](crate::Measurement); `None` where the theory has no prediction: least squares,
/// clipped batches, and rules other than those of norms below.
///
/// | rule | threshold $c$ of the ODE |
/// |---|---|
/// | `unclipped` | none, also for batches |
/// | `fixed 1` | $1/\sqrt d$ |
/// | `autoclip 10`, `autoclip 50` | that quantile of the absolute residuals of all times so far |
/// | `huber` | $1.345 \cdot 1.4826$ times the median of those of the last 100 steps |
///
/// Residuals depend on the path, and the path on the threshold: the two are iterated until neither
/// changes. Norms of samples count as $\sqrt d$, as everywhere in the theory.
///
/// ```
/// use toclip_trial::{Contender, Problem, predicted_risk};
/// let problems = Problem::standard()?;
/// let logistic = problems.iter().find(|p| p.name() == "logistic 10%/1").unwrap();
/// let risk = |rule| predicted_risk(logistic, rule, 1.0, 3000);
/// assert!(risk(Contender::Unclipped)?.unwrap() < 0.5 * logistic.start_risk());
/// assert_eq!(risk(Contender::Ccc)?, None);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// As [`GlmOde::solve`].
pub fn predicted_risk(
    problem: &Problem,
    contender: Contender,
    eta: f64,
    steps: u32,
) -> Result<Option<f64>> {
    let Labels::Logistic(labels) = &problem.labels else { return Ok(None) };
    let Some(threshold) = Threshold::of(contender) else { return Ok(None) };
    if problem.batch() > 1 && contender != Contender::Unclipped {
        return Ok(None);
    }
    let path = Path::new(problem, labels.flip, eta, steps)?;
    let end = match threshold {
        Threshold::None => path.solve(Schedule::never())?.pop(),
        Threshold::Norm(g) => path.solve(Schedule::constant(g / problem.dim().sqrt())?)?.pop(),
        Threshold::Quantile(rule) => path.follow(rule, |v| labels.probability(v))?,
    };
    Ok(end.map(|at| labels.excess(at.q.sqrt(), at.p)))
}

/// A rule as a function of residuals.
#[derive(Debug, Clone, Copy)]
enum Threshold {
    None,
    Norm(f64),
    Quantile(Quantile),
}

/// `factor` times a quantile of the absolute residuals of the last steps.
#[derive(Debug, Clone, Copy)]
struct Quantile {
    probability: f64,
    factor: f64,
    /// Infinite for all steps so far.
    steps: f64,
}

impl Threshold {
    fn of(contender: Contender) -> Option<Self> {
        let quantile = |probability, factor, steps| {
            Some(Threshold::Quantile(Quantile { probability, factor, steps }))
        };
        match contender {
            Contender::Unclipped => Some(Threshold::None),
            Contender::Fixed => Some(Threshold::Norm(1.0)),
            Contender::AutoClip10 => quantile(0.1, 1.0, f64::INFINITY),
            Contender::AutoClip50 => quantile(0.5, 1.0, f64::INFINITY),
            Contender::Huber => quantile(0.5, 1.345 * 1.4826, 100.0),
            _ => None,
        }
    }
}

/// To which share thresholds must agree from one iteration to the next.
const AGREEMENT: f64 = 1e-5;
/// Rounds of path and threshold; ten are usual.
const MOST_ROUNDS: usize = 60;

/// The ODE of a problem at one learning rate.
struct Path {
    modes: TeacherModes,
    model: Logistic,
    rate: Schedule,
    batch: Batch,
    dim: f64,
    times: Vec<f64>,
}

impl Path {
    fn new(problem: &Problem, flips: f64, eta: f64, steps: u32) -> Result<Self> {
        let lambda: Vec<f64> = problem.root.iter().map(|r| r * r).collect();
        let trace: f64 = lambda.iter().sum();
        // θ* is the same in all coordinates.
        let norm = problem.margin * (lambda.len() as f64 / trace).sqrt();
        let spectrum = Spectrum::from_eigenvalues(&lambda)?;
        let end = f64::from(steps) / problem.dim();
        let linear = Shape::Polynomial { from: eta, to: 0.0, over: end, power: 1.0, warmup: 0.0 };
        let mut times = linear_times(end, 61)?;
        times.extend(log_times(1e-3 * end, 0.1 * end, 40)?);
        times.sort_by(f64::total_cmp);
        times.dedup_by(|b, a| *b - *a < 1e-9 * end);
        Ok(Path {
            modes: TeacherModes::new(&spectrum, &Start::Uniform { norm })?,
            model: Logistic::new(flips)?,
            rate: Schedule::new(linear)?,
            batch: Batch::per_sample(problem.batch() as u64)?,
            dim: problem.dim(),
            times,
        })
    }

    /// $(Q, P, V)$ at all times; none if the path diverged.
    fn solve(&self, clip: Schedule) -> Result<Vec<Overlaps>> {
        let policy = OpenLoop::new(self.rate.clone(), clip);
        let ode = GlmOde::new(&self.modes, &self.model, &policy).with_batch(self.batch);
        let path = ode.tolerance(1e-7, 0.0).solve(&self.times)?;
        Ok(if path.stop == Stop::Finished { path.overlaps } else { Vec::new() })
    }

    /// The end of the path whose threshold follows its own residuals.
    fn follow(&self, rule: Quantile, label: impl Fn(f64) -> f64) -> Result<Option<Overlaps>> {
        // At the start every residual is a half.
        let mut clip = vec![(0.5 * rule.factor).min(1.0); self.times.len()];
        for _ in 0..MOST_ROUNDS {
            let shape = Shape::Table { times: self.times.clone(), values: clip.clone() };
            let path = self.solve(Schedule::new(shape)?)?;
            if path.is_empty() {
                return Ok(None);
            }
            let next = self.thresholds(rule, &path, &label);
            let change =
                clip.iter().zip(&next).map(|(a, b)| (a / b).ln().abs()).fold(0.0, f64::max);
            if change < AGREEMENT {
                return Ok(path.last().copied());
            }
            clip = next;
        }
        Ok(None)
    }

    fn thresholds(
        &self,
        rule: Quantile,
        path: &[Overlaps],
        label: &impl Fn(f64) -> f64,
    ) -> Vec<f64> {
        let shares: Vec<Vec<f64>> = path.iter().map(|at| shares_by_margin(at, label)).collect();
        // ∫ of the shares from the start to each time.
        let mut sums = vec![vec![0.0; BINS]];
        for k in 1..shares.len() {
            let half = 0.5 * (self.times[k] - self.times[k - 1]);
            let pairs = shares[k - 1].iter().zip(&shares[k]);
            sums.push(
                sums[k - 1].iter().zip(pairs).map(|(s, (a, b))| s + half * (a + b)).collect(),
            );
        }
        let window = rule.steps / self.dim;
        let before = |k: usize| -> Vec<f64> {
            let from = self.times[k] - window;
            if !(from > 0.0) {
                return vec![0.0; BINS];
            }
            let j = self.times.partition_point(|t| *t <= from);
            let w = (from - self.times[j - 1]) / (self.times[j] - self.times[j - 1]);
            sums[j - 1].iter().zip(&sums[j]).map(|(a, b)| a + w * (b - a)).collect()
        };
        let at = |k: usize| {
            let seen = match k {
                0 => shares[0].clone(),
                _ => sums[k].iter().zip(before(k)).map(|(now, then)| now - then).collect(),
            };
            rule.factor * quantile(&seen, rule.probability)
        };
        (0..path.len()).map(at).collect()
    }
}

/// Margins $\pm u$, the logit of the label that was drawn, lie within this, or count as if.
const WIDEST: f64 = 40.0;
const BINS: usize = 4001;

/// How the samples are distributed over the margin $m$, on which the absolute residual
/// $\sigma(-m)$ depends.
fn shares_by_margin(at: &Overlaps, label: &impl Fn(f64) -> f64) -> Vec<f64> {
    let mut shares = vec![0.0; BINS];
    let along = if at.q > 0.0 { at.p / at.q } else { 0.0 };
    let across = (at.v - along * at.p).max(0.0).sqrt();
    // The trapezoidal rule, exact to rounding for smooth functions that fall as a normal density.
    let nodes = |step: f64, count: i32| {
        (-count..=count).map(move |k| {
            let z = step * f64::from(k);
            (z, step * (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt())
        })
    };
    for (z, weight) in nodes(0.01, 800) {
        let u = at.q.sqrt() * z;
        let one: f64 = nodes(0.25, 32).map(|(y, w)| w * label(along * u + across * y)).sum();
        // The label 0 at -u has the same margin and probability.
        let place = (u.clamp(-WIDEST, WIDEST) + WIDEST) / (2.0 * WIDEST) * (BINS - 1) as f64;
        let (bin, part) = (place.floor() as usize, place.fract());
        shares[bin] += 2.0 * weight * one * (1.0 - part);
        if bin + 1 < BINS {
            shares[bin + 1] += 2.0 * weight * one * part;
        }
    }
    shares
}

/// The quantile of $\sigma(-m)$, which falls with $m$.
fn quantile(shares: &[f64], probability: f64) -> f64 {
    let total: f64 = shares.iter().sum();
    let mut left = probability * total;
    for (bin, share) in shares.iter().enumerate().rev() {
        if *share >= left {
            // A share is spread evenly over its bin.
            let part = if *share > 0.0 { left / share } else { 0.0 };
            let place = bin as f64 + 0.5 - part;
            let margin = 2.0 * WIDEST * place / (BINS - 1) as f64 - WIDEST;
            return (1.0 + margin.exp()).recip();
        }
        left -= share;
    }
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effort, Measurement};

    #[test]
    fn quantiles_are_those_of_drawn_residuals() {
        use rand::RngExt;
        use toclip::internals::{Normals, Purpose, scalar_rng};
        let at = Overlaps::new(4.0, 5.0, 16.0).unwrap();
        let label = |v: f64| 0.1 + 0.8 / (1.0 + (-v).exp());
        let shares = shares_by_margin(&at, &label);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let mut normals = Normals::new(1, 0, Purpose::Along);
        let mut uniform = scalar_rng(1, 0, Purpose::Noise);
        let n = 100_000;
        let mut residuals: Vec<f64> = (0..n)
            .map(|_| {
                let mut z = [0.0; 2];
                normals.fill(&mut z);
                let [a, b] = z;
                let (u, v) = (2.0 * a, 2.5 * a + (16.0_f64 - 6.25).sqrt() * b);
                let y = f64::from(u8::from(uniform.random::<f64>() < label(v)));
                (1.0 / (1.0 + (-u).exp()) - y).abs()
            })
            .collect();
        residuals.sort_by(f64::total_cmp);
        for p in [0.1, 0.5, 0.9] {
            // The share below is known to 0.0016 at most: five of those.
            let below = residuals.partition_point(|r| *r <= quantile(&shares, p)) as f64 / n as f64;
            assert!((below - p).abs() < 0.008, "{p}: {below}");
        }
        let start = shares_by_margin(&Overlaps::new(0.0, 0.0, 16.0).unwrap(), &label);
        assert!((quantile(&start, 0.5) - 0.5).abs() < 0.01);
    }

    #[test]
    fn the_ode_meets_the_runs_of_simple_rules() {
        // In 1000 isotropic dimensions, 20 runs each: the theory's own error is of order 1/d, and
        // the allowed 6% are more than four standard errors of the geometric mean.
        let k = Spectrum::isotropic(1000).unwrap();
        let problem = Problem::logistic("test", &k, 3.0, 0.1, 1).unwrap();
        let effort = Effort { steps: 6000, tuning: 1, runs: 20, seed: 3 };
        for rule in [Contender::Unclipped, Contender::AutoClip50, Contender::Huber] {
            let measured = Measurement::measure(&problem, rule, &effort).unwrap();
            let risk = measured.risk(0.9999).unwrap();
            let predicted =
                predicted_risk(&problem, rule, measured.eta, effort.steps).unwrap().unwrap();
            assert!(
                (risk.mean / predicted - 1.0).abs() < 0.06,
                "{}: {predicted} against {risk:?}",
                rule.name()
            );
        }
    }

    #[test]
    fn what_the_theory_does_not_know_is_not_predicted() {
        let problems = Problem::standard().unwrap();
        let find = |name: &str| problems.iter().find(|p| p.name() == name).unwrap();
        let batch = find("logistic 0%/8");
        assert!(predicted_risk(batch, Contender::Unclipped, 1.0, 300).unwrap().is_some());
        assert!(predicted_risk(batch, Contender::Huber, 1.0, 300).unwrap().is_none());
        let linear = find("gaussian/1");
        assert!(predicted_risk(linear, Contender::Unclipped, 1.0, 300).unwrap().is_none());
    }
}
