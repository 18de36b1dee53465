//! Classification: milliseconds of an ODE of 500 modes at 1e-8, and the price of a step of C-SGD as a
//! multiple of that of least squares. The best of many repetitions, one core.

use std::error::Error;
use std::time::Instant;
use toclip::Problem;
use toclip::dynamics::{Ode, Sgd, Simulator, linear_times};
use toclip::model::{Logistic, Model, Overlaps};
use toclip::noise::Gaussian;
use toclip::policy::{OpenLoop, Schedule, Shape};
use toclip::spectrum::{Modes, Spectrum, Start};

const DIM: u64 = 500;
const STEPS: f64 = 1000.0;

fn main() -> Result<(), Box<dyn Error>> {
    let spectrum = Spectrum::power_law(DIM, 0.2)?;
    let start = Start::Uniform { norm: 0.0 };
    let modes = |norm| Modes::with_teacher(&spectrum, &Start::Uniform { norm }, &start);
    let constant = OpenLoop::constant;
    let model = Logistic::new(0.1)?;
    let at = Overlaps::new(4.0, 5.4, 9.0)?;
    for (name, c) in [("clipped", 0.4), ("unclipped", f64::INFINITY)] {
        let time = best(200, || model.coefficients(&at, c));
        println!("{:8.2} µs  coefficients of logistic regression, {name}", 1e6 * time);
    }

    let times = linear_times(20.0, 301)?;
    let cosine = OpenLoop::new(
        Schedule::new(Shape::Cosine { from: 2.0, to: 0.0, over: 20.0, warmup: 1.0 })?,
        Schedule::constant(0.4)?,
    );
    for (name, norm, policy) in [
        ("c = 0.4, η = 2", 3.0, constant(2.0, 0.4)?),
        ("c = 0.1, η = 6, ‖θ*‖ = 6", 6.0, constant(6.0, 0.1)?),
        ("unclipped, η = 1", 3.0, constant(1.0, f64::INFINITY)?),
        ("c = 0.4, cosine with warm-up", 3.0, cosine),
    ] {
        let ode = Ode::new(&Problem::of_model(modes(norm)?, model, policy)?)?;
        let path = ode.solve(&times)?;
        let time = best(10, || ode.solve(&times));
        println!(
            "{:8.2} ms  ODE of {DIM} modes at 1e-8 to t = 20, {name} ({} evaluations)",
            1e3 * time,
            path.counts.evaluations
        );
    }

    let policy = constant(0.7, 0.4)?;
    let plain = Modes::new(&spectrum, &Start::Uniform { norm: 1.0 })?;
    let end = [STEPS / plain.dim()];
    let squares = Sgd::new(&Problem::new(plain, Gaussian::new(0.5)?, policy.clone())?)?;
    let unit = 1e9 / (STEPS * DIM as f64);
    let reference = unit * best(200, || squares.run(1, 0, &end));
    println!("{reference:8.3} ns  least squares, a step and dimension");
    let sgd = Sgd::new(&Problem::of_model(modes(0.7)?, model, policy)?)?;
    let ns = unit * best(200, || sgd.run(1, 0, &end));
    println!("{ns:8.3} ns  logistic: {:.2} times least squares", ns / reference);
    Ok(())
}

/// Seconds.
fn best<T>(repetitions: u32, work: impl Fn() -> T) -> f64 {
    let time = |_| {
        let clock = Instant::now();
        std::hint::black_box(work());
        clock.elapsed().as_secs_f64()
    };
    (0..repetitions).map(time).fold(f64::INFINITY, f64::min)
}
