//! A policy of your own: a threshold that follows the risk, compared with a constant one.
//!
//! Run it with `cargo run --release -p toclip --example own_policy`.

use toclip::Problem;
use toclip::dynamics::{Ode, Sgd, Simulator};
use toclip::noise::StudentT;
use toclip::policy::{Control, OpenLoop, Policy};
use toclip::spectrum::{Modes, Spectrum, Start};

/// Clips at a multiple of the spread of the residuals that the model itself causes, plus a floor.
#[derive(Debug)]
struct FollowTheRisk {
    eta: f64,
    multiple: f64,
    floor: f64,
}

impl Policy for FollowTheRisk {
    fn at(&self, _t: f64, r: f64) -> Control {
        Control { eta: self.eta, c: self.floor + self.multiple * (2.0 * r).sqrt() }
    }

    fn uses_risk(&self) -> bool {
        true
    }
}

fn main() -> toclip::Result<()> {
    let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
    let noise = StudentT::new(2.2, 0.3)?;
    let constant = Problem::new(modes, noise, OpenLoop::constant(0.4, 0.6)?)?;
    let own = constant.with_policy(FollowTheRisk { eta: 0.4, multiple: 1.0, floor: 0.3 })?;

    let times = [1.0, 5.0, 15.0];
    for (name, problem) in [("constant", &constant), ("own", &own)] {
        let theory = Ode::new(problem)?.solve(&times)?;
        let run = Sgd::new(problem)?.run(1, 0, &times);
        println!("{name:8} theory {:.4?}, one run of SGD {:.4?}", theory.risk, run.risk);
    }
    Ok(())
}
