//! What parts theory and data on CIFAR-10, one suspect at a time:
//! `cargo run --release -p toclip-data --example controls -- FOLDER [RUNS]`
//!
//! Prints, for each control, by how much the mean of the runs is above the ODE over the second half
//! of the pass (docs/real-data.md).

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use toclip::Problem;
use toclip::dynamics::{Ode, Sgd, Simulator, Stream, StreamData, linear_times};
use toclip::ensemble::{Ensemble, Summary};
use toclip::noise::{Empirical, Family, Gaussian};
use toclip::policy::{OpenLoop, Schedule};
use toclip_data::cifar10::Cifar10;
use toclip_data::{DataSet, Design, LeastSquares, normal_start};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().map_or_else(|| DataSet::Cifar10.locate(), |path| Ok(path.into()))?;
    let runs: u64 = args.next().map_or(Ok(50), |n| n.parse())?;
    let cifar = Cifar10::read(folder)?;
    let centre = cifar.train.pixel_means();
    let source = cifar.train.into_two_classes();
    let design = Design::about(&source, Some(&centre), "tanh:500".parse()?, 1)?;
    let fit = LeastSquares::new(&design, None)?;
    let left = fit.residuals(&design)?;
    let start = normal_start(&fit.optimum, 0.4, 1);
    let gap: Vec<f64> = start.iter().zip(&fit.optimum).map(|(a, b)| a - b).collect();
    let modes = design.modes(&gap)?;
    let policy = OpenLoop::new(Schedule::constant(0.1)?, Schedule::constant(0.5)?);
    let (n, d, p) = (design.rows(), design.dim(), design.cols());
    let times = linear_times(n as f64 / d, 41)?;
    let gaussian = Family::from(Gaussian::new(left.sigma)?);
    let empirical = Family::from(Empirical::new(&left.values)?);
    let ensemble = Ensemble::new(runs, 1);
    let say = |name: &str, noise: &Family, band: &Summary| -> toclip::Result<()> {
        let problem = Problem::new(modes.clone(), noise.clone(), policy.clone())?;
        let ode = Ode::new(&problem)?.solve(&times)?.risk;
        let late: Vec<f64> =
            (20..=40).map(|k| 100.0 * (band.risk.mean[k] / ode[k] - 1.0)).collect();
        let low = late.iter().copied().fold(f64::INFINITY, f64::min);
        let high = late.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        let error = 100.0 * band.risk.standard_error[40] / band.risk.mean[40];
        println!("{name:<48} {low:+.1}% to {high:+.1}%, mean {mean:+.1}% ± {error:.1}%");
        Ok(())
    };

    let sgd = Sgd::new(&Problem::new(modes.clone(), gaussian.clone(), policy.clone())?)?;
    say("Gaussian features and noise", &gaussian, &ensemble.run(&sgd, &times, None)?)?;

    let data = design.clone().into_data(start.clone(), fit.optimum.clone());
    let targets = |residual: &mut dyn FnMut(usize) -> f64| -> Vec<f64> {
        (0..n).map(|k| data.targets[k] - left.values[k] + residual(k)).collect()
    };
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut draw = || ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize;
    let mut dealt = BTreeMap::new();
    let mut again = BTreeMap::new();
    for index in 0..runs {
        // The residuals drawn anew for every run, or whole samples, with replacement.
        let anew = StreamData { targets: targets(&mut |_| left.values[draw()]), ..data.clone() };
        let stream = Stream::new(anew, policy.clone())?;
        dealt.insert(index, stream.run(1, index, &times));
        let rows: Vec<usize> = (0..n).map(|_| draw()).collect();
        let sampled = StreamData {
            features: rows.iter().flat_map(|k| &data.features[k * p..][..p]).copied().collect(),
            targets: rows.iter().map(|k| data.targets[*k]).collect(),
            ..data.clone()
        };
        let stream = Stream::new(sampled, policy.clone())?.in_order();
        again.insert(index, stream.run(1, index, &times));
    }
    let band = |runs| Summary::of(&times, runs, &[0.1, 0.9]);
    say("real features, residuals drawn at random", &empirical, &band(&dealt)?)?;
    say("real samples, with replacement", &empirical, &band(&again)?)?;
    let stream = Stream::new(data, policy.clone())?;
    let once = ensemble.run(&stream, &times, None)?;
    say("real samples, one pass", &empirical, &once)?;
    say("real samples, one pass, against the Gaussian", &gaussian, &once)?;
    Ok(())
}
