//! A large spectrum and its start as a few hundred weighted nodes.

use super::{Bound, Mode, Modes};
use crate::error::{Error, Result};
use crate::numerics::gauss_rules::gauss_rule;
use crate::numerics::sum::{compensated, dot};
use std::f64::consts::PI;

/// $\rho$: wider bins need fewer nodes in all (up to $\rho \approx 5$, by a tenth) but dearer
/// rules.
const BIN_RATIO: f64 = 2.0;

/// A bin with more points than this is thinned first, by [`THIN_NODES`]-point rules of parts with
/// ratio [`THIN_RATIO`]: their error, of the same form, is below rounding, and the price of the
/// long rule no longer depends on how many points there are.
const THIN_ABOVE: usize = 4096;
const THIN_NODES: usize = 3;
const THIN_RATIO: f64 = 1.01;

/// The rounding error of the rules in each of the four errors (tests check it). The same amount is
/// reserved for the thinning, which needs far less.
const ROUNDING: f64 = 1e-13;

/// The part of the tolerance spent on merging the smallest eigenvalues into one node.
const TAIL_SHARE: f64 = 0.25;

impl Modes {
    /// $\lbrace (\lambda, n, v)\rbrace $ replaced by a few hundred weighted nodes, such that every
    /// part of the stated [`Bound`] is at most `tolerance`.
    ///
    /// $R(0)$, $D(0)$, $d$ and $\mathrm{Tr}\thinspace K^2$ are kept to rounding; zero eigenvalues
    /// stay one mode. Small spectra are returned unchanged, with a bound of zero.
    /// [`risk_error`](Self::risk_error) turns the bound into one on $R(t)$.
    ///
    /// ```
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// let full = Modes::new(&Spectrum::power_law(100_000, 0.5)?, &Start::Uniform { norm: 1.0 })?;
    /// let small = full.compress(1e-10)?;
    /// assert!(small.modes().len() < 200);
    /// assert!(small.bound().largest() <= 1e-10);
    /// assert!((small.risk() / full.risk() - 1.0).abs() < 1e-13);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// With a [teacher](Self::with_teacher) each sum of an [`Alignment`](super::Alignment) has nodes of its
    /// own; the tolerance is then that of the rules, errors of $Q$ and $P$ are of its size, and the bound is
    /// not stated.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a tolerance outside $[10^{-12}, 1]$; below that rounding dominates.
    ///
    /// # How
    ///
    /// The system is linear in $v$ once $\mu$ and $m_2$ are known, so the start and the noise may
    /// live on nodes of their own: start nodes with count 0, noise nodes with energy 0. Either is a
    /// measure $u$ on $(0, 1]$, and two of its Laplace transforms are needed,
    /// $$\sum_i u_i e^{-2\lambda_i\Gamma} \quad\text{and}\quad \sum_i \lambda_i u_i
    /// e^{-2\lambda_i\Gamma}, \qquad \Gamma \ge 0:$$
    /// $u = v(0)$ gives $V$ and $F$, $u = \lambda n$ gives $d\thinspace \mathcal L$ and
    /// $d\thinspace \mathcal K$ (see [`Bound`]). Each $u$ is cut into bins $[\lambda_-, \lambda_+]$
    /// with $\rho = \lambda_+/\lambda_- \le 2$ and each bin replaced by its $q$-point Gauss rule.
    /// Every such rule is exact for $1$ and $\lambda$, so $R(0)$, $D(0)$, $\mathrm{Tr}\thinspace K$
    /// and $\mathrm{Tr}\thinspace K^2$ do not change.
    ///
    /// # The error of one bin
    ///
    /// Let $m$ be the centre, $\varepsilon = (\rho - 1)/(\rho + 1)$ half the width over the centre,
    /// $\lambda = m(1 + \varepsilon x)$ with $|x| \le 1$, and $y = 2m\Gamma$. Then
    /// $$e^{-2\lambda\Gamma} = e^{-y}e^{-\varepsilon y x} = e^{-y}\Bigl[I_0(\varepsilon y) +
    /// 2\sum_{k\ge1}(-1)^k I_k(\varepsilon y)\thinspace T_k(x)\Bigr].$$
    /// The rule is exact below degree $2q$, and its weights are positive with the sum $U$ of the
    /// bin, so each further $T_k$ errs by at most $2U$:
    /// $$|\Delta| \le 4U\sum_{k\ge2q} e^{-y}I_k(\varepsilon y).$$
    /// Let $r = (1 + \sqrt{1 - \varepsilon^2})/\varepsilon = (\sqrt\rho + 1)/(\sqrt\rho - 1)$, for
    /// which $\tfrac\varepsilon2(r + 1/r) = 1$. Then $p_k = e^{-y} r^k I_k(\varepsilon y)$ is the
    /// probability that two independent Poisson variables with means $\tfrac{\varepsilon y}2 r$ and
    /// $\tfrac{\varepsilon y}2 r^{-1}$ differ by $k$ (Skellam's distribution). Conditioned on the
    /// second, that is at most $\max_{n \ge k} n^n e^{-n}/n! \le 1/\sqrt{2\pi k}$, whatever $y$.
    /// Hence **for every $\Gamma \ge 0$**
    /// $$\Bigl|\Delta\sum u e^{-2\lambda\Gamma}\Bigr| \le \frac{4U}{\sqrt{4\pi q}}\thinspace
    /// \frac{r^{-2q}}{1 - 1/r}.$$
    /// The second function has $\lambda e^{-2\lambda\Gamma} = -m\thinspace \partial_y e^{-y(1 +
    /// \varepsilon x)}$, so $I_k$ becomes $m\thinspace [I_k - \tfrac\varepsilon2(I_{k-1} +
    /// I_{k+1})]$, whose three terms are bounded in the same way and add up, again by
    /// $\tfrac\varepsilon2(r + 1/r) = 1$, to
    /// $$\Bigl|\Delta\sum \lambda u e^{-2\lambda\Gamma}\Bigr| \le \frac{8mU}{\sqrt{2\pi(2q-1)}}\thinspace
    /// \frac{r^{-2q}}{1 - 1/r}.$$
    /// At $\rho = 2$ this is a factor $r^2 = 34$ for every node. Both errors are also at most the
    /// whole of their sum, $U$ or $\sum\lambda u$: full and compressed sum lie between zero and it.
    /// That is what allows everything below a small $\lambda$ to be one node.
    pub fn compress(&self, tolerance: f64) -> Result<Self> {
        check_tolerance(tolerance)?;
        if let Some(alignments) = self.alignments() {
            return Ok(self.compress_aligned(alignments, tolerance));
        }
        let positive = self.modes.partition_point(|m| m.lambda > 0.0);
        let (positive, zero) = self.modes.split_at(positive);
        let lambda: Vec<f64> = positive.iter().map(|m| m.lambda).collect();

        let energy: Vec<f64> = positive.iter().map(|m| m.energy).collect();
        let start = Compressed::new(&lambda, &energy, 0.5 * self.distance(), tolerance);
        let traces: Vec<f64> = positive.iter().map(|m| m.lambda * m.count).collect();
        let noise = Compressed::new(&lambda, &traces, self.dim, tolerance);

        let starts = start.nodes.iter().map(|&(l, u)| Mode { lambda: l, count: 0.0, energy: u });
        let noises =
            noise.nodes.iter().map(|&(l, u)| Mode { lambda: l, count: u / l, energy: 0.0 });
        let mut modes = merge(starts.chain(noises).collect());
        modes.extend_from_slice(zero);
        if modes.len() >= self.modes.len() {
            return Ok(self.clone());
        }
        let before = self.bound;
        let bound = Bound {
            risk: before.risk + start.slope_error,
            kernel: before.kernel + noise.slope_error,
            distance: before.distance + start.error,
            distance_kernel: before.distance_kernel + noise.error,
        };
        let (dim, ambient) = (self.dim, self.ambient);
        Ok(Self { modes, dim, ambient, bound, groups: None, alignments: None })
    }
}

pub(crate) fn check_tolerance(tolerance: f64) -> Result<()> {
    if (1e-12..=1.0).contains(&tolerance) {
        return Ok(());
    }
    Err(Error::parameter("tolerance", tolerance, "give a number from 1e-12 to 1"))
}

/// $\sum_i u_i\thinspace\delta_{\lambda_i}$ on few nodes: `lambda` descending and positive, $u \ge 0$.
pub(crate) fn compressed_measure(lambda: &[f64], u: &[f64], tolerance: f64) -> Vec<(f64, f64)> {
    let total = compensated(u.iter().copied());
    Compressed::new(lambda, u, total, tolerance).nodes
}

/// Nodes of the same eigenvalue (bins that were kept point by point) become one mode again.
fn merge(mut modes: Vec<Mode>) -> Vec<Mode> {
    modes.sort_by(|a, b| b.lambda.total_cmp(&a.lambda));
    modes.dedup_by(|next, kept| {
        let same = next.lambda == kept.lambda;
        if same {
            kept.count += next.count;
            kept.energy += next.energy;
        }
        same
    });
    modes
}

/// A measure $u$ on few nodes, with the relative errors of its two transforms.
struct Compressed {
    nodes: Vec<(f64, f64)>,
    error: f64,
    slope_error: f64,
}

impl Compressed {
    /// `lambda` descending and positive; the error of $\sum u e^{-2\lambda\Gamma}$ is relative to
    /// `total`, which for $V$ includes the zero eigenvalues.
    fn new(lambda: &[f64], u: &[f64], total: f64, tolerance: f64) -> Self {
        let slope_total = dot(lambda, u);
        let mut out = Self { nodes: Vec::new(), error: 0.0, slope_error: 0.0 };
        if slope_total == 0.0 {
            // No weight, or so little that the products underflow and no rule exists.
            out.nodes = weighted(lambda, u).collect();
            return out;
        }

        let budget = tolerance - 2.0 * ROUNDING;
        let head =
            Self::head(lambda, u, (TAIL_SHARE * budget * total, TAIL_SHARE * budget * slope_total));
        let bins = split(&lambda[..head], BIN_RATIO);
        let per_bin = (1.0 - TAIL_SHARE) * budget / bins.len() as f64;
        let (mut error, mut slope_error) = (0.0, 0.0);
        for bin in bins {
            let (lambda, u) = (&lambda[bin.clone()], &u[bin]);
            let size = Size::new(lambda, u);
            let within = |q: &usize| {
                let (e, s) = size.errors(*q);
                e <= per_bin * total && s <= per_bin * slope_total
            };
            // 34^-64 is far below any tolerance.
            let q = (1..64).find(within).unwrap_or(64);
            // The other measure has nodes of its own: below two rules' worth, points are cheaper.
            if lambda.len() <= 2 * q {
                out.nodes.extend(weighted(lambda, u));
                continue;
            }
            let rule = if lambda.len() > THIN_ABOVE {
                let (points, weights, e, s) = thin(lambda, u);
                (error, slope_error) = (error + e, slope_error + s);
                gauss_rule(&points, &weights, q)
            } else {
                gauss_rule(lambda, u, q)
            };
            let (e, s) = size.errors(q);
            (error, slope_error) = (error + e, slope_error + s);
            out.nodes.extend(rule);
        }
        if head < lambda.len() {
            let (lambda, u) = (&lambda[head..], &u[head..]);
            let (e, s) = Size::new(lambda, u).errors(1);
            (error, slope_error) = (error + e, slope_error + s);
            out.nodes.extend(gauss_rule(lambda, u, 1));
        }
        out.error = error / total + ROUNDING;
        out.slope_error = slope_error / slope_total + ROUNDING;
        out
    }

    /// Where the tail begins that may be merged: the most points at the end whose sums of $u$ and
    /// of $\lambda u$ are within `allowed`.
    fn head(lambda: &[f64], u: &[f64], allowed: (f64, f64)) -> usize {
        let mut sums = (0.0, 0.0);
        let heavy = lambda.iter().zip(u).rposition(|(l, u)| {
            sums = (sums.0 + u, sums.1 + l * u);
            sums.0 > allowed.0 || sums.1 > allowed.1
        });
        heavy.map_or(0, |i| i + 1)
    }
}

/// The points that carry weight, as they are.
fn weighted(lambda: &[f64], u: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    lambda.iter().copied().zip(u.iter().copied()).filter(|node| node.1 > 0.0)
}

/// The measure on fewer points, and the resulting errors of the two sums.
fn thin(lambda: &[f64], u: &[f64]) -> (Vec<f64>, Vec<f64>, f64, f64) {
    let (mut points, mut weights) = (Vec::new(), Vec::new());
    let (mut error, mut slope_error) = (0.0, 0.0);
    for part in split(lambda, THIN_RATIO) {
        let (lambda, u) = (&lambda[part.clone()], &u[part]);
        let (e, s) = Size::new(lambda, u).errors(THIN_NODES);
        (error, slope_error) = (error + e, slope_error + s);
        for (point, weight) in gauss_rule(lambda, u, THIN_NODES) {
            points.push(point);
            weights.push(weight);
        }
    }
    (points, weights, error, slope_error)
}

/// Ranges of a descending list whose ends have a ratio of at most `ratio`.
fn split(lambda: &[f64], ratio: f64) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let mut from = 0;
    while from < lambda.len() {
        let least = lambda[from] / ratio;
        let to = from + lambda[from..].partition_point(|l| *l >= least);
        ranges.push(from..to.max(from + 1));
        from = to.max(from + 1);
    }
    ranges
}

/// The size of a bin, which determines its error.
struct Size {
    /// $1/r$.
    rate: f64,
    centre: f64,
    sum: f64,
    slope_sum: f64,
}

impl Size {
    fn new(lambda: &[f64], u: &[f64]) -> Self {
        let (hi, lo) = (lambda[0], lambda[lambda.len() - 1]);
        let root = (hi / lo).sqrt();
        // Subnormal eigenvalues may make the ratio infinite; then only the sums bound the error.
        let rate = if root.is_finite() { (root - 1.0) / (root + 1.0) } else { 1.0 };
        let (sum, slope_sum) = (compensated(u.iter().copied()), dot(lambda, u));
        Self { rate, centre: 0.5 * (hi + lo), sum, slope_sum }
    }

    /// Bounds on the errors of $\sum u e^{-2\lambda\Gamma}$ and $\sum\lambda u e^{-2\lambda\Gamma}$
    /// under a `q`-point rule.
    fn errors(&self, q: usize) -> (f64, f64) {
        let n = q as f64;
        let rest = self.rate.powi(2 * q as i32) / (1.0 - self.rate);
        let error = 4.0 * rest / (4.0 * PI * n).sqrt();
        let slope = 8.0 * self.centre * rest / (2.0 * PI * (2.0 * n - 1.0)).sqrt();
        ((error * self.sum).min(self.sum), (slope * self.sum).min(self.slope_sum))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Block, Spectrum, Start};
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// $(F, \mathcal K, V, \mathcal L)$ relative to their values at zero, summed in plain sight.
    fn transforms(modes: &Modes, gamma: f64) -> [f64; 4] {
        let mut sums = [[0.0; 2]; 4];
        for m in modes.modes().iter().rev() {
            let decay = (-2.0 * m.lambda * gamma).exp();
            let trace = m.lambda * m.count;
            for (sum, w) in
                sums.iter_mut().zip([m.lambda * m.energy, m.lambda * trace, m.energy, trace])
            {
                sum[0] += w * decay;
                sum[1] += w;
            }
        }
        sums.map(|s| if s[1] > 0.0 { s[0] / s[1] } else { 0.0 })
    }

    fn parts(bound: Bound) -> [f64; 4] {
        [bound.risk, bound.kernel, bound.distance, bound.distance_kernel]
    }

    /// The largest errors over $\Gamma$ from 1e-3 to far beyond the slowest decay.
    fn largest_errors(full: &Modes, small: &Modes, points: usize) -> [f64; 4] {
        let least = full.modes().iter().rev().find(|m| m.lambda > 0.0).unwrap().lambda;
        let decades = 5.0 - least.log10();
        let mut largest = [0.0_f64; 4];
        for i in 0..points {
            let gamma = 10_f64.powf(-3.0 + decades * i as f64 / (points - 1) as f64);
            let (a, b) = (transforms(full, gamma), transforms(small, gamma));
            for k in 0..4 {
                largest[k] = largest[k].max((a[k] - b[k]).abs());
            }
        }
        largest
    }

    fn check(full: &Modes, tolerance: f64, points: usize) -> Modes {
        let small = full.compress(tolerance).unwrap();
        assert!((small.risk() - full.risk()).abs() <= 1e-13 * full.risk());
        assert!((small.distance() - full.distance()).abs() <= 1e-13 * full.distance());
        assert!((small.trace_sq() / full.trace_sq() - 1.0).abs() < 1e-13);
        let trace: f64 = small.modes().iter().map(|m| m.lambda * m.count).sum();
        assert!((trace / full.dim() - 1.0).abs() < 1e-13);
        assert!(small.modes().is_sorted_by(|a, b| a.lambda > b.lambda));
        assert!(small.modes().iter().all(|m| m.count >= 0.0 && m.energy >= 0.0));
        assert!(small.bound().largest() <= tolerance);
        let errors = largest_errors(full, &small, points);
        for (error, bound) in errors.iter().zip(parts(small.bound())) {
            // Adding up the full side takes a few roundings too.
            assert!(*error <= bound + 1e-14, "{errors:?} {:?}", small.bound());
        }
        small
    }

    fn power_law(dim: u64, exponent: f64, start: Start) -> Modes {
        Modes::new(&Spectrum::power_law(dim, exponent).unwrap(), &start).unwrap()
    }

    #[test]
    fn errors_stay_within_the_bound_and_near_it() {
        for (exponent, start) in [
            (0.2, Start::Uniform { norm: 1.0 }),
            (1.0, Start::Uniform { norm: 1.0 }),
            (2.0, Start::PowerLaw { norm: 3.0, exponent: 0.5 }),
            (1.0, Start::PowerLaw { norm: 3.0, exponent: -0.5 }),
            (0.5, Start::Random { norm: 1.0, seed: 3 }),
        ] {
            let full = power_law(20_000, exponent, start);
            for tolerance in [1e-2, 1e-4, 1e-7, 1e-10, 1e-12] {
                let small = check(&full, tolerance, 200);
                assert!(small.modes().len() < 350);
                // One node of a bin is a factor 34: the bound spends between one and two too many.
                let errors = largest_errors(&full, &small, 200);
                for (error, bound) in errors.iter().zip(parts(small.bound())) {
                    let loose = bound / error;
                    assert!(loose < 34.0 * 34.0 || bound < 2.0 * ROUNDING, "{loose} {errors:?}");
                }
            }
        }
    }

    #[test]
    fn one_bin_without_any_allowance_for_rounding() {
        for weights in [[1.0, 1.0], [1e-3, 1.0]] {
            let lambda: Vec<f64> = (0..=1000).map(|i| 1.0 - 0.5 * f64::from(i) / 1000.0).collect();
            let u: Vec<f64> = (0..=1000).map(|i| weights[i % 2] * (1.0 + (i % 7) as f64)).collect();
            for q in 1..6 {
                let (bound, slope_bound) = Size::new(&lambda, &u).errors(q);
                let rule = gauss_rule(&lambda, &u, q);
                let (mut error, mut slope_error) = (0.0_f64, 0.0_f64);
                for i in 0..2000 {
                    let gamma = f64::from(i) * 0.01;
                    let f = |l: f64| (-2.0 * l * gamma).exp();
                    let full: f64 = lambda.iter().zip(&u).map(|(l, u)| u * f(*l)).sum();
                    let slope: f64 = lambda.iter().zip(&u).map(|(l, u)| u * l * f(*l)).sum();
                    let by_rule: f64 = rule.iter().map(|(l, u)| u * f(*l)).sum();
                    let slope_by_rule: f64 = rule.iter().map(|(l, u)| u * l * f(*l)).sum();
                    // All even derivatives are positive, so a Gauss rule never gives too much.
                    assert!(full - by_rule > -1e-11);
                    error = error.max((full - by_rule).abs());
                    slope_error = slope_error.max((slope - slope_by_rule).abs());
                }
                assert!(error < bound && error > 0.05 * bound, "{q}: {error} {bound}");
                assert!(slope_error < slope_bound, "{q}: {slope_error} {slope_bound}");
                assert!(slope_error > 2e-3 * slope_bound, "{q}: {slope_error} {slope_bound}");
            }
        }
    }

    #[test]
    fn a_million_eigenvalues() {
        let full = power_law(1_000_000, 0.5, Start::Random { norm: 1.0, seed: 1 });
        let small = check(&full, 1e-10, 12);
        assert!(small.modes().len() < 300);
    }

    #[test]
    fn small_problems_come_back_exact() {
        let full = power_law(20, 1.0, Start::Uniform { norm: 1.0 });
        assert_eq!(full.compress(1e-10).unwrap(), full);
        let k = Spectrum::isotropic(1 << 50).unwrap();
        let full = Modes::new(&k, &Start::Uniform { norm: 1.0 }).unwrap();
        assert_eq!(full.compress(1e-10).unwrap(), full);
    }

    #[test]
    fn spikes_and_zeros_are_kept() {
        // Eight isolated eigenvalues above a bulk of Marchenko-Pastur with a kernel.
        let bulk = Spectrum::marchenko_pastur(20_000, 4.0).unwrap();
        let mut blocks = bulk.blocks().to_vec();
        blocks.extend((1..=8).map(|i| Block { value: f64::from(i * 10), multiplicity: 1 }));
        let k = Spectrum::from_blocks(&blocks).unwrap();
        let full = Modes::new(&k, &Start::Uniform { norm: 1.0 }).unwrap();
        let small = check(&full, 1e-9, 200);
        for (a, b) in small.modes()[..8].iter().zip(full.modes()) {
            assert_eq!((a.lambda, a.energy), (b.lambda, b.energy));
            assert!((a.count - 1.0).abs() < 1e-15);
        }
        assert_eq!(small.modes().last(), full.modes().last());
        assert_eq!(small.modes().last().unwrap().lambda, 0.0);
        assert_eq!(small.ambient_dim(), 20_008);
    }

    #[test]
    fn starts_without_risk() {
        for start in [Start::Uniform { norm: 0.0 }, Start::Uniform { norm: 1e-140 }] {
            let small = check(&power_law(5000, 1.0, start), 1e-10, 50);
            assert!(small.modes().len() < 200);
        }
        // The whole start along eigenvalues of zero.
        let mut values: Vec<f64> = (1..3000).map(|j| 1.0 / f64::from(j)).collect();
        values.push(0.0);
        let mut coordinates = vec![0.0; 3000];
        coordinates[2999] = 2.0;
        let start = Start::Coordinates { values: coordinates };
        let full = Modes::new(&Spectrum::from_eigenvalues(&values).unwrap(), &start).unwrap();
        let small = check(&full, 1e-10, 50);
        assert_eq!((small.risk(), small.distance(), small.bound().risk), (0.0, 4.0, 0.0));
    }

    #[test]
    fn bounds_of_repeated_compression_add_up() {
        let full = power_law(20_000, 1.0, Start::Uniform { norm: 1.0 });
        let once = full.compress(1e-10).unwrap();
        let twice = once.compress(1e-3).unwrap();
        assert!(twice.modes().len() < once.modes().len());
        let errors = largest_errors(&full, &twice, 100);
        let bounds = parts(twice.bound()).into_iter().zip(parts(once.bound()));
        for (error, (bound, before)) in errors.iter().zip(bounds) {
            assert!(*error <= bound && before < bound);
        }
    }

    #[test]
    fn tolerances_out_of_range_are_refused() {
        let full = power_law(10, 1.0, Start::Uniform { norm: 1.0 });
        for tolerance in [0.0, 1e-13, -1.0, 2.0, f64::NAN] {
            assert!(full.compress(tolerance).unwrap_err().to_string().contains("from 1e-12 to 1"));
        }
    }

    proptest! {
        #[test]
        fn random_spectra(
            seed in 0_u64..1 << 48,
            n in 10_usize..3000,
            decades in 0.0_f64..12.0,
            clusters in 1_usize..200,
            log_tolerance in -11.9_f64..-1.0,
        ) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let centres: Vec<f64> =
                (0..clusters).map(|_| 10_f64.powf(-decades * rng.random::<f64>())).collect();
            let mut value = |i: usize| {
                let spread = 0.2 * (i % 5) as f64 * rng.random::<f64>();
                centres[rng.random_range(0..clusters)] * (1.0 + spread)
            };
            let values: Vec<f64> = (0..n).map(&mut value).collect();
            let coordinates = (0..n).map(|_| 10_f64.powf(-5.0 * rng.random::<f64>())).collect();
            let k = Spectrum::from_eigenvalues(&values).unwrap();
            let full = Modes::new(&k, &Start::Coordinates { values: coordinates }).unwrap();
            check(&full, 10_f64.powf(log_tolerance), 30);
        }
    }
}
