//! The collocation method of Radau with seven nodes, and the basis in which its stages decouple.

use num_complex::Complex64;
use std::sync::LazyLock;

/// The number of nodes; odd, so that one eigenvalue of the method is real.
pub(super) const NODES: usize = 7;
/// Pairs of complex eigenvalues.
pub(super) const PAIRS: usize = NODES / 2;

/// Radau IIA (Hairer and Wanner, *Solving Ordinary Differential Equations II*, IV.5): the
/// polynomial of degree 7 that solves the equation at the nodes, the last of which is the end of
/// the step. Order 13 at the end, 8 inside, and stiff parts decay at once (L-stable).
///
/// With $A$ the matrix of the method, $A = T \operatorname{diag}(\rho)\thinspace T^{-1}$. Rows and
/// columns of a complex pair are stored as real and imaginary part.
#[derive(Debug)]
pub(super) struct Radau {
    /// $c_j$, from above 0 to 1.
    pub nodes: [f64; NODES],
    /// The real $\rho$.
    pub real: f64,
    /// One of each pair of complex $\rho$.
    pub pairs: [Complex64; PAIRS],
    /// From stages to the basis.
    pub into_basis: [[f64; NODES]; NODES],
    /// And back.
    pub from_basis: [[f64; NODES]; NODES],
    /// $\ell_j(0)$: extrapolates values at the nodes to the start of the step.
    pub at_start: [f64; NODES],
    /// Barycentric weights of the start and the nodes.
    weights: [f64; NODES + 1],
}

/// Computed once.
pub(super) static RADAU: LazyLock<Radau> = LazyLock::new(Radau::new);

impl Radau {
    fn new() -> Self {
        let nodes = nodes();
        let mut rho = eigenvalues();
        // The real one first, then one of each pair.
        rho.retain(|r| r.im > -1e-9);
        rho.sort_by(|a, b| a.im.total_cmp(&b.im));
        let real = rho[0].re;
        let pairs: [Complex64; PAIRS] = std::array::from_fn(|k| rho[k + 1]);
        let mut basis = vec![vec![Complex64::ZERO; NODES]; NODES];
        let columns: Vec<Complex64> = std::iter::once(Complex64::from(real))
            .chain(pairs.iter().flat_map(|r| [*r, r.conj()]))
            .collect();
        for (k, rho) in columns.iter().enumerate() {
            for (j, x) in eigenvector(&nodes, *rho).into_iter().enumerate() {
                basis[j][k] = x;
            }
        }
        let inverse = inverse(basis.clone());
        let mut into_basis = [[0.0; NODES]; NODES];
        let mut from_basis = [[0.0; NODES]; NODES];
        for j in 0..NODES {
            into_basis[0][j] = inverse[0][j].re;
            from_basis[j][0] = basis[j][0].re;
            for k in (1..NODES).step_by(2) {
                into_basis[k][j] = inverse[k][j].re;
                into_basis[k + 1][j] = inverse[k][j].im;
                from_basis[j][k] = 2.0 * basis[j][k].re;
                from_basis[j][k + 1] = -2.0 * basis[j][k].im;
            }
        }
        let at_start = std::array::from_fn(|j| lagrange(&nodes, j, 0.0));
        let all: Vec<f64> = std::iter::once(0.0).chain(nodes).collect();
        let weights = std::array::from_fn(|i| {
            let others = all.iter().enumerate().filter(|(j, _)| *j != i);
            others.map(|(_, x)| all[i] - x).product::<f64>().recip()
        });
        Radau { nodes, real, pairs, into_basis, from_basis, at_start, weights }
    }

    /// The polynomial through the start and the nodes, at a share $x$ of the step.
    pub fn at<const N: usize>(
        &self,
        start: &[f64; N],
        stages: &[[f64; N]; NODES],
        x: f64,
    ) -> [f64; N] {
        let (mut above, mut below) = ([0.0; N], 0.0);
        let points = std::iter::once((0.0, start)).chain(self.nodes.into_iter().zip(stages));
        for ((node, values), weight) in points.zip(self.weights) {
            if x == node {
                return *values;
            }
            let share = weight / (x - node);
            below += share;
            for (sum, value) in above.iter_mut().zip(values) {
                *sum += share * value;
            }
        }
        above.map(|sum| sum / below)
    }
}

/// $\ell_j(x)$.
fn lagrange(nodes: &[f64; NODES], j: usize, x: f64) -> f64 {
    let others = nodes.iter().enumerate().filter(|(i, _)| *i != j);
    others.map(|(_, c)| (x - c) / (nodes[j] - c)).product()
}

/// The zeros of $P_s(2x-1) - P_{s-1}(2x-1)$, with $P$ Legendre polynomials.
fn nodes() -> [f64; NODES] {
    let difference = |x: f64| {
        let (mut before, mut p) = (1.0, x);
        for n in 1..NODES {
            let n = n as f64;
            (before, p) = (p, ((2.0 * n + 1.0) * x * p - n * before) / (n + 1.0));
        }
        p - before
    };
    let mut nodes = [1.0; NODES];
    // The sign changes between the last and the first of these; 1 itself is a zero.
    let grid = |k: usize| -(std::f64::consts::PI * k as f64 / 200.0).cos();
    let mut found = 0;
    for k in 0..199 {
        let (mut low, mut high) = (grid(k), grid(k + 1));
        if found + 1 < NODES && difference(low).signum() != difference(high).signum() {
            loop {
                let middle = 0.5 * (low + high);
                if middle <= low || middle >= high {
                    break;
                }
                if difference(middle).signum() == difference(low).signum() {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            nodes[found] = 0.5 + 0.5 * low;
            found += 1;
        }
    }
    nodes
}

/// $\rho$ with $\det(\rho - A) = 0$, that is, the zeros of the denominator of the stability
/// function, $\rho^s \sum_j \frac{s!\thinspace(2s-1-j)!}{j!\thinspace(s-j)!\thinspace(2s-1)!}
/// (-1/\rho)^j$, by Weierstrass' iteration.
fn eigenvalues() -> Vec<Complex64> {
    let s = NODES as f64;
    // From the highest power down: each from the one before.
    let mut coefficients = vec![1.0];
    for j in 0..NODES {
        let k = j as f64;
        let last = coefficients[j];
        coefficients.push(-last * (s - k) / ((k + 1.0) * (2.0 * s - 1.0 - k)));
    }
    let polynomial = |z: Complex64| coefficients.iter().fold(Complex64::ZERO, |sum, c| sum * z + c);
    let mut roots: Vec<Complex64> =
        (0..NODES).map(|k| 0.1 * Complex64::new(0.4, 0.9).powu(k as u32)).collect();
    for _ in 0..500 {
        for k in 0..NODES {
            let others = roots.iter().enumerate().filter(|(j, _)| *j != k);
            let apart: Complex64 = others.map(|(_, r)| roots[k] - r).product();
            let change = polynomial(roots[k]) / apart;
            roots[k] -= change;
        }
    }
    roots
}

/// $v$ with $Av = \rho v$: the values of $Q^\prime$ at the nodes, where $Q - \rho Q^\prime$ is
/// $N(x) = \prod_j (x - c_j)$, so that $Q = \sum_k \rho^k N^{(k)}$.
fn eigenvector(nodes: &[f64; NODES], rho: Complex64) -> Vec<Complex64> {
    // N in powers of x, from the lowest.
    let mut polynomial = vec![1.0];
    for c in nodes {
        let mut next = vec![0.0; polynomial.len() + 1];
        for (k, a) in polynomial.iter().enumerate() {
            next[k + 1] += a;
            next[k] -= c * a;
        }
        polynomial = next;
    }
    let slope = |x: f64| {
        let (mut derivative, mut power, mut sum) =
            (polynomial.clone(), Complex64::ONE, Complex64::ZERO);
        while derivative.len() > 1 {
            derivative = derivative.iter().enumerate().skip(1).map(|(k, a)| k as f64 * a).collect();
            sum += power * derivative.iter().rev().fold(0.0, |sum, a| sum * x + a);
            power *= rho;
        }
        sum
    };
    let values: Vec<Complex64> = nodes.iter().map(|x| slope(*x)).collect();
    let size = values.iter().map(|v| v.norm()).fold(0.0, f64::max);
    values.into_iter().map(|v| v / size).collect()
}

/// The inverse by elimination with pivots.
fn inverse(mut a: Vec<Vec<Complex64>>) -> Vec<Vec<Complex64>> {
    let n = a.len();
    for (i, row) in a.iter_mut().enumerate() {
        row.extend((0..n).map(|j| if i == j { Complex64::ONE } else { Complex64::ZERO }));
    }
    for k in 0..n {
        let largest = (k..n).max_by(|i, j| a[*i][k].norm().total_cmp(&a[*j][k].norm()));
        a.swap(k, largest.unwrap_or(k));
        let pivot = a[k][k];
        a[k].iter_mut().for_each(|x| *x /= pivot);
        let row = a[k].clone();
        for (i, other) in a.iter_mut().enumerate() {
            let factor = other[k];
            if i != k {
                other.iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
            }
        }
    }
    a.into_iter().map(|row| row[n..].to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::special::GAUSS_LEGENDRE_16;

    /// $A_{jk} = \int_0^{c_j} \ell_k$, the matrix of the method.
    fn matrix(nodes: &[f64; NODES]) -> [[f64; NODES]; NODES] {
        std::array::from_fn(|j| {
            std::array::from_fn(|k| {
                let half = 0.5 * nodes[j];
                let sides =
                    GAUSS_LEGENDRE_16.iter().flat_map(|(u, w)| [(1.0 - u, w), (1.0 + u, w)]);
                sides.map(|(x, w)| half * w * lagrange(nodes, k, half * x)).sum()
            })
        })
    }

    #[test]
    fn the_basis_decouples_the_method() {
        let radau = &*RADAU;
        let a = matrix(&radau.nodes);
        // Collocation: A integrates powers up to the number of nodes exactly.
        for m in 1..=NODES as i32 {
            for j in 0..NODES {
                let sum: f64 = (0..NODES).map(|k| a[j][k] * radau.nodes[k].powi(m - 1)).sum();
                let exact = radau.nodes[j].powi(m) / f64::from(m);
                assert!((sum - exact).abs() < 1e-14, "{m} {j}: {sum} {exact}");
            }
        }
        // And at the end up to twice as many, which makes it Radau's.
        for m in 1..2 * NODES as i32 {
            let sum: f64 = (0..NODES).map(|k| a[NODES - 1][k] * radau.nodes[k].powi(m - 1)).sum();
            assert!((sum * f64::from(m) - 1.0).abs() < 1e-13, "{m}: {sum}");
        }
        // A x = T ρ T⁻¹ x for every unit vector x.
        for i in 0..NODES {
            let w: [f64; NODES] = std::array::from_fn(|k| radau.into_basis[k][i]);
            let mut scaled = [0.0; NODES];
            scaled[0] = radau.real * w[0];
            for (k, rho) in radau.pairs.iter().enumerate() {
                let product = rho * Complex64::new(w[2 * k + 1], w[2 * k + 2]);
                (scaled[2 * k + 1], scaled[2 * k + 2]) = (product.re, product.im);
            }
            for j in 0..NODES {
                let sum: f64 = (0..NODES).map(|k| radau.from_basis[j][k] * scaled[k]).sum();
                assert!((sum - a[j][i]).abs() < 1e-11, "{j} {i}: {sum} {}", a[j][i]);
            }
        }
    }

    #[test]
    fn polynomials_up_to_the_degree_are_interpolated_exactly() {
        let f = |x: f64| [x.powi(NODES as i32) - 2.0 * x + 1.0];
        let stages = RADAU.nodes.map(f);
        for x in [0.0, 0.01, 0.37, RADAU.nodes[2], 0.99, 1.0] {
            assert!((RADAU.at(&f(0.0), &stages, x)[0] - f(x)[0]).abs() < 1e-14);
        }
        let extrapolated: f64 =
            (0..NODES).map(|j| RADAU.at_start[j] * RADAU.nodes[j].powi(NODES as i32 - 1)).sum();
        assert!(extrapolated.abs() < 1e-13);
    }
}
