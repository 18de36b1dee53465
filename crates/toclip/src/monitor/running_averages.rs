//! The running scale of the norms, and running means of the gradients.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The scale $s$ of the norms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NormScale {
    /// The running geometric mean of about this many last norms, at least 32, without the current
    /// one.
    ///
    /// Norms drift during training, by factors of ten and more; relative to this scale they have a
    /// stable distribution. The logarithm limits the weight of outliers in both directions. A
    /// relative error of $\delta$ in the scale biases the factors by the order of $\delta^2$.
    Running(f64),
    /// A fixed number: for norms that are known not to drift, and to compare with theory.
    Fixed(f64),
}

impl Default for NormScale {
    fn default() -> Self {
        NormScale::Running(200.0)
    }
}

/// The number of norms that set the first scale; they are counted afterwards.
const FIRST: usize = 32;

/// A norm with its inner product, waiting for a scale.
pub(super) type Seen = (f64, Option<f64>);

/// The state of the scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Running {
    kind: NormScale,
    /// The mean of $\ln G$.
    log: f64,
    /// Norms in it.
    weight: f64,
    /// The first norms, until there are enough of them to have a scale.
    waiting: Vec<Seen>,
}

impl Running {
    pub fn new(kind: NormScale) -> Self {
        let log = match kind {
            NormScale::Running(_) => 0.0,
            NormScale::Fixed(scale) => scale.ln(),
        };
        Running { kind, log, weight: 0.0, waiting: Vec::new() }
    }

    /// $\ln s$ for the next norm; `None` before the first norm.
    pub fn log(&self) -> Option<f64> {
        match self.kind {
            NormScale::Fixed(_) => Some(self.log),
            NormScale::Running(_) => (self.weight > 0.0).then_some(self.log),
        }
    }

    /// Learns a norm, and calls back with every norm that has now got its scale: $\ln G$, the inner
    /// product and $\ln s$.
    pub fn learn(
        &mut self,
        log: f64,
        inner: Option<f64>,
        mut count: impl FnMut(f64, Option<f64>, f64),
    ) {
        let NormScale::Running(memory) = self.kind else {
            return count(log, inner, self.log);
        };
        if self.weight >= FIRST as f64 {
            count(log, inner, self.log);
        } else {
            self.waiting.push((log, inner));
        }
        // Even weights until the memory is full.
        self.weight = (self.weight + 1.0).min(memory);
        self.log += (log - self.log) / self.weight;
        if self.weight >= FIRST as f64 && !self.waiting.is_empty() {
            for (log, inner) in std::mem::take(&mut self.waiting) {
                count(log, inner, self.log);
            }
        }
    }

    /// Takes in the scale of another worker; norms that wait there are handed back.
    pub fn merge(&mut self, other: &Running) -> Vec<Seen> {
        let settled = other.weight - other.waiting.len() as f64;
        if matches!(self.kind, NormScale::Running(_)) && settled > 0.0 {
            let both = self.weight + other.weight;
            self.log += (other.log - self.log) * other.weight / both;
            self.weight = self.weight.max(other.weight);
        }
        other.waiting.clone()
    }
}

/// Running means of the gradients of even and of odd steps, each the reference for the other.
///
/// $\Vert E g\Vert ^2$ estimated from one mean is too large by the variance of that mean over the
/// number of steps; $\langle g, \bar g\rangle$ with a mean that $g$ is not part of is not. This
/// takes two vectors of memory. At fixed weights the halves are independent. During training a
/// gradient also depends on earlier ones through the weights; a short memory keeps that effect
/// small, and it changes numerator and denominator of $\mu$ alike.
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
            return Err(Error::parameter("memory", memory, "must be finite and at least 1"));
        }
        let zeros = || -> Result<Vec<f64>> {
            let mut mean = Vec::new();
            mean.try_reserve_exact(dimension).map_err(|_| {
                let expected = "two vectors of this length do not fit into memory";
                Error::parameter("dimension", dimension as f64, expected)
            })?;
            mean.resize(dimension, 0.0);
            Ok(mean)
        };
        let means = [zeros()?, zeros()?];
        Ok(Halves { memory, means, weights: [0.0; 2], odd: false })
    }

    /// $\langle g, \bar g\rangle$ with the mean of the other half so far; $g$ then enters the mean of
    /// its own half. `None` for the first gradient, and for one with numbers that are not finite.
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
