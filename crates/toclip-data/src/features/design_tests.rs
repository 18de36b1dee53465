use super::*;
use crate::{LeastSquares, Matrix, Samples};
use rand_distr::{Distribution, StandardNormal};

fn normals(count: usize, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| StandardNormal.sample(&mut rng)).collect()
}

const TRUTH: [f64; 4] = [1.0, -2.0, 0.5, 0.0];
const SIGMA: f64 = 0.3;

/// x = M z + 7 for a fixed M, b = <x - 7, TRUTH> + SIGMA noise + 5.
fn made(n: usize) -> (Samples, [[f64; 4]; 4]) {
    let m =
        [[2.0, 0.0, 0.0, 0.0], [0.5, 1.0, 0.0, 0.0], [0.0, 0.3, 0.5, 0.0], [0.1, 0.0, 0.2, 0.4]];
    let (z, noise) = (normals(4 * n, 1), normals(n, 2));
    let mut x = Vec::new();
    let mut b = Vec::new();
    for (z, e) in z.chunks(4).zip(noise) {
        let row: Vec<f64> = m.iter().map(|m| m.iter().zip(z).map(|(m, z)| m * z).sum()).collect();
        b.push(row.iter().zip(TRUTH).map(|(x, t)| x * t).sum::<f64>() + SIGMA * e + 5.0);
        x.extend(row.iter().map(|x| x + 7.0));
    }
    let mut k = [[0.0; 4]; 4];
    for i in 0..4 {
        for j in 0..4 {
            k[i][j] = (0..4).map(|l| m[i][l] * m[j][l]).sum();
        }
    }
    (Samples::new(Matrix::new(n, 4, x).unwrap(), b).unwrap(), k)
}

#[test]
fn a_known_problem_is_recovered() {
    let n = 40_000;
    let (samples, k) = made(n);
    let design = Design::new(&samples, Features::None, 1).unwrap();
    // Entries of a sample covariance have standard deviation sqrt((K_ii K_jj + K_ij²)/n); 16 checks
    // at five of them: false alarm 1e-5.
    for i in 0..4 {
        for j in 0..4 {
            let got = design.covariance()[4 * i + j] * design.norm();
            let error = ((k[i][i] * k[j][j] + k[i][j] * k[i][j]) / n as f64).sqrt();
            assert!((got - k[i][j]).abs() < 5.0 * error, "{got} {}", k[i][j]);
        }
    }
    let trace: f64 = (0..4).map(|i| k[i][i]).sum();
    assert!((design.dim() * design.norm() - trace).abs() < 0.03 * trace);
    let fit = LeastSquares::new(&design, None).unwrap();
    assert_eq!(fit.ridge, None);
    // The risk of theta* is σ² χ²(4)/2n, whose 1e-6 quantile is at 33.4.
    let scale = design.norm().sqrt();
    let gap: Vec<f64> = fit.optimum.iter().zip(TRUTH).map(|(a, t)| a - t * scale).collect();
    let risk = design.risk(&gap);
    assert!(risk < SIGMA * SIGMA * 33.4 / (2 * n) as f64, "{risk}");
    let left = fit.residuals(&design).unwrap();
    // σ̂/σ is 1 ± 1/sqrt(2n), five standard deviations.
    assert!((left.sigma / SIGMA - 1.0).abs() < 5.0 / (2.0 * n as f64).sqrt(), "{}", left.sigma);
    assert!(left.accuracy.is_none() && (left.mse - left.sigma.powi(2)).abs() < 1e-12);
    assert!((design.target_mean() - 5.0).abs() < 0.1);
    // What least squares means: nothing is left along any feature.
    assert!(design.mean_of(&left.values).iter().all(|m| m.abs() < 1e-12));
}

#[test]
fn the_eigenbasis_diagonalises() {
    let (samples, _) = made(500);
    let design = Design::new(&samples, "tanh:30".parse().unwrap(), 3).unwrap();
    let (p, lambda) = (design.cols(), design.eigenvalues());
    assert!((lambda[0] - 1.0).abs() < 1e-12 && lambda.windows(2).all(|l| l[0] >= l[1]));
    let k = design.covariance();
    let v: Vec<f64> = normals(p, 5);
    let kv: Vec<f64> = k.chunks(p).map(|k| k.iter().zip(&v).map(|(k, v)| k * v).sum()).collect();
    let (along, k_along) = (design.project(&v), design.project(&kv));
    for ((y, ky), l) in along.iter().zip(&k_along).zip(lambda) {
        assert!((ky - l * y).abs() < 1e-12);
    }
    let back = design.lift(&along);
    assert!(back.iter().zip(&v).all(|(a, b)| (a - b).abs() < 1e-12));
    let direct = 0.5 * v.iter().zip(&kv).map(|(a, b)| a * b).sum::<f64>();
    assert!((design.risk(&v) - direct).abs() < 1e-12);
    assert!((design.modes(&v).unwrap().risk() - direct).abs() < 1e-12);
    // Every feature is centred, and every row is used: the trace is the mean square norm.
    let squares = design.features().iter().map(|x| x * x).sum::<f64>() / design.rows() as f64;
    assert!((squares - design.dim()).abs() < 1e-12);
}

#[test]
fn halves_share_the_samples_and_the_second_has_norm_one() {
    let (samples, _) = made(1001);
    let design = Design::new(&samples, Features::None, 1).unwrap();
    let (train, test) = design.halves(4).unwrap();
    assert_eq!((train.rows(), test.rows()), (500, 501));
    assert!((test.eigenvalues()[0] - 1.0).abs() < 1e-14);
    let norm = test.norm() / design.norm();
    assert!((norm - 1.0).abs() < 0.3 && norm != 1.0);
    assert!((train.norm() - test.norm()).abs() < 1e-12);
    let sum = |d: &Design| d.features().iter().map(|x| x * x).sum::<f64>() * norm;
    let whole: f64 = design.features().iter().map(|x| x * x).sum();
    assert!((sum(&train) + sum(&test) - whole).abs() < 1e-9);
    let mut targets = [train.targets(), test.targets()].concat();
    let mut all = design.targets().to_vec();
    targets.sort_by(f64::total_cmp);
    all.sort_by(f64::total_cmp);
    assert_eq!(targets, all);
    // On samples it has not seen, a fit of 4 numbers to 500 leaves about 1 + 2·4/500 as much.
    let fit = LeastSquares::new(&train, None).unwrap();
    let ratio = fit.residuals(&test).unwrap().mse / fit.residuals(&train).unwrap().mse;
    assert!(ratio > 0.7 && ratio < 1.4, "{ratio}");
}

#[test]
fn errors_say_what_cannot_be_fitted() {
    let samples = |n: usize, x: Vec<f64>, b: Vec<f64>| {
        Samples::new(Matrix::new(n, x.len() / n, x).unwrap(), b).unwrap()
    };
    let inputs = [
        samples(3, vec![1.0, 4.0, 2.0, 4.0, 3.0, 4.0], vec![1.0, 2.0, 0.0]),
        samples(3, vec![1.0, 2.0, 3.0], vec![0.0; 3]),
        samples(3, vec![1.0, 2.0, 4.0], vec![0.5; 3]),
        samples(1, vec![1.0, 2.0], vec![0.0]),
        samples(3, vec![1e180; 3], vec![1.0, 2.0, 3.0]),
        samples(3, vec![1e130; 3], vec![1.0, 2.0, 3.0]),
    ];
    let results = inputs.iter().map(|input| Design::new(input, Features::None, 1).map(drop));
    // relu(x a) of equal inputs is constant.
    let equal = samples(3, vec![2.0; 3], vec![1.0, 2.0, 3.0]);
    let constant = Design::new(&equal, "relu:5".parse().unwrap(), 1).map(drop);
    let wide = samples(2, vec![1.0, 2.0, 3.0, 5.0], vec![1.0, 2.0]);
    let wide = Design::new(&wide, Features::None, 1).unwrap();
    let ridge = LeastSquares::new(&wide, Some(1e-3)).unwrap();
    let other = Design::new(&made(20).0, Features::None, 1).unwrap();
    let fits = [
        constant,
        LeastSquares::new(&wide, None).map(drop),
        LeastSquares::new(&wide, Some(-1.0)).map(drop),
        wide.halves(1).map(drop),
        ridge.residuals(&other).map(drop),
    ];
    insta::assert_snapshot!(crate::testing::messages("".as_ref(), results.chain(fits)));
    insta::assert_snapshot!(
        ridge.ridge.unwrap(),
        @"a ridge of 1e-3 ||K||, because K is singular in one direction"
    );
}

#[test]
fn classes_are_told_by_sign_with_the_mean_put_back() {
    // Three of class +1, one of class -1, split at x = 0.
    let x = Matrix::new(4, 1, vec![1.0, 2.0, 3.0, -6.0]).unwrap();
    let samples = Samples::new(x, vec![1.0, 1.0, 1.0, -1.0]).unwrap();
    let design = Design::new(&samples, Features::None, 1).unwrap();
    assert!(design.binary && design.target_mean() == 0.5);
    let fit = LeastSquares::new(&design, None).unwrap();
    assert_eq!(fit.residuals(&design).unwrap().accuracy, Some(1.0));
}
