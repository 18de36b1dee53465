//! The risk under every rule, by theory and by simulation.

use std::sync::Arc;

use anyhow::Result;
use toclip::dynamics::{Ode, Sgd, linear_times};
use toclip::ensemble::Ensemble;
use toclip::noise::StudentT;
use toclip::policy::OpenLoop;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Rule, Smooth, Step};

use super::{Agreement, FigureSection, RunSizes, add_path};
use crate::output::Table;
use crate::plot::{Axis, Chart};

/// The rules, each with its threshold.
const RULES: [(Rule, f64); 6] = [
    (Rule::Clip, 0.6),
    (Rule::Skip, 1.6),
    (Rule::Normalise, 0.4),
    (Rule::Smooth(Smooth::Tanh), 0.6),
    (Rule::Smooth(Smooth::Root), 0.6),
    // It has no threshold.
    (Rule::Optimal, 1.0),
];
const TIME: f64 = 8.0;
const ETA: f64 = 0.5;

pub fn theory_and_simulation(sizes: &RunSizes) -> Result<FigureSection> {
    let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
    let noise = Arc::new(StudentT::new(3.0, 0.4)?);
    let times = linear_times(TIME, 41)?;
    let allowance = modes.risk() / modes.dim();
    let mut claims = Vec::new();
    let mut chart = Chart::new("Theory (lines) and the mean of C-SGD (points)")
        .x(Axis::linear("time t = k/d"))
        .y(Axis::log("risk R"));
    let mut table = Table::default().numbers("t", times.iter().copied());
    for (slot, (rule, c)) in RULES.into_iter().enumerate() {
        let name = rule.name();
        let step = Step::new(Arc::clone(&noise)).with_rule(rule)?;
        let policy = OpenLoop::constant(ETA, c)?;
        let theory = Ode::new(&modes, &step, &policy).solve(&times)?;
        let sgd = Sgd::new(&modes, step, Arc::new(policy))?;
        let band = Ensemble::new(sizes.runs, sizes.seed).run(&sgd, &times, None)?;
        let agreement = Agreement::new(&theory.risk, &band, allowance);
        claims.push(agreement.gap_claim("rules_follow_their_ode", name, sizes.runs));
        (chart, table) = add_path((chart, table), (slot, name, name), &theory.risk, &band);
    }
    Ok(FigureSection::new("beyond-paths", "the risk under each rule")
        .settings(format!(
            "500 dimensions, $\\lambda_j = j^{{-1/5}}$, $d = {:.2}$; Student-t noise (3 degrees of freedom, scale 0.4); \
             η = {ETA}; T = {TIME}; {} runs each, seed {}",
            modes.dim(),
            sizes.runs,
            sizes.seed
        ))
        .claims(claims)
        .figure(chart)
        .table(table))
}
