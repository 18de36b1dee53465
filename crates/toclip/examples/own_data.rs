//! Clipped SGD on your own data matrix, one pass, beside the theory for its covariance.
//!
//! Run it with `cargo run --release -p toclip --example own_data`. Replace `data()` by your own; the
//! command `toclip fit DATA` does all of this for files.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use toclip::Problem;
use toclip::dynamics::{Ode, Simulator, Stream, StreamData};
use toclip::noise::Empirical;
use toclip::policy::OpenLoop;
use toclip::spectrum::{Modes, Spectrum, Start};

const FEATURES: usize = 50;
const ROWS: usize = 2000;

/// Uniform features of variance one, and targets of which one in ten is an outlier.
fn data() -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let optimum = vec![1.0 / (FEATURES as f64).sqrt(); FEATURES];
    let features: Vec<f64> =
        (0..ROWS * FEATURES).map(|_| 12_f64.sqrt() * (rng.random::<f64>() - 0.5)).collect();
    let target = |x: &[f64]| {
        let noise = if rng.random::<f64>() < 0.1 { 2.0 } else { 0.0 };
        let sign = if rng.random() { 1.0 } else { -1.0 };
        x.iter().zip(&optimum).map(|(x, w)| x * w).sum::<f64>() + sign * noise
    };
    let targets = features.chunks(FEATURES).map(target).collect();
    (features, targets, optimum)
}

fn main() -> toclip::Result<()> {
    let (features, targets, optimum) = data();
    // The residuals at the optimum are the noise.
    let residual =
        |(x, y): (&[f64], &f64)| y - x.iter().zip(&optimum).map(|(x, w)| x * w).sum::<f64>();
    let residuals: Vec<f64> = features.chunks(FEATURES).zip(&targets).map(residual).collect();
    let identity = |i: usize| if i.is_multiple_of(FEATURES + 1) { 1.0 } else { 0.0 };
    let stream_data = StreamData {
        features,
        targets,
        start: vec![0.0; FEATURES],
        covariance: (0..FEATURES * FEATURES).map(identity).collect(),
        dim: FEATURES as f64,
        optimum: optimum.clone(),
    };

    let start = Start::Coordinates { values: optimum.iter().map(|w| -w).collect() };
    let modes = Modes::new(&Spectrum::isotropic(FEATURES as u64)?, &start)?;
    let times = [0.0, 5.0, 20.0, 40.0];
    for (name, policy) in [
        ("unclipped", OpenLoop::constant(0.3, f64::INFINITY)?),
        ("clipped", OpenLoop::constant(0.3, 0.5)?),
    ] {
        let problem = Problem::new(modes.clone(), Empirical::new(&residuals)?, policy.clone())?;
        let theory = Ode::new(&problem)?.solve(&times)?;
        let measured = Stream::new(stream_data.clone(), policy)?.run(1, 0, &times);
        println!("{name:9} theory   {:.4?}", theory.risk);
        println!("{name:9} measured {:.4?}", measured.risk);
    }
    Ok(())
}
