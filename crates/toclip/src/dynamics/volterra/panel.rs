//! The integral equation on one panel of time.

use super::collocation::{Collocation, NODES, Nodal};
use crate::dynamics::solver::Drive;
use crate::numerics::sum::dot;
use crate::problem::Problem;

/// The largest $2\Delta\Gamma$ of a panel: polynomials do not follow $e^{2\Gamma}$ further.
const REACH: f64 = 12.0;

/// Iterations after which a shorter panel is cheaper than going on.
const MOST_ITERATIONS: u32 = 40;

/// What the equation says at one time.
#[derive(Debug, Clone, Copy)]
pub(super) struct PanelPoint {
    /// $\Gamma_t$.
    pub gamma: f64,
    /// $(R, D/2)$ of gradient flow.
    pub flow: [f64; 2],
    /// $(R, D/2)$ of the finite-step correction.
    pub correction: [f64; 2],
}

impl PanelPoint {
    /// $(R, D/2)$.
    pub fn sums(&self) -> [f64; 2] {
        [0, 1].map(|i| self.flow[i] + self.correction[i])
    }
}

/// The equation, everything up to the start of the panel being known, and its solution there.
#[derive(Debug)]
pub(super) struct Panel<'a> {
    pub drive: Drive<'a>,
    rule: Collocation,
    lambda: Vec<f64>,
    /// $\lambda n/2d$.
    source: Vec<f64>,
    /// $v(0)$.
    energy: Vec<f64>,
    /// Where the panel starts, and $\Gamma$ there.
    pub t: f64,
    gamma: f64,
    /// $v(0)\thinspace e^{-2\lambda\Gamma}$ at the start of the panel.
    flow: Vec<f64>,
    /// $\frac{\lambda n}{2d} \int \eta_s^2 m_{2,s}\thinspace e^{-2\lambda(\Gamma -
    /// \Gamma_s)}\thinspace ds$ up to the start of the panel: all that the kernel, a sum of
    /// exponentials, remembers.
    history: Vec<f64>,
    h: f64,
    /// $\eta\mu$ at the nodes.
    drift: Nodal,
    /// $\eta^2 m_2$ at the nodes.
    heat: Nodal,
    /// $e^{2\lambda(\Gamma_k - \Gamma)}$ at node $k$.
    growth: Vec<Vec<f64>>,
    scratch: [Vec<f64>; 2],
}

impl<'a> Panel<'a> {
    pub fn new(problem: &'a Problem) -> Self {
        let modes = problem.modes();
        let of = modes.modes();
        let energy: Vec<f64> = of.iter().map(|m| m.energy).collect();
        let zeros = vec![0.0; of.len()];
        Panel {
            drive: Drive::new(problem.step(), problem.policy()),
            rule: Collocation::new(),
            lambda: of.iter().map(|m| m.lambda).collect(),
            source: of.iter().map(|m| 0.5 * m.lambda * m.count / modes.dim()).collect(),
            flow: energy.clone(),
            energy,
            t: 0.0,
            gamma: 0.0,
            history: zeros.clone(),
            h: 0.0,
            drift: [0.0; NODES],
            heat: [0.0; NODES],
            growth: vec![zeros.clone(); NODES],
            scratch: [zeros.clone(), zeros],
        }
    }

    /// What the equation says at the start of the panel.
    pub fn start(&self) -> PanelPoint {
        self.point(0.0, &[0.0; NODES])
    }

    /// What it says at $t$ in the panel, once solved.
    pub fn at(&self, t: f64) -> PanelPoint {
        let integrals = self.rule.integrals((t - self.t) / self.h);
        let gamma = self.h * inner(&integrals, &self.drift);
        self.point(gamma, &std::array::from_fn(|k| self.h * integrals[k] * self.heat[k]))
    }

    /// The equation at `gamma` after the start of the panel, the integral over the panel being
    /// $\sum_k$ `weights`$_k\thinspace e^{-2\lambda(\Gamma_t - \Gamma_k)}$.
    fn point(&self, gamma: f64, weights: &Nodal) -> PanelPoint {
        let (mut flow, mut correction) = ([0.0; 2], [0.0; 2]);
        for i in 0..self.lambda.len() {
            let lambda = self.lambda[i];
            let decay = (-2.0 * lambda * gamma).exp();
            let fresh: f64 = (0..NODES).map(|k| weights[k] * self.growth[k][i]).sum();
            let (old, new) =
                (decay * self.flow[i], decay * (self.history[i] + self.source[i] * fresh));
            flow = [flow[0] + lambda * old, flow[1] + old];
            correction = [correction[0] + lambda * new, correction[1] + new];
        }
        PanelPoint { gamma: self.gamma + gamma, flow, correction }
    }

    /// Solves the equation on a panel of length `h` by iterating it: the Volterra operator is
    /// quasi-nilpotent, so that this converges faster than any geometric series.
    ///
    /// `false` if it did not converge to the relative `tolerance`, or if the panel is too long from
    /// the start.
    pub fn solve(&mut self, h: f64, latest: f64, tolerance: f64) -> bool {
        self.h = h;
        let mut risks = [self.start().sums()[0]; NODES];
        for _iteration in 0..MOST_ITERATIONS {
            for (k, risk) in risks.iter().enumerate() {
                let t = (self.t + h * self.rule.nodes[k]).min(latest);
                (self.drift[k], self.heat[k]) = self.drive.force(t, *risk);
            }
            let gammas = self.rule.partial.map(|row| h * inner(&row, &self.drift));
            // NaN is not within reach either.
            if !gammas.iter().all(|gamma| 2.0 * gamma.abs() <= REACH)
                || !self.heat.iter().all(|heat| heat.is_finite())
            {
                return false;
            }
            for (growth, gamma) in self.growth.iter_mut().zip(gammas) {
                for (x, lambda) in growth.iter_mut().zip(&self.lambda) {
                    *x = (2.0 * lambda * gamma).exp();
                }
            }
            let next: Nodal = std::array::from_fn(|j| self.risk_at_node(j));
            let settled = (0..NODES).all(|j| (next[j] - risks[j]).abs() <= tolerance * next[j]);
            risks = next;
            if settled {
                return true;
            }
        }
        false
    }

    /// $R$ at node $j$ from the equation.
    fn risk_at_node(&mut self, j: usize) -> f64 {
        let [inside, value] = &mut self.scratch;
        inside.fill(0.0);
        for k in 0..NODES {
            let weight = self.h * self.rule.partial[j][k] * self.heat[k];
            for (x, growth) in inside.iter_mut().zip(&self.growth[k]) {
                *x += weight * growth;
            }
        }
        for i in 0..value.len() {
            let remembered = self.flow[i] + self.history[i] + self.source[i] * inside[i];
            value[i] = remembered / self.growth[j][i];
        }
        dot(&self.lambda, value)
    }

    /// A bound on the error of $(R, D/2)$ from a panel that ends at `end`: the misfit of the
    /// polynomials at its two ends, where no node lies and the misfit is largest, times the length
    /// of the panel.
    pub fn defect(&mut self, end: f64, latest: f64) -> [f64; 2] {
        let point = self.at(end);
        let ends = [
            (self.t, self.start(), self.rule.values(0.0)),
            (end.min(latest), point, self.rule.values(1.0)),
        ];
        let mut worst = [0.0_f64; 2];
        for (t, point, values) in ends {
            let (drift, heat) = self.drive.force(t, point.sums()[0]);
            let lag = 2.0 * (inner(&values, &self.drift) - drift).abs();
            let gamma = point.gamma - self.gamma;
            let mut missed = [0.0; 2];
            for i in 0..self.lambda.len() {
                let lambda = self.lambda[i];
                let decay = (-2.0 * lambda * gamma).exp();
                let through: f64 =
                    (0..NODES).map(|k| values[k] * self.heat[k] * self.growth[k][i]).sum();
                let mode = decay * (self.flow[i] + self.history[i]);
                let miss = self.source[i] * (heat - decay * through).abs() + lag * lambda * mode;
                missed = [missed[0] + lambda * miss, missed[1] + miss];
            }
            for i in 0..2 {
                // `max` would drop a NaN.
                let here = self.h * missed[i];
                worst[i] = if here.is_nan() { f64::INFINITY } else { worst[i].max(here) };
            }
        }
        worst
    }

    /// Makes the end of the panel the start of the next.
    pub fn advance(&mut self, end: f64) {
        let integrals = self.rule.integrals(1.0);
        let gamma = self.h * inner(&integrals, &self.drift);
        self.gamma += gamma;
        for i in 0..self.lambda.len() {
            let lambda = self.lambda[i];
            let fresh: f64 =
                (0..NODES).map(|k| integrals[k] * self.heat[k] * self.growth[k][i]).sum();
            let remembered = self.history[i] + self.source[i] * self.h * fresh;
            self.history[i] = (-2.0 * lambda * gamma).exp() * remembered;
            // From the start and not from panel to panel: gradient flow is known exactly.
            self.flow[i] = self.energy[i] * (-2.0 * lambda * self.gamma).exp();
        }
        self.t = end;
    }
}

fn inner(a: &Nodal, b: &Nodal) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::StudentT;
    use crate::policy::OpenLoop;
    use crate::spectrum::{Modes, Spectrum, Start};

    /// $(R, D/2)$ at `t` by panels of length `h`, and what the last panel says of itself.
    fn panels(t: f64, h: f64) -> ([f64; 2], [f64; 2]) {
        let spectrum = Spectrum::power_law(7, 0.8).unwrap();
        let modes = Modes::new(&spectrum, &Start::Uniform { norm: 2.0 }).unwrap();
        let (noise, policy) = (StudentT::new(2.0, 0.4), OpenLoop::constant(0.9, 0.8));
        let problem = Problem::new(modes, noise.unwrap(), policy.unwrap()).unwrap();
        let mut panel = Panel::new(&problem);
        loop {
            assert!(panel.solve(h, f64::INFINITY, 1e-15), "no convergence");
            let end = panel.t + h;
            if t <= end {
                return (panel.at(t).sums(), panel.defect(end, f64::INFINITY));
            }
            panel.advance(end);
        }
    }

    #[test]
    fn the_order_inside_a_panel_is_that_of_the_polynomials() {
        // Polynomials through 12 nodes miss h^12, and their integral over the panel h^13.
        let lengths: [f64; 2] = [5.0, 3.5];
        let errors = lengths.map(|h| {
            let (got, defect) = panels(0.1 * h, h);
            let exact = panels(0.1 * h, 0.1 * h).0;
            let error = (got[0] - exact[0]).abs();
            assert!(error < defect[0], "the defect {:e} hides {error:e}", defect[0]);
            error
        });
        let order = (errors[0] / errors[1]).ln() / (lengths[0] / lengths[1]).ln();
        println!("{errors:?} {order}");
        assert!(errors[1] > 1e-13, "nothing is measured at the level of rounding");
        assert!(order > 12.5, "{order}");
    }

    #[test]
    fn ends_of_panels_are_better_still() {
        // Gauss points: order 24 at the ends, so that two panels are exact to rounding.
        let (two, many) = (panels(2.0, 1.0).0, panels(2.0, 0.125).0);
        assert!((two[0] / many[0] - 1.0).abs() < 2e-14, "{:e}", two[0] / many[0] - 1.0);
        assert!((two[1] / many[1] - 1.0).abs() < 2e-14);
    }
}
