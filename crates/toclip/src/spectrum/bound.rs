//! How far a compressed problem can be from the full one.

use super::Modes;

/// $\delta_F, \delta_{\mathcal K}, \delta_V, \delta_{\mathcal L}$: bounds, over all $\Gamma \ge 0$,
/// on the change by compression of the four functions through which the data enter. All are zero
/// where nothing was compressed.
///
/// # From the four functions to $R(t)$ and $D(t)$
///
/// Risk and distance depend on the data through four functions of $\Gamma \ge 0$,
/// $$F(\Gamma) = \sum_i \lambda_i v_i(0) e^{-2\lambda_i\Gamma}, \quad V(\Gamma) = \sum_i v_i(0)
/// e^{-2\lambda_i\Gamma}, \quad \mathcal K(\Gamma) = \frac1d\sum_i \lambda_i^2
/// e^{-2\lambda_i\Gamma}, \quad \mathcal L(\Gamma) = \frac1d\sum_i \lambda_i
/// e^{-2\lambda_i\Gamma},$$
/// for with $\Gamma_t = \int_0^t \eta\mu$ and $a = \eta^2 m_2/2$
/// $$R(t) = F(\Gamma_t) + \int_0^t a_s\thinspace \mathcal K(\Gamma_t - \Gamma_s)\thinspace ds, \qquad \tfrac12 D(t)
/// = V(\Gamma_t) + \int_0^t a_s\thinspace \mathcal L(\Gamma_t - \Gamma_s)\thinspace ds.$$
/// The fields are $\delta_F = \sup_\Gamma |\Delta F| / F(0)$ and so on. All four functions
/// decrease, $F(0) = R(0)$, $\mathcal K(0) = \mathrm{Tr}\thinspace K^2/d$, $\mathcal L(0) = 1$,
/// $V(0) = D(0)/2$.
///
/// **Frozen coefficients.** If $\eta$, $\mu$ and $m_2$ are given functions of time, then at once
/// $$|\Delta R(t)| \le \delta_F R(0) + \delta_{\mathcal K}\thinspace \mathcal K(0) A_t =: \beta_t, \qquad
/// |\Delta D(t)| \le \delta_V D(0) + 2\thinspace \delta_{\mathcal L} A_t, \qquad A_t = \int_0^t a_s\thinspace ds.$$
///
/// **With feedback.** $\mu$ and $m_2$ follow $R$, so an error in $R$ moves $\Gamma$ and $a$. Let
/// $\ell_b$ and $\ell_a$ be Lipschitz constants in $R$ of $b = \eta\mu$ and of $a$, and let a tilde
/// mark the compressed solution, $e = |\tilde R - R|$. Write $\tilde R - R$ as
/// $$(\tilde F - F)(\tilde\Gamma_t) + \bigl[F(\tilde\Gamma_t) - F(\Gamma_t)\bigr] + \int \tilde
/// a\thinspace (\tilde{\mathcal K} - \mathcal K) + \int \tilde a\thinspace \bigl[\mathcal
/// K(\tilde\Gamma_t -
/// \tilde\Gamma_s) - \mathcal K(\Gamma_t - \Gamma_s)\bigr] + \int (\tilde a - a)\thinspace \mathcal K.$$
/// Since $\lambda \le 1$, $|{F^\prime}| \le 2R(0)$ and $|\mathcal {K^\prime}| \le 2\mathcal K(0)$;
/// and $|\tilde\Gamma_t - \tilde\Gamma_s - \Gamma_t + \Gamma_s| \le \int_s^t \ell_b e$. Hence
/// $$e(t) \le \beta_t + \int_0^t \Bigl[2\bigl(R(0) + \mathcal K(0)\tilde A_t\bigr)\ell_b + \mathcal
/// K(0)\thinspace \ell_a\Bigr] e(s)\thinspace ds,$$
/// and by Grönwall's lemma ($\beta$ and $\tilde A$ do not decrease)
/// $$e(t) \le \beta_t \exp\Bigl(2\bigl(R(0) + \mathcal K(0)\tilde
/// A_t\bigr)\textstyle\int_0^t\ell_b + \mathcal K(0)\int_0^t\ell_a\Bigr).$$
/// For the distance, with $|{V^\prime}| \le 2R(0)$, $|\mathcal {L^\prime}| \le 2\mathcal K(0)$,
/// $\mathcal L \le 1$, the error of $R$ adds $\sup e\cdot\bigl[4(R(0) + \mathcal K(0)\tilde
/// A_t)\int\ell_b + 2\int\ell_a\bigr]$.
///
/// At a fixed threshold $\ell_b = \eta \sup|\partial_R\mu|$ and $\ell_a = \tfrac12\eta^2
/// \sup|\partial_R m_2|$. With $p$ the density of $X = \sqrt{2R}z - \varepsilon$, the heat equation
/// gives $\partial_R m_2 = 2\mu - 2c\thinspace [p(c) + p(-c)] \le 2$; for symmetric unimodal noise
/// it is not negative either ($\mu \ge 2c\thinspace p(c)$), so that $\ell_a = \eta^2$ will do.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bound {
    /// $\delta_F = \sup_\Gamma|\Delta F|/R(0)$.
    pub risk: f64,
    /// $\delta_{\mathcal K} = \sup_\Gamma|\Delta\mathcal K|/\mathcal K(0)$.
    pub kernel: f64,
    /// $\delta_V = \sup_\Gamma|\Delta V|/V(0)$.
    pub distance: f64,
    /// $\delta_{\mathcal L} = \sup_\Gamma|\Delta\mathcal L|/\mathcal L(0)$.
    pub distance_kernel: f64,
}

impl Bound {
    /// $\max(\delta_F, \delta_{\mathcal K}, \delta_V, \delta_{\mathcal L})$.
    ///
    /// ```
    /// assert_eq!(toclip::spectrum::Bound::default().largest(), 0.0);
    /// ```
    pub fn largest(&self) -> f64 {
        self.risk.max(self.kernel).max(self.distance).max(self.distance_kernel)
    }
}

impl Modes {
    /// A bound on $|\Delta R(t)|$, the error of compression in the risk at time $t$.
    ///
    /// With the $\delta$ of [`bound`](Self::bound) (derived at [`Bound`]) and
    /// $\mathcal K(0) = \mathrm{Tr}\thinspace K^2/d$,
    /// $$|\Delta R(t)| \le \bigl(\delta_F R(0) + \delta_{\mathcal K}\mathcal K(0)A\bigr)
    /// \exp\bigl(2(R(0) + \mathcal K(0)A)\thinspace B_\mu + \mathcal K(0)\thinspace B_{m}\bigr)$$
    /// where
    ///
    /// | argument | is | |
    /// |---|---|---|
    /// | `noise` | $A = \int_0^t \eta^2 m_2/2$ | along the compressed solution |
    /// | `drift_slope` | $B_\mu = \int_0^t \ell_b$ | $\ell_b$ a Lipschitz constant in $R$ of $\eta\mu$ |
    /// | `noise_slope` | $B_m = \int_0^t \ell_a$ | the same of $\eta^2 m_2/2$; $\eta^2$ will do for a fixed threshold and symmetric unimodal noise |
    ///
    /// Zero slopes give the bound for coefficients that do not depend on $R$. The exponential is
    /// Grönwall's lemma, so a worst case; errors seen are near the first factor or below.
    ///
    /// ```
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// let modes = Modes::new(&Spectrum::power_law(5000, 1.0)?, &Start::Uniform { norm: 1.0 })?;
    /// assert_eq!(modes.risk_error(1.0, 0.0, 0.0), 0.0);
    /// let small = modes.compress(1e-10)?;
    /// assert!(small.risk_error(1.0, 0.0, 0.0) < 1e-10);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn risk_error(&self, noise: f64, drift_slope: f64, noise_slope: f64) -> f64 {
        let (risk, kernel) = (self.risk(), self.trace_sq() / self.dim());
        let frozen = self.bound.risk * risk + self.bound.kernel * kernel * noise;
        frozen * (2.0 * (risk + kernel * noise) * drift_slope + kernel * noise_slope).exp()
    }

    /// A bound on $|\Delta D(t)|$, the error of compression in the distance at time $t$; the
    /// arguments are those of [`risk_error`](Self::risk_error).
    ///
    /// $$|\Delta D(t)| \le \delta_V D(0) + 2\thinspace \delta_{\mathcal L}A +
    /// \sup|\Delta R|\thinspace \bigl(4(R(0) + \mathcal K(0)A)\thinspace B_\mu + 2B_m\bigr).$$
    ///
    /// ```
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// let modes = Modes::new(&Spectrum::power_law(5000, 1.0)?, &Start::Uniform { norm: 1.0 })?;
    /// assert!(modes.compress(1e-8)?.distance_error(0.1, 0.0, 0.0) < 2e-8);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn distance_error(&self, noise: f64, drift_slope: f64, noise_slope: f64) -> f64 {
        let (risk, kernel) = (self.risk(), self.trace_sq() / self.dim());
        let frozen =
            self.bound.distance * self.distance() + 2.0 * self.bound.distance_kernel * noise;
        let through_risk = 4.0 * (risk + kernel * noise) * drift_slope + 2.0 * noise_slope;
        frozen + self.risk_error(noise, drift_slope, noise_slope) * through_risk
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mode, Spectrum, Start};
    use super::*;
    use std::f64::consts::{FRAC_2_PI, SQRT_2};

    const SIGMA: f64 = 0.5;
    const CLIP: f64 = 0.6;
    const ETA: f64 = 0.7;

    /// $\mu$ and $m_2$ for Gaussian noise, where $X$ is normal with variance $2R + \sigma^2$.
    fn factors(risk: f64) -> (f64, f64) {
        let variance = 2.0 * risk + SIGMA * SIGMA;
        let z = CLIP / variance.sqrt();
        let inside = libm::erf(z / SQRT_2);
        let below = inside - FRAC_2_PI.sqrt() * z * (-0.5 * z * z).exp();
        (inside, variance * below + CLIP * CLIP * (1.0 - inside))
    }

    /// $|\partial_R\mu|$ at its largest over all $R \ge 0$, on a fine grid of the variance.
    fn steepest_mu() -> f64 {
        let slope = |variance: f64| {
            let z2 = CLIP * CLIP / variance;
            FRAC_2_PI.sqrt() * z2.sqrt() * (-0.5 * z2).exp() / variance
        };
        (0..100_000).map(|i| slope(SIGMA * SIGMA + 1e-4 * f64::from(i))).fold(0.0, f64::max)
    }

    /// Classical Runge-Kutta on all modes: $(t, R, D, \int\eta^2 m_2/2)$ after every step.
    fn integrate(modes: &Modes, time: f64, steps: usize) -> Vec<[f64; 4]> {
        let h = time / steps as f64;
        let rate = |v: &[f64]| -> Vec<f64> {
            let risk = modes.modes().iter().zip(v).map(|(m, v)| m.lambda * v).sum();
            let (mu, m2) = factors(risk);
            let noise = 0.5 * ETA * ETA * m2;
            let one = |(m, v): (&Mode, &f64)| {
                -2.0 * ETA * m.lambda * mu * v + noise / modes.dim() * m.lambda * m.count
            };
            modes.modes().iter().zip(v).map(one).chain([noise]).collect()
        };
        let mut v: Vec<f64> = modes.modes().iter().map(|m| m.energy).chain([0.0]).collect();
        let mut path = Vec::new();
        for step in 1..=steps {
            let ahead = |k: &[f64], s: f64| -> Vec<f64> {
                v.iter().zip(k).map(|(v, k)| v + s * k).collect()
            };
            let k1 = rate(&v);
            let k2 = rate(&ahead(&k1, 0.5 * h));
            let k3 = rate(&ahead(&k2, 0.5 * h));
            let k4 = rate(&ahead(&k3, h));
            for i in 0..v.len() {
                v[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
            }
            let risk = modes.modes().iter().zip(&v).map(|(m, v)| m.lambda * v).sum();
            let distance = 2.0 * v[..v.len() - 1].iter().sum::<f64>();
            path.push([step as f64 * h, risk, distance, v[v.len() - 1]]);
        }
        path
    }

    #[test]
    fn the_compressed_system_follows_the_full_one() {
        let mu_slope = steepest_mu();
        for (exponent, start) in [
            (0.3, Start::Uniform { norm: 1.0 }),
            (1.0, Start::PowerLaw { norm: 1.0, exponent: 0.3 }),
        ] {
            let full = Modes::new(&Spectrum::power_law(1000, exponent).unwrap(), &start).unwrap();
            // The two runs share their steps, so that they differ by the compression only.
            let reference = integrate(&full, 80.0, 800);
            for tolerance in [1e-2, 1e-4, 1e-6] {
                let small = full.compress(tolerance).unwrap();
                assert!(small.modes().len() < 150);
                let path = integrate(&small, 80.0, 800);
                let mut largest = [0.0_f64; 2];
                for (a, b) in reference.iter().zip(&path) {
                    let [t, risk, distance, noise] = *b;
                    let (drift, diffusion) = (ETA * mu_slope * t, ETA * ETA * t);
                    let errors = [(risk - a[1]).abs(), (distance - a[2]).abs()];
                    assert!(errors[0] <= small.risk_error(noise, drift, diffusion));
                    assert!(errors[1] <= small.distance_error(noise, drift, diffusion));
                    // The errors stay below even the bound without feedback.
                    assert!(errors[0] <= small.risk_error(noise, 0.0, 0.0));
                    assert!(errors[1] <= small.distance_error(noise, 0.0, 0.0));
                    largest = [largest[0].max(errors[0]), largest[1].max(errors[1])];
                }
                // The comparison must be able to fail: the errors are there to be seen.
                assert!(largest[0] > 1e-4 * tolerance * full.risk(), "{largest:?}");
                assert!(largest[1] > 1e-4 * tolerance * full.distance(), "{largest:?}");
            }
        }
    }

    #[test]
    fn m2_grows_at_most_twice_as_fast_as_the_risk() {
        for i in 0..1000 {
            let risk = 1e-3 * 1.02_f64.powi(i);
            let h = 1e-4 * risk;
            let slope = (factors(risk + h).1 - factors(risk - h).1) / (2.0 * h);
            assert!((-1e-6..=2.0).contains(&slope), "{risk} {slope}");
        }
    }
}
