//! The distribution of weight and buffer after a time in which nothing else changes.

use super::forces::Forces;

/// $(\theta, M) \leftarrow \Phi\thinspace(\theta, M) + L\xi$ with $\xi$ standard normal: the solution of
/// $$ d\theta = -\eta p\thinspace M\thinspace dt, \qquad dM = (\delta\mu\lambda\thinspace\theta - \delta p\thinspace M)\thinspace dt +
/// \delta\sqrt{\lambda m^{(2)}/d}\thinspace dB $$
/// with $\eta, p, \mu, m^{(2)}$ held fixed, an Ornstein–Uhlenbeck process in two dimensions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Transition {
    /// $\Phi = e^{Ah}$.
    map: [[f64; 2]; 2],
    /// $L$: $M$ gets the first of $\xi$, $\theta$ both.
    to_m: f64,
    to_theta: [f64; 2],
}

/// Below this size of $Ah$ the series converge to rounding with [`TERMS`] terms.
const SMALL: f64 = 0.0625;
const TERMS: usize = 8;

impl Transition {
    /// Over a time $h$: series for a time so short that they converge, then doubled.
    ///
    /// The covariance $\Sigma = \int_0^h e^{As} Q e^{A^\top s}\thinspace ds$ doubles as $\Sigma + \Phi\Sigma\Phi^\top$,
    /// so that it is a sum of positive parts and loses no digits, whatever the sign of $\mu$.
    pub fn exact(f: &Forces, lambda: f64, dim: f64, h: f64) -> Self {
        let (learn, heat) = (f.learn * lambda, f.noise * lambda / dim);
        let size = (f.forget + f.follow.max(learn.abs())) * h;
        let doublings = if size > SMALL { (size / SMALL).log2().ceil() as u32 } else { 0 };
        let s = h * 0.5_f64.powi(doublings as i32);
        // A times a column, and A times a symmetric matrix plus its transpose: the slope of the
        // second moments of the pair.
        let column = |[t, m]: [f64; 2]| [-f.follow * m, learn * t - f.forget * m];
        let moments = |[tt, tm, mm]: [f64; 3]| {
            [
                -2.0 * f.follow * tm,
                learn * tt - f.forget * tm - f.follow * mm,
                2.0 * (learn * tm - f.forget * mm),
            ]
        };
        let (mut columns, mut terms) = ([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]);
        let (mut covariance, mut part) = ([0.0, 0.0, heat * s], [0.0, 0.0, heat * s]);
        for n in 1..=TERMS {
            let share = s / n as f64;
            for (sum, term) in columns.iter_mut().zip(&mut terms) {
                *term = column(*term).map(|x| x * share);
                *sum = [sum[0] + term[0], sum[1] + term[1]];
            }
            part = moments(part).map(|x| x * s / (n + 1) as f64);
            for (sum, term) in covariance.iter_mut().zip(part) {
                *sum += term;
            }
        }
        let [[a, c], [b, d]] = columns;
        let mut map = [[a, b], [c, d]];
        for _ in 0..doublings {
            let [[a, b], [c, d]] = map;
            let [tt, tm, mm] = covariance;
            covariance = [
                tt + (a * a * tt + 2.0 * a * b * tm + b * b * mm),
                tm + (a * c * tt + (a * d + b * c) * tm + b * d * mm),
                mm + (c * c * tt + 2.0 * c * d * tm + d * d * mm),
            ];
            let (trace, determinant) = (a + d, a * d - b * c);
            map = [[a * trace - determinant, b * trace], [c * trace, d * trace - determinant]];
        }
        Self::with(map, covariance)
    }

    /// One step of Euler and Maruyama.
    pub fn euler(f: &Forces, lambda: f64, dim: f64, h: f64) -> Self {
        let map = [[1.0, -f.follow * h], [f.learn * lambda * h, 1.0 - f.forget * h]];
        Self::with(map, [0.0, 0.0, f.noise * lambda / dim * h])
    }

    fn with(map: [[f64; 2]; 2], [tt, tm, mm]: [f64; 3]) -> Self {
        let to_m = mm.max(0.0).sqrt();
        let shared = if to_m > 0.0 { tm / to_m } else { 0.0 };
        let own = (tt - shared * shared).max(0.0).sqrt();
        Transition { map, to_m, to_theta: [shared, own] }
    }

    /// The pair after the step.
    #[inline]
    pub fn apply(&self, theta: f64, m: f64, xi: [f64; 2]) -> (f64, f64) {
        let [[a, b], [c, d]] = self.map;
        let noise = self.to_theta[0] * xi[0] + self.to_theta[1] * xi[1];
        (a * theta + b * m + noise, c * theta + d * m + self.to_m * xi[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64, scale: f64) -> bool {
        (a - b).abs() <= 1e-9 * scale
    }

    proptest! {
        /// Two half steps are a whole one, and where $\mu > 0$ the stationary distribution,
        /// $E\theta^2 = \eta m_2/2\mu d$ and $EM^2 = \delta\lambda m_2/2pd$ without correlation, stays.
        #[test]
        fn steps_add_up_and_keep_what_is_stationary(
            follow in 0.1..2.0f64, mu in 0.05..1.0f64, made in 0.3..1.0f64, log_delta in -2.0..4.0f64,
            lambda in 0.01..1.0f64, log_h in -3.0..1.0f64,
        ) {
            let (delta, h, dim, m2) = (10f64.powf(log_delta), 10f64.powf(log_h), 100.0, 0.7);
            let f = Forces {
                follow: follow * made,
                learn: delta * mu,
                forget: delta * made,
                noise: delta * delta * m2,
            };
            let (whole, half) =
                (Transition::exact(&f, lambda, dim, h), Transition::exact(&f, lambda, dim, 0.5 * h));
            let ([tt, tm, mm], scale) = (
                [follow * m2 / (2.0 * mu * dim), 0.0, delta * lambda * m2 / (2.0 * made * dim)], 1.0,
            );
            let covariance = |t: &Transition| [
                t.to_theta[0].powi(2) + t.to_theta[1].powi(2), t.to_theta[0] * t.to_m, t.to_m.powi(2),
            ];
            let pushed = |t: &Transition, [tt, tm, mm]: [f64; 3]| {
                let [[a, b], [c, d]] = t.map;
                let own = covariance(t);
                [
                    a * a * tt + 2.0 * a * b * tm + b * b * mm + own[0],
                    a * c * tt + (a * d + b * c) * tm + b * d * mm + own[1],
                    c * c * tt + 2.0 * c * d * tm + d * d * mm + own[2],
                ]
            };
            let after = pushed(&whole, [tt, tm, mm]);
            prop_assert!(near(after[0], tt, scale * tt));
            prop_assert!(near(after[1], tm, (tt * mm).sqrt()));
            prop_assert!(near(after[2], mm, mm));
            let (once, twice) = (covariance(&whole), pushed(&half, covariance(&half)));
            for k in 0..3 {
                prop_assert!(near(once[k], twice[k], [tt, (tt * mm).sqrt(), mm][k]));
            }
        }
    }

    #[test]
    fn without_force_the_buffer_integrates_noise() {
        // δp = 0 and μ = 0: M is Brownian motion, θ its integral, of variance t³/3 and covariance t²/2.
        let f = Forces { follow: 1.0, learn: 0.0, forget: 0.0, noise: 1.0 };
        for h in [0.1, 3.0] {
            let t = Transition::exact(&f, 1.0, 1.0, h);
            assert!((t.to_m.powi(2) / h - 1.0).abs() < 1e-12);
            assert!((-t.to_theta[0] * t.to_m / (h * h / 2.0) - 1.0).abs() < 1e-12);
            let variance = t.to_theta[0].powi(2) + t.to_theta[1].powi(2);
            assert!((variance / (h * h * h / 3.0) - 1.0).abs() < 1e-12);
        }
    }
}
