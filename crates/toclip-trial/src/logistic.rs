//! The population risk of logistic regression on Gaussian features, in one integral.

use toclip::internals::{FRAC_1_SQRT_2PI, phi};
use toclip::internals::{half_line, panels_from};

/// $L(\theta) - \min L$ for labels drawn from a logistic model and flipped with probability $p$.
///
/// With $a = \langle x, \theta\rangle$, $b = \langle x, \theta^\ast\rangle$ and
/// $q(b) = p + (1 - 2p)\thinspace\sigma(b)$ the probability of the label one, the risk is
/// $E\log(1 + e^a) - E\[q(b)\thinspace a\]$. The first term depends on $\Vert\theta\Vert_K$ alone;
/// the second is, by Stein's lemma, $(1 - 2p)\thinspace E\sigma^\prime(b)\thinspace
/// \langle\theta, \theta^\ast\rangle_K$. So the minimum lies on the ray of $\theta^\ast$, nearer to
/// zero the more labels are flipped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Logistic {
    /// $p$.
    pub flip: f64,
    /// $(1 - 2p)\thinspace E\sigma^\prime(b)$.
    slope: f64,
    /// $\min L$.
    least: f64,
}

impl Logistic {
    /// For $\Vert\theta^\ast\Vert_K$ = `margin` and $0 \le p < 1/2$.
    pub fn new(margin: f64, flip: f64) -> Self {
        let slope = (1.0 - 2.0 * flip) * mean_slope(margin);
        // Along the ray the derivative of L is s E σ'(sz) - slope margin, which increases with s
        // and is not negative at the margin.
        let (mut low, mut high) = (0.0, margin);
        for _ in 0..100 {
            let s = 0.5 * (low + high);
            if s * mean_slope(s) < slope * margin { low = s } else { high = s }
        }
        let s = 0.5 * (low + high);
        Logistic { flip, slope, least: mean_softplus(s) - slope * s * margin }
    }

    /// The probability $q(b)$ of the label one.
    pub fn probability(&self, b: f64) -> f64 {
        self.flip + (1.0 - 2.0 * self.flip) * sigmoid(b)
    }

    /// The derivatives of the risk in $\theta = \alpha\theta^\ast/\Vert\theta^\ast\Vert_K + \beta
    /// e$, with $e$ of norm one across: $\alpha E\sigma^\prime(a) - (1 - 2p) E\sigma^\prime(b)
    /// \Vert\theta^\ast\Vert_K$ and $\beta E\sigma^\prime(a)$.
    pub fn descent(&self, [alpha, beta]: [f64; 2], margin: f64) -> [f64; 2] {
        let slope = mean_slope(alpha.hypot(beta));
        [alpha * slope - self.slope * margin, beta * slope]
    }

    /// The excess risk at $\Vert\theta\Vert_K$ = `norm` and $\langle\theta, \theta^\ast\rangle_K$ =
    /// `inner`.
    pub fn excess(&self, norm: f64, inner: f64) -> f64 {
        // Rounding must not make it negative at the minimum.
        (mean_softplus(norm) - self.slope * inner - self.least).max(0.0)
    }
}

/// $\sigma(a) = 1/(1 + e^{-a})$.
pub(crate) fn sigmoid(a: f64) -> f64 {
    1.0 / (1.0 + (-a).exp())
}

/// $E\log(1 + e^{sz})$, by $\log(1 + e^u) + \log(1 + e^{-u}) = |u| + 2\log(1 + e^{-|u|})$.
fn mean_softplus(s: f64) -> f64 {
    let [tail] = half_line(|z| [phi(z) * (-s * z).exp().ln_1p()], &points(s));
    s * FRAC_1_SQRT_2PI + 2.0 * tail
}

/// $E\sigma^\prime(sz)$, by the trapezoidal rule.
///
/// The integrand is analytic in a strip, with double poles at $sz = \pm i\pi$: in the wider of the
/// two variables $z$ and $sz$ steps of $h = 0.4$ leave an error of about $(2\pi/h)\thinspace
/// e^{-2\pi^2/h}$, times the growth $e^{\pi^2/2}$ of the normal density there: $10^{-18}$.
fn mean_slope(s: f64) -> f64 {
    let slope = |u: f64| {
        let small = (-u).exp();
        small / (1.0 + small).powi(2)
    };
    // Beyond, φ(z) or σ'(u) has vanished to rounding.
    let (width, last) = if s <= 1.0 { (1.0, 23) } else { (1.0 / s, 93) };
    let at = |k: i32| {
        let x = 0.4 * f64::from(k);
        if s <= 1.0 { phi(x) * slope(s * x) } else { phi(x / s) * slope(x) }
    };
    0.4 * width * (at(0) + 2.0 * (1..=last).map(at).sum::<f64>())
}

/// Where the integrand changes: within $1/s$ of zero, and over the width of the normal
/// distribution.
fn points(s: f64) -> Vec<f64> {
    panels_from(0.0, vec![1.0 / s, 4.0 / s, 1.0, 3.0, 6.0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;
    use toclip::internals::Normals;
    use toclip::internals::{Purpose, scalar_rng};

    #[test]
    fn risk_is_that_of_drawn_samples() {
        // Ten points of (norm, cosine) and two shares of flips, 200 000 samples each; the mean
        // excess over the loss at zero within 4.9 standard errors: false alarm 1e-6 each.
        for flip in [0.0, 0.3] {
            let margin = 3.0;
            let model = Logistic::new(margin, flip);
            let at_zero = model.excess(0.0, 0.0);
            for (k, norm) in [0.1, 1.0, 3.0, 8.0, 40.0].into_iter().enumerate() {
                for (j, cosine) in [-0.5, 0.9].into_iter().enumerate() {
                    let index = (10 * k + j) as u64;
                    let mut normals = Normals::new(5, index, Purpose::Along);
                    let mut uniform = scalar_rng(5, index, Purpose::Noise);
                    let n = 200_000;
                    let (mut sum, mut squares) = (0.0, 0.0);
                    for _ in 0..n {
                        let mut z = [0.0; 2];
                        normals.fill(&mut z);
                        let b = margin * z[0];
                        let a = norm * (cosine * z[0] + (1.0_f64 - cosine * cosine).sqrt() * z[1]);
                        // The label of the model, and whether it is flipped.
                        let label = uniform.random::<f64>() < sigmoid(b);
                        let label = label != (uniform.random::<f64>() < flip);
                        let signed = if label { a } else { -a };
                        let loss = (-signed).max(0.0) + (-signed.abs()).exp().ln_1p();
                        sum += loss;
                        squares += loss * loss;
                    }
                    let mean = sum / f64::from(n);
                    let error = ((squares / f64::from(n) - mean * mean) / f64::from(n)).sqrt();
                    let expected =
                        model.excess(norm, norm * margin * cosine) - at_zero + 2.0_f64.ln();
                    assert!(
                        (mean - expected).abs() < 4.9 * error,
                        "{norm} {cosine}: {mean} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn slopes_are_those_of_the_risk() {
        for s in [0.01, 0.5, 1.0, 1.01, 3.0, 30.0] {
            let density = |z: f64| [phi(z) * sigmoid(s * z) * sigmoid(-s * z)];
            let adaptive = 2.0 * half_line(density, &points(s))[0];
            assert!((mean_slope(s) / adaptive - 1.0).abs() < 1e-13, "{s}");
        }
        let model = Logistic::new(2.5, 0.1);
        let risk = |a: f64, b: f64| model.excess(a.hypot(b), a * 2.5);
        for [a, b] in [[0.3, 0.2], [1.5, 0.7], [4.0, 3.0]] {
            let [da, db] = model.descent([a, b], 2.5);
            let h = 1e-4;
            assert!((da - (risk(a + h, b) - risk(a - h, b)) / (2.0 * h)).abs() < 1e-8);
            assert!((db - (risk(a, b + h) - risk(a, b - h)) / (2.0 * h)).abs() < 1e-8);
        }
    }

    #[test]
    fn without_flips_the_minimum_is_the_truth() {
        let model = Logistic::new(3.0, 0.0);
        assert!(model.excess(3.0, 9.0) < 1e-14);
        for s in [2.9, 3.1] {
            assert!(model.excess(s, 3.0 * s) > 1e-5);
        }
    }

    #[test]
    fn flips_move_the_minimum_towards_zero_and_nothing_lies_below_it() {
        let model = Logistic::new(3.0, 0.3);
        let along = |s: f64| model.excess(s, 3.0 * s);
        let scan: Vec<(f64, f64)> =
            (0..600).map(|k| 0.005 * f64::from(k)).map(|s| (s, along(s))).collect();
        let best = scan.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert!(best.0 > 0.3 && best.0 < 2.0 && best.1 < 1e-5, "{best:?}");
        assert!(model.excess(best.0, 0.9 * 3.0 * best.0) > 1e-3);
    }
}
