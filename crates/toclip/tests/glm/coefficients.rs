//! The coefficients of generalised linear models against a table of 32 digits.

use proptest::prelude::*;
use rand::Rng;
use serde::Deserialize;
use toclip::model::{Logistic, Model, Overlaps, calibration_slope};

#[derive(Deserialize)]
struct Row {
    model: String,
    flips: f64,
    q: f64,
    p: f64,
    v: f64,
    c: f64,
    a: f64,
    b: f64,
    m2: f64,
}

#[test]
fn the_reference_table_is_met_to_ten_digits() {
    let text = include_str!("../data/glm.csv");
    let (mut rows, mut worst) = (0, (0.0_f64, String::new()));
    for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let row: Row = row.expect("a row of the table");
        assert_eq!(row.model, "logistic");
        let model = Logistic::new(row.flips).unwrap();
        let at = Overlaps::new(row.q, row.p, row.v).unwrap();
        let got = model.coefficients(&at, row.c);
        for (name, got, want) in [("a", got.a, row.a), ("b", got.b, row.b), ("m2", got.m2, row.m2)]
        {
            // Ten digits, or 1e-14 for tiny values.
            let off = (got - want).abs() / want.abs().max(1e-4);
            let place = format!("{} {} {at:?} c = {}", row.model, row.flips, row.c);
            let found = format!("{place}: {name} = {got:e}, not {want:e}");
            assert!(off < 1e-10, "{found}");
            if off > worst.0 {
                worst = (off, found);
            }
        }
        rows += 1;
    }
    println!("worst of {rows} rows: {worst:?}");
    assert_eq!(rows, 66);
}

/// The definitions again, by a plain tensor rule: Gauss–Hermite nodes from the recurrence, without
/// clipping and so without kinks.
fn gauss_hermite(n: usize) -> Vec<(f64, f64)> {
    // Zeros of He_n by bisection between those of He_(n-1); weights (n-1)!/(n He_(n-1)²), scaled.
    let value = |n: usize, x: f64| {
        let (mut below, mut here) = (0.0, 1.0);
        for k in 0..n {
            let next = (x * here - (k as f64).sqrt() * below) / ((k + 1) as f64).sqrt();
            (below, here) = (here, next);
        }
        (here, below)
    };
    let mut zeros: Vec<f64> = Vec::new();
    for k in 1..=n {
        let far = 2.0 * (k as f64).sqrt() + 1.0;
        let mut ends = vec![-far];
        ends.extend(&zeros);
        ends.push(far);
        zeros = ends
            .windows(2)
            .map(|w| {
                let (mut low, mut high) = (w[0], w[1]);
                let sign = value(k, low).0.signum();
                for _ in 0..80 {
                    let middle = 0.5 * (low + high);
                    if value(k, middle).0 * sign > 0.0 {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                0.5 * (low + high)
            })
            .collect();
    }
    // Orthonormal polynomials: w = 1/(n h_(n-1)²).
    zeros.into_iter().map(|x| (x, 1.0 / (n as f64 * value(n, x).1.powi(2)))).collect()
}

#[test]
fn unclipped_coefficients_are_those_of_a_plain_tensor_rule() {
    let rule = gauss_hermite(60);
    assert!((rule.iter().map(|(x, w)| w * x * x).sum::<f64>() - 1.0).abs() < 1e-12);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    for (q, p, v, flips) in
        [(0.5, 0.3, 1.0, 0.0), (2.0, 1.5, 3.0, 0.1), (1.0, -0.5, 2.0, 0.3), (3.0, 3.0, 3.5, 0.0)]
    {
        let at = Overlaps::new(q, p, v).unwrap();
        let (root, spread) = (q.sqrt(), (v - p * p / q).sqrt());
        // The known unclipped equations: a = E σ'(u), b = -(1-2ρ) E σ'(v), m2 = E (σ(u) - y)².
        let (mut a, mut b, mut m2) = (0.0, 0.0, 0.0);
        for &(x, wx) in &rule {
            for &(z, wz) in &rule {
                let (u, v) = (root * x, p / root * x + spread * z);
                let (s, t) = (sigmoid(u), sigmoid(v));
                let one = flips + (1.0 - 2.0 * flips) * t;
                a += wx * wz * s * (1.0 - s);
                b -= wx * wz * (1.0 - 2.0 * flips) * t * (1.0 - t);
                m2 += wx * wz * (s * s - 2.0 * s * one + one);
            }
        }
        let got = Logistic::new(flips).unwrap().coefficients(&at, f64::INFINITY);
        for (got, want) in [(got.a, a), (got.b, b), (got.m2, m2)] {
            assert!((got - want).abs() < 2e-9, "{at:?}: {got} {want}");
        }
    }
}

/// Logistic regression as a user would write it, without closed forms.
#[derive(Debug)]
struct Plain(Logistic);

impl Model for Plain {
    fn describe(&self) -> String {
        self.0.describe()
    }
    fn loss(&self, u: f64, y: f64) -> f64 {
        self.0.loss(u, y)
    }
    fn residual(&self, u: f64, y: f64) -> f64 {
        self.0.residual(u, y)
    }
    fn residual_slope(&self, u: f64, y: f64) -> f64 {
        self.0.residual_slope(u, y)
    }
    fn labels(&self, v: f64) -> Vec<toclip::model::Label> {
        self.0.labels(v)
    }
    fn sample(&self, v: f64, rng: &mut dyn Rng) -> f64 {
        self.0.sample(v, rng)
    }
}

#[test]
fn a_model_of_the_user_has_the_same_coefficients() {
    for (flips, q, p, v, c) in [
        (0.1, 2.0, 1.5, 3.0, 0.4),
        (0.0, 0.5, 0.2, 9.0, 0.7),
        (0.2, 1.0, 2.0, 4.0, 0.3),
        (0.1, 0.0, 0.0, 4.0, 0.6),
    ] {
        let (model, at) = (Logistic::new(flips).unwrap(), Overlaps::new(q, p, v).unwrap());
        let (closed, plain) = (model.coefficients(&at, c), Plain(model).coefficients(&at, c));
        for (x, y) in [(closed.a, plain.a), (closed.b, plain.b), (closed.m2, plain.m2)] {
            assert!((x - y).abs() < 1e-11, "{at:?} c = {c}: {closed:?} {plain:?}");
        }
        let (closed, plain) = (model.expected_loss(&at), Plain(model).expected_loss(&at));
        assert!((closed - plain).abs() < 1e-11, "{at:?}: {closed} {plain}");
    }
}

/// Random covariances of logits.
fn overlaps() -> impl Strategy<Value = Overlaps> {
    (-4.0..2.5f64, -2.0..2.5f64, -1.0..1.0f64).prop_map(|(q, v, correlation)| {
        let (q, v) = (10_f64.powf(q), 10_f64.powf(v));
        Overlaps::new(q, correlation * (q * v).sqrt(), v).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn thresholds_of_one_and_more_clip_no_logistic_residual(
        at in overlaps(), flips in 0.0..0.5f64, c in 1.0..5.0f64,
    ) {
        let model = Logistic::new(flips).unwrap();
        prop_assert_eq!(model.coefficients(&at, c), model.coefficients(&at, f64::INFINITY));
    }

    #[test]
    fn labels_flipped_half_of_the_time_say_nothing(at in overlaps(), c in 0.01..2.0f64) {
        prop_assert_eq!(Logistic::new(0.5).unwrap().coefficients(&at, c).b, 0.0);
    }

    /// More of everything with a larger threshold, within the bounds of the residuals.
    #[test]
    fn coefficients_are_monotone_and_bounded(
        at in overlaps(), flips in 0.0..0.5f64, c in 0.01..0.99f64, more in 1.0..3.0f64,
    ) {
        let model = Logistic::new(flips).unwrap();
        let (low, high) = (model.coefficients(&at, c), model.coefficients(&at, more * c));
        // To the accuracy of the integrals.
        prop_assert!(low.a >= 0.0 && low.a <= high.a + 1e-10, "{low:?} {high:?}");
        prop_assert!(low.b <= 0.0 && low.b >= high.b - 1e-10, "{low:?} {high:?}");
        prop_assert!(low.m2 >= 0.0 && low.m2 <= high.m2 + 1e-10, "{low:?} {high:?}");
        prop_assert!(low.m2 <= c * c * (1.0 + 1e-10), "{low:?}");
        // b² ≤ m2 · E[(∂ ln P(y|v))²], by Cauchy and Schwarz; the score is below one for logistic.
        prop_assert!(low.b * low.b <= low.m2 * (1.0 + 1e-10), "{low:?}");
    }

    /// The closed forms agree with the derivatives of the loss: ∂_Q E ℓ = a/2 and
    /// ∂_P E ℓ = b, without clipping.
    #[test]
    fn the_coefficients_are_derivatives_of_the_loss(at in overlaps(), flips in 0.0..0.5f64) {
        prop_assume!(at.correlation().abs() < 0.99);
        let model = Logistic::new(flips).unwrap();
        let x = model.coefficients(&at, f64::INFINITY);
        let h = 1e-4;
        let loss = |dq: f64, dp: f64| {
            let (q, p) = (at.q * (1.0 + dq), at.p + dp * (at.q * at.v).sqrt());
            model.expected_loss(&Overlaps::new(q, p, at.v).unwrap())
        };
        let by_q = (loss(h, 0.0) - loss(-h, 0.0)) / (2.0 * h * at.q);
        let by_p = (loss(0.0, h) - loss(0.0, -h)) / (2.0 * h * (at.q * at.v).sqrt());
        let noise = 1e-11 / (h * at.q.min((at.q * at.v).sqrt()));
        prop_assert!((by_q - 0.5 * x.a).abs() < 1e-6 * x.a + noise, "{} {}", by_q, 0.5 * x.a);
        prop_assert!((by_p - x.b).abs() < 1e-6 * x.b.abs() + noise, "{} {}", by_p, x.b);
    }

    #[test]
    fn calibrated_logits_fit_the_labels(at in overlaps(), flips in 0.0..0.4f64) {
        let model = Logistic::new(flips).unwrap();
        let slope = calibration_slope(&model, &at).unwrap();
        // Logits multiplied by the slope are calibrated.
        let scaled = Overlaps::new(at.q * slope * slope, at.p * slope, at.v).unwrap();
        if slope.abs() > 1e-6 {
            let again = calibration_slope(&model, &scaled).unwrap();
            prop_assert!((again - 1.0).abs() < 1e-7, "{} {}", slope, again);
        }
        // And the loss cannot be lowered by scaling.
        for factor in [0.99, 1.01] {
            let other =
                Overlaps::new(scaled.q * factor * factor, scaled.p * factor, scaled.v).unwrap();
            prop_assert!(model.expected_loss(&other) >= model.expected_loss(&scaled) - 1e-12);
        }
    }

    #[test]
    fn error_rates_are_those_of_the_definition(at in overlaps(), flips in 0.0..0.5f64) {
        let model = Logistic::new(flips).unwrap();
        let rate = model.error_rate(&at).unwrap();
        prop_assert!((0.0..=1.0).contains(&rate));
        // Against the sign of the teacher's logit it is angle/π: labels are noisier than that.
        let sign = at.angle() / std::f64::consts::PI;
        prop_assert!((rate - 0.5).abs() <= (sign - 0.5).abs() + 1e-12);
        prop_assert!((rate - 0.5) * (sign - 0.5) >= 0.0);
    }
}

#[test]
fn error_rates_by_simulation() {
    use rand::{RngExt, SeedableRng};
    use rand_distr::{Distribution, StandardNormal};
    // 200,000 draws: five standard errors are 0.0056, a false alarm of 6e-7.
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(16);
    let at = Overlaps::new(2.0, 3.0, 9.0).unwrap();
    let draws = 200_000;
    let mut wrong = 0;
    for _ in 0..draws {
        let (x, z): (f64, f64) = (StandardNormal.sample(&mut rng), StandardNormal.sample(&mut rng));
        let u = at.q.sqrt() * x;
        let v = at.p / at.q * u + (at.v - at.p * at.p / at.q).sqrt() * z;
        let chance: f64 = rng.random();
        wrong += i32::from((u > 0.0) != (chance < 1.0 / (1.0 + (-v).exp())));
    }
    let rate = Logistic::new(0.3).unwrap().error_rate(&at).unwrap();
    let seen = f64::from(wrong) / f64::from(draws);
    assert!((seen - rate).abs() < 0.0056, "{seen} {rate}");
}

#[test]
fn impossible_models_and_overlaps_are_refused() {
    assert!(Logistic::new(0.6).unwrap_err().to_string().contains("between 0 and 0.5"));
    assert!(Logistic::new(f64::NAN).is_err());
    assert!(Overlaps::new(-1.0, 0.0, 1.0).unwrap_err().to_string().contains("Q = -1"));
    assert!(Overlaps::new(1.0, 2.0, 1.0).unwrap_err().to_string().contains("P = 2"));
}

#[test]
fn the_loss_of_huber_regression_is_its_definition() {
    use std::sync::Arc;
    use toclip::model::Huber;
    use toclip::noise::{Gaussian, StudentT};
    // Gaussian residuals of variance s² = Q - 2P + V + σ², against the integral over their density.
    let at = Overlaps::new(0.5, 0.6, 1.0).unwrap();
    let s = (0.3 + 0.25_f64).sqrt();
    for delta in [0.2, 0.8, 3.0] {
        let model = Huber::new(Arc::new(Gaussian::new(0.5).unwrap()), delta).unwrap();
        let (n, far) = (200_000, 10.0 * s);
        let h = far / f64::from(n);
        let density =
            |x: f64| (-0.5 * (x / s).powi(2)).exp() / (s * (2.0 * std::f64::consts::PI).sqrt());
        let sum: f64 =
            (0..n).map(|k| (f64::from(k) + 0.5) * h).map(|x| model.loss(x, 0.0) * density(x)).sum();
        let (got, want) = (model.expected_loss(&at), 2.0 * h * sum);
        assert!((got / want - 1.0).abs() < 1e-8, "delta = {delta}: {got} {want}");
    }
    let cauchy = Huber::new(Arc::new(StudentT::new(1.0, 0.5).unwrap()), 1.0).unwrap();
    assert_eq!(cauchy.expected_loss(&at), f64::INFINITY);
    let heavy = Huber::new(Arc::new(StudentT::new(2.5, 0.5).unwrap()), 1.0).unwrap();
    assert!(heavy.expected_loss(&at) > 0.2 && heavy.expected_loss(&at) < 0.6);
}

/// At risk `r`.
fn at_risk(r: f64) -> Overlaps {
    Overlaps::new(2.0 * r, 0.0, 0.0).unwrap()
}

#[test]
fn tabulated_losses_of_huber_regression_are_exact_to_ten_digits() {
    use std::sync::Arc;
    use toclip::model::Huber;
    use toclip::noise::{NoNoise, StudentT};
    // Integrated over the density of the residual, without a table.
    for (df, risks, losses) in [
        (2.0, [5.0, 4.5, 4.05], [2.237509691993275, 2.1160373900770386, 2.0014426602680677]),
        (1.2, [5.0, 4.5, 4.05], [3.367851223925185, 3.252095736709372, 3.143085424153017]),
    ] {
        let model = Huber::new(Arc::new(StudentT::new(df, 0.5).unwrap()), 1.0).unwrap();
        for (r, want) in risks.into_iter().zip(losses) {
            let got = model.expected_loss(&at_risk(r));
            assert!((got / want - 1.0).abs() < 1e-10, "df = {df}, R = {r}: {got} {want}");
        }
    }
    // Without noise a loss far below the corner is R, and far above it δ E|X|.
    let model = Huber::new(Arc::new(NoNoise), 1.0).unwrap();
    for r in [1e-12, 1e-6, 1e-4, 5e-3] {
        let got = model.expected_loss(&at_risk(r));
        assert!((got / r - 1.0).abs() < 1e-10, "R = {r}: {got}");
    }
    let s = 1e6_f64;
    // E|X| - 1/2 + P(|X| < 1)/6 to first order in 1/s.
    let far = (2.0 / std::f64::consts::PI).sqrt() * (s + 1.0 / (6.0 * s)) - 0.5;
    let got = model.expected_loss(&at_risk(0.5 * s * s));
    assert!((got / far - 1.0).abs() < 1e-10, "{got} {far}");
}
