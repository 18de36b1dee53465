//! Maximising a function of one positive number that may have several peaks.

/// Golden ratio step, $(3 - \sqrt5)/2$.
const GOLDEN: f64 = 0.381_966_011_250_105_1;

/// A precision in $\ln x$ below the square root of rounding, where a smooth peak is flat.
pub(crate) const PRECISION: f64 = 1e-9;
/// Points of a grid that are nearer to each other than this count as one.
const SAME_POINT: f64 = 1e-8;

/// The maximum of `f` over the grid, refined between neighbours at every peak of the grid. Returns
/// the point and the value; grid points must increase and be > 0.
///
/// A peak at the first or last grid point stays there: the caller knows what lies beyond.
pub(crate) fn maximise_on(grid: &[f64], f: impl Fn(f64) -> f64) -> (f64, f64) {
    let values: Vec<f64> = grid.iter().map(|&x| f(x)).collect();
    refined(grid, &values, PRECISION, f)
}

/// The same where the values on the grid are known, to a precision in $\ln x$.
pub(crate) fn refined(
    grid: &[f64],
    values: &[f64],
    precision: f64,
    f: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let mut best = (f64::NAN, f64::NEG_INFINITY);
    for (&x, &y) in grid.iter().zip(values) {
        if y > best.1 {
            best = (x, y);
        }
    }
    for i in 1..grid.len().saturating_sub(1) {
        let is_top = values[i] >= values[i - 1] && values[i] >= values[i + 1];
        // Every peak, however low: the grid may hit only the foot of a narrow one. There is no peak
        // where the function is undefined at the point itself.
        let is_peak = is_top && values[i] > f64::NEG_INFINITY;
        if is_peak {
            let mut refined = brent(grid[i - 1], grid[i], grid[i + 1], values[i], precision, &f);
            // Between two points that are next to equal the grid cannot tell on which side of them
            // the peak is.
            let near = |x: f64, y: f64| (x / y - 1.0).abs() < SAME_POINT;
            let (mut left, mut right) = (i - 1, i + 1);
            while left > 0 && near(grid[left], grid[i]) && near(refined.0, grid[left]) {
                left -= 1;
            }
            while right + 1 < grid.len()
                && near(grid[right], grid[i])
                && near(refined.0, grid[right])
            {
                right += 1;
            }
            if right - left > 2 {
                refined = brent(grid[left], grid[i], grid[right], values[i], precision, &f);
            }
            if refined.1 > best.1 {
                best = refined;
            }
        }
    }
    best
}

/// Brent's minimiser turned upside down, on the logarithm of $x$ (Brent 1973, chapter 5).
///
/// From three points and the value at the middle one, to a precision in $\ln x$.
pub(crate) fn brent(
    a: f64,
    x: f64,
    b: f64,
    fx: f64,
    precision: f64,
    f: &impl Fn(f64) -> f64,
) -> (f64, f64) {
    let (mut a, mut b) = (a.ln(), b.ln());
    let (mut x, mut fx) = (x.ln(), fx);
    let (mut w, mut fw, mut v, mut fv) = (x, fx, x, fx);
    let (mut step, mut before) = (0.0f64, 0.0f64);
    for _ in 0..80 {
        let middle = 0.5 * (a + b);
        let tolerance = precision * x.abs().max(1.0);
        if (x - middle).abs() <= 2.0 * tolerance - 0.5 * (b - a) {
            break;
        }
        let mut golden = true;
        if before.abs() > tolerance {
            // A parabola through the last three points.
            let r = (x - w) * (fv - fx);
            let q = (x - v) * (fw - fx);
            let (p, q) = ((x - v) * q - (x - w) * r, 2.0 * (q - r));
            let (p, q) = if q > 0.0 { (-p, q) } else { (p, -q) };
            if p.abs() < (0.5 * q * before).abs() && p > q * (a - x) && p < q * (b - x) {
                before = step;
                step = p / q;
                golden = false;
            }
        }
        if golden {
            before = if x < middle { b - x } else { a - x };
            step = GOLDEN * before;
        }
        let u = if step.abs() >= tolerance { x + step } else { x + tolerance.copysign(step) };
        let fu = f(u.exp());
        if fu >= fx {
            if u < x {
                b = x
            } else {
                a = x
            }
            (v, fv, w, fw, x, fx) = (w, fw, x, fx, u, fu);
        } else {
            if u < x {
                a = u
            } else {
                b = u
            }
            if fu >= fw || w == x {
                (v, fv, w, fw) = (w, fw, u, fu);
            } else if fu >= fv || v == x || v == w {
                (v, fv) = (u, fu);
            }
        }
    }
    (x.exp(), fx)
}

/// `per_decade` points for each factor of ten from `low` to `high`, both included.
pub(crate) fn log_grid(low: f64, high: f64, per_decade: f64) -> Vec<f64> {
    let steps = ((high.log10() - low.log10()) * per_decade).ceil().clamp(1.0, 1e5) as usize;
    (0..=steps)
        .map(|k| match k {
            0 => low,
            k if k == steps => high,
            k => (low.ln() + (high.ln() - low.ln()) * (k as f64 / steps as f64)).exp(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_higher_of_two_peaks() {
        let f = |x: f64| {
            let bump = |at: f64, width: f64| (-((x.ln() - at) / width).powi(2)).exp();
            bump(0.0, 1.0) + 1.2 * bump(5.0, 0.05)
        };
        let (x, y) = maximise_on(&log_grid(1e-3, 1e6, 16.0), f);
        assert!((x.ln() - 5.0).abs() < 1e-7 && (y - 1.2).abs() < 1e-10, "{x} {y}");
    }

    #[test]
    fn points_without_a_value_are_not_refined() {
        let calls = std::cell::Cell::new(0);
        let f = |x: f64| {
            calls.set(calls.get() + 1);
            if x < 10.0 { f64::NEG_INFINITY } else { -(x.ln() - 3.0).powi(2) }
        };
        let grid = log_grid(1e-3, 1e3, 8.0);
        let (x, _) = maximise_on(&grid, f);
        assert!((x.ln() - 3.0).abs() < 1e-6);
        assert!(calls.get() < grid.len() + 80, "{}", calls.get());
    }

    #[test]
    fn points_that_are_next_to_equal_do_not_hide_a_peak() {
        // The peak is right of both, and rounding puts the left one above the right one.
        let f = |x: f64| -(x.ln() - 0.1).powi(2) + if x == 1.0 { 1e-12 } else { 0.0 };
        let (x, y) = maximise_on(&[0.5, 1.0, 1.0 + 1e-14, 1.5, 2.0], f);
        assert!((x.ln() - 0.1).abs() < 1e-6 && y > -1e-12, "{x} {y}");
    }

    #[test]
    fn a_cliff_is_climbed_to_its_edge() {
        let f = |x: f64| if x < 0.7 { 0.1 } else { 1.0 / x };
        let (x, y) = maximise_on(&log_grid(0.1, 10.0, 8.0), f);
        assert!((x - 0.7).abs() < 1e-6 && (y - 1.0 / 0.7).abs() < 1e-5, "{x} {y}");
    }
}
