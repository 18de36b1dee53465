//! The arrays of a Runge–Kutta step, for states of which only `N` weighted sums matter.

use super::tableau::{A, LAST, Row, STAGES, dense_change, dense_coefficients};
use std::ops::Range;

/// The state at the start of a step and the slopes of its stages.
#[derive(Debug)]
pub(crate) struct Stages<const N: usize> {
    /// The state at the start of the step.
    pub state: Vec<f64>,
    /// The argument of the latest stage; after a step was tried, the state at its end.
    pub stage: Vec<f64>,
    pub slopes: Vec<Vec<f64>>,
    /// The sums of each slope: all that dense output of the sums needs.
    pub slope_sums: [[f64; N]; STAGES],
    /// The rate of decay of the fastest mode at each stage.
    pub rates: [f64; STAGES],
}

/// Modes that are worked on together, so that what is added to stays in the nearest cache.
pub(crate) const BLOCK: usize = 64;

impl<const N: usize> Stages<N> {
    pub fn new(state: Vec<f64>) -> Self {
        Stages {
            stage: state.clone(),
            slopes: vec![vec![0.0; state.len()]; STAGES],
            state,
            slope_sums: [[0.0; N]; STAGES],
            rates: [0.0; STAGES],
        }
    }

    /// Makes the start of the step the argument of the next slope.
    pub fn restart(&mut self) {
        self.stage.copy_from_slice(&self.state);
    }

    /// Computes the argument of stage `number` of a step of length `h`.
    pub fn prepare(&mut self, number: usize, h: f64) {
        for range in blocks(self.state.len()) {
            let stage = &mut self.stage[range.clone()];
            stage.copy_from_slice(&self.state[range.clone()]);
            add_slopes(&self.slopes, A[number], h, range, stage);
        }
    }

    /// Accepts the step: its end is the start of the next, and its last slope the first.
    pub fn advance(&mut self) {
        std::mem::swap(&mut self.state, &mut self.stage);
        self.slopes.swap(0, LAST);
        self.slope_sums[0] = self.slope_sums[LAST];
        self.rates[0] = self.rates[LAST];
    }

    /// The sums as a function of time in a step whose stages are all known.
    pub fn dense(&self, t: f64, h: f64, start: [f64; N], end: [f64; N]) -> Dense<N> {
        let k = &self.slope_sums;
        let coefficients =
            std::array::from_fn(|i| dense_coefficients(start[i], end[i], h, |stage| k[stage][i]));
        Dense { t, h, start, coefficients }
    }
}

/// The sums inside a step, to order 7.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dense<const N: usize> {
    pub t: f64,
    pub h: f64,
    start: [f64; N],
    coefficients: [[f64; 7]; N],
}

impl<const N: usize> Dense<N> {
    pub fn at(&self, t: f64) -> [f64; N] {
        let x = (t - self.t) / self.h;
        std::array::from_fn(|i| self.start[i] + dense_change(&self.coefficients[i], x))
    }
}

/// The modes, [`BLOCK`] at a time.
pub(crate) fn blocks(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(BLOCK).map(move |first| first..(first + BLOCK).min(len))
}

/// $y \leftarrow y + h\sum_j a_jk_j$ in a range of the modes.
#[inline]
pub(crate) fn add_slopes(
    slopes: &[Vec<f64>],
    row: Row,
    h: f64,
    range: Range<usize>,
    y: &mut [f64],
) {
    for &(j, a) in row {
        axpy(h * a, &slopes[j][range.clone()], y);
    }
}

/// $y \leftarrow y + ax$.
#[inline]
pub(crate) fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}
