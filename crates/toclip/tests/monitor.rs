//! The monitor against the exact factors, and the coverage of its intervals.
//!
//! Seeds are fixed; each test states how often it would fail by chance with another one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use toclip::Factors;
use toclip::criteria::best_threshold;
use toclip::monitor::{
    Estimates, Evidence, Interval, Monitor, MonitorAdvice, MonitorSettings, NormScale, Reason,
};
use toclip::noise::{Gaussian, Laplace, Noise, Rademacher, StudentT};

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// A residual at risk `r`.
fn residual(noise: &dyn Noise, r: f64, rng: &mut ChaCha8Rng) -> f64 {
    (2.0 * r).sqrt() * normal(rng) - noise.sample(rng)
}

fn single(scale: NormScale) -> MonitorSettings {
    MonitorSettings { components: Some(1.0), scale, ..MonitorSettings::default() }
}

fn families() -> Vec<Box<dyn Noise>> {
    vec![
        Box::new(Gaussian::new(1.0).unwrap()),
        Box::new(Laplace::new(1.0).unwrap()),
        Box::new(Rademacher::new(5.0, 0.2).unwrap()),
        Box::new(StudentT::new(9.0, 1.0).unwrap()),
    ]
}

/// Whether a number is as far from an estimate as two and a half times the half of its 95 %
/// interval on that side: five standard errors, one of a million and a half.
fn near(got: Interval, want: f64) -> bool {
    let reach = if want > got.value { got.high - got.value } else { got.value - got.low };
    (want - got.value).abs() <= 2.5 * reach
}

#[test]
fn single_samples_have_the_factors_of_theory() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for noise in families() {
        let mut monitor = Monitor::new(single(NormScale::Fixed(1.0))).unwrap();
        // A norm of √d |X|, here with √d = 1.
        (0..200_000).for_each(|_| monitor.observe(residual(&*noise, 0.3, &mut rng).abs()));
        let mut checked = 0;
        for at in monitor.curve().iter().filter(|at| at.exceedances > 1000 && at.mu.value > 0.1) {
            let exact = Factors::new(&*noise, 0.3, at.threshold).unwrap();
            // Four families, some 25 candidates, five numbers: a false alarm in one of 3000 seeds.
            for (got, want) in [
                (at.mu, exact.mu),
                (at.clip_fraction, 1.0 - exact.mu),
                (at.nu, exact.nu().unwrap()),
                (at.csc, exact.csc().unwrap()),
                (at.ccc, exact.ccc().unwrap()),
            ] {
                assert!(near(got, want), "{}: {want} not in {got:?}", noise.describe());
                assert!(got.high - got.low < 0.1 * want.max(0.05), "too wide: {got:?}");
            }
            checked += 1;
        }
        assert!(checked > 15, "{checked}");
    }
}

/// $\mu_B$ and $\nu_B$ from many sums $S$ of $B$ squares by their definition.
fn batch_factors(noise: &dyn Noise, r: f64, b: usize, c: f64, rng: &mut ChaCha8Rng) -> (f64, f64) {
    let (mut below, mut ratio, mut clipped, mut all) = (0.0, 0.0, 0.0, 0.0);
    let draws = 50_000;
    for _ in 0..draws {
        let s: f64 = (0..b).map(|_| residual(noise, r, rng).powi(2)).sum();
        let (root, edge) = (s.sqrt(), c * (b as f64).sqrt());
        if root <= edge {
            below += 1.0
        } else {
            ratio += edge / root
        }
        clipped += s.min(edge * edge);
        all += s;
    }
    let n = draws as f64;
    ((below + (1.0 - 1.0 / b as f64) * ratio) / n, clipped / all)
}

#[test]
fn batches_have_the_batch_form() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for (b, noise) in [(2, families().remove(1)), (8, families().remove(2))] {
        let settings = MonitorSettings {
            components: Some(b as f64),
            scale: NormScale::Fixed(1.0),
            ..MonitorSettings::default()
        };
        let mut monitor = Monitor::new(settings).unwrap();
        for _ in 0..50_000 {
            let s: f64 = (0..b).map(|_| residual(&*noise, 0.2, &mut rng).powi(2)).sum();
            // The batch gradient has norm √d/B √S; c is the threshold over √(d/B).
            monitor.observe((s / b as f64).sqrt());
        }
        for at in monitor.curve().iter().filter(|at| at.exceedances > 100).step_by(6) {
            let (mu, nu) = batch_factors(&*noise, 0.2, b, at.threshold, &mut rng);
            // The simulation has an error of its own, of the size of the interval: twice its width
            // makes a false alarm one of ten thousand.
            let near =
                |got: Interval, want: f64| (want - got.value).abs() <= 2.0 * (got.high - got.low);
            assert!(near(at.mu, mu), "B = {b} at {}: {mu}, {:?}", at.threshold, at.mu);
            assert!(near(at.nu, nu), "B = {b} at {}: {nu}, {:?}", at.threshold, at.nu);
        }
    }
}

/// The share of `runs` in which each of seven numbers lies in its interval at the candidates.
fn coverage(
    runs: u64,
    truth: &[Estimates],
    candidates: &[usize],
    mut run: impl FnMut(u64) -> Vec<Estimates>,
) -> Vec<(usize, [f64; 7])> {
    let numbers = |at: &Estimates| {
        [at.clip_fraction, at.step_factor, at.mu_single, at.mu, at.nu, at.csc, at.ccc]
    };
    let mut hits: Vec<(usize, [f64; 7])> = candidates.iter().map(|k| (*k, [0.0; 7])).collect();
    for index in 0..runs {
        let curve = run(index);
        for (k, hit) in &mut hits {
            for (j, interval) in numbers(&curve[*k]).iter().enumerate() {
                let inside = interval.contains(numbers(&truth[*k])[j].value);
                hit[j] += f64::from(inside) / runs as f64;
            }
        }
    }
    hits
}

fn curve(settings: MonitorSettings, norms: impl Iterator<Item = f64>) -> Vec<Estimates> {
    let mut monitor = Monitor::new(settings).unwrap();
    norms.for_each(|norm| monitor.observe(norm));
    monitor.curve()
}

/// Norms whose logarithm is an AR(1) process: neighbours are alike over ten steps.
fn autoregressive(steps: usize, rng: &mut ChaCha8Rng) -> impl Iterator<Item = f64> + '_ {
    let mut state = normal(rng);
    (0..steps).map(move |_| {
        state = 0.9 * state + 0.19_f64.sqrt() * normal(rng);
        (0.4 * state).exp()
    })
}

#[test]
fn intervals_cover_in_long_runs_of_two_distributions() {
    let runs = 400;
    // Of a true 95 % fewer than 92 % are hit in one of 200 cases per number, and numbers of one run
    // are correlated; at these seeds none was.
    let least = 0.92;
    let batch = MonitorSettings { components: Some(16.0), ..MonitorSettings::default() };
    // Neighbours alike, with the running scale: the truth is a run of two million steps. The
    // highest candidate is exceeded by one norm of twenty, in some fifteen bursts a run.
    let candidates = [20, 24, 28, 31];
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let truth = curve(batch, autoregressive(2_000_000, &mut rng));
    let hits = coverage(runs, &truth, &candidates, |index| {
        let mut rng = ChaCha8Rng::seed_from_u64(100 + index);
        curve(batch, autoregressive(4_000, &mut rng))
    });
    for (k, hit) in hits {
        println!("AR(1) {k}: {hit:.3?}");
        assert!(hit.iter().all(|h| *h >= least), "{k}: {hit:?}");
    }
    // Heavy tails: Student's t with nine degrees of freedom, single samples.
    let heavy = single(NormScale::Fixed(1.0));
    let noise = StudentT::new(9.0, 1.0).unwrap();
    let draw = |steps: usize, mut rng: ChaCha8Rng| {
        (0..steps).map(|_| residual(&noise, 0.0, &mut rng).abs()).collect::<Vec<_>>()
    };
    let candidates = [20, 24, 28, 32, 34];
    let truth = curve(heavy, draw(4_000_000, ChaCha8Rng::seed_from_u64(4)).into_iter());
    let hits = coverage(runs, &truth, &candidates, |index| {
        curve(heavy, draw(4_000, ChaCha8Rng::seed_from_u64(1000 + index)).into_iter())
    });
    for (k, hit) in hits {
        println!("heavy {k}: {hit:.3?}");
        assert!(hit.iter().all(|h| *h >= least), "{k}: {hit:?}");
    }
}

/// In how many of `runs` clipping is advised.
fn advised(runs: u64, settings: MonitorSettings, steps: usize, noise: &dyn Noise) -> f64 {
    let clip = |index: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(5000 + index);
        let mut monitor = Monitor::new(settings).unwrap();
        (0..steps).for_each(|_| monitor.observe(residual(noise, 0.3, &mut rng).abs()));
        matches!(monitor.advice(), MonitorAdvice::Clip(_))
    };
    (0..runs).filter(|k| clip(*k)).count() as f64 / runs as f64
}

#[test]
fn a_gain_that_is_not_there_is_seldom_found() {
    let gaussian = Gaussian::new(1.0).unwrap();
    let settings = single(NormScale::default());
    assert_eq!(advised(400, settings, 2_000, &gaussian), 0.0);
    // Harder: even without a margin. Five of a hundred are allowed; of a true 5 % more than 9 % in
    // 400 runs is one of 4000.
    let none = MonitorSettings { margin: 0.0, ..settings };
    let rate = advised(400, none, 2_000, &gaussian);
    println!("Gaussian, no margin: {rate}");
    assert!(rate < 0.09, "{rate}");
    // Hardest: a margin that is exactly the gain of the best threshold there is, so that every
    // claim to exceed it is false.
    for (noise, name) in [
        (Box::new(Laplace::new(1.0).unwrap()) as Box<dyn Noise>, "Laplace"),
        (Box::new(Rademacher::new(5.0, 0.2).unwrap()), "Rademacher"),
    ] {
        let margin = best_threshold(&*noise, 0.3).unwrap().ccc - 1.0;
        let fixed = MonitorSettings { margin, ..single(NormScale::Fixed(1.0)) };
        let rate = advised(400, fixed, 2_000, &*noise);
        println!("{name}, margin {margin:.3}: {rate}");
        assert!(rate < 0.09, "{rate}");
    }
}

#[test]
fn a_gain_that_is_there_is_found() {
    let noise = Rademacher::new(5.0, 0.2).unwrap();
    let best = best_threshold(&noise, 0.3).unwrap();
    assert!(best.ccc > 2.0);
    assert!(advised(50, single(NormScale::default()), 2_000, &noise) > 0.95);
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let mut monitor = Monitor::new(single(NormScale::Fixed(1.0))).unwrap();
    (0..50_000).for_each(|_| monitor.observe(residual(&noise, 0.3, &mut rng).abs()));
    let MonitorAdvice::Clip(choice) = monitor.advice() else { panic!("{}", monitor.advice()) };
    assert!(
        choice.ccc.contains(Factors::new(&noise, 0.3, choice.threshold).unwrap().ccc().unwrap())
    );
    // The choice is nearly as good as the best there is.
    let chosen = Factors::new(&noise, 0.3, choice.threshold).unwrap().ccc().unwrap();
    assert!(chosen > 0.95 * best.ccc, "{chosen} of {}", best.ccc);
    assert!((choice.rate_factor * choice.mu - 1.0).abs() < 1e-12);
}

#[test]
fn a_small_gain_by_norms_alone_is_not_evidence() {
    // Laplace residuals: the best threshold gains some twenty percent at R = 0.
    let noise = Laplace::new(1.0).unwrap();
    let settings = MonitorSettings { margin: 1.0, ..single(NormScale::Fixed(1.0)) };
    let mut monitor = Monitor::new(settings).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    (0..50_000).for_each(|_| monitor.observe(residual(&noise, 0.0, &mut rng).abs()));
    let advice = monitor.advice();
    let MonitorAdvice::Stay(Reason::NormsAlone { best, margin }) = advice else {
        panic!("{advice}")
    };
    assert!(best.ccc.low > 1.0 && margin == 1.0 && best.evidence == Evidence::Norms);
    assert!(advice.to_string().contains("norms alone"), "{advice}");
}

#[test]
fn a_threshold_that_costs_is_loosened() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let settings = MonitorSettings { watched: Some(0.3), ..single(NormScale::default()) };
    let mut monitor = Monitor::new(settings).unwrap();
    (0..5_000).for_each(|_| monitor.observe(normal(&mut rng).abs()));
    let MonitorAdvice::Loosen(choice) = monitor.advice() else { panic!("{}", monitor.advice()) };
    assert!(choice.threshold > 2.0 && choice.gain.low > 1.0 && choice.rate_change < 0.5);
}

#[test]
fn the_rate_change_uses_the_threshold_in_force_at_the_present_scale() {
    // Norms with outliers fall by ten: a threshold of 0.3 clipped all of them at first, few now.
    let mut rng = ChaCha8Rng::seed_from_u64(13);
    let settings = MonitorSettings { watched: Some(0.3), ..single(NormScale::default()) };
    let mut monitor = Monitor::new(settings).unwrap();
    let noise = Rademacher::new(5.0, 0.2).unwrap();
    for k in 0..20_000 {
        let fall = (-f64::from(k) / 20_000.0 * 10.0_f64.ln()).exp();
        monitor.observe(fall * residual(&noise, 0.3, &mut rng).abs());
    }
    let MonitorAdvice::Clip(choice) = monitor.advice() else { panic!("{}", monitor.advice()) };
    let now = Factors::new(&noise, 0.3, 0.3 / 0.1).unwrap().mu;
    // Known to the scale's error of ten percent, and μ changes by half of it or less there.
    let want = now / choice.mu;
    assert!((choice.rate_change / want - 1.0).abs() < 0.05, "{} {want}", choice.rate_change);
    assert!(monitor.watched().unwrap().mu.value < 0.8 * now);
}

#[test]
fn a_distribution_that_changes_is_reported() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut monitor = Monitor::new(MonitorSettings::default()).unwrap();
    for k in 0..8_000 {
        let width = if k < 4_000 { 0.1 } else { 0.8 };
        monitor.observe((width * normal(&mut rng)).exp());
    }
    assert!(monitor.drift().unwrap().found());
    assert!(matches!(monitor.advice(), MonitorAdvice::Stay(Reason::Drift(_))));
    // Neighbours of the process above have correlation 0.9, which the running scale reduces
    // little; its standard error is 0.004 in 20 000 steps.
    let mut alike = Monitor::new(MonitorSettings::default()).unwrap();
    autoregressive(20_000, &mut rng).for_each(|norm| alike.observe(norm));
    let correlation = alike.drift().unwrap().correlation;
    assert!((0.87..0.91).contains(&correlation), "{correlation}");
    // A scale that falls by a hundred is followed, and is no change of the distribution.
    let found = |seed: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut monitor = Monitor::new(MonitorSettings::default()).unwrap();
        let fall = |k: i32| (-f64::from(k) / 4_000.0 * 100.0_f64.ln()).exp();
        (0..4_000).for_each(|k| monitor.observe(fall(k) * (0.3 * normal(&mut rng)).exp()));
        let drift = monitor.drift().unwrap();
        assert!((0.01..0.1).contains(&drift.scale_change), "{drift:?}");
        drift.found()
    };
    // At one percent, more than ten of 300 are one of a thousand.
    let count = (0..300).filter(|seed| found(10_000 + seed)).count();
    println!("drift found in {count} of 300");
    assert!(count <= 10, "{count}");
}

#[test]
fn the_tail_index_is_found_and_interpreted() {
    use toclip::monitor::SecondMoment;
    let draw = |alpha: f64, seed: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut monitor = Monitor::new(single(NormScale::Fixed(1.0))).unwrap();
        (0..20_000).for_each(|_| monitor.observe(rng.random::<f64>().powf(-1.0 / alpha)));
        monitor.tail().unwrap()
    };
    for (alpha, meaning) in [
        (1.5, SecondMoment::MayNotExist),
        (3.0, SecondMoment::SlowIntervals),
        (6.0, SecondMoment::Sound),
    ] {
        // Pareto from 1 on: Hill's estimator has no bias, its interval covers 95 %. Fewer than 85
        // of 100 are one of ten thousand.
        let hits = (0..100).filter(|s| draw(alpha, 700 + s).index.contains(alpha)).count();
        assert!(hits >= 86, "{alpha}: {hits}");
        assert_eq!(draw(alpha, 1).second_moment(), meaning);
    }
}

#[test]
fn a_second_hump_is_not_a_heavy_tail() {
    use toclip::monitor::SecondMoment;
    let mut monitor = Monitor::new(single(NormScale::Running(200.0))).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for _ in 0..20_000 {
        // 3 % of the norms are six times the rest; every moment exists.
        let hump = if rng.random::<f64>() < 0.03 { 6.0 } else { 1.0 };
        monitor.observe(hump * (0.2 * normal(&mut rng)).exp());
    }
    let tail = monitor.tail().unwrap();
    assert!(tail.index.low > 4.0 && tail.multiple > 3.0, "{tail:?}");
    assert_eq!(tail.second_moment(), SecondMoment::Sound);
}
