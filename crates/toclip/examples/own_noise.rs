//! A noise family of your own: from its density to the best threshold and the risk curve.
//!
//! Run it with `cargo run --release -p toclip --example own_noise`.

use toclip::criteria::best_threshold;
use toclip::dynamics::{Ode, linear_times};
use toclip::noise::{Density, Noise};
use toclip::policy::OpenLoop;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Factors, Problem};

fn main() -> toclip::Result<()> {
    // Logistic noise of scale 1: its density, its quantile function, and a typical scale.
    let noise = Density::new(
        "logistic",
        |e: f64| 0.25 / (0.5 * e).cosh().powi(2),
        |u: f64| (u / (1.0 - u)).ln(),
        1.0,
    )?;
    println!("variance {:.4}", noise.variance());

    let risk = 0.05;
    let best = best_threshold(&noise, risk)?;
    let at = Factors::new(&noise, risk, best.c)?;
    println!(
        "at risk {risk} the best threshold is {:.3}: mu {:.3}, CCC {:.3}",
        best.c, at.mu, best.ccc
    );

    let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
    let times = linear_times(15.0, 4)?;
    // A smaller threshold slows descent down, so the clipped curve has the rate eta/mu.
    for (name, eta, c) in [("unclipped", 0.2, f64::INFINITY), ("clipped", 0.2 / at.mu, best.c)] {
        let problem = Problem::new(modes.clone(), noise.clone(), OpenLoop::constant(eta, c)?)?;
        let path = Ode::new(&problem)?.solve(&times)?;
        println!("{name:9} R = {:.4?}", path.risk);
    }
    Ok(())
}
