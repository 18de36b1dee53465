//! What it costs not to know the risk: the proportional rule told the risk, and two that estimate
//! it from residuals.
//!
//! `cargo run --release --example online`

use std::sync::Arc;
use toclip::Result;
use toclip::dynamics::{Collapsed, Ode};
use toclip::ensemble::Ensemble;
use toclip::noise::{Gaussian, Laplace, Noise, Rademacher, StudentT};
use toclip::schedule::{
    Compensation, Online, OpenLoop, Policy, Proportional, ScaleEstimate, Schedule, tune_kappa,
};
use toclip::spectrum::{Modes, Spectrum, Start};

const TIME: f64 = 15.0;
const RUNS: u64 = 100;
/// Samples that an estimate remembers; a unit of time has 212.
const MEMORY: f64 = 150.0;

fn main() -> Result<()> {
    // The problem of figure 4 of the paper.
    let modes = Modes::new(&Spectrum::power_law(500, 1.0 / 6.0)?, &Start::Uniform { norm: 1.0 })?;
    let noises: [Arc<dyn Noise>; 4] = [
        Arc::new(Gaussian::new(0.8)?),
        Arc::new(Rademacher::from_sigma(0.8, 0.2)?),
        Arc::new(Laplace::new(0.8)?),
        Arc::new(StudentT::from_sigma(3.0, 0.8)?),
    ];
    println!("Mean R({TIME}) of {RUNS} runs of C-SGD, and what is lost against the oracle.\n");
    println!(
        "{:40} {:>6} {:>9} {:>8} {:>8} {:>14} {:>15}",
        "noise", "kappa", "unclipped", "ODE", "oracle", "mean square", "clipped square"
    );
    for noise in noises {
        compare(&modes, noise)?;
    }
    Ok(())
}

fn compare(modes: &Modes, noise: Arc<dyn Noise>) -> Result<()> {
    let eta = || Schedule::constant(0.4);
    let tuned = tune_kappa(modes, noise.clone(), eta()?, Compensation::Exact, TIME)?;
    // Where clipping does not pay, the default that costs little.
    let kappa = tuned.kappa.min(Proportional::HUBER);
    let oracle = Proportional::new(kappa, eta()?, noise.clone(), Compensation::Exact)?;
    let theory = Ode::new(modes, &*noise, &oracle).solve(&[TIME])?.risk[0];
    let risk = |policy: Arc<dyn Policy>| -> Result<f64> {
        let sgd = Collapsed::new(modes, noise.clone(), policy)?;
        Ok(Ensemble::new(RUNS, 1).run(&sgd, &[TIME], None)?.risk.mean[0])
    };
    let unclipped = risk(Arc::new(OpenLoop::unclipped(eta()?)))?;
    let told = risk(Arc::new(oracle.clone()))?;
    let online = |scale| -> Result<String> {
        let risk = risk(Arc::new(Online::new(oracle.clone(), scale, MEMORY)?))?;
        Ok(format!("{risk:.5} {:+5.1}%", 100.0 * (risk / told - 1.0)))
    };
    println!(
        "{:40} {kappa:6.3} {unclipped:9.5} {theory:8.5} {told:8.5} {:>14} {:>15}",
        noise.describe(),
        online(ScaleEstimate::MeanSquare)?,
        online(ScaleEstimate::ClippedSquare)?,
    );
    Ok(())
}
