//! One step of the Runge–Kutta method, for states that matter through `N` weighted sums only.

use super::tableau::{A, C, E3, E5, LAST, STAGES, TableauRow, dense_change, dense_coefficients};
use std::ops::Range;

/// The method is stable for steps up to six times the inverse of the rate of decay of the fastest
/// mode, but beyond three this mode, long decayed itself, still shows the errors of the step inside
/// it a hundredfold.
const REACH: f64 = 3.0;

/// A system of ordinary differential equations.
pub(crate) trait OdeSystem<const N: usize> {
    fn stages(&self) -> &Stages<N>;

    fn stages_mut(&mut self) -> &mut Stages<N>;

    /// Computes the slope of stage `number` at time $t$.
    fn slope(&mut self, number: usize, t: f64);

    /// The sums of a state.
    fn weigh(&self, state: &[f64]) -> [f64; N];

    /// The sums of $|x_i|$ for $x = h\sum_j e_jk_j$.
    fn size(&self, row: TableauRow, h: f64) -> [f64; N];

    /// The sums at the start of the step.
    fn sums(&self) -> [f64; N] {
        self.weigh(&self.stages().state)
    }

    /// The slope at the start, from which everything else is computed.
    fn begin(&mut self, t: f64) -> [f64; N] {
        let stages = self.stages_mut();
        stages.stage.copy_from_slice(&stages.state);
        self.slope(0, t);
        self.stages().slope_sums[0]
    }

    /// Stages `from` to `to` of a step of length `h`; no stage is evaluated after `latest`.
    fn evaluate(&mut self, from: usize, to: usize, t: f64, h: f64, latest: f64) {
        for number in from..=to {
            self.stages_mut().prepare(number, h);
            self.slope(number, (t + C[number] * h).min(latest));
        }
    }

    /// Tries a step of length `h` after [`begin`](Self::begin).
    fn step(&mut self, t: f64, h: f64, latest: f64) -> Attempt<N> {
        self.evaluate(1, LAST, t, h, latest);
        let errors = [E5, E3].map(|row| self.size(row, h));
        Attempt { end: self.weigh(&self.stages().stage), errors }
    }

    /// The sums as a function of time in the step just tried; three more evaluations.
    fn dense(&mut self, t: f64, h: f64, latest: f64, end: [f64; N]) -> Dense<N> {
        let start = self.sums();
        let finish = self.stages().stage.clone();
        self.evaluate(LAST + 1, STAGES - 1, t, h, latest);
        let stages = self.stages_mut();
        stages.stage = finish;
        let k = &stages.slope_sums;
        let coefficients =
            std::array::from_fn(|i| dense_coefficients(start[i], end[i], h, |stage| k[stage][i]));
        Dense { t, h, start, coefficients }
    }

    /// The longest step in which dense output is as good as the step itself; where skipping moves
    /// away from the solution the fastest mode grows at the rate.
    fn longest(&self) -> f64 {
        REACH / self.stages().rates[0].abs()
    }

    /// Accepts the step: its end is the start of the next, and its last slope the first.
    fn advance(&mut self) {
        let Stages { state, stage, slopes, slope_sums, rates } = self.stages_mut();
        std::mem::swap(state, stage);
        slopes.swap(0, LAST);
        slope_sums[0] = slope_sums[LAST];
        rates[0] = rates[LAST];
    }
}

/// A step that was tried and may still be refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<const N: usize> {
    /// The sums at the end.
    pub end: [f64; N],
    /// Estimated errors of order 5 and 3, without cancellation between modes.
    pub errors: [[f64; N]; 2],
}

impl<const N: usize> Attempt<N> {
    /// Before the first step.
    pub const NONE: Self = Attempt { end: [0.0; N], errors: [[0.0; N]; 2] };
}

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

/// The number of modes that are worked on together: few enough to stay in the nearest cache.
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

    /// Computes the argument of stage `number` of a step of length `h`.
    pub fn prepare(&mut self, number: usize, h: f64) {
        for range in blocks(self.state.len()) {
            let stage = &mut self.stage[range.clone()];
            stage.copy_from_slice(&self.state[range.clone()]);
            add_slopes(&self.slopes, A[number], h, range, stage);
        }
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
#[inline]
pub(crate) fn blocks(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(BLOCK).map(move |first| first..(first + BLOCK).min(len))
}

/// $y \leftarrow y + h\sum_j a_jk_j$ in a range of the modes.
#[inline]
pub(crate) fn add_slopes(
    slopes: &[Vec<f64>],
    row: TableauRow,
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
