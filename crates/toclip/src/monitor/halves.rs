//! The mean gradient of two halves of the steps.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Running means of the gradients of even and of odd steps, each the reference for the other.
///
/// $\Vert E g\Vert ^2$ estimated from one mean is too large by the variance of that mean over the
/// number of steps; $\langle g, \bar g\rangle$ with a mean that $g$ is not part of is not. This takes
/// two vectors of memory. At fixed weights the halves are independent. Along training a gradient
/// also depends on earlier ones through the weights; a short memory keeps that small, and both
/// sides of the quotient $\mu$ feel it alike.
///
/// ```
/// use toclip::monitor::Halves;
/// let mut halves = Halves::new(2, 100.0)?;
/// assert_eq!(halves.inner(&[1.0, 0.0])?, None); // nothing to compare with
/// assert_eq!(halves.inner(&[3.0, 4.0])?, Some(3.0));
/// assert_eq!(halves.inner(&[1.0, 1.0])?, Some(7.0));
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Halves {
    memory: f64,
    means: [Vec<f64>; 2],
    weights: [f64; 2],
    odd: bool,
}

impl Halves {
    /// For gradients of `dimension` numbers, with means over about the last `memory` of each half.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a dimension of zero or beyond memory, or a memory of less than one.
    pub fn new(dimension: usize, memory: f64) -> Result<Self> {
        if dimension == 0 {
            return Err(Error::parameter("dimension", 0.0, "a gradient has at least one number"));
        }
        if !(memory >= 1.0 && memory.is_finite()) {
            return Err(Error::parameter("memory", memory, "a mean of at least one gradient"));
        }
        let zeros = || {
            let mut mean = Vec::new();
            mean.try_reserve_exact(dimension).map_err(|_| {
                let expected = "two vectors of so many numbers do not fit into memory";
                Error::parameter("dimension", dimension as f64, expected)
            })?;
            mean.resize(dimension, 0.0);
            Ok(mean)
        };
        let means = [zeros()?, zeros()?];
        Ok(Halves { memory, means, weights: [0.0; 2], odd: false })
    }

    /// $\langle g, \bar g\rangle$ with the mean of the other half so far, to which $g$ is then not
    /// added; `None` for the first gradient, and for one with numbers that are not finite.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a gradient of another dimension.
    pub fn inner(&mut self, gradient: &[f64]) -> Result<Option<f64>> {
        if gradient.len() != self.means[0].len() {
            return Err(Error::Invalid(format!(
                "a gradient of {} numbers was given to halves of dimension {}",
                gradient.len(),
                self.means[0].len()
            )));
        }
        if !gradient.iter().all(|g| g.is_finite()) {
            return Ok(None);
        }
        let own = usize::from(self.odd);
        let other = 1 - own;
        let dot = || gradient.iter().zip(&self.means[other]).map(|(g, m)| g * m).sum();
        let inner = (self.weights[other] > 0.0).then(dot);
        self.weights[own] = (self.weights[own] + 1.0).min(self.memory);
        let weight = self.weights[own].recip();
        self.means[own].iter_mut().zip(gradient).for_each(|(m, g)| *m += weight * (g - *m));
        self.odd = !self.odd;
        Ok(inner)
    }
}
