//! Classification and other generalised linear models: clipped SGD with losses other than the
//! squared error.
//!
//! A sample has the logit $u = \langle x, \theta\rangle$ of the model and $v = \langle x,
//! \theta^\ast\rangle$ of the teacher; a label $y$ is drawn given $v$, and the gradient is $r(u,
//! y)\thinspace x$. For Gaussian $x$ the pair $(u, v)$ is Gaussian with the covariance of [`Overlaps`], and
//! three numbers describe the gradient clipped at $c\sqrt d$: the [`Coefficients`] $a$, $b$ and
//! $m^{(2)}$ of a [`Model`].
//!
//! | model | labels | residual $r$ |
//! |---|---|---|
//! | [`Logistic`] | 0 and 1, $P(1 \mid v) = \sigma(v)$, some flipped | $\sigma(u) - y$ |
//! | [`Huber`] | $v + \epsilon$ | $u - y$, clipped at $\delta$ |

mod bias;
mod binary;
mod criterion;
mod error;
mod huber;
mod interface;
mod link;
mod logistic;
mod measures;
mod objective;
mod overlaps;
mod quadrature;
mod quantity;
mod sample_measures;

pub use bias::{Stationary, fixed_point};
pub use criterion::{DirectionThreshold, best_threshold, ccc};
pub use error::ModelError;
pub use huber::Huber;
pub use interface::{Coefficients, Label, Model};
pub use logistic::Logistic;
pub use measures::{Measures, calibration_slope};
pub use objective::Objective;
pub use overlaps::Overlaps;
pub use quantity::Quantity;
pub use sample_measures::sample_calibration_slope;

use crate::error::{Error, Result};

fn check_flips(flips: f64) -> Result<f64> {
    if (0.0..=0.5).contains(&flips) {
        Ok(flips)
    } else {
        Err(Error::parameter("flips", flips, "give a probability between 0 and 0.5"))
    }
}
