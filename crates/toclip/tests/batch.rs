//! The factors of batches against tables, definitions and simulation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::Deserialize;
use toclip::noise::{Family, Noise};
use toclip::{Batch, Factors, Rule, Step};

#[derive(Deserialize)]
struct Row {
    family: String,
    params: String,
    batch: u64,
    r: f64,
    c: f64,
    mu: f64,
    m2: f64,
    nu: Option<f64>,
}

fn noise(family: &str, params: &str) -> Family {
    let mut params: serde_json::Value = serde_json::from_str(params).unwrap();
    params["family"] = family.into();
    serde_json::from_value(params).unwrap()
}

fn factors(noise: &Family, batch: Batch, r: f64, c: f64) -> toclip::Result<Factors> {
    Factors::new(Step::new(noise).with_batch(batch)?, r, c)
}

/// The largest relative error over a table, which must be below `allowed`.
fn check_table(text: &str, allowed: f64, rows: usize) {
    let (mut worst, mut count) = ((0.0, String::new()), 0);
    for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let row: Row = row.unwrap();
        let noise = noise(&row.family, &row.params);
        let batch = Batch::mean(row.batch).unwrap();
        let got = factors(&noise, batch, row.r, row.c).unwrap();
        let off = |got: f64, want: f64| (got / want - 1.0).abs();
        let mut errors = vec![off(got.mu, row.mu), off(got.m2, row.m2)];
        errors.extend(row.nu.map(|nu| off(got.nu().unwrap(), nu)));
        let error =
            errors.into_iter().fold(0.0, |a: f64, b| if b >= a || b.is_nan() { b } else { a });
        let place = format!(
            "{} {} B = {} r = {} c = {}: {got:?}, not {} {}",
            row.family, row.params, row.batch, row.r, row.c, row.mu, row.m2
        );
        if !(error <= worst.0) {
            worst = (error, place);
        }
        count += 1;
    }
    println!("{count} rows, worst {:.1e} at {}", worst.0, worst.1);
    assert!(worst.0 <= allowed, "{:.1e} {}", worst.0, worst.1);
    assert_eq!(count, rows);
}

#[test]
fn the_published_table_is_met_to_ten_digits() {
    check_table(include_str!("data/batch_factors.csv"), 1e-10, 170);
}

/// Other families, and batches up to 1e5, by another method: `scripts/reference/batch.py`.
#[test]
fn a_table_by_another_road_is_met_to_nine_digits() {
    check_table(include_str!("data/batch_factors_wide.csv"), 1e-9, WIDE_ROWS);
}

const WIDE_ROWS: usize = 111;

/// A family, its parameters, and the power of its tail if the variance is infinite.
const LARGE_THRESHOLDS: [(&str, &str, Option<f64>); 10] = [
    ("gaussian", r#"{"sigma":1}"#, None),
    ("laplace", r#"{"sigma":1}"#, None),
    ("student_t", r#"{"df":2.5,"scale":1}"#, None),
    ("student_t", r#"{"df":1.5,"scale":1}"#, Some(1.5)),
    ("student_t", r#"{"df":0.5,"scale":1}"#, Some(0.5)),
    ("uniform", r#"{"sigma":1}"#, None),
    ("rademacher", r#"{"lambda":2,"p":0.2}"#, None),
    ("gaussian_mixture", r#"{"weights":[0.9,0.1],"means":[0,0],"stds":[0.2,3]}"#, None),
    ("gaussian_mixture", r#"{"weights":[0.9,0.1],"means":[0,4],"stds":[0.2,1]}"#, None),
    ("empirical", r#"{"values":[-1,0.3,2,-0.5,0.1]}"#, None),
];

/// $m^{(2)}$ of a clipped batch lies between those of one residual at two thresholds,
/// $\sum_i\min(X_i^2, c^2) \le \min(S, c^2N) \le \sum_i\min(X_i^2, c^2N)$. So as $c \to \infty$
/// clipping and skipping have no effect, and no method of computing them jumps. For a tail of power
/// $p$, skipping keeps $p/2$ times as much as clipping, or removes $p/2$ times as much.
#[test]
fn large_thresholds_are_those_of_one_residual() {
    for (family, params, power) in LARGE_THRESHOLDS {
        let noise = noise(family, params);
        for (n, r) in [(4, 0.1), (64, 3.0)] {
            let clip = Step::new(&noise).with_batch(Batch::mean(n).unwrap()).unwrap();
            let skip = clip.clone().with_rule(Rule::Skip).unwrap();
            let open = clip.second_moment(r);
            let (n, mut before) = (n as f64, [0.0; 2]);
            for k in 0..45 {
                let c = 10.0 * 10f64.powf(0.8 * f64::from(k));
                let place = || format!("{}, R = {r}, c = {c:e}", clip.describe());
                let clipped = Factors::new(&clip, r, c).unwrap();
                let [low, high] = [c, c * n.sqrt()].map(|c| noise.clipped(r, c).m2);
                let m2 = n * clipped.m2;
                assert!(m2 >= low * (1.0 - 1e-6), "{}: {m2} {low}", place());
                assert!(m2 <= high * (1.0 + 1e-6), "{}: {m2} {high}", place());
                assert!(clipped.m2 >= before[0] * (1.0 - 1e-9), "{}: {clipped:?}", place());
                before[0] = clipped.m2;
                // So far out the tail of such a noise still counts, and skipping is refused.
                if power.is_some() && c > 1e29 {
                    assert!(Factors::new(&skip, r, c).is_err() || c < 1e32, "{}", place());
                    continue;
                }
                let skipped = Factors::new(&skip, r, c).unwrap();
                assert!(skipped.m2 <= clipped.m2 * (1.0 + 1e-12), "{}: {skipped:?}", place());
                assert!(skipped.m2 >= before[1] * (1.0 - 1e-9), "{}: {skipped:?}", place());
                before[1] = skipped.m2;
                if let Some(power) = power.filter(|_| c > 1e12) {
                    let share = skipped.m2 / clipped.m2;
                    assert!((share / (0.5 * power) - 1.0).abs() < 1e-3, "{}: {share}", place());
                }
                if family == "student_t" && power.is_none() && (1e5..1e12).contains(&c) {
                    let taken = (open - skipped.m2) / (open - clipped.m2);
                    assert!((taken / 1.25 - 1.0).abs() < 1e-3, "{}: {taken}", place());
                }
            }
            if power.is_none() {
                for m2 in before {
                    assert!((m2 / open - 1.0).abs() < 1e-9, "{}: {m2} {open}", clip.describe());
                }
            }
        }
    }
}

#[test]
fn one_sample_is_the_single_sample_to_the_bit() {
    for text in FAMILIES {
        let noise: Family = serde_json::from_str(text).unwrap();
        for (r, c) in [(0.0, 0.3), (0.1, 1e-3), (2.0, 1.5), (1.0, f64::INFINITY)] {
            let plain = noise.clipped(r, c);
            for batch in [Batch::single(), Batch::mean(1).unwrap(), Batch::per_sample(1).unwrap()] {
                let step = Step::new(&noise).with_batch(batch).unwrap();
                assert_eq!(step.moments(r, c), plain);
            }
            let eight = factors(&noise, Batch::per_sample(8).unwrap(), r, c).unwrap();
            assert_eq!((eight.mu, eight.m2), (plain.mu, plain.m2 / 8.0));
        }
    }
}

/// The saddle of the contour was sought too near to a branch point: NaN at c = 1.59, R = 0.02.
#[test]
fn rademacher_like_noise_has_factors_at_every_threshold() {
    let noise: Family = serde_json::from_str(FAMILIES[2]).unwrap();
    for batch in [2, 3, 16] {
        for k in 0..400 {
            let c = 0.2 * 1.01f64.powi(k);
            for r in [0.004, 0.08, 1.2] {
                let at = factors(&noise, Batch::mean(batch).unwrap(), r, c);
                assert!(at.is_ok(), "B = {batch}, R = {r}, c = {c}: {at:?}");
            }
        }
    }
}

const FAMILIES: [&str; 8] = [
    r#"{"family":"none"}"#,
    r#"{"family":"gaussian","sigma":0.5}"#,
    r#"{"family":"rademacher","lambda":2.0,"p":0.25}"#,
    r#"{"family":"uniform","half_width":1.5}"#,
    r#"{"family":"laplace","sigma":0.8}"#,
    r#"{"family":"student_t","df":1.0,"scale":0.5}"#,
    r#"{"family":"gaussian_mixture","weights":[0.25,0.75],"means":[-1.0,1.0],"stds":[0.5,0.0]}"#,
    r#"{"family":"empirical","values":[-1.0,0.5,2.0,0.1,-0.3,0.7]}"#,
];

/// Every family against draws: a million residuals in batches, five standard errors. 8 families, 3
/// sizes, 2 thresholds and 2 moments: false alarm 6e-5 in all.
#[test]
fn every_family_agrees_with_its_own_samples() {
    for text in FAMILIES {
        let noise: Family = serde_json::from_str(text).unwrap();
        let r = 0.05f64;
        let mut rng = ChaCha8Rng::seed_from_u64(12);
        let residuals: Vec<f64> = (0..1 << 20)
            .map(|_| {
                let z: f64 = StandardNormal.sample(&mut rng);
                (2.0 * r).sqrt() * z - noise.sample(&mut rng)
            })
            .collect();
        for size in [2, 5, 64] {
            for c in [0.25, 0.9] {
                let n = size as f64;
                let a = c * c * n;
                let (mut mus, mut squares) = (Vec::new(), Vec::new());
                for batch in residuals.chunks_exact(size) {
                    let s: f64 = batch.iter().map(|x| x * x).sum();
                    mus.push(if s <= a { 1.0 } else { (1.0 - 1.0 / n) * (a / s).sqrt() });
                    squares.push(s.min(a) / (n * n));
                }
                let got = factors(&noise, Batch::mean(size as u64).unwrap(), r, c).unwrap();
                for (draws, got, largest) in [(mus, got.mu, 1.0), (squares, got.m2, a / (n * n))] {
                    let count = draws.len() as f64;
                    let mean = draws.iter().sum::<f64>() / count;
                    let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
                    // Events too rare to show in so many draws: fifteen are expected unseen once in
                    // 3e6.
                    let unseen = 15.0 / count * largest;
                    let error = (5.0 * (variance / count).sqrt()).max(unseen);
                    assert!(
                        (got - mean).abs() < error,
                        "{text} B = {size} c = {c}: {got}, {mean} ± {error}"
                    );
                }
            }
        }
    }
}

#[test]
fn limits_are_known() {
    for text in FAMILIES {
        let noise: Family = serde_json::from_str(text).unwrap();
        let second = 0.2 + noise.second_moment();
        for size in [2, 7, 1000, 100_000] {
            let batch = Batch::mean(size).unwrap();
            let at = |c: f64| factors(&noise, batch, 0.1, c).unwrap();
            // Without a threshold, and with one that nothing reaches.
            let n = size as f64;
            assert_eq!((at(f64::INFINITY).mu, at(f64::INFINITY).m2), (1.0, second / n));
            if second.is_finite() && !text.contains("student") {
                let far = at(1e3);
                assert!(
                    (far.mu - 1.0).abs() < 1e-12 && (far.m2 * n / second - 1.0).abs() < 1e-9,
                    "{text} {size} {far:?}"
                );
            }
            // μ ∝ c and m2 = c²/B where every batch is clipped. P(S ≤ a) ∝ c^B: for two samples
            // a share c² of μ.
            let (small, smaller) = (at(1e-4), at(1e-5));
            assert!(
                (small.mu / smaller.mu / 10.0 - 1.0).abs() < 1e-3,
                "{text} {size} {small:?} {smaller:?}"
            );
            assert!((small.m2 / (1e-8 / n) - 1.0).abs() < 1e-3, "{text} {size} {small:?}");
        }
        // Many samples: S/B is its mean, and clipping rescales.
        if second.is_finite() {
            let batch = Batch::mean(100_000).unwrap();
            let many = factors(&noise, batch, 0.1, 0.5 * second.sqrt()).unwrap();
            assert!((many.mu - 0.5).abs() < 0.01, "{text} {many:?}");
        }
    }
}

/// Relative errors of $\mu$ and $m^{(2)}$, the larger.
fn error(noise: &Family, size: u64, r: f64, c: f64, mu: f64, m2: f64) -> f64 {
    let got = factors(noise, Batch::mean(size).unwrap(), r, c).unwrap();
    let errors = [got.mu / mu - 1.0, got.m2 / m2 - 1.0].map(f64::abs);
    // A NaN is an error too.
    if errors[0] >= errors[1] { errors[0] } else { errors[1] }
}

/// A wide component that is rare, centred or with a tiny mean, which only changes the method.
///
/// Given that $k$ of $B$ are wide, $S$ is $\rho^2(\cos^2\theta + s^2\sin^2\theta)$ with $\rho^2$
/// from $\chi^2_B$ and a Beta distribution of $\sin^2\theta$: a binomial sum of integrals over
/// $\theta$ of incomplete gamma functions (scipy, 3000 nodes).
#[test]
fn rare_wide_components_are_not_overlooked() {
    for (size, p, std, c, mu, m2) in CONTAMINATED {
        for mean in [0.0, 1e-9] {
            let noise: Family = serde_json::from_value(serde_json::json!({
                "family": "gaussian_mixture", "weights": [1.0 - p, p], "means": [0.0, mean], "stds": [1.0, std]
            }))
            .unwrap();
            let off = error(&noise, size, 0.0, c, mu, m2);
            assert!(off < 1e-10, "B = {size}, p = {p}, std {std}, mean {mean}, c = {c}: {off:.1e}");
        }
    }
}

const CONTAMINATED: [(u64, f64, f64, f64, f64, f64); 10] = [
    (3, 0.0001, 10.0, 2.0, 0.9970254159207373, 0.3318257165284542),
    (2, 0.0001, 100.0, 3.0, 0.9997528597548061, 0.5007195797645106),
    (2, 0.003, 1000.0, 2.0, 0.9840972959835882, 0.4998685514138585),
    (3, 0.02, 30.0, 5.0, 0.9661314062358842, 0.7333446267297163),
    (7, 0.0001, 10.0, 2.0, 0.9997229577556942, 0.14306907415241332),
    (32, 0.003, 10.0, 1.0, 0.9172001020468254, 0.028384679045722946),
    (100, 0.0001, 100.0, 2.0, 0.9941598545448422, 0.010271064762342158),
    (2, 0.0001, 100.0, 1.5, 0.939480316868561, 0.44743405081949233),
    (3, 0.0001, 100.0, 1.5, 0.9667117155451029, 0.3137240948532118),
    (7, 0.003, 100.0, 2.0, 0.9822127885403801, 0.15153288304802237),
];

/// A threshold below the width of the model error, and outliers far beyond it: a binomial sum of
/// non-central $\chi^2$ distributions as Poisson mixtures of incomplete gamma functions (scipy).
#[test]
fn outliers_far_beyond_the_threshold_leave_ten_digits() {
    for (p, size, r, c, mu, m2) in OUTLIERS {
        let noise = noise("rademacher", &format!("{{\"lambda\":1.0,\"p\":{p}}}"));
        let off = error(&noise, size, r, c, mu, m2);
        assert!(off < 1e-10, "B = {size}, p = {p}, R = {r}, c = {c}: {off:.1e}");
    }
}

const OUTLIERS: [(f64, u64, f64, f64, f64, f64); 4] = [
    (0.1, 3, 0.005, 0.06, 0.4120285195828295, 0.0011164733568415268),
    (0.02, 2, 0.0005555555555555556, 0.02, 0.4932128732631821, 0.00016922647580076768),
    (0.3, 5, 0.005, 0.06, 0.16633769138458976, 0.0007150614904678881),
    (0.003, 16, 5e-05, 0.006, 0.5638068957244793, 2.247015361274334e-06),
];

/// $S$ of Student-t noise with $\nu = 0.1$ is all tail, $P(X^2 > x) = Cx^{-\alpha}$ with $\alpha =
/// 1/20$, so $E e^{-zX^2} = 1 - C^\prime z^\alpha$, $C^\prime = C\thinspace\Gamma(1-\alpha)$, and
/// $E S^{-1/2} = \frac{1}{\alpha\sqrt\pi} C^{\prime -10}\thinspace\mathrm{B}(10, B+1)$.
#[test]
fn the_heaviest_tails_come_to_an_end() {
    let heavy = noise("student_t", r#"{"df":0.1,"scale":0.5}"#);
    // C′ = 2Γ(0.55)/(√(0.1π)Γ(0.05)) 0.1^(−0.45) 0.5^0.1 Γ(0.95).
    let constant: f64 = 0.8033569110198219;
    for (size, allowed) in [(1000, 1e-10), (3000, 1e-7), (10_000, 1e-3)] {
        let n = size as f64;
        let beta = 362_880.0 / (1..=10).map(|i| n + f64::from(i)).product::<f64>();
        let inverse = 20.0 / std::f64::consts::PI.sqrt() * constant.powi(-10) * beta;
        let mu = (1.0 - 1.0 / n) * n.sqrt() * inverse;
        let off = error(&heavy, size, 0.1, 1.0, mu, 1.0 / n);
        assert!(off < allowed, "B = {size}: {off:.1e}");
    }
    for (df, size) in [(0.1, 100_000), (0.05, 1000), (0.05, 1_000_000_000)] {
        let heavy = noise("student_t", &format!("{{\"df\":{df},\"scale\":0.5}}"));
        let x = factors(&heavy, Batch::mean(size).unwrap(), 0.1, 1.0).unwrap();
        assert!((0.0..1e-30).contains(&x.mu), "{df} {size} {x:?}");
        assert!((x.m2 * size as f64 - 1.0).abs() < 1e-12, "{df} {size} {x:?}");
    }
}

/// The definition, over every sequence of draws.
fn all_draws(atoms: &[(f64, f64)], size: u32, c: f64) -> (f64, f64) {
    let (n, k) = (f64::from(size), atoms.len());
    let (mut mu, mut m2) = (0.0, 0.0);
    for way in 0..k.pow(size) {
        let drawn = (0..size).map(|i| atoms[way / k.pow(i) % k]);
        let (weight, s) = drawn.fold((1.0, 0.0), |(w, s), (p, x)| (w * p, s + x * x));
        let a = c * c * n;
        let clipped = s > a * (1.0 + 1e-12);
        mu += weight * if clipped { (1.0 - 1.0 / n) * (a / s).sqrt() } else { 1.0 };
        m2 += weight * s.min(a) / (n * n);
    }
    (mu, m2)
}

#[test]
fn atoms_are_drawn_exactly_where_there_is_no_model_error() {
    let third = 1.0 / 3.0;
    let cases = [
        (
            r#"{"family":"gaussian_mixture","weights":[0.3,0.7],"means":[-1.0,0.5],"stds":[0.0,0.0]}"#,
            vec![(0.3, -1.0), (0.7, 0.5)],
        ),
        (
            r#"{"family":"empirical","values":[-1.0,0.5,2.0]}"#,
            vec![(third, -1.0), (third, 0.5), (third, 2.0)],
        ),
        (
            r#"{"family":"empirical","values":[0.7,-0.7,0.7]}"#,
            vec![(2.0 * third, 0.7), (third, -0.7)],
        ),
    ];
    for (text, atoms) in cases {
        let noise: Family = serde_json::from_str(text).unwrap();
        for size in [2, 3, 7] {
            for c in [0.1, 0.49, 0.5, 0.51, 0.7, 1.0, 1.1, 1.5, 2.0, 2.1] {
                let (mu, m2) = all_draws(&atoms, size, c);
                let off = error(&noise, size.into(), 0.0, c, mu, m2);
                assert!(off < 1e-13, "{text} B = {size} c = {c}: {off:.1e}");
                // A model error far below the distances changes values away from a threshold by as
                // little.
                let clusters = (0..=size)
                    .flat_map(|i| (0..=size - i).map(move |j| (i, j, size - i - j)))
                    .any(|(i, j, k)| {
                        let s = [i, j, k]
                            .iter()
                            .zip(atoms.iter().cycle())
                            .fold(0.0, |s, (k, x)| s + f64::from(*k) * x.1 * x.1);
                        (s / (c * c * f64::from(size)) - 1.0).abs() < 1e-2
                    });
                if !clusters {
                    let off = error(&noise, size.into(), 1e-12, c, mu, m2);
                    assert!(off < 1e-9, "{text} B = {size} c = {c} next to R = 0: {off:.1e}");
                }
            }
        }
    }
}

#[test]
fn an_integral_without_an_end_is_an_error() {
    let text = r#"{"family":"gaussian_mixture","weights":[0.9999,0.0001],"means":[0.0,30.0],"stds":[0.0,0.01]}"#;
    let far: Family = serde_json::from_str(text).unwrap();
    let batch = Batch::mean(3).unwrap();
    let error = factors(&far, batch, 0.0, 1.5).unwrap_err().to_string();
    assert!(error.contains("R = 0, c = 1.5 did not converge"), "{error}");
    assert!(factors(&far, batch, 0.1, 1.5).is_ok());
}

/// $m^{(2)}$ has one unit, that of the step, in the factors and at the best threshold.
#[test]
fn the_second_moment_is_that_of_the_step_everywhere() {
    let noise = noise("rademacher", r#"{"sigma":0.8,"p":0.2}"#);
    for batch in [Batch::single(), Batch::mean(3).unwrap(), Batch::per_sample(7).unwrap()] {
        let step = Step::new(&noise).with_batch(batch).unwrap();
        let best = toclip::criteria::best_threshold(&step, 0.1).unwrap();
        let at = Factors::new(&step, 0.1, best.c).unwrap();
        assert_eq!((best.mu, best.m2), (at.mu, at.m2));
        assert!((best.efficiency * at.m2 / (at.mu * at.mu) - 1.0).abs() < 1e-12, "{best:?}");
    }
}

#[test]
fn a_noise_without_squared_residuals_has_no_batches() {
    #[derive(Debug)]
    struct Plain(Family);
    impl Noise for Plain {
        fn describe(&self) -> String {
            self.0.describe()
        }
        fn sample(&self, rng: &mut dyn Rng) -> f64 {
            self.0.sample(rng)
        }
        fn mean(&self) -> Option<f64> {
            self.0.mean()
        }
        fn second_moment(&self) -> f64 {
            self.0.second_moment()
        }
        fn clipped(&self, r: f64, c: f64) -> toclip::Moments {
            self.0.clipped(r, c)
        }
        fn features(&self, r: f64) -> Vec<toclip::noise::Feature> {
            self.0.features(r)
        }
    }
    let plain = Plain(noise("gaussian", r#"{"sigma":1.0}"#));
    let error = Step::new(&plain).with_batch(Batch::mean(4).unwrap()).unwrap_err().to_string();
    assert!(error.contains("Noise::squared_residual"), "{error}");
    assert!(Step::new(&plain).with_batch(Batch::per_sample(4).unwrap()).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// In range, and growing with the threshold, for any family, size and threshold.
    #[test]
    fn factors_stay_in_range_and_grow_with_the_threshold(
        which in 0..FAMILIES.len(), log_b in 0.4..11.5f64, log_r in -5.0..2.0f64, log_c in -3.0..2.0f64, wider in 1.0..3.0f64
    ) {
        let noise: Family = serde_json::from_str(FAMILIES[which]).unwrap();
        let (r, c) = (10f64.powf(log_r), 10f64.powf(log_c));
        let batch = Batch::mean(log_b.exp() as u64).unwrap();
        let (at, above) = (
            factors(&noise, batch, r, c).unwrap(),
            factors(&noise, batch, r, wider * c).unwrap(),
        );
        let n = batch.size() as f64;
        for x in [at, above] {
            prop_assert!(x.mu > 0.0 && x.mu <= 1.0, "{x:?}");
            prop_assert!(x.m2 > 0.0 && x.m2 <= x.c * x.c / n * (1.0 + 1e-12) && x.m2 <= x.second_moment * (1.0 + 1e-12), "{x:?}");
        }
        prop_assert!(at.mu <= above.mu * (1.0 + 1e-7), "{batch} {at:?} {above:?}");
        prop_assert!(at.m2 <= above.m2 * (1.0 + 1e-7), "{batch} {at:?} {above:?}");
    }
}
