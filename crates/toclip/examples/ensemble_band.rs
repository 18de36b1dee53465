//! Many runs of clipped SGD with the band that holds 80% of them, beside the predicted curve.
//!
//! Run it with `cargo run --release -p toclip --example ensemble_band`.

use toclip::Problem;
use toclip::dynamics::{Ode, Sgd, linear_times};
use toclip::ensemble::Ensemble;
use toclip::noise::Rademacher;
use toclip::policy::OpenLoop;
use toclip::spectrum::{Modes, Spectrum, Start};

fn main() -> toclip::Result<()> {
    // Outliers of ±λ in one label of five, with a standard deviation of 0.8.
    let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
    let noise = Rademacher::from_sigma(0.8, 0.2)?;
    let problem = Problem::new(modes, noise, OpenLoop::constant(0.4, 0.5)?)?;

    let times = linear_times(15.0, 6)?;
    let theory = Ode::new(&problem)?.solve(&times)?;
    let progress = |done: u64| {
        if done.is_multiple_of(25) {
            eprintln!("{done} runs");
        }
    };
    let ensemble = Ensemble::new(100, 1).confidence(0.8)?;
    let band = ensemble.run(&Sgd::new(&problem)?, &times, Some(&progress))?;

    println!("    t   theory     10%    median     90%");
    for (k, t) in times.iter().enumerate() {
        let [low, high] = [0, 1].map(|q| band.risk.quantiles[q][k]);
        println!("{t:5.1} {:8.4} {low:8.4} {:8.4} {high:8.4}", theory.risk[k], band.risk.median[k]);
    }
    Ok(())
}
