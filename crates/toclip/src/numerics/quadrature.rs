//! Adaptive integration of several functions at once, for distributions without a closed form.

use crate::numerics::special::GAUSS_LEGENDRE_16;

/// Several integrands evaluated together, so that a density is computed once for all of them.
pub type Values<const N: usize> = [f64; N];

/// Halves that agree to this share may already agree to the rounding of the function.
const ROUNDED: f64 = 1e-13;

/// One sixteen-point rule on $\[a, b\]$.
pub fn panel<const N: usize>(f: &impl Fn(f64) -> Values<N>, a: f64, b: f64) -> Values<N> {
    let (centre, half) = (0.5 * (a + b), 0.5 * (b - a));
    let mut sum = [0.0; N];
    for (u, w) in GAUSS_LEGENDRE_16 {
        let (left, right) = (f(centre - half * u), f(centre + half * u));
        for i in 0..N {
            sum[i] += w * (left[i] + right[i]);
        }
    }
    sum.map(|x| x * half)
}

/// Halves the panel until the two halves agree with the whole to rounding, or the budget of panels
/// is spent: a function with a jump would be halved for ever. So would one whose values have larger
/// rounding errors; the halving ends where it no longer brings the halves closer (`before` is their
/// difference one level above).
fn refine<const N: usize>(
    f: &impl Fn(f64) -> Values<N>,
    (a, b): (f64, f64),
    whole: Values<N>,
    (size, before): (&Values<N>, &Values<N>),
    budget: &mut u32,
) -> Values<N> {
    let middle = 0.5 * (a + b);
    let (left, right) = (panel(f, a, middle), panel(f, middle, b));
    let halves: Values<N> = std::array::from_fn(|i| left[i] + right[i]);
    let gaps: Values<N> = std::array::from_fn(|i| (halves[i] - whole[i]).abs());
    let close = (0..N).all(|i| {
        let (gap, of_whole) = (gaps[i], gaps[i] / whole[i].abs());
        gap <= 1e-15 * size[i].abs()
            || of_whole <= 1e-14
            || (of_whole <= ROUNDED && gap >= 0.1 * before[i])
            || !gap.is_finite()
    });
    if close || *budget == 0 {
        return halves;
    }
    *budget -= 1;
    let left = refine(f, (a, middle), left, (size, &gaps), budget);
    let right = refine(f, (middle, b), right, (size, &gaps), budget);
    std::array::from_fn(|i| left[i] + right[i])
}

/// $\int_{x_0}^\infty f$, with panels that end at the given increasing points, then double in
/// width.
///
/// A component that still grows at the largest finite panel is returned as infinite.
pub fn half_line<const N: usize>(f: impl Fn(f64) -> Values<N>, points: &[f64]) -> Values<N> {
    let mut panels: Vec<((f64, f64), Values<N>)> =
        points.windows(2).map(|w| ((w[0], w[1]), panel(&f, w[0], w[1]))).collect();
    let mut size = [0.0f64; N];
    for (_, value) in &panels {
        for i in 0..N {
            size[i] += value[i].abs();
        }
    }
    let (first, mut from) = match points {
        [] => return [0.0; N],
        [first, .., last] => (*first, *last),
        [only] => (*only, *only),
    };
    let mut width = (from - first).max(f64::MIN_POSITIVE);
    let start = width;
    let mut settled = 0;
    let mut diverges = [false; N];
    // Squares must not overflow on the way out.
    while settled < 3 && from < 1e100 * start {
        let value = panel(&f, from, from + width);
        let mut small = true;
        for i in 0..N {
            diverges[i] = value[i].abs() > 1e-17 * size[i];
            small &= !diverges[i];
            size[i] += value[i].abs();
        }
        settled = if small { settled + 1 } else { 0 };
        panels.push(((from, from + width), value));
        from += width;
        width *= 2.0;
    }
    let mut sum = [0.0; N];
    for (ends, value) in panels {
        let value = refine(&f, ends, value, (&size, &[f64::INFINITY; N]), &mut 200);
        for i in 0..N {
            sum[i] += value[i];
        }
    }
    if settled < 3 {
        for i in 0..N {
            if diverges[i] {
                sum[i] = f64::INFINITY;
            }
        }
    }
    sum
}

/// $\int f$ between the first and the last of the given increasing points, where panels end.
pub fn interval<const N: usize>(f: impl Fn(f64) -> Values<N>, points: &[f64]) -> Values<N> {
    let panels: Vec<_> = points.windows(2).map(|w| ((w[0], w[1]), panel(&f, w[0], w[1]))).collect();
    let mut size = [0.0f64; N];
    for (_, value) in &panels {
        for i in 0..N {
            size[i] += value[i].abs();
        }
    }
    panels.into_iter().fold([0.0; N], |sum, (ends, whole)| {
        let value = refine(&f, ends, whole, (&size, &[f64::INFINITY; N]), &mut 200);
        std::array::from_fn(|i| sum[i] + value[i])
    })
}

/// Sorts points, drops those outside $(x_0, \infty)$ and repeats, and puts $x_0$ first.
pub fn panels_from(start: f64, mut points: Vec<f64>) -> Vec<f64> {
    points.retain(|x| x.is_finite() && *x > start);
    points.push(start);
    points.sort_by(f64::total_cmp);
    points.dedup_by(|b, a| *b - *a <= 1e-14 * b.abs());
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn integrates_bells_tails_and_kinks() {
        let f =
            |x: f64| [(-0.5 * x * x).exp(), 1.0 / (1.0 + x * x), if x < 0.3 { 1.0 } else { 0.0 }];
        let [bell, tail, step] = half_line(f, &panels_from(0.0, vec![0.3, 1.0, 2.0]));
        assert!((bell / (PI / 2.0).sqrt() - 1.0).abs() < 1e-14);
        assert!((tail / (PI / 2.0) - 1.0).abs() < 1e-14);
        assert!((step / 0.3 - 1.0).abs() < 1e-14);
    }

    #[test]
    fn says_when_an_integral_diverges() {
        let [finite, infinite] =
            half_line(|x| [1.0 / (1.0 + x * x), 1.0 / (1.0 + x)], &panels_from(0.0, vec![1.0]));
        assert!(finite.is_finite());
        assert_eq!(infinite, f64::INFINITY);
    }
}
