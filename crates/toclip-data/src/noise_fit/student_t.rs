//! Student-t noise by maximum likelihood.

use super::Fitted;
use super::sample::{Sample, quantile};
use std::f64::consts::PI;
use toclip::noise::StudentT;

/// Degrees of freedom that are looked at. At 10⁴ the distribution differs from the Gaussian by
/// less than 1e-8 nats a residual; below 0.1 it is of no use.
const DF: (f64, f64) = (0.1, 1e4);
/// Points of the first grid over df, evenly spaced in its logarithm.
const GRID: usize = 24;
/// Relative accuracy of df. Its standard error is never below some percent in practice.
const DF_ACCURACY: f64 = 1e-5;

/// $\text{scale}\cdot t_{\text{df}}$ with the largest likelihood over df and scale, located at zero.
///
/// For a given df the likelihood equation of the scale, $\frac1n\sum_i \frac{(\text{df}+1)e_i^2}
/// {\text{df}\thinspace s^2 + e_i^2} = 1$, has one root, since its left side falls in $s$. What
/// remains is a function of df alone. It may have more than one maximum, so it is looked at on a
/// grid first; for light tails it rises up to the end of the range, where the distribution is Gaussian.
pub(super) fn fit(sample: &Sample) -> Fitted {
    let values = sample.fitted();
    let unit = unit(sample);
    let squares: Vec<f64> = values.iter().map(|x| (x / unit) * (x / unit)).collect();
    let floor = 2.0 * (sample.floor / unit).ln();
    let mut start = 0.0;
    let mut profile = |ln_df: f64| {
        let df = ln_df.exp();
        let ln_square = ln_scale_square(&squares, df, floor, start);
        start = ln_square;
        (mean_log_likelihood(&squares, df, ln_square), ln_square)
    };
    let (low, high) = (DF.0.ln(), DF.1.ln());
    let at = |k: usize| low + (high - low) * k as f64 / (GRID - 1) as f64;
    let mut best = (0, f64::NEG_INFINITY);
    for k in 0..GRID {
        let (value, _) = profile(at(k));
        if value > best.1 {
            best = (k, value);
        }
    }
    let bracket = (at(best.0.saturating_sub(1)), at((best.0 + 1).min(GRID - 1)));
    let ln_df = golden(bracket, |x| profile(x).0);
    // The search approaches an end of the range but never reaches it.
    let ends = [low, high].into_iter().find(|end| (ln_df - end).abs() < 1e-3);
    let ln_df = ends.unwrap_or(ln_df);
    let scale = unit * (0.5 * profile(ln_df).1).exp();
    let tails_are_gaussian = ln_df == high;
    let note = if tails_are_gaussian {
        Some("the tails are no heavier than Gaussian: df is at the end of its range".to_owned())
    } else if ln_df == low {
        Some(
            "the tails are heavier than those of any df considered: df is at the end of its range"
                .into(),
        )
    } else {
        sample.fitted_note()
    };
    let df = ln_df.exp();
    let fitted = Fitted::new(2, StudentT::new(df, scale), move |x| {
        let z = x / scale;
        ln_constant(df) - scale.ln() - 0.5 * (df + 1.0) * (z * z / df).ln_1p()
    });
    Fitted { note, tails_are_gaussian, ..fitted }
}

/// A unit about zero that is robust to outliers.
fn unit(sample: &Sample) -> f64 {
    let mut sizes: Vec<f64> = sample.values.iter().map(|x| x.abs()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    quantile(&sizes, 0.5).max(sample.floor)
}

/// $\ln s^2$ at the root, by Newton's method kept inside a bracket.
fn ln_scale_square(squares: &[f64], df: f64, floor: f64, start: f64) -> f64 {
    let n = squares.len() as f64;
    let equation = |u: f64| {
        let v = df * u.exp();
        let (mut value, mut slope) = (0.0, 0.0);
        for &y in squares {
            let share = y / (v + y);
            value += share;
            slope += share * (1.0 - share);
        }
        ((df + 1.0) * value / n - 1.0, -(df + 1.0) * slope / n)
    };
    let largest = squares.iter().copied().fold(0.0, f64::max);
    let (mut low, mut high) = (floor, largest.ln().max(floor + 1e-9));
    let mut u = start.clamp(low, high);
    for _ in 0..200 {
        let (value, slope) = equation(u);
        if value > 0.0 {
            low = u;
        } else {
            high = u;
        }
        let newton = u - value / slope;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        let moved = (next - u).abs();
        u = next;
        if moved < 1e-11 {
            break;
        }
    }
    u
}

fn mean_log_likelihood(squares: &[f64], df: f64, ln_square: f64) -> f64 {
    let v = df * ln_square.exp();
    let sum: f64 = squares.iter().map(|&y| (y / v).ln_1p()).sum();
    ln_constant(df) - 0.5 * ln_square - 0.5 * (df + 1.0) * sum / squares.len() as f64
}

/// $\ln \Gamma(\tfrac{\text{df}+1}{2}) - \ln \Gamma(\tfrac{\text{df}}{2}) - \tfrac12 \ln(\pi\thinspace\text{df})$.
fn ln_constant(df: f64) -> f64 {
    // The two gamma functions agree to many digits for large df; there the asymptotic series
    // ½ ln(df/2) − 1/(4 df) + 1/(24 df³) − 1/(20 df⁵) of their ratio is exact to rounding.
    if df > 300.0 {
        let w = 1.0 / df;
        return -0.5 * (2.0 * PI).ln() - w / 4.0 + w.powi(3) / 24.0 - w.powi(5) / 20.0;
    }
    libm::lgamma(0.5 * (df + 1.0)) - libm::lgamma(0.5 * df) - 0.5 * (PI * df).ln()
}

/// Where a function with one maximum in the bracket has it (golden section).
fn golden((mut low, mut high): (f64, f64), mut f: impl FnMut(f64) -> f64) -> f64 {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_a, mut at_b) = (f(a), f(b));
    while high - low > DF_ACCURACY {
        if at_a > at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - ratio * (high - low);
            at_a = f(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + ratio * (high - low);
            at_b = f(b);
        }
    }
    0.5 * (low + high)
}
