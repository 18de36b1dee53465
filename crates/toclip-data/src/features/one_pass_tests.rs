use super::*;
use crate::{ChanceBias, Features, Matrix, Samples};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use toclip::Problem;
use toclip::dynamics::{Ode, Stream, StreamData};
use toclip::ensemble::{Ensemble, Summary};
use toclip::noise::Empirical;
use toclip::policy::{OpenLoop, Schedule};

const COLS: usize = 60;
const ETA: f64 = 0.3;

/// Gaussian features, λ_j = j^(-1/2). The noise has mean zero given x, but is skewed by the sign of
/// x_1 as much as `skew` says.
fn made(rows: usize, skew: f64) -> Samples {
    made_with(rows, 0.3, skew)
}

fn made_with(rows: usize, sigma: f64, skew: f64) -> Samples {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let (mut x, mut b) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let row: Vec<f64> = (0..COLS)
            .map(|j| {
                let z: f64 = StandardNormal.sample(&mut rng);
                z * (1.0 + j as f64).powf(-0.25)
            })
            .collect();
        let e: f64 = Exp1.sample(&mut rng);
        let z: f64 = StandardNormal.sample(&mut rng);
        b.push(row[0] - row[5] + sigma * z + skew * row[0].signum() * (e - 1.0));
        x.extend(row);
    }
    Samples::new(Matrix::new(rows, COLS, x).unwrap(), b).unwrap()
}

struct Case {
    design: Design,
    fit: LeastSquares,
    start: Vec<f64>,
    policy: OpenLoop,
    times: Vec<f64>,
}

impl Case {
    fn new(rows: usize, skew: f64) -> Self {
        Case::of(&made(rows, skew))
    }

    fn of(samples: &Samples) -> Self {
        let rows = samples.targets.len();
        let design = Design::new(samples, Features::None, 1).unwrap();
        let fit = LeastSquares::new(&design, None).unwrap();
        let start = fit.optimum.iter().map(|t| t + 0.1).collect();
        let policy =
            OpenLoop::new(Schedule::constant(ETA).unwrap(), Schedule::constant(0.4).unwrap());
        let end = rows as f64 / design.dim();
        let times = [0.1, 0.3, 0.5, 0.7, 0.9, 0.999].map(|share| share * end).to_vec();
        Case { design, fit, start, policy, times }
    }

    fn measured(&self) -> Summary {
        let data = StreamData {
            features: self.design.features().to_vec(),
            targets: self.design.targets().to_vec(),
            start: self.start.clone(),
            optimum: self.fit.optimum.clone(),
            covariance: self.design.covariance(),
            dim: self.design.dim(),
        };
        let stream = Stream::new(data, self.policy.clone()).unwrap();
        Ensemble::new(400, 1).run(&stream, &self.times, None).unwrap()
    }

    fn predicted(&self) -> (OnePass, ClippedOptimum) {
        let to = ClippedOptimum::new(&self.design, &self.fit, 0.4).unwrap();
        let one = OnePass::new(&self.design, &self.fit, &to, &self.start, ETA, &self.times);
        (one.unwrap(), to)
    }

    fn ode(&self) -> Vec<f64> {
        let noise = Empirical::new(&self.fit.residuals(&self.design).unwrap().values).unwrap();
        let gap: Vec<f64> = self.start.iter().zip(&self.fit.optimum).map(|(a, b)| a - b).collect();
        let modes = self.design.modes(&gap).unwrap();
        {
            let problem = Problem::new(modes, noise, self.policy.clone()).unwrap();
            Ode::new(&problem).unwrap().solve(&self.times).unwrap().risk
        }
    }
}

fn far(theory: &[f64], band: &Summary) -> f64 {
    let gaps = theory.iter().zip(&band.risk.mean).map(|(t, m)| (t / m - 1.0).abs());
    gaps.fold(0.0, f64::max)
}

#[test]
fn skewed_noise_moves_the_destination_and_the_prediction_knows() {
    let case = Case::new(6000, 1.0);
    let (one, to) = case.predicted();
    assert!(to.bias > 0.01, "{}", to.bias);
    let band = case.measured();
    println!("one pass {:?}\node {:?}\nmean {:?}", one, case.ode(), band.risk.mean);
    // The plain theory is a quarter off; what is left after correction is of order 1/d (d = 14) and
    // the standard error of 400 runs, 1%.
    let (plain, corrected) = (far(&case.ode(), &band), far(&one.risk, &band));
    assert!(plain > 0.2 && corrected < 0.05, "{plain} {corrected}");
}

#[test]
fn one_pass_over_few_samples_ends_below_sampling_with_replacement() {
    // Independent noise: only the second correction acts, and it is a quarter with 1500 samples.
    let case = Case::new(1500, 0.0);
    let (one, _) = case.predicted();
    let band = case.measured();
    println!("one pass {:?}\node {:?}\nmean {:?}", one, case.ode(), band.risk.mean);
    let end = one.risk.len() - 1;
    assert!(band.risk.mean[end] < 0.8 * case.ode()[end]);
    assert!(one.risk[end] < 0.8 * one.with_replacement[end]);
    assert!(far(&one.risk, &band) < 0.05);
}

#[test]
fn noise_far_below_the_start_is_what_the_pass_ends_with() {
    // The risk falls by six decades and more: at its end it is the noise alone that moves θ.
    for sigma in [0.01, 0.001] {
        let case = Case::of(&made_with(6000, sigma, 0.0));
        let (one, _) = case.predicted();
        let (band, ode) = (case.measured(), case.ode());
        let (end, last) = (band.risk.mean.len() - 1, |v: &[f64]| v[v.len() - 1]);
        println!("σ = {sigma}: {:?}\node {:?}\nmean {:?}", one, ode, band.risk.mean);
        assert!((last(&one.risk) / band.risk.mean[end] - 1.0).abs() < 0.1, "σ = {sigma}");
        assert!((last(&one.with_replacement) / last(&ode) - 1.0).abs() < 0.05, "σ = {sigma}");
    }
}

#[test]
fn a_finer_grid_changes_nothing() {
    let case = Case::new(1500, 1.0);
    let (one, to) = case.predicted();
    let many = log_times(1e-3, *case.times.last().unwrap(), 1501).unwrap();
    let fine = OnePass::new(&case.design, &case.fit, &to, &case.start, ETA, &many).unwrap();
    let end = |p: &OnePass| (*p.risk.last().unwrap(), *p.with_replacement.last().unwrap());
    let ((a, b), (c, d)) = (end(&one), end(&fine));
    assert!((a / c - 1.0).abs() < 1e-4 && (b / d - 1.0).abs() < 1e-6, "{a} {b} {c} {d}");
}

#[test]
fn the_destination_is_where_the_mean_clipped_gradient_vanishes() {
    let case = Case::new(1500, 1.0);
    for c in [0.05, 0.4, 3.0, f64::INFINITY] {
        let to = ClippedOptimum::new(&case.design, &case.fit, c).unwrap();
        let root = case.design.dim().sqrt();
        let psi: Vec<f64> = case
            .design
            .features()
            .chunks(COLS)
            .zip(&to.residuals)
            .map(|(x, e)| {
                let bound = c * root / x.iter().map(|x| x * x).sum::<f64>().sqrt();
                e.clamp(-bound, bound)
            })
            .collect();
        assert!(case.design.mean_of(&psi).iter().all(|g| g.abs() < 1e-9), "c = {c}");
        let direct: f64 =
            case.design.features()[..COLS].iter().zip(&to.point).map(|(x, t)| x * t).sum();
        assert!((case.design.targets()[0] - direct - to.residuals[0]).abs() < 1e-12);
    }
    let free = ClippedOptimum::new(&case.design, &case.fit, f64::INFINITY).unwrap();
    assert!(free.bias < 1e-20 && free.unclipped == 1.0);
    assert!(ClippedOptimum::new(&case.design, &case.fit, 0.0).is_err());
}

#[test]
fn independent_noise_that_never_is_clipped_gives_the_ode_back() {
    let case = Case::new(1500, 0.0);
    let free = ClippedOptimum::new(&case.design, &case.fit, f64::INFINITY).unwrap();
    let one = OnePass::new(&case.design, &case.fit, &free, &case.start, ETA, &case.times).unwrap();
    let noise = Empirical::new(&case.fit.residuals(&case.design).unwrap().values).unwrap();
    let gap: Vec<f64> = case.start.iter().zip(&case.fit.optimum).map(|(a, b)| a - b).collect();
    let modes = case.design.modes(&gap).unwrap();
    let policy = OpenLoop::unclipped(Schedule::constant(ETA).unwrap());
    let problem = Problem::new(modes, noise, policy).unwrap();
    let ode = Ode::new(&problem).unwrap().solve(&case.times).unwrap().risk;
    for (a, b) in one.with_replacement.iter().zip(ode) {
        // Along 60 directions the mean of ε² weighted by x_i² is off by sqrt(6/1500) each, and
        // by some 1% in all.
        assert!((a / b - 1.0).abs() < 0.03, "{a} {b}");
    }
}

#[test]
fn a_bias_by_chance_is_told_from_one_that_is_there() {
    let ratio = |skew: f64| {
        let case = Case::new(6000, skew);
        let to = ClippedOptimum::new(&case.design, &case.fit, 0.4).unwrap();
        let left = case.fit.residuals(&case.design).unwrap();
        to.bias / ChanceBias::new(&case.design, &case.fit, &left, 0.4, None).mean
    };
    // A sum of 60 squares over its mean: five standard deviations are 0.91.
    let chance = ratio(0.0);
    assert!((chance - 1.0).abs() < 0.91, "{chance}");
    assert!(ratio(1.0) > 4.0, "{}", ratio(1.0));
}
