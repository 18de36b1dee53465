//! Integrals of the polynomial through the nodes of Gauss.

use crate::numerics::gauss_rules::gauss_legendre;

/// Nodes in a panel: 12 hold $e^{2\lambda\Gamma}$ to 1e-9 over a panel in which it grows
/// thirtyfold, and cost $12^2$ products per mode.
pub(super) const NODES: usize = 12;

/// A value for every node.
pub(super) type Nodal = [f64; NODES];

/// Interpolation and integration through the Gauss–Legendre nodes of $[0, 1]$.
///
/// With $u = 2x - 1$ and the Gauss weights $w_k$, the polynomial that is one at node $k$ and zero
/// at the others is $\ell_k(u) = w_k \sum_p (p + \tfrac12) P_p(u_k) P_p(u)$, because the rule
/// integrates products of these degrees exactly; and
/// $\int_{-1}^u P_p = \[P_{p+1}(u) - P_{p-1}(u)\]/(2p + 1)$.
#[derive(Debug)]
pub(super) struct Collocation {
    /// The nodes in $[0, 1]$.
    pub nodes: Nodal,
    /// $\int_0^{x_j} \ell_k$.
    pub partial: [Nodal; NODES],
    weights: Nodal,
    /// $P_p(u_k)$.
    legendre: [Nodal; NODES],
}

impl Collocation {
    pub fn new() -> Self {
        let (mut nodes, mut weights) = ([0.0; NODES], [0.0; NODES]);
        for (k, (u, w)) in gauss_legendre(NODES).into_iter().enumerate() {
            (nodes[k], weights[k]) = (0.5 * (1.0 + u), w);
        }
        let legendre = nodes.map(|x| {
            let values = polynomials(2.0 * x - 1.0);
            std::array::from_fn(|p| values[p])
        });
        let mut rule = Collocation { nodes, weights, legendre, partial: [[0.0; NODES]; NODES] };
        rule.partial = nodes.map(|x| rule.integrals(x));
        rule
    }

    /// $\ell_k(x)$.
    pub fn values(&self, x: f64) -> Nodal {
        let at = polynomials(2.0 * x - 1.0);
        std::array::from_fn(|k| {
            let terms = (0..NODES).map(|p| (p as f64 + 0.5) * self.legendre[k][p] * at[p]);
            self.weights[k] * terms.sum::<f64>()
        })
    }

    /// $\int_0^x \ell_k$.
    pub fn integrals(&self, x: f64) -> Nodal {
        let at = polynomials(2.0 * x - 1.0);
        std::array::from_fn(|k| {
            let terms = (1..NODES).map(|p| self.legendre[k][p] * (at[p + 1] - at[p - 1]));
            0.25 * self.weights[k] * (2.0 * x + terms.sum::<f64>())
        })
    }
}

/// $P_0(u), \ldots, P_{12}(u)$.
fn polynomials(u: f64) -> [f64; NODES + 1] {
    let mut p = [1.0; NODES + 1];
    p[1] = u;
    for n in 1..NODES {
        let order = n as f64;
        p[n + 1] = ((2.0 * order + 1.0) * u * p[n] - order * p[n - 1]) / (order + 1.0);
    }
    p
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_of_full_degree_are_exact() {
        let rule = Collocation::new();
        for power in 0..NODES as i32 {
            let nodal = rule.nodes.map(|x| x.powi(power));
            for x in [0.0, 0.1, 0.37, 0.5, 0.93, 1.0] {
                let apply = |row: Nodal| row.iter().zip(nodal).map(|(a, b)| a * b).sum::<f64>();
                let (value, integral) = (apply(rule.values(x)), apply(rule.integrals(x)));
                let exact = if power == 0 { 1.0 } else { x.powi(power) };
                assert!((value - exact).abs() < 1e-13, "{power} {x} {value}");
                let exact = x * exact / f64::from(power + 1);
                assert!((integral - exact).abs() < 1e-15, "{power} {x} {integral}");
            }
        }
    }
}
