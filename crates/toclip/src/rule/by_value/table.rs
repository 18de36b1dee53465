//! $\mu$ and $m^{(2)}/\lambda$ of clipping by value over $(\ln R, \ln u)$, filled where it is used.

use super::Profile;
use crate::noise::Noise;
use crate::numerics::chebyshev;
use crate::numerics::risk_table::{EVERYWHERE, PanelValues, RiskTable};
use crate::parallel::map_timed;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The length of a column in $\ln u$, and the points in it.
const LENGTH: f64 = 1.5;
const POINTS: usize = 24;
/// The coefficients of a column: those of $\mu$, then those of $m^{(2)}/\lambda$.
const NUMBERS: usize = 2 * POINTS;
/// Their error, relative to the largest of $\mu$ or of $m^{(2)}/\lambda$ near the column.
const TOLERANCE: f64 = 1e-12;

/// Both numbers in columns of $\ln u$: Chebyshev series in $\ln u$ with coefficients that are tabulated
/// along the risk.
///
/// **Why fixed columns are good for every noise.** As functions of $\ln u$ both numbers are averages,
/// over $|X|$, of shifts of one function, and that is bounded and analytic where $|\Im\ln u| <
/// \pi/4$. So the series of a column of half length $h$ converges as $(w/h + \sqrt{1 +
/// w^2/h^2})^{-n}$ with $w = \pi/4$, whatever the noise: here the factor is $2.5^{-24}$, relative to
/// the largest value near the column.
///
/// So $m^{(2)}$ is known to $10^{-10}$, and $\mu$ to $10^{-10}\min(1, u/s)$ with $s$ the size of the
/// residuals. Where no residual is near zero $\mu$ is far below $u/s$ for small $u$, and its relative
/// error is larger; but rates of $\eta \gg s/u$, for which that would matter, diverge.
#[derive(Debug, Default)]
pub(crate) struct ByValueTable {
    columns: Mutex<HashMap<i64, Arc<RiskTable<NUMBERS>>>>,
}

/// The table at one risk: consecutive columns.
#[derive(Debug)]
pub(crate) struct ByValueRow {
    first: i64,
    columns: Vec<[f64; NUMBERS]>,
}

impl ByValueTable {
    /// The row at risk $r$ for all $\ln u$ from `low` to `high`.
    pub fn row(&self, noise: &dyn Noise, r: f64, low: f64, high: f64) -> ByValueRow {
        let (first, last) = (place(low).0, place(high).0);
        let columns = (first..=last).map(|column| {
            let table = self.column(column);
            let fill = |risks: &[f64]| Some(panel(noise, risks, column));
            let tabulated = table.at(r, EVERYWHERE, &fill).map(|piece| piece.values);
            tabulated.unwrap_or_else(|| coefficients(noise, r, column))
        });
        ByValueRow { first, columns: columns.collect() }
    }

    fn column(&self, column: i64) -> Arc<RiskTable<NUMBERS>> {
        // A panic elsewhere leaves the map as it was, so it may be used.
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        columns.entry(column).or_default().clone()
    }
}

/// A column at several risks.
fn panel(noise: &dyn Noise, risks: &[f64], column: i64) -> PanelValues<NUMBERS> {
    let values = map_timed(risks, |&r| coefficients(noise, r, column));
    let size = |range: std::ops::Range<usize>| {
        let each = values.iter().flat_map(|column| &column[range.clone()]);
        each.fold(0.0, |size: f64, a| size.max(a.abs()))
    };
    let [mu, m2] = [size(0..POINTS), size(POINTS..NUMBERS)].map(|size| TOLERANCE * size);
    let allowed = std::array::from_fn(|i| if i < POINTS { mu } else { m2 });
    PanelValues { kind: (), values, allowed }
}

/// The coefficients of a column at one risk.
fn coefficients(noise: &dyn Noise, r: f64, column: i64) -> [f64; NUMBERS] {
    let u = |t: f64| ((column as f64 + 0.5 * (1.0 + t)) * LENGTH).exp();
    let integral = Profile::new(noise, r).quadrature(noise, u(-1.0), u(1.0));
    let moments = chebyshev::points(POINTS).map(|t| integral.at(u(t)));
    let values: Vec<[f64; 2]> = moments.map(|x| [x.mu, x.m2]).collect();
    let each = chebyshev::coefficients(&values);
    std::array::from_fn(|i| each[i % POINTS][i / POINTS])
}

/// Values of $u$ that are worked on together.
const LANES: usize = 8;

impl ByValueRow {
    /// Writes $\mu$ and $m^{(2)}/\lambda$ at each $\ln u$, all of which must be within the row.
    pub fn at(&self, ln_u: &[f64], mu: &mut [f64], m2: &mut [f64]) {
        for ((x, mu), m2) in ln_u.chunks(LANES).zip(mu.chunks_mut(LANES)).zip(m2.chunks_mut(LANES))
        {
            let mut from = 0;
            // Neighbours mostly share a column.
            while from < x.len() {
                let column = place(x[from]).0;
                let own = x[from..].iter().take_while(|x| place(**x).0 == column).count();
                let mut t = [0.0; LANES];
                for (t, x) in t.iter_mut().zip(&x[from..from + own]) {
                    *t = place(*x).1;
                }
                let last = self.columns.len() as i64 - 1;
                let numbers = &self.columns[(column - self.first).clamp(0, last) as usize];
                // The numbers are positive, and only rounding is not.
                let (a, b) = (sums(&numbers[..POINTS], &t), sums(&numbers[POINTS..], &t));
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
fn sums(coefficients: &[f64], t: &[f64; LANES]) -> [f64; LANES] {
    let (mut a, mut b) = ([0.0; LANES], [0.0; LANES]);
    for c in coefficients.iter().skip(1).rev() {
        for i in 0..LANES {
            (a[i], b[i]) = (2.0 * t[i] * a[i] - b[i] + c, a[i]);
        }
    }
    std::array::from_fn(|i| t[i] * a[i] - b[i] + coefficients[0])
}

/// The column of a logarithm and where in it, from -1 to 1.
fn place(ln_u: f64) -> (i64, f64) {
    let column = (ln_u / LENGTH).floor();
    (column as i64, 2.0 * (ln_u / LENGTH - column) - 1.0)
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
