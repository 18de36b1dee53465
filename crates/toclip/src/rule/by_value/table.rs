//! $\mu$ and $m^{(2)}/\lambda$ of clipping by value, tabulated over $(\ln R, \ln u)$.

use super::Profile;
use crate::noise::Noise;
use std::collections::HashMap;
use std::f64::consts::PI;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Length of a cell in $\ln R$ and in $\ln u$, and the points in it.
const RISK: (f64, usize) = (1.5, 16);
const VALUE: (f64, usize) = (1.5, 24);
/// Risks below this are not tabulated.
const LEAST: f64 = 1e-280;

/// Both numbers by interpolation in cells that are filled when they are first used.
///
/// **Why a fixed grid is good for every noise.** As functions of $\ln u$ both are averages, over
/// $|X|$, of shifts of one function, and that is bounded and analytic where $|\Im\ln u| < \pi/4$.
/// As functions of $\ln R$ they are averages, over $\epsilon$ and $z$, of clipped moments of
/// $\sqrt{2R}\thinspace\zeta - \epsilon$ with a normal $\zeta$, which are bounded and analytic
/// where $|\Im\ln R| < \pi/2$. So Chebyshev interpolation in a cell of half lengths $h_R, h_u$
/// converges as $(w/h + \sqrt{1 + w^2/h^2})^{-n}$ with $w = \pi/2$ and $\pi/4$, whatever the noise:
/// here the factors are $4.4^{-16}$ and $2.5^{-24}$, relative to the largest value near the cell.
///
/// So $m^{(2)}$ is known to $10^{-10}$, and $\mu$ to $10^{-10}\min(1, u/s)$ with $s$ the size of the
/// residuals. Where no residual is near zero $\mu$ is far below $u/s$ for small $u$, and its relative
/// error is larger; but rates of $\eta \gg s/u$, for which that would matter, diverge.
///
/// A cell is a function of its place alone, so results depend neither on earlier evaluations nor on
/// the thread.
#[derive(Debug, Default)]
pub(crate) struct ByValueTable {
    strips: Mutex<HashMap<i64, Arc<Strip>>>,
}

/// The cells of one range of $\ln R$, and the distributions of the residual at its points.
#[derive(Debug)]
struct Strip {
    profiles: Mutex<Vec<Profile>>,
    cells: Mutex<HashMap<i64, Arc<Cell>>>,
}

/// Chebyshev coefficients of $\mu$ and $m^{(2)}/\lambda$: those of $\ln R$ outside, those of $\ln
/// u$ inside.
type Cell = Vec<[Vec<f64>; 2]>;

/// A row of the table at one risk: coefficients in $\ln u$ only, of consecutive cells.
#[derive(Debug)]
pub(crate) struct ByValueRow {
    first: i64,
    cells: Vec<[Vec<f64>; 2]>,
}

impl ByValueTable {
    /// The row at risk $r$ for all $\ln u$ from `low` to `high`.
    pub fn row(&self, noise: &dyn Noise, r: f64, low: f64, high: f64) -> ByValueRow {
        let (first, last) = (place(low, VALUE.0).0, place(high, VALUE.0).0);
        if r < LEAST {
            let mut profile = Profile::new(noise, r);
            let cells = (first..=last).map(|column| column_at(noise, &mut profile, column));
            return ByValueRow { first, cells: cells.collect() };
        }
        let (row, t) = place(r.ln(), RISK.0);
        let strip = lock(&self.strips).entry(row).or_insert_with(|| Strip::new(noise, row)).clone();
        let weights = chebyshev(t, RISK.1);
        let cells = (first..=last).map(|column| {
            let cell = strip.cell(noise, column);
            let mut sum = [vec![0.0; VALUE.1], vec![0.0; VALUE.1]];
            for (weight, coefficients) in weights.iter().zip(cell.iter()) {
                for (sum, c) in sum.iter_mut().zip(coefficients) {
                    sum.iter_mut().zip(c).for_each(|(s, c)| *s += weight * c);
                }
            }
            sum
        });
        ByValueRow { first, cells: cells.collect() }
    }
}

impl Strip {
    fn new(noise: &dyn Noise, row: i64) -> Arc<Self> {
        let risks = nodes(RISK.1).map(|t| inside(row, t, RISK.0).exp());
        let profiles = risks.map(|r| Profile::new(noise, r)).collect();
        Arc::new(Strip { profiles: Mutex::new(profiles), cells: Mutex::default() })
    }

    fn cell(&self, noise: &dyn Noise, column: i64) -> Arc<Cell> {
        if let Some(cell) = lock(&self.cells).get(&column) {
            return cell.clone();
        }
        let columns: Vec<[Vec<f64>; 2]> = lock(&self.profiles)
            .iter_mut()
            .map(|profile| column_at(noise, profile, column))
            .collect();
        let mut cell: Cell = vec![[vec![0.0; VALUE.1], vec![0.0; VALUE.1]]; RISK.1];
        // From values to coefficients, for each coefficient in ln u.
        for (k, i) in (0..2).flat_map(|k| (0..VALUE.1).map(move |i| (k, i))) {
            let values: Vec<f64> = columns.iter().map(|c| c[k][i]).collect();
            for (row, c) in cell.iter_mut().zip(coefficients(&values)) {
                row[k][i] = c;
            }
        }
        lock(&self.cells).entry(column).or_insert_with(|| Arc::new(cell)).clone()
    }
}

/// A panic elsewhere leaves the maps as they were, so they may be used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Values of $u$ that are worked on together.
const LANES: usize = 8;

impl ByValueRow {
    /// Writes $\mu$ and $m^{(2)}/\lambda$ at each $\ln u$, all of which must be within the row.
    pub fn at(&self, ln_u: &[f64], mu: &mut [f64], m2: &mut [f64]) {
        for ((x, mu), m2) in ln_u.chunks(LANES).zip(mu.chunks_mut(LANES)).zip(m2.chunks_mut(LANES))
        {
            let mut from = 0;
            // Neighbours mostly share a cell.
            while from < x.len() {
                let column = place(x[from], VALUE.0).0;
                let own = x[from..].iter().take_while(|x| place(**x, VALUE.0).0 == column).count();
                let mut t = [0.0; LANES];
                for (t, x) in t.iter_mut().zip(&x[from..from + own]) {
                    *t = place(*x, VALUE.0).1;
                }
                let last = self.cells.len() as i64 - 1;
                let cell = &self.cells[(column - self.first).clamp(0, last) as usize];
                // The numbers are positive, and only rounding is not.
                let [a, b] = [0, 1].map(|k| clenshaw(&cell[k], &t));
                for i in 0..own {
                    mu[from + i] = a[i].clamp(0.0, 1.0);
                    m2[from + i] = b[i].max(0.0);
                }
                from += own;
            }
        }
    }
}

/// $\sum_k c_k T_k(t)$ at several $t$, by Clenshaw's recurrence.
fn clenshaw(coefficients: &[f64], t: &[f64; LANES]) -> [f64; LANES] {
    let (mut a, mut b) = ([0.0; LANES], [0.0; LANES]);
    for c in coefficients.iter().skip(1).rev() {
        for i in 0..LANES {
            (a[i], b[i]) = (2.0 * t[i] * a[i] - b[i] + c, a[i]);
        }
    }
    std::array::from_fn(|i| t[i] * a[i] - b[i] + coefficients[0])
}

/// Coefficients in $\ln u$ at one risk.
fn column_at(noise: &dyn Noise, profile: &mut Profile, column: i64) -> [Vec<f64>; 2] {
    let ends = [-1.0, 1.0].map(|t| inside(column, t, VALUE.0).exp());
    let integral = profile.quadrature(noise, ends[0], ends[1]);
    let values = nodes(VALUE.1).map(|t| integral.at(inside(column, t, VALUE.0).exp()));
    let (mu, m2): (Vec<f64>, Vec<f64>) = values.map(|x| (x.mu, x.m2)).unzip();
    [coefficients(&mu), coefficients(&m2)]
}

/// The cell of a logarithm and where in it, from -1 to 1.
fn place(x: f64, length: f64) -> (i64, f64) {
    let cell = (x / length).floor();
    (cell as i64, 2.0 * (x / length - cell) - 1.0)
}

fn inside(cell: i64, t: f64, length: f64) -> f64 {
    (cell as f64 + 0.5 * (1.0 + t)) * length
}

/// Chebyshev points of the first kind.
fn nodes(count: usize) -> impl Iterator<Item = f64> {
    (0..count).map(move |k| ((k as f64 + 0.5) * PI / count as f64).cos())
}

/// $T_0(t), T_1(t), \dots$
fn chebyshev(t: f64, count: usize) -> Vec<f64> {
    let mut values = vec![1.0, t];
    for k in 2..count {
        values.push(2.0 * t * values[k - 1] - values[k - 2]);
    }
    values
}

/// The coefficients of the polynomial through values at [`nodes`].
fn coefficients(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    let cosines: Vec<f64> = (0..4 * n).map(|m| (m as f64 * PI / (2 * n) as f64).cos()).collect();
    let cosine = |j: usize, k: usize| cosines[j * (2 * k + 1) % (4 * n)];
    let sum = |j: usize| values.iter().enumerate().map(|(k, v)| v * cosine(j, k)).sum::<f64>();
    (0..n).map(|j| sum(j) * if j == 0 { 1.0 } else { 2.0 } / n as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::super::clipped_coordinate;
    use super::super::tests::families;
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Over four decades each, for every kind of noise.
    #[test]
    fn interpolation_is_the_integral() {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        for noise in families() {
            let table = ByValueTable::default();
            let mut worst = [0.0_f64; 2];
            for _ in 0..30 {
                let r = 10_f64.powf(rng.random_range(-3.0..1.0));
                let u = 10_f64.powf(rng.random_range(-2.0..2.0));
                let (mut mu, mut m2) = ([0.0; 2], [0.0; 2]);
                // The second of two is next to it, sometimes in another cell.
                let near = u.ln() + 0.1;
                table.row(&noise, r, u.ln(), near).at(&[u.ln(), near], &mut mu, &mut m2);
                for (k, u) in [u, near.exp()].into_iter().enumerate() {
                    let want = clipped_coordinate(&noise, 1.0, r, u);
                    // All of these noises are of size one.
                    worst[0] = worst[0].max((mu[k] - want.mu).abs() / u.min(1.0));
                    worst[1] = worst[1].max((m2[k] / want.m2 - 1.0).abs());
                }
            }
            println!("{:40} {worst:?}", noise.describe());
            assert!(worst.iter().all(|e| *e < 1e-10), "{}: {worst:?}", noise.describe());
        }
    }
}
