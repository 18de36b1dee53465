//! C-HSGD: the stochastic differential equation that clipped SGD follows.

use super::Trajectory;
use super::block::Blocks;
use super::diffusion::Diffusion;
use super::flat::Flat;
use super::mode_factors::ModeFactors;
use super::simulator::Simulator;
use crate::error::{Error, Result};
use crate::factors::kernel::Moments;
use crate::factors::table::FactorTable;
use crate::numerics::sum::dot;
use crate::policy::Control;
use crate::problem::{Method, Problem};
use crate::sim::normal::Normals;
use crate::sim::{Purpose, scalar_rng};
use rand::rngs::Xoshiro256PlusPlus;
use std::sync::Arc;

/// $d\Theta = -\eta\mu\nabla P\thinspace dt + \eta\sqrt{\tfrac{m^{(2)}}{d} K}\thinspace dB$:
/// clipped homogenised SGD.
///
/// In the eigenbasis, and with $2\nu P = m^{(2)}$, every coordinate of $\Theta - \theta^\ast$ obeys
/// $$ d\theta_i = -\eta\mu_c(R)\thinspace \lambda_i\theta_i\thinspace dt +
/// \eta\sqrt{\tfrac1d\lambda_i\thinspace m^{(2)}_c(R)}\thinspace dB_i, $$
/// and coordinates interact only through $R$. Over a step $\Delta$ with $\eta$, $\mu$, $m^{(2)}$
/// held fixed each is an Ornstein–Uhlenbeck process, whose distribution is known: the default
/// [`Scheme`] draws from it, and its only error is the change of $R$ within the step. Directions of
/// equal eigenvalue are treated as one: with $\theta_i \leftarrow a\theta_i + g\xi_i$ the length
/// $u_b$ of $n_b$ of them becomes $u_b^2 \leftarrow (a u_b + g z)^2 + g^2 h$, $z \sim N(0,1)$, $h
/// \sim \chi^2(n_b - 1)$, exactly in distribution.
///
/// [By value](crate::Rule::ByValue) and [per group](crate::Rule::PerGroup), $\mu$ and $m^{(2)}$ are
/// those of the coordinate. [Private SGD](crate::Step::with_privacy) adds $\eta^2\sigma^2c^2/B^2$ to the
/// variance of every coordinate in a unit of time.
///
/// Steps end on the times to be saved and on the breakpoints of the policy. Between them $\Delta =
/// h/(\eta\mu\max(1, \eta\operatorname{Tr}K^2/d))$, so that in one step $R$ and $m^{(2)}$ change by
/// about the fraction $h$ at most ([`with_time_step`](Self::with_time_step)). It does not depend on
/// the step $\Delta = 1/d$ of SGD, which would be needlessly short in large dimensions and too long
/// in small ones.
///
/// With [momentum](crate::Momentum) there is a pair for every direction,
/// $$ d\theta = -\eta p\thinspace M\thinspace dt, \qquad dM = \delta(\mu\lambda\thinspace\theta - p\thinspace M)\thinspace dt +
/// \delta\sqrt{\tfrac1d\lambda\thinspace m^{(2)}}\thinspace dB, $$
/// with $p$ and $\eta$ as in the [ODE](super::Ode). Over a step with $\eta, p, \mu, m^{(2)}$ held fixed
/// it is an Ornstein–Uhlenbeck process in two dimensions, from whose distribution the exponential scheme
/// draws, so that large $\delta$ needs no small steps. Every direction is simulated, also where
/// eigenvalues repeat.
///
/// ```
/// use toclip::dynamics::{Hsgd, Simulator};
/// use toclip::noise::StudentT;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// use toclip::{Memory, Momentum, Problem};
///
/// // Figure 1b of the paper: Cauchy noise.
/// let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &Start::Uniform { norm: 1.0 })?;
/// let problem = Problem::new(modes, StudentT::new(1.0, 0.5)?, OpenLoop::constant(0.6, 0.4)?)?;
/// let run = Hsgd::new(&problem)?.run(1, 0, &[0.0, 15.0]);
/// assert!((run.risk[1] - 0.07).abs() < 0.03);
/// let average = problem.with_optimizer(Momentum::average(Memory::Delta(2.0))?)?;
/// let run = Hsgd::new(&average)?.run(1, 0, &[15.0]);
/// assert!((run.risk[0] - 0.07).abs() < 0.03);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Hsgd {
    pub(crate) problem: Problem,
    pub(crate) blocks: Blocks,
    flat: Flat,
    /// Where coordinates have factors of their own.
    factors: Option<Arc<ModeFactors>>,
    /// Where those of all coordinates take long to compute.
    table: Option<FactorTable>,
    pub(crate) scheme: Scheme,
    /// $h$.
    pub(super) fraction: f64,
    /// $\operatorname{Tr} K^2$.
    pub(crate) trace_sq: f64,
    pub(super) limit: f64,
}

/// How a step of [`Hsgd`] is taken: $\theta \leftarrow a\theta + g\xi$.
///
/// | | $a$ | $g^2$ | $\eta$, $\mu$, $m^{(2)}$ of the | weak order | strong order |
/// |---|---|---|---|---|---|
/// | `EulerMaruyama` | $1 - x$ | $q$ | start of the step | 1 | 1/2 |
/// | `Exponential` | $e^{-x}$ | $q\thinspace \frac{1 - e^{-2x}}{2x}$ | middle of the step | 2, see below | 1/2 |
///
/// with $x = \eta\mu\lambda\Delta$ and $q = \eta^2\lambda m^{(2)}\Delta/d$. $R$ in the middle is
/// predicted with the drift of the step before, so that both evaluate $\mu$ and $m^{(2)}$ once a
/// step. The weak order 2 is that of $d \to \infty$, and of any $d$ without clipping; otherwise
/// the fluctuation of $R$ within a step leaves an error of order $\Delta/d$. With 32 steps over
/// $T = 3$ the exponential scheme came as near to the ODE as Euler–Maruyama would with 3000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Scheme {
    /// Euler–Maruyama, the simplest.
    EulerMaruyama,
    /// Exponential Euler with coefficients at mid-step; the default.
    #[default]
    Exponential,
}

/// Drift and diffusion of the coordinates in one step.
#[derive(Debug, Clone)]
pub(crate) struct Rates {
    /// $\eta\mu$; the largest of all blocks.
    drift: f64,
    /// $\eta^2 m^{(2)}/d$.
    diffusion: f64,
    /// The same two of every block, where they differ, with $m^{(2)}/\lambda$ for $m^{(2)}$.
    of_blocks: Option<Arc<Vec<[f64; 2]>>>,
    /// $\eta^2\sigma^2c^2/B^2$.
    private: f64,
    /// The inverse of the time in which $R$ and $m^{(2)}$ change by their size.
    speed: f64,
}

/// Where a path is.
#[derive(Debug, Clone)]
struct State {
    u: Vec<f64>,
    squares: Vec<f64>,
    risk: f64,
    distance: f64,
    flat: Flat,
}

impl Hsgd {
    /// The default step $h$. Measured in the worst case, without noise and clipping and with $\eta
    /// = 1$, the weak error is $0.2\thinspace h^2\eta t$ of $R$: here $10^{-4}$ in a unit of time.
    pub const TIME_STEP: f64 = 0.02;

    /// C-HSGD of a problem.
    ///
    /// # Errors
    /// [`Error::Combination`] for a problem that C-HSGD does not simulate, among them compressed modes,
    /// whose multiplicities are not integers, and momentum in more than $10^8$ directions.
    pub fn new(problem: &Problem) -> Result<Self> {
        problem.check_method(Method::Hsgd)?;
        let (modes, step) = (problem.modes(), problem.step());
        Ok(Self {
            problem: problem.clone(),
            blocks: Blocks::new(modes)?,
            flat: Flat::new(modes)?,
            factors: ModeFactors::new(modes, step)?.map(Arc::new),
            table: FactorTable::new(step),
            scheme: Scheme::default(),
            fraction: Self::TIME_STEP,
            trace_sq: modes.trace_sq(),
            limit: problem.divergence_limit(),
        })
    }

    /// The same with another scheme.
    pub fn with_scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// $h$: the same with steps of at most this fraction of the time in which $R$ changes.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless $0 < h \le 1$.
    pub fn with_time_step(mut self, step: f64) -> Result<Self> {
        if !(step > 0.0 && step <= 1.0) {
            return Err(Error::parameter("time_step", step, "give a number above 0 and at most 1"));
        }
        self.fraction = step;
        Ok(self)
    }

    fn start(&self) -> State {
        let u = self.blocks.lengths.clone();
        let squares: Vec<f64> = u.iter().map(|u| u * u).collect();
        let (risk, distance) = self.blocks.risk_and_distance(&squares);
        State { u, squares, risk, distance, flat: self.flat.clone() }
    }

    /// $\mu$ and $m^{(2)}$ under the policy, whose threshold is `c`.
    pub(crate) fn moments(&self, risk: f64, c: f64) -> Moments {
        let (step, policy) = (self.problem.step(), self.problem.policy());
        match &self.table {
            Some(table) => table.under_policy(step, policy, risk, c),
            None => step.moments(risk, c),
        }
    }

    fn rates(&self, t: f64, risk: f64) -> Rates {
        let control = self.problem.policy().at(t, risk);
        let of_blocks = self.factors.as_ref().map(|f| self.block_rates(f, risk, control));
        let (drift, diffusion) = match &of_blocks {
            None => {
                let clipped = self.moments(risk, control.c);
                let diffusion = control.eta * control.eta * clipped.m2 / self.blocks.dim;
                (control.eta * clipped.mu, diffusion)
            }
            Some(rates) => (rates.iter().map(|r| r[0]).fold(0.0, f64::max), f64::NAN),
        };
        let private = match self.problem.step().private_variance(control.c) {
            0.0 => 0.0,
            variance => control.eta * control.eta * variance,
        };
        Rates {
            drift,
            diffusion,
            of_blocks: of_blocks.map(Arc::new),
            private,
            // By the heat equation m2 grows with R at most at the rate 2μ: its relative change is
            // that of R in the noise term times μ, which is where the second factor comes from.
            // Skipping may push the wrong way.
            speed: drift.abs() * (control.eta * self.trace_sq / self.blocks.dim).max(1.0),
        }
    }

    /// $\eta\mu_b$ and $\eta^2 m^{(2)}_b/(d\lambda_b)$.
    fn block_rates(&self, factors: &ModeFactors, risk: f64, control: Control) -> Vec<[f64; 2]> {
        let (mut mu, mut m2) = (vec![0.0; factors.len()], vec![0.0; factors.len()]);
        factors.at(self.problem.step(), risk, control.c, &mut mu, &mut m2);
        let rate = |(mode, lambda): (&usize, &f64)| {
            let diffusion = control.eta * control.eta * m2[*mode] / (self.blocks.dim * lambda);
            [control.eta * mu[*mode], diffusion]
        };
        self.blocks.modes.iter().zip(&self.blocks.lambda).map(rate).collect()
    }

    /// $R$ after `dt` without fluctuations, to first order.
    fn predicted(&self, state: &State, rates: &Rates, dt: f64) -> f64 {
        let drift = if let Some(of_blocks) = &rates.of_blocks {
            let parts = of_blocks.iter().zip(&self.blocks.lambda_sq);
            let parts = parts.zip(self.blocks.counts.iter().zip(&state.squares));
            parts.map(|(([drift, q], l_sq), (n, u_sq))| l_sq * (0.5 * q * n - drift * u_sq)).sum()
        } else {
            let slope = 0.5 * dot(&self.blocks.lambda_sq, &state.squares);
            0.5 * rates.diffusion * self.trace_sq - 2.0 * rates.drift * slope
        };
        let private = 0.5 * rates.private * self.blocks.dim;
        (state.risk + dt * (drift + private)).max(0.0)
    }

    /// One step with normals `z`, one a block, and $\chi^2$ draws `h` of the blocks of several.
    fn advance(&self, state: &mut State, rates: &Rates, dt: f64, z: &[f64], h: &[f64]) {
        let (x, q) = (rates.drift * dt, rates.diffusion * dt);
        if rates.of_blocks.is_some() || rates.private > 0.0 {
            let same = [rates.drift, rates.diffusion];
            let of_block = |i: usize| rates.of_blocks.as_ref().map_or(same, |all| all[i]);
            return self.apply(state, h, z, |i, l| {
                let [drift, diffusion] = of_block(i);
                let (x, q) = (drift * dt * l, diffusion * dt * l + rates.private * dt);
                match self.scheme {
                    Scheme::EulerMaruyama => (1.0 - x, q),
                    // The variance of a mode that does not decay grows with time.
                    Scheme::Exponential if x == 0.0 => (1.0, q),
                    Scheme::Exponential => ((-x).exp(), q * (-0.5 * (-2.0 * x).exp_m1() / x)),
                }
            });
        }
        // λ ≤ 1, so x is the largest of all.
        match self.scheme {
            Scheme::EulerMaruyama => self.apply(state, h, z, |_, l| (1.0 - x * l, q * l)),
            Scheme::Exponential if x <= SMALL => self.apply(state, h, z, |_, l| {
                let p = decay_small(x * l);
                let a = 1.0 - x * l * p;
                (a, q * l * p * (0.5 + 0.5 * a))
            }),
            Scheme::Exponential => self.apply(state, h, z, |_, l| {
                let a = (-x * l).exp();
                (a, q * l * (-0.5 * (-2.0 * x * l).exp_m1() / (x * l)))
            }),
        }
    }

    /// $\theta \leftarrow a\theta + g\xi$ with $(a, g^2)$ of every $\lambda$.
    fn apply(
        &self,
        state: &mut State,
        h: &[f64],
        z: &[f64],
        coefficients: impl Fn(usize, f64) -> (f64, f64),
    ) {
        let Blocks { lambda, .. } = &self.blocks;
        let columns = state.u.iter_mut().zip(&mut state.squares).zip(z).zip(lambda);
        for (i, (((u, square), z), &lambda)) in columns.enumerate() {
            let (a, g_sq) = coefficients(i, lambda);
            *u = a * *u + g_sq.sqrt() * z;
            *square = *u * *u;
        }
        for (i, (((u, square), h), &lambda)) in
            state.u.iter_mut().zip(&mut state.squares).zip(h).zip(lambda).enumerate()
        {
            *square += coefficients(i, lambda).1 * h;
            *u = square.sqrt();
        }
        (state.risk, state.distance) = self.blocks.risk_and_distance(&state.squares);
    }
}

/// Up to here [`decay_small`] is exact to rounding: the first term left out is $x^9/10!$.
const SMALL: f64 = 0.0625;

/// $(1 - e^{-x})/x$ by its series, which a loop over eigenvalues can vectorise.
fn decay_small(x: f64) -> f64 {
    const INVERSE_FACTORIALS: [f64; 8] = [
        1.0 / 362_880.0,
        -1.0 / 40_320.0,
        1.0 / 5_040.0,
        -1.0 / 720.0,
        1.0 / 120.0,
        -1.0 / 24.0,
        1.0 / 6.0,
        -1.0 / 2.0,
    ];
    INVERSE_FACTORIALS.iter().fold(0.0, |sum, c| (sum + c) * x) + 1.0
}

impl Simulator for Hsgd {
    fn run(&self, seed: u64, index: u64, times: &[f64]) -> Trajectory {
        self.problem.optimizer().diffuse(self, seed, index, times)
    }
}

impl Hsgd {
    /// The start of a path of plain SGD.
    pub(crate) fn path(&self, seed: u64, index: u64) -> CollapsedPath<'_> {
        let state = self.start();
        CollapsedPath {
            hsgd: self,
            normals: Normals::new(seed, index, Purpose::Brownian),
            across: scalar_rng(seed, index, Purpose::Lengths),
            private: scalar_rng(seed, index, Purpose::Privacy),
            z: vec![0.0; state.u.len()],
            h: vec![0.0; self.blocks.rest.len()],
            state,
        }
    }
}

/// A path of plain SGD, and its random numbers.
pub(crate) struct CollapsedPath<'a> {
    hsgd: &'a Hsgd,
    state: State,
    normals: Normals,
    across: Xoshiro256PlusPlus,
    private: Xoshiro256PlusPlus,
    /// The draws of a step: normal ones, one a block, and $\chi^2$ ones of the blocks of several.
    z: Vec<f64>,
    h: Vec<f64>,
}

impl Diffusion for CollapsedPath<'_> {
    type Rates = Rates;

    fn risk(&self) -> f64 {
        self.state.risk
    }

    fn distance(&self) -> f64 {
        self.state.distance
    }

    fn rates(&self, t: f64, risk: f64) -> Rates {
        self.hsgd.rates(t, risk)
    }

    fn speed(&self, rates: &Rates) -> f64 {
        let growth = 0.5 * rates.private * self.hsgd.blocks.dim;
        if growth > 0.0 {
            // The factors change with R in proportion to R and the noise.
            rates.speed.max(growth / (self.state.risk + self.hsgd.limit * 1e-10))
        } else {
            rates.speed
        }
    }

    fn predicted_risk(&self, rates: &Rates, dt: f64) -> f64 {
        self.hsgd.predicted(&self.state, rates, dt)
    }

    fn advance(&mut self, rates: &Rates, dt: f64) {
        let Self { hsgd, state, z, h, .. } = self;
        self.normals.fill(z);
        for (h, rest) in h.iter_mut().zip(&hsgd.blocks.rest) {
            *h = rest.sample(&mut self.across);
        }
        hsgd.advance(state, rates, dt, z, h);
        if rates.private > 0.0 {
            state.flat.diffuse((rates.private * dt).sqrt(), &mut self.private);
            state.distance += state.flat.square - hsgd.flat.square;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamics::Stop;
    use crate::noise::{Gaussian, Laplace, NoNoise, Noise};
    use crate::policy::{OpenLoop, Schedule, Shape};
    use crate::spectrum::{Modes, Spectrum, Start};

    fn isotropic(n: u64, noise: impl Noise + 'static, eta: Schedule, c: Schedule) -> Hsgd {
        let modes = Modes::new(&Spectrum::isotropic(n).unwrap(), &Start::Uniform { norm: 1.0 });
        let problem = Problem::new(modes.unwrap(), noise, OpenLoop::new(eta, c));
        Hsgd::new(&problem.unwrap()).unwrap()
    }

    /// The slope of log error against log step, steps halved each time.
    fn orders(errors: &[f64]) -> Vec<f64> {
        errors.windows(2).map(|w| (w[0] / w[1]).log2()).collect()
    }

    #[test]
    fn the_series_is_exact_to_rounding() {
        for k in 1..=100 {
            let x = SMALL * f64::from(k) / 100.0;
            let exact = -(-x).exp_m1() / x;
            assert!((decay_small(x) / exact - 1.0).abs() < 3e-16, "{x}");
        }
        assert_eq!(decay_small(0.0), 1.0);
    }

    #[test]
    fn weak_orders_in_large_dimensions() {
        // In 10^14 dimensions the fluctuations are 1e-7 of R, which is below 0.1, and the errors
        // seen here at least 1e-6: what is left is the weak error of the scheme against the ODE
        // R' = −2ημR + η² m2/2, here by Runge–Kutta with an error below 1e-12.
        let noise = || Laplace::new(0.5).unwrap();
        let eta = Shape::Cosine { from: 1.2, to: 0.2, over: 4.0, warmup: 0.0 };
        let eta = Schedule::new(eta).unwrap();
        let c = Schedule::constant(0.6).unwrap();
        let slope = |t: f64, r: f64| {
            let (eta, at) = (eta.at(t), noise().clipped(r, 0.6));
            -2.0 * eta * at.mu * r + 0.5 * eta * eta * at.m2
        };
        let (mut r, n) = (0.5, 2000);
        let dt = 3.0 / f64::from(n);
        for k in 0..n {
            let t = f64::from(k) * dt;
            let k1 = slope(t, r);
            let k2 = slope(t + 0.5 * dt, r + 0.5 * dt * k1);
            let k3 = slope(t + 0.5 * dt, r + 0.5 * dt * k2);
            let k4 = slope(t + dt, r + dt * k3);
            r += dt / 6.0 * (k1 + 2.0 * (k2 + k3) + k4);
        }
        let error = |scheme, count: u32| {
            let hsgd = isotropic(100_000_000_000_000, noise(), eta.clone(), c.clone());
            let hsgd = hsgd.with_scheme(scheme).with_time_step(1.0).unwrap();
            // Saved so often that every step is from one saved time to the next.
            let share = 3.0 / f64::from(count);
            let times: Vec<f64> = (0..=count).map(|i| f64::from(i) * share).collect();
            let run = hsgd.run(1, 0, &times);
            assert_eq!(run.counts.steps, u64::from(count));
            (run.risk[count as usize] - r).abs()
        };
        for order in orders(&[128, 256, 512].map(|n| error(Scheme::EulerMaruyama, n))) {
            assert!((order - 1.0).abs() < 0.1, "Euler–Maruyama: {order}");
        }
        for order in orders(&[16, 32, 64].map(|n| error(Scheme::Exponential, n))) {
            assert!((order - 2.0).abs() < 0.2, "exponential: {order}");
        }
    }

    #[test]
    fn weak_orders_in_one_dimension() {
        // Without clipping E R' is linear in R, in any dimension, and three points of z give the
        // mean of a step exactly: no sampling error. E R solves R' = −2ηR + η²(R + σ²/2).
        let (eta, sigma, r0, time) = (0.8_f64, 0.5, 0.5, 2.0);
        let rest = eta * sigma * sigma / 2.0 / (2.0 - eta);
        let exact = rest + (r0 - rest) * (-eta * (2.0 - eta) * time).exp();
        let error = |scheme, count: u32| {
            let schedule = Schedule::constant(eta).unwrap();
            let hsgd = isotropic(1, Gaussian::new(sigma).unwrap(), schedule, Schedule::never());
            let hsgd = hsgd.with_scheme(scheme);
            let dt = time / f64::from(count);
            let mean = (0..count).fold(r0, |r, _| {
                let length = (2.0 * r).sqrt();
                let mut state = hsgd.start();
                (state.u[0], state.squares[0], state.risk) = (length, length * length, r);
                let mut rates = hsgd.rates(0.0, r);
                if scheme == Scheme::Exponential {
                    rates = hsgd.rates(0.0, hsgd.predicted(&state, &rates, 0.5 * dt));
                }
                let after = |z: f64| {
                    let mut state = state.clone();
                    hsgd.advance(&mut state, &rates, dt, &[z], &[]);
                    state.risk
                };
                2.0 / 3.0 * after(0.0) + (after(3_f64.sqrt()) + after(-3_f64.sqrt())) / 6.0
            });
            (mean - exact).abs()
        };
        for (scheme, theory) in [(Scheme::EulerMaruyama, 1.0), (Scheme::Exponential, 2.0)] {
            for order in orders(&[64, 128, 256].map(|count| error(scheme, count))) {
                assert!((order - theory).abs() < 0.05, "{scheme:?}: {order}");
            }
        }
    }

    #[test]
    fn strong_orders_in_one_dimension() {
        // dθ = −ηθ dt + η√(θ² + σ²) dB, the noise as multiplicative as it gets: order 1/2. The mean
        // of |θ_Δ(T) − θ_{Δ/2}(T)| on one Brownian path is of the same order as the error. With
        // 2000 paths the order from steps 8 times apart has a standard deviation of 0.015.
        let (eta, time, finest) = (1.0_f64, 1.0, 2048);
        let noise = Gaussian::new(0.3).unwrap();
        let hsgd = isotropic(1, noise, Schedule::constant(eta).unwrap(), Schedule::never());
        for scheme in [Scheme::EulerMaruyama, Scheme::Exponential] {
            let hsgd = hsgd.clone().with_scheme(scheme);
            let mut gaps = [0.0_f64; 5];
            for path in 0..2000 {
                let mut z = vec![0.0; finest];
                Normals::new(2, path, Purpose::Brownian).fill(&mut z);
                let mut finer: Option<f64> = None;
                for gap in (0..=gaps.len()).rev() {
                    let dt = time / z.len() as f64;
                    let mut state = hsgd.start();
                    for z in &z {
                        let mut rates = hsgd.rates(0.0, state.risk);
                        if scheme == Scheme::Exponential {
                            rates = hsgd.rates(0.0, hsgd.predicted(&state, &rates, 0.5 * dt));
                        }
                        hsgd.advance(&mut state, &rates, dt, &[*z], &[]);
                    }
                    if let Some(finer) = finer {
                        let gap = &mut gaps[gap];
                        *gap += (state.u[0] - finer).abs();
                    }
                    finer = Some(state.u[0]);
                    // The normal that drives a step twice as long: of ∫dB for Euler–Maruyama, of
                    // ∫exp(−η(t − s))dB, which is what it draws, for the exponential scheme.
                    let a = if scheme == Scheme::Exponential { (-eta * dt).exp() } else { 1.0 };
                    let norm = (1.0 + a * a).sqrt();
                    z = z.chunks_exact(2).map(|pair| (a * pair[0] + pair[1]) / norm).collect();
                }
            }
            let order = (gaps[1] / gaps[4]).log2() / 3.0;
            assert!((order - 0.5).abs() < 0.1, "{scheme:?}: {order}");
        }
    }

    #[test]
    fn steps_land_on_saved_times_and_breakpoints() {
        let eta = Shape::Step { value: 1.0, factor: 0.1, at: vec![0.5, 1.5], warmup: 0.0 };
        let eta = Schedule::new(eta).unwrap();
        let hsgd = isotropic(1 << 50, NoNoise, eta, Schedule::never());
        // Without noise R' = −2ηR + η²R, with η = 1, 0.1, 0.01 in turn.
        let times = [0.25, 0.5, 1.0, 1.0, 1.5, 3.0];
        let run = hsgd.run(1, 0, &times);
        assert_eq!(run.times, times);
        let exponents = [0.25, 0.5, 0.595, 0.595, 0.69, 0.69 + 1.5 * 0.0199];
        for (r, x) in run.risk.iter().zip(exponents) {
            let exact = 0.5 * f64::exp(-x);
            assert!((r / exact - 1.0).abs() < 1e-4, "{r} {exact}");
        }
        assert_eq!(run, hsgd.run(1, 0, &times));
        assert_ne!(run.risk, hsgd.run(1, 1, &times).risk);
    }

    #[test]
    fn divergence_is_reported_and_leaves_no_nan() {
        let eta = || Schedule::constant(4.0).unwrap();
        let hsgd = isotropic(50, NoNoise, eta(), Schedule::never());
        let times: Vec<f64> = (0..100).map(f64::from).collect();
        let run = hsgd.run(1, 0, &times);
        assert!(matches!(run.stop, Stop::Diverged { t } if t > 1.0 && t < 20.0), "{}", run.stop);
        assert!(run.times.len() == run.risk.len() && run.risk.iter().all(|r| r.is_finite()));
        // Infinite variance without clipping: no diffusion is large enough.
        let cauchy = crate::noise::StudentT::new(1.0, 0.5).unwrap();
        let run = isotropic(50, cauchy, eta(), Schedule::never()).run(1, 0, &times);
        assert!(matches!(run.stop, Stop::Diverged { .. }) && run.risk == [0.5]);
    }

    #[test]
    fn impossible_steps_are_refused() {
        let one = || Schedule::constant(1.0).unwrap();
        for step in [0.0, -1.0, f64::NAN, 2.0] {
            let error = isotropic(5, NoNoise, one(), one()).with_time_step(step).unwrap_err();
            assert!(error.to_string().contains("step = "), "{error}");
        }
    }
}
