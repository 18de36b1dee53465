//! What $\Vert K\Vert = 1$ does to the rest of a problem.
//!
//! Let $\Vert K\Vert = s$. In the coordinates ${x^\prime} = x/\sqrt s$, ${\theta^\prime} = \sqrt
//! s\thinspace \theta$ the predictions $\langle x, \theta\rangle$ are the same, and with them the
//! residuals, the noise and the risk $R$, while ${K^\prime} = K/s$ has norm one and the same $d$.
//! Gradients become ${g^\prime} = g/\sqrt s$, so the step
//! $$\theta \leftarrow \theta - \tfrac{\eta}{d}\thinspace \mathrm{clip}(g, c\sqrt d)$$
//! is the same step in ${\theta^\prime}$ with ${\eta^\prime} = s\thinspace \eta$ and ${c^\prime} =
//! c/\sqrt s$; and ${D^\prime} = \Vert {\theta^\prime} - {\theta^\prime}^\ast\Vert ^2 = s\thinspace
//! D$.

use crate::error::{Error, Result};
use std::fmt;

/// $s = \Vert K\Vert $ as given, and how learning rate, threshold, distance and coordinates follow
/// when $K$ is divided by it.
///
/// The methods take what the user gave to the coordinates in which $\Vert K\Vert = 1$;
/// [`inverse`](Self::inverse) goes back.
///
/// ```
/// use toclip::spectrum::Rescaling;
/// let to = Rescaling::new(4.0)?;
/// assert_eq!((to.learning_rate(0.1), to.threshold(1.0), to.distance(1.0)), (0.4, 0.5, 4.0));
/// assert_eq!(to.inverse().distance(to.distance(7.0)), 7.0);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rescaling {
    norm: f64,
}

impl Rescaling {
    /// The rescaling by $s = \Vert K\Vert $ = `norm`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a norm that is not finite and positive.
    pub fn new(norm: f64) -> Result<Self> {
        if norm.is_finite() && norm > 0.0 {
            Ok(Self { norm })
        } else {
            Err(Error::parameter("norm", norm, "the norm of K is a finite number > 0"))
        }
    }

    pub(super) fn of_checked(norm: f64) -> Self {
        Self { norm }
    }

    /// $s$.
    pub fn norm(&self) -> f64 {
        self.norm
    }

    /// Whether $s = 1$, so that nothing changes.
    pub fn is_identity(&self) -> bool {
        self.norm == 1.0
    }

    /// The way back: $1/s$.
    pub fn inverse(&self) -> Self {
        Self { norm: 1.0 / self.norm }
    }

    /// ${\eta^\prime} = s\thinspace \eta$.
    pub fn learning_rate(&self, eta: f64) -> f64 {
        self.norm * eta
    }

    /// ${c^\prime} = c/\sqrt s$; $c = \infty$ stays infinite.
    pub fn threshold(&self, c: f64) -> f64 {
        c / self.norm.sqrt()
    }

    /// ${D^\prime} = s\thinspace D$.
    pub fn distance(&self, distance: f64) -> f64 {
        self.norm * distance
    }

    /// ${\theta^\prime}_i = \sqrt s\thinspace \theta_i$.
    pub fn coordinate(&self, theta: f64) -> f64 {
        self.norm.sqrt() * theta
    }
}

/// A sentence for the user that describes the rescaling.
impl fmt::Display for Rescaling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_identity() {
            return write!(f, "||K|| = 1: nothing was rescaled");
        }
        let s = self.norm;
        write!(
            f,
            "||K|| = {s} was rescaled to 1: data divided by {root}, parameters multiplied by \
             {root}, learning rates multiplied by {s}, thresholds divided by {root}, squared \
             distances multiplied by {s}; risk and noise are unchanged",
            root = s.sqrt()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    /// Clipped SGD as the paper writes it, on vectors; returns the risk and distance of every step.
    fn clipped_sgd(lambda: &[f64], start: &[f64], eta: f64, c: f64) -> Vec<(f64, f64)> {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let largest = lambda.iter().copied().fold(0.0, f64::max);
        let d = lambda.iter().sum::<f64>() / largest;
        let mut v = start.to_vec();
        let mut path = Vec::new();
        for _ in 0..300 {
            let x: Vec<f64> = lambda.iter().map(|l| l.sqrt() * normal()).collect();
            let residual: f64 = x.iter().zip(&v).map(|(x, v)| x * v).sum::<f64>() - 0.3 * normal();
            let norm = residual.abs() * x.iter().map(|x| x * x).sum::<f64>().sqrt();
            let shrink = (c * d.sqrt() / norm).min(1.0);
            for (v, x) in v.iter_mut().zip(&x) {
                *v -= eta / d * shrink * residual * x;
            }
            let risk = v.iter().zip(lambda).map(|(v, l)| 0.5 * l * v * v).sum();
            path.push((risk, v.iter().map(|v| v * v).sum()));
        }
        path
    }

    #[test]
    fn the_same_draws_give_the_same_risk_in_both_coordinates() {
        let s = 7.3;
        let to = Rescaling::new(s).unwrap();
        let unit: Vec<f64> = (1..=40).map(|j| f64::from(j).powf(-0.5)).collect();
        let given: Vec<f64> = unit.iter().map(|l| s * l).collect();
        let start = vec![0.4; 40];
        let there: Vec<f64> = start.iter().map(|&v| to.coordinate(v)).collect();
        let (eta, c) = (0.1, 2.0);
        let user = clipped_sgd(&given, &start, eta, c);
        let ours = clipped_sgd(&unit, &there, to.learning_rate(eta), to.threshold(c));
        for (a, b) in user.iter().zip(&ours) {
            assert!((a.0 / b.0 - 1.0).abs() < 1e-11, "{a:?} {b:?}");
            assert!((to.distance(a.1) / b.1 - 1.0).abs() < 1e-11);
            assert!((a.1 / to.inverse().distance(b.1) - 1.0).abs() < 1e-11);
        }
        // Clipping must have had a part in it, and so must the steps.
        let unclipped = clipped_sgd(&given, &start, eta, f64::INFINITY);
        assert!((unclipped[50].0 / user[50].0 - 1.0).abs() > 1e-3);
        assert!(user[299].0 < 0.5 * user[0].0);
    }

    #[test]
    fn describes_the_rescaling() {
        assert_eq!(Rescaling::new(1.0).unwrap().to_string(), "||K|| = 1: nothing was rescaled");
        let text = Rescaling::new(4.0).unwrap().to_string();
        assert!(text.contains("learning rates multiplied by 4, thresholds divided by 2"));
        assert!(Rescaling::new(0.0).is_err() && Rescaling::new(f64::NAN).is_err());
        assert_eq!(Rescaling::new(4.0).unwrap().threshold(f64::INFINITY), f64::INFINITY);
    }
}
