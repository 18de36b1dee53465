//! The largest learning rates under which risk and distance fall.

use crate::error::Result;
use crate::factors::check_threshold;
use crate::factors::kernel::Moments;
use crate::problem::Problem;
use serde::Serialize;

/// $\eta^\ast_R$ and $\eta^\ast_D$: the learning rates at which the drift of $R$ and of $D$
/// vanishes.
///
/// With $v_i = \langle\theta-\theta^\ast, w_i\rangle^2/2$ the drifts are
/// $$ \dot R = -2\eta\mu\textstyle\sum\lambda_i^2 v_i + \tfrac{\eta^2}{2d} m^{(2)}
/// \operatorname{Tr}K^2, \qquad \dot D = -4\eta\mu R + \tfrac{\eta^2}{d}m^{(2)}\operatorname{Tr}K, $$
/// so, with $\Vert \nabla P\Vert ^2 = 2\sum\lambda_i^2 v_i$, $P = R + \sigma^2/2$ and
/// $\operatorname{Tr}K = d$,
/// $$ \eta^\ast_R = \frac{d\thinspace \Vert \nabla P\Vert ^2}{\operatorname{Tr}(K^2)\thinspace P}\cdot\frac{\mu}{\nu}, \qquad
/// \eta^\ast_D = \frac{2R}{P}\cdot\frac{\mu}{\nu}. $$
/// (The paper prints half of $\eta^\ast_D$, which is the rate of *fastest* descent of $D$.) In
/// terms of $m^{(2)} = 2\nu P$ both are defined for noise of infinite variance too.
///
/// **Where $\mu \le 0$, as [skipping](crate::Rule::Skip) can have it, no learning rate is stable**:
/// every step pushes the iterate away from the solution or nowhere, and both limits are zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StabilityLimits {
    /// $\eta^\ast_R$: a larger learning rate makes the risk grow.
    pub risk: f64,
    /// $\eta^\ast_D$: a larger learning rate makes the distance grow.
    pub distance: f64,
}

impl StabilityLimits {
    /// From $d$, $\operatorname{Tr}K^2$, $R$, $\Vert \nabla P\Vert ^2$ and the clipped moments at
    /// $R$.
    pub fn at(dim: f64, trace_sq: f64, risk: f64, gradient_sq: f64, x: Moments) -> Self {
        if x.mu <= 0.0 {
            return StabilityLimits { risk: 0.0, distance: 0.0 };
        }
        // Without noise or error 0/0 means no limit.
        let over = |numerator: f64, denominator: f64| {
            if denominator == 0.0 { f64::INFINITY } else { numerator / denominator }
        };
        StabilityLimits {
            risk: over(2.0 * dim * gradient_sq * x.mu, trace_sq * x.m2),
            distance: over(4.0 * risk * x.mu, x.m2),
        }
    }
}

/// $\eta^\ast_R$ and $\eta^\ast_D$ at the start of training with threshold $c$.
///
/// For private SGD they count the noise that is added, $s = \sigma^2c^2/B^2$ to each of $n$
/// coordinates: $\operatorname{Tr}(K^2)\thinspace m^{(2)} + sd^2$ and $m^{(2)} + sn$ take the places
/// of $\operatorname{Tr}(K^2)\thinspace m^{(2)}$ and $m^{(2)}$.
///
/// # Errors
/// [`Error::Parameter`](crate::Error::Parameter) for an impossible threshold,
/// [`StepError`](crate::StepError) for a rule that has no factors there.
///
/// ```
/// use toclip::{Problem, criteria::stability_limits, noise::NoNoise, policy::OpenLoop};
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// // Isotropic data without noise or clipping: SGD is stable below η = 2, as is well known.
/// let modes = Modes::new(&Spectrum::isotropic(100)?, &Start::Uniform { norm: 1.0 })?;
/// let problem = Problem::new(modes, NoNoise, OpenLoop::constant(1.0, f64::INFINITY)?)?;
/// let limits = stability_limits(&problem, f64::INFINITY)?;
/// assert!((limits.risk - 2.0).abs() < 1e-12 && (limits.distance - 2.0).abs() < 1e-12);
/// # Ok::<(), toclip::Error>(())
/// ```
pub fn stability_limits(problem: &Problem, c: f64) -> Result<StabilityLimits> {
    check_threshold(c)?;
    let (modes, step) = (problem.modes(), problem.step());
    let risk = modes.risk();
    let gradient_sq: f64 = modes.modes().iter().map(|m| 2.0 * m.lambda * m.lambda * m.energy).sum();
    step.check_radial()?;
    let x = step.moments(risk, c);
    step.check_defined(risk, c, x)?;
    let mut limits = StabilityLimits::at(modes.dim(), modes.trace_sq(), risk, gradient_sq, x);
    let private = step.private_variance(c);
    if private > 0.0 && x.mu > 0.0 {
        // The noise of a coordinate adds η²s/2 to its equation: to R's with its eigenvalue.
        let (dim, ambient) = (modes.dim(), modes.ambient_dim() as f64);
        limits.risk =
            2.0 * dim * gradient_sq * x.mu / (modes.trace_sq() * x.m2 + private * dim * dim);
        limits.distance = 4.0 * risk * x.mu / (x.m2 + private * ambient);
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Step;
    use crate::dynamics::{Ode, Trajectory};
    use crate::noise::{Noise, Rademacher, StudentT};
    use crate::policy::OpenLoop;
    use crate::privacy::Privacy;
    use crate::spectrum::{Modes, Spectrum, Start};

    fn limits_of(modes: &Modes, step: impl Into<Step<'static>>, c: f64) -> StabilityLimits {
        let policy = OpenLoop::constant(0.1, c).unwrap();
        stability_limits(&Problem::new(modes.clone(), step, policy).unwrap(), c).unwrap()
    }
    use proptest::prelude::*;

    proptest! {
        /// At the limit the drift, written out mode by mode, vanishes; just below it is negative.
        #[test]
        fn the_drift_vanishes_at_the_limit(
            exponent in 0.0..2.0f64, norm in 0.1..10.0f64, c in 0.05..5.0f64, sigma in 0.1..3.0f64
        ) {
            let spectrum = Spectrum::power_law(60, exponent).unwrap();
            let modes = Modes::new(&spectrum, &Start::PowerLaw { norm, exponent: 0.5 }).unwrap();
            let noise = Rademacher::from_sigma(sigma, 0.3).unwrap();
            let limits = limits_of(&modes, noise, c);
            let x = noise.clipped(modes.risk(), c);
            let rates = |eta: f64| {
                let each = modes.modes().iter().map(|m| {
                    let dv = -2.0 * eta * m.lambda * x.mu * m.energy
                        + eta * eta / modes.dim() * m.lambda * m.count * x.m2 / 2.0;
                    (m.lambda * dv, 2.0 * dv)
                });
                each.fold((0.0, 0.0), |(r, d), (dr, dd)| (r + dr, d + dd))
            };
            let scale = modes.risk() * limits.risk;
            prop_assert!(rates(limits.risk).0.abs() < 1e-11 * scale.max(1.0));
            prop_assert!(rates(0.99 * limits.risk).0 < 0.0);
            prop_assert!(rates(limits.distance).1.abs() < 1e-11 * (modes.distance() * limits.distance).max(1.0));
            prop_assert!(rates(0.99 * limits.distance).1 < 0.0);
        }
    }

    /// At the limit the derivative of the ODE at the start vanishes, with private noise too.
    #[test]
    fn private_noise_lowers_the_limits() {
        let spectrum = Spectrum::power_law(60, 0.7).unwrap();
        let modes = Modes::new(&spectrum, &Start::Uniform { norm: 1.0 }).unwrap();
        let (noise, c) = (Rademacher::from_sigma(0.5, 0.3).unwrap(), 0.8);
        let step = Step::new(noise).with_privacy(Privacy::new(0.7).unwrap()).unwrap();
        let limits = limits_of(&modes, step.clone(), c);
        let plain = limits_of(&modes, noise, c);
        assert!(limits.risk < plain.risk && limits.distance < plain.distance);
        let slope = |eta: f64, of: fn(&Trajectory) -> &[f64]| {
            let policy = OpenLoop::constant(eta, c).unwrap();
            let problem = Problem::new(modes.clone(), step.clone(), policy).unwrap();
            let t = 1e-6;
            let path = Ode::new(&problem).unwrap().solve(&[0.0, t]).unwrap();
            (of(&path)[1] - of(&path)[0]) / t
        };
        // The slope is a parabola in η that vanishes at 0 and at the limit.
        let shares = |limit: f64, of: fn(&Trajectory) -> &[f64]| {
            let half = slope(0.5 * limit, of);
            assert!(half < 0.0);
            [0.9, 1.0].map(|share| slope(share * limit, of) / half)
        };
        for [below, at] in
            [shares(limits.risk, |p| &p.risk), shares(limits.distance, |p| &p.distance)]
        {
            assert!((below - 0.36).abs() < 1e-3 && at.abs() < 1e-3, "{below} {at}");
        }
    }

    #[test]
    fn heavy_tails_have_limits_only_when_clipped() {
        let modes =
            Modes::new(&Spectrum::isotropic(10).unwrap(), &Start::Uniform { norm: 1.0 }).unwrap();
        let cauchy = StudentT::new(1.0, 0.5).unwrap();
        assert!(limits_of(&modes, cauchy.clone(), 0.4).risk > 0.1);
        assert_eq!(limits_of(&modes, cauchy, f64::INFINITY).risk, 0.0);
    }
}
