//! Which threshold, at your learning rate and at the best rate for each?
//!
//! Run it with `cargo run --release -p toclip --example threshold_sweep`. Sweeps over any key of an
//! experiment file are `toclip sweep FILE.toml`.

use toclip::Problem;
use toclip::dynamics::{Ode, Stop};
use toclip::noise::StudentT;
use toclip::policy::OpenLoop;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::tuning::{RateShape, tune_clip, tune_rate};

const TIME: f64 = 15.0;
const RATE: f64 = 0.3;

fn main() -> toclip::Result<()> {
    let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
    let noise = StudentT::from_sigma(2.5, 0.8)?;
    let problem = Problem::new(modes, noise, OpenLoop::constant(RATE, f64::INFINITY)?)?;

    println!("     c   R at eta = {RATE}   best eta   R there");
    for c in [0.1, 0.2, 0.4, 0.8, 1.6, f64::INFINITY] {
        let path = Ode::new(&problem.with_policy(OpenLoop::constant(RATE, c)?)?)?.solve(&[TIME])?;
        let here = match path.stop {
            Stop::Finished => format!("{:.4}", path.risk[0]),
            _ => "diverges".into(),
        };
        let tuned = tune_rate(&problem, c, RateShape::Constant, TIME)?;
        println!("{c:6.2} {here:>15} {:10.3} {:9.4}", tuned.eta, tuned.end);
    }
    let best = tune_clip(&problem, RateShape::Constant, TIME)?;
    println!("best: c = {:.3} with eta = {:.3}, R = {:.4}", best.c, best.eta, best.end);
    Ok(())
}
