//! Sums over Poisson counts that stay short however large the mean is.
//!
//! A sum of $P(y | v)\thinspace h(y)$ over all counts takes $\sqrt m$ terms for the mean $m = e^v$, and $v$ is
//! normal, so that means of $10^{10}$ occur. Where $h$ is smooth, a few dozen evenly spaced counts give
//! the same sum to rounding: the trapezoidal rule is exact to $e^{-2\pi^2\sigma^2/k^2}$ for a bell of width
//! $\sigma$ and spacing $k$. Where $h$ has kinks, because $u$ is a function of $v$, the sum over counts is the
//! outer one ([`aligned`]).

use super::Label;
use super::quadrature::REACH;
use crate::numerics::quadrature::{interval, panel};
use crate::numerics::special::{FRAC_1_SQRT_2PI, GAUSS_LEGENDRE_16, phi};

/// Counts less likely than this are left out of exact results.
pub(super) const NEGLIGIBLE: f64 = 1e-18;
/// Means up to here are summed count by count.
const SMALL_MEAN: f64 = 100.0;
/// Standard deviations to a spacing at least: the error is below $10^{-25}$.
const PER_SPACING: f64 = 1.7;

/// $P(y | v)$ for a mean $m = e^v$, to rounding for large counts too.
fn probability(y: f64, mean: f64) -> f64 {
    if y < 20.0 {
        return (y * mean.ln() - mean - libm::lgamma(y + 1.0)).exp();
    }
    // Stirling's series; the large terms cancel in advance.
    let series = (1.0 - (1.0 / 30.0 - (1.0 / 105.0 - 1.0 / (140.0 * y * y)) / (y * y)) / (y * y))
        / (12.0 * y);
    let x = (mean - y) / y;
    let far = y * (x - x.ln_1p());
    FRAC_1_SQRT_2PI / y.sqrt() * (-far - series).exp()
}

/// Every count at $v$ that is more likely than `negligible`.
pub(super) fn every(v: f64, negligible: f64) -> Vec<Label> {
    let mean = v.exp();
    // From the middle outwards, so that neither the first nor the last term is all rounding.
    let middle = mean.floor();
    let first = probability(middle, mean);
    let mut labels = Vec::with_capacity(32 + 18 * mean.sqrt() as usize);
    let (mut y, mut p) = (middle, first);
    while y >= 0.0 && p > negligible {
        labels.push(Label { y, probability: p, slope: (y - mean) * p });
        p *= y / mean;
        y -= 1.0;
    }
    labels.reverse();
    (y, p) = (middle + 1.0, first);
    while p > negligible {
        p *= mean / y;
        labels.push(Label { y, probability: p, slope: (y - mean) * p });
        y += 1.0;
    }
    labels
}

/// Evenly spaced counts, each with the probability of those it stands for. Sums of functions that vary
/// over `blur` counts at least, as if smoothed by a normal density of that width, are those over all
/// counts.
pub(super) fn spaced(v: f64, blur: f64, negligible: f64) -> Vec<Label> {
    let mean = v.exp();
    let width = (mean.recip() + (blur * blur).recip()).sqrt().recip();
    let spacing = (width / PER_SPACING).floor();
    if mean < SMALL_MEAN || !(spacing > 1.0) {
        return every(v, negligible);
    }
    let reach = (9.0 * mean.sqrt() / spacing).ceil() as i64;
    let at = |i: i64| mean.floor() + i as f64 * spacing;
    (-reach..=reach)
        .map(at)
        .filter(|y| *y >= 0.0)
        .map(|y| {
            let p = spacing * probability(y, mean);
            Label { y, probability: p, slope: (y - mean) * p }
        })
        .collect()
}

/// Counts up to here are summed one by one in [`aligned`].
const ONE_BY_ONE: f64 = 256.0;

/// $E\bigl\[e^u;\thinspace|r| \le c\bigr\]$, $E\[\psi(r)(y - e^v)\]$ and $E\thinspace\psi(r)^2$ for $r = e^u - y$ where $u = \kappa v$,
/// $v \sim N(0, V)$, with $\sqrt V$ = `root`.
///
/// Count by count the integral over $v$ is one over a bell with two kinks, and smooth in $\ln y$; so from
/// 256 on the sum is an integral, with the corrections of Euler and Maclaurin at its lower end.
pub(super) fn aligned(kappa: f64, root: f64, c: f64) -> [f64; 3] {
    let of = |y: f64| one_count(y, kappa, root, c);
    // The contribution of a count is bounded by c √m, which moves the mass up by √V/2.
    let last = root * (7.5 + 0.5 * root);
    let mut sum = [0.0; 3];
    let mut add = |weight: f64, x: [f64; 3]| (0..3).for_each(|i| sum[i] += weight * x[i]);
    let mut y = 0.0;
    while y < ONE_BY_ONE && y <= last.exp() {
        add(1.0, of(y));
        y += 1.0;
    }
    let first = ONE_BY_ONE.ln();
    if last <= first {
        return sum;
    }
    let panels = ((last - first) / (0.5 * root.min(1.0))).ceil();
    let half = 0.5 * (last - first) / panels;
    for i in 0..panels as u64 {
        let centre = first + half * (2 * i + 1) as f64;
        for (x, w) in GAUSS_LEGENDRE_16 {
            for ln in [centre - half * x, centre + half * x] {
                add(w * half * ln.exp(), of(ln.exp()));
            }
        }
    }
    // f(N)/2 - f'(N)/12 + f'''(N)/720, by central differences.
    let [a, b, d, e] = [-2.0, -1.0, 1.0, 2.0].map(|i| of(ONE_BY_ONE + i));
    add(0.5, of(ONE_BY_ONE));
    let first = 1.0 / 12.0;
    let third = 1.0 / 720.0;
    add(-first / 12.0 - third / 2.0, a);
    add(first * 2.0 / 3.0 + third, b);
    add(-first * 2.0 / 3.0 - third, d);
    add(first / 12.0 + third / 2.0, e);
    sum
}

/// The term of the count $y$ in [`aligned`].
///
/// In $t = v - \ln y$ the bell is $P(y | v) = P(y | \ln y)\thinspace e^{-y(e^t - 1 - t)}$, without cancellation.
fn one_count(y: f64, kappa: f64, root: f64, c: f64) -> [f64; 3] {
    // The exponent is 40 at these distances, or beyond: e^t - 1 - t > t²/2 for t > 0 and t²/(2 - 2t/3)
    // for t < 0. The only bell without a middle is e^(-e^v), that of y = 0.
    let (middle, width, above, below) = if y > 0.0 {
        let half = 40.0 / (3.0 * y);
        let below = half + (half * half + 80.0 / y).sqrt();
        (y.ln(), y.sqrt().recip(), (80.0 / y).sqrt(), below)
    } else {
        (0.0, 1.0, 40_f64.ln(), f64::INFINITY)
    };
    let low = (-below).max(-REACH * root - middle);
    let high = above.min(REACH.max(7.5 + 0.5 * root) * root - middle);
    if low >= high {
        return [0.0; 3];
    }
    let kinks = [-c, c].into_iter().filter(|c| y + c > 0.0).map(|c| {
        if y > 0.0 { ((c / y).ln_1p() + (1.0 - kappa) * middle) / kappa } else { c.ln() / kappa }
    });
    let mut edges = vec![low, high];
    edges.extend(kinks);
    edges.extend((-4..=4).map(|i| 2.0 * f64::from(i) * width));
    edges.retain(|t| *t >= low && *t <= high);
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    let peak = if y > 0.0 { probability(y, y) } else { 1.0 };
    let f = |t: f64| {
        let over = t.exp_m1();
        let bell = if y > 0.0 { peak * (-y * (over - t)).exp() } else { (-(over + 1.0)).exp() };
        let weight = bell * phi((middle + t) / root) / root;
        let model = (kappa * (middle + t)).exp();
        let slope = if (model - y).abs() <= c { model } else { 0.0 };
        let r = (model - y).clamp(-c, c);
        let below_mean = if y > 0.0 { -y * over } else { -(over + 1.0) };
        [weight * slope, weight * r * below_mean, weight * r * r]
    };
    if y < ONE_BY_ONE - 2.0 {
        return interval(f, &edges);
    }
    // Panels of two standard deviations of the bell are short enough.
    edges.windows(2).fold([0.0; 3], |sum, ends| {
        let part = panel(&f, ends[0], ends[1]);
        std::array::from_fn(|i| sum[i] + part[i])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_sum_to_one_at_every_mean() {
        for v in [-3.0, 0.0, 2.0, 4.9, 9.0, 14.0_f64] {
            let mean = v.exp();
            for labels in [
                every(v, NEGLIGIBLE),
                spaced(v, 0.5 * mean, NEGLIGIBLE),
                spaced(v, 40.0, NEGLIGIBLE),
            ] {
                let sum: f64 = labels.iter().map(|l| l.probability).sum();
                let first: f64 = labels.iter().map(|l| l.probability * l.y).sum();
                let slope: f64 = labels.iter().map(|l| l.slope * l.y).sum();
                assert!((sum - 1.0).abs() < 1e-12, "{v} {sum}");
                assert!((first / mean - 1.0).abs() < 1e-12, "{v} {first}");
                // The derivative of the mean, and the variance.
                assert!((slope / mean - 1.0).abs() < 1e-10, "{v} {slope}");
            }
        }
        assert!(spaced(25.0, 1e20, NEGLIGIBLE).len() < 40);
        assert!(every(9.0, NEGLIGIBLE).len() > 1000 && spaced(9.0, 1e3, NEGLIGIBLE).len() < 40);
    }

    #[test]
    fn spaced_counts_sum_a_blurred_step_as_all_counts_do() {
        for (v, blur) in [(5.0_f64, 20.0), (7.0, 60.0), (9.0, 80.0), (9.0, 5.0)] {
            let step = |y: f64| crate::numerics::special::upper_tail((y - v.exp() - 7.0) / blur);
            let sum = |labels: Vec<Label>| {
                let [p, s] = labels.iter().fold([0.0; 2], |[p, s], l| {
                    [p + l.probability * step(l.y), s + l.slope * step(l.y)]
                });
                (p, s / v.exp())
            };
            let (few, all) = (sum(spaced(v, blur, NEGLIGIBLE)), sum(every(v, NEGLIGIBLE)));
            assert!((few.0 - all.0).abs() < 1e-13, "{v} {blur}: {few:?} {all:?}");
            assert!((few.1 - all.1).abs() < 1e-13, "{v} {blur}: {few:?} {all:?}");
        }
    }

    #[test]
    fn a_sum_over_counts_with_kinks_is_the_plain_one() {
        // Over ten times as many counts one by one as the sum takes before it is an integral.
        let (kappa, root, c) = (1.2, 1.0, 0.6);
        let quick = aligned(kappa, root, c);
        let mut plain = [0.0; 3];
        for y in 0..3000 {
            let x = one_count(f64::from(y), kappa, root, c);
            (0..3).for_each(|i| plain[i] += x[i]);
        }
        for (x, y) in quick.into_iter().zip(plain) {
            assert!((x / y - 1.0).abs() < 1e-11, "{quick:?} {plain:?}");
        }
    }
}
