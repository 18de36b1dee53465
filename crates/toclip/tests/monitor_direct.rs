//! Inner products with an independent mean gradient, which show the monitor more than norms do.
//!
//! Seeds are fixed; each test states how often it would fail by chance with another one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use toclip::Factors;
use toclip::monitor::{
    Evidence, Halves, Monitor, MonitorAdvice, MonitorSettings, NormScale, Reason,
};
use toclip::noise::{Gaussian, Noise, StudentT};

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

#[test]
fn direct_intervals_cover_as_often_as_they_claim() {
    // Gradients in one dimension about a mean of 0.4, compared with that mean: at these numbers
    // large ones point against it as often as the noise does.
    let noise = StudentT::new(9.0, 1.0).unwrap();
    let settings = MonitorSettings { scale: NormScale::Fixed(1.0), ..MonitorSettings::default() };
    let run = |steps: usize, seed: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut monitor = Monitor::new(settings).unwrap();
        for _ in 0..steps {
            let g = 0.4 + noise.sample(&mut rng);
            monitor.observe_aligned(g.abs(), 0.4 * g);
        }
        monitor.curve()
    };
    let truth = run(4_000_000, 20);
    let candidates = [20, 25, 30];
    let (mut hits, runs) = ([[0.0; 2]; 3], 400);
    for seed in 0..runs {
        let curve = run(4_000, 3000 + seed);
        for (hit, k) in hits.iter_mut().zip(candidates) {
            let (got, want) = (curve[k].direct.unwrap(), truth[k].direct.unwrap());
            hit[0] += f64::from(got.mu.contains(want.mu.value)) / runs as f64;
            hit[1] += f64::from(got.ccc.contains(want.ccc.value)) / runs as f64;
        }
    }
    println!("direct: {hits:.3?}");
    // Of a true 95 % fewer than 92 % are hit in one of 200 cases each.
    assert!(hits.iter().flatten().all(|hit| *hit >= 0.92), "{hits:?}");
}

#[test]
fn large_gradients_that_carry_the_signal_are_not_clipped() {
    // Norms are lognormal, and the inner product with the mean grows like their square: the direct
    // CCC at full clipping is (E u)²/E u² < 1, where norms alone have (E 1/u)² E u² = e^(3/4).
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let (mut blind, mut seeing) = (
        Monitor::new(MonitorSettings::default()).unwrap(),
        Monitor::new(MonitorSettings::default()).unwrap(),
    );
    for _ in 0..5_000 {
        let u = (0.5 * normal(&mut rng)).exp();
        blind.observe(u);
        seeing.observe_aligned(u, u * u);
    }
    let MonitorAdvice::Clip(choice) = blind.advice() else { panic!("{}", blind.advice()) };
    assert!(choice.evidence == Evidence::Norms && choice.ccc.contains(0.75_f64.exp()));
    let MonitorAdvice::Stay(Reason::NoGain(best)) = seeing.advice() else {
        panic!("{}", seeing.advice())
    };
    assert_eq!(best.evidence, Evidence::Direct);
    let lowest = seeing.curve()[0].direct.unwrap();
    // e^(−1/4): the interval covers 95 %, and this seed is one of them.
    assert!(lowest.ccc.contains((-0.25_f64).exp()), "{lowest:?}");
}

#[test]
fn vectors_show_what_norms_cannot() {
    // Linear regression in 40 dimensions, one sample a step, Gaussian: g = X a. The exact μ is
    // P(|X| ≤ c) as d grows; norms give it with the formula for single samples, not with the one for
    // many components.
    let (d, n) = (40, 60_000);
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let threshold = 0.8 * (d as f64).sqrt();
    let settings = MonitorSettings {
        components: Some(1.0),
        watched: Some(threshold),
        ..MonitorSettings::default()
    };
    let mut monitor = Monitor::new(settings).unwrap();
    let mut halves = Halves::new(d, 1e6).unwrap();
    for _ in 0..n {
        let a: Vec<f64> = (0..d).map(|_| normal(&mut rng)).collect();
        // θ − θ* = e_1, noise of variance one: X ~ N(0, 2), correlated with the first feature.
        let x = a[0] + normal(&mut rng);
        let g: Vec<f64> = a.iter().map(|a| x * a).collect();
        monitor.observe_vector(&mut halves, &g).unwrap();
    }
    let at = monitor.watched().unwrap();
    let direct = at.direct.unwrap();
    let exact = Factors::new(&Gaussian::new(1.0).unwrap(), 0.5, 0.8).unwrap().mu;
    // Finite d moves μ by less than 1/d = 0.025; the interval is 95 % wide, three times the half of
    // it makes a false alarm rarer than one in a million.
    let reach = 1.5 * (direct.mu.high - direct.mu.low) + 1.0 / d as f64;
    assert!((direct.mu.value - exact).abs() < reach, "{direct:?} against {exact}");
    assert!(reach < 0.15, "{direct:?}");
}
