//! Least squares: the answers to the page.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Value, json};
use toclip::criteria::stability_limits;
use toclip::dynamics::{Ode, Stop};
use toclip::policy::{Policy, Schedule};
use toclip::spectrum::Modes;
use toclip::verdict::Verdict;
use toclip::{Error, Factors, Step};
use toclip_experiment::{Clip, Experiment, Method, Origin, Problem};

use crate::answers::{
    DensityCurve, FactorCurves, JudgedMoment, MAP_TOLERANCE, MapColumn, early_end, final_risks,
    finite,
};
use crate::setting::{Explored, Kept, recall};

/// An experiment with the problem that it describes.
#[derive(Debug)]
pub struct ExploredLeastSquares {
    experiment: Experiment,
    problem: Problem,
    /// The modes for the ODE: few enough to solve it within a frame.
    nodes: Rc<Modes>,
}

/// Above so many modes they are compressed, and the error that leaves: below the tolerance of the ODE.
const COMPRESS_ABOVE: usize = 40;
const COMPRESSED: f64 = 1e-10;

/// The density is drawn at even points, and at more about every feature, since a narrow one would be missed.
const EVEN: usize = 240;
const ABOUT_FEATURE: [f64; 17] =
    [-4.0, -3.5, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0];
const MOST_FEATURES: usize = 40;

thread_local! {
    static NODES: Kept<Modes> = const { RefCell::new(Vec::new()) };
}

impl ExploredLeastSquares {
    /// Builds the problem of an experiment.
    pub fn new(experiment: Experiment, origin: &Origin) -> Result<Self, String> {
        let problem = Problem::new(&experiment, origin).map_err(|error| error.sentence())?;
        let nodes = nodes(&experiment, &problem)?;
        Ok(ExploredLeastSquares { experiment, problem, nodes })
    }

    /// A threshold of the user in the coordinates of the theory.
    fn threshold(&self, c: f64) -> f64 {
        self.problem.rescaling().threshold(c)
    }

    /// A threshold of the theory in the coordinates of the user.
    fn user_threshold(&self, c: f64) -> f64 {
        self.problem.rescaling().inverse().threshold(c)
    }

    fn ode<'a>(&'a self, step: &'a Step<'static>, policy: &'a dyn Policy, rtol: f64) -> Ode<'a> {
        let ode = Ode::new(&self.nodes, step, policy).tolerance(rtol, 0.0);
        match self.problem.momentum {
            Some(momentum) => ode.with_momentum(momentum),
            None => ode,
        }
    }

    /// The path of the theory, clipped as the experiment says or not at all.
    fn path(&self, clipped: bool) -> Result<Value, String> {
        let problem = &self.problem;
        let (step, policy) = if clipped {
            (&problem.step, &problem.policy)
        } else {
            (&problem.plain, &problem.unclipped)
        };
        let ode = self.ode(step, &**policy, self.experiment.tolerance).keep_path(true);
        let path = ode.solve(&problem.times).map_err(|error| format!("the ODE: {error}"))?;
        let path = problem.to_user(path);
        let points = path.path.unwrap_or_default();
        let (stop, end) = early_end(path.stop);
        Ok(json!({
            "risk": path.risk,
            "c": points.iter().map(|p| finite(p.c)).collect::<Vec<_>>(),
            "mu": points.iter().map(|p| p.mu).collect::<Vec<_>>(),
            "stop": stop,
            "end": end,
        }))
    }
}

/// Modes that give the same curves, kept while only noise, step and schedule change.
fn nodes(experiment: &Experiment, problem: &Problem) -> Result<Rc<Modes>, String> {
    let modes = &problem.few_modes;
    let key = format!("{:?} {:?} {:?}", experiment.spectrum, experiment.start, experiment.groups);
    // The bound on the error is that of the equations of radial rules; the noise of private SGD goes
    // into every direction, and compressed modes do not count directions.
    let step = &problem.step;
    let compress =
        modes.modes().len() > COMPRESS_ABOVE && step.rule().is_radial() && step.privacy().is_none();
    recall(&NODES, format!("{compress} {key}"), || match compress {
        true => modes.compress(COMPRESSED).map(Rc::new).map_err(|error| error.to_string()),
        false => Ok(Rc::new(modes.clone())),
    })
}

impl Explored for ExploredLeastSquares {
    fn paths(&self) -> Result<Value, String> {
        let problem = &self.problem;
        Ok(json!({
            "times": problem.times,
            "clipped": self.path(true)?,
            "unclipped": self.path(false)?,
            "dim": problem.modes.ambient_dim(),
            "intrinsic_dim": problem.modes.dim(),
            "start_risk": problem.modes.risk(),
        }))
    }

    fn best_path(&self) -> Result<Value, String> {
        let experiment = Experiment { clip: Clip::MaxCcc, ..self.experiment.clone() };
        let best = ExploredLeastSquares::new(experiment, &Origin::default())?;
        Ok(json!({ "times": best.problem.times, "best": best.path(true)? }))
    }

    fn run(&self, seed: u64, index: u64) -> Result<Value, String> {
        let problem = &self.problem;
        let (simulator, _) =
            problem.simulator(Method::Sgd).map_err(|error| format!("C-SGD: {error}"))?;
        Ok(json!({ "risk": simulator.run(seed, index, &problem.times).risk }))
    }

    fn factors(&self, risk: f64, _time: f64, thresholds: &[f64]) -> Result<FactorCurves, String> {
        let points: Vec<(f64, f64)> =
            thresholds.iter().map(|&c| (risk, self.threshold(c))).collect();
        let step = &self.problem.step;
        let all = Factors::at_points(step, &points).map_err(|e| e.to_string())?;
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

    fn verdict(&self, risk: f64, _time: f64) -> Result<JudgedMoment, String> {
        let step = &self.problem.step;
        let verdict = Verdict::at_risk(step, risk).map_err(|error| error.to_string())?;
        let verdict = match verdict.clone().with_fisher_limit(step) {
            Ok(known) => known,
            Err(Error::NotProvided { .. } | Error::Step(_)) => verdict,
            Err(error) => return Err(error.to_string()),
        };
        let verdict = verdict.in_units(|c| self.user_threshold(c));
        Ok(match verdict.clips() || self.path(false)?["stop"].is_null() {
            true => verdict,
            false => verdict.where_unclipped_diverges(),
        }
        .into())
    }

    fn density(&self, risk: f64, reach: f64) -> Result<DensityCurve, String> {
        let noise = self.problem.step.noise();
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

    fn map_column(&self, threshold: f64, rates: &[f64]) -> Result<MapColumn, String> {
        let ExploredLeastSquares { experiment, problem, nodes } = self;
        let say = |error: Error| error.to_string();
        let schedule = match experiment.learning_rate.schedule() {
            Some(schedule) => schedule.clone(),
            None => Schedule::constant(1.0).map_err(say)?,
        };
        let (time, c) = (experiment.time, self.threshold(threshold));
        let rates = rates.iter().map(|&rate| problem.rescaling().learning_rate(rate));
        let risk = final_risks(&schedule, time, c, rates, |policy| {
            let path = self.ode(&problem.step, policy, MAP_TOLERANCE).solve(&[time])?;
            Ok(path.risk.last().copied().filter(|_| path.stop == Stop::Finished))
        });
        let limits = stability_limits(nodes, &problem.step, c).ok();
        let to_user = problem.rescaling().inverse();
        let stable = limits
            .filter(|_| problem.momentum.is_none())
            .and_then(|limits| finite(to_user.learning_rate(limits.risk)));
        Ok(MapColumn { risk: risk.map_err(say)?, stable })
    }
}
