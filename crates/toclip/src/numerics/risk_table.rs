//! Functions of the risk that are slow to evaluate, as piecewise polynomials.

use crate::noise::spread;
use std::sync::OnceLock;

/// The width of a panel in $\ln\sqrt{2R}$ before it is split, and the width below which panels are
/// not halved any more. A limit on the number of splits instead would leave wide panels without an
/// answer next to jumps.
const WIDTH: f64 = 1.0;
const NARROWEST: f64 = WIDTH / 256.0 * (1.0 + 1e-9);
/// A place in $x$ this near to the end of a panel counts as the end.
const AT_END: f64 = 1e-9;
/// Panels from the first on, where the risk is the smallest number there is, to the largest.
const PANELS: usize = 720;
const FIRST: f64 = -373.0;

/// $N$ functions of the risk, interpolated where they are smooth: on each panel through $P$ points,
/// Chebyshev's of the first kind.
///
/// The variable is $x = \ln s$ with $s = \sqrt{2R}$, the spread that the error of the model gives the
/// residual. Panels have the same ends whatever is asked for, and are filled when first needed; so
/// values depend neither on the order of the questions nor on the number of threads.
///
/// A panel is accepted if its last two coefficients are below the tolerance, relative to the
/// smallest value on it (to the largest if the function changes its sign there), and halved
/// otherwise, or split where a function is known to jump. Where that does not help, or values
/// are not finite, the table has no answer and the caller evaluates the function itself.
#[derive(Debug)]
pub(crate) struct RiskTable<const N: usize, const P: usize> {
    tolerance: f64,
    panels: Vec<OnceLock<Panel<N, P>>>,
}

#[derive(Debug)]
enum Panel<const N: usize, const P: usize> {
    /// Coefficients of Chebyshev polynomials.
    Smooth(Box<[[f64; N]; P]>),
    /// In two at this $x$.
    Split(f64, Box<[OnceLock<Panel<N, P>>; 2]>),
    Rough,
}

/// The functions on a panel, as far as they are known.
#[derive(Debug)]
pub(crate) enum Filled<const N: usize> {
    /// All of them at every risk that was asked for.
    Values(Vec<[f64; N]>),
    /// The same, needed to this relative error only.
    Rounded(Vec<[f64; N]>, f64),
    /// One of them jumps at this risk.
    Jump(f64),
    /// They are not smooth.
    Unknown,
}

/// Gives the functions at several risks, in increasing order.
pub(crate) type Fill<'a, const N: usize> = dyn Fn(&[f64]) -> Filled<N> + 'a;

/// From one risk to another.
pub(crate) type Span = (f64, f64);
/// All risks.
pub(crate) const EVERYWHERE: Span = (0.0, f64::INFINITY);

/// The ends of a panel, in $x$.
#[derive(Debug, Clone, Copy)]
struct Ends {
    from: f64,
    to: f64,
}

impl<const N: usize, const P: usize> RiskTable<N, P> {
    /// An empty table with this relative error.
    pub fn new(tolerance: f64) -> Self {
        RiskTable { tolerance, panels: (0..PANELS).map(|_| OnceLock::new()).collect() }
    }

    /// The functions at risk $r$, from the table or by `fill`; `None` where they are not smooth or
    /// not finite, and at $R = 0$.
    ///
    /// `smooth` is the range of risks around $r$ on which the functions are smooth; all such ranges
    /// together divide the risks into pieces. Panels that reach beyond it are split at its ends
    /// without being evaluated.
    pub fn at(&self, r: f64, smooth: Span, fill: &Fill<'_, N>) -> Option<[f64; N]> {
        self.piece(r, smooth, fill).0
    }

    /// The same, and the risks around $r$ on which it is one polynomial.
    pub fn piece(&self, r: f64, smooth: Span, fill: &Fill<'_, N>) -> (Option<[f64; N]>, Span) {
        if !(r > 0.0 && r <= 1e300) {
            return (None, (r, r));
        }
        let x = place_of(r);
        let place = ((x - FIRST) / WIDTH).floor().max(0.0);
        let Some(panel) = self.panels.get(place as usize) else { return (None, (r, r)) };
        let mut ends = Ends { from: FIRST + place * WIDTH, to: FIRST + (place + 1.0) * WIDTH };
        let mut panel = self.filled(panel, ends, smooth, fill);
        while let Panel::Split(at, parts) = panel {
            let right = x >= *at;
            if right {
                ends.from = *at;
            } else {
                ends.to = *at;
            }
            panel = self.filled(&parts[usize::from(right)], ends, smooth, fill);
        }
        let values = match panel {
            Panel::Smooth(coefficients) => Some(clenshaw(coefficients, ends.place(x))),
            _ => None,
        };
        (values, (risk_at(ends.from), risk_at(ends.to)))
    }

    /// The panel, filled if it is not yet. Two threads may both fill it, with the same numbers: to
    /// wait for each other inside a thread pool could be for ever.
    fn filled<'a>(
        &self,
        panel: &'a OnceLock<Panel<N, P>>,
        ends: Ends,
        smooth: Span,
        fill: &Fill<'_, N>,
    ) -> &'a Panel<N, P> {
        if let Some(panel) = panel.get() {
            return panel;
        }
        if let Some(x) = ends.inner(smooth) {
            return panel.get_or_init(|| Panel::split_at(x));
        }
        let risks: Vec<f64> = (0..P)
            .map(|k| {
                let x = 0.5 * (ends.from + ends.to) - 0.5 * (ends.to - ends.from) * node(k, P);
                risk_at(x)
            })
            .collect();
        let (values, tolerance) = match fill(&risks) {
            Filled::Values(values) => (values, self.tolerance),
            Filled::Rounded(values, tolerance) => (values, tolerance),
            Filled::Jump(r) => {
                let x = place_of(r);
                return panel.get_or_init(|| match ends.contains(x) {
                    true if ends.width() > NARROWEST => Panel::split_at(x),
                    _ => Panel::halved(ends),
                });
            }
            Filled::Unknown => return panel.get_or_init(|| Panel::halved(ends)),
        };
        if !values.iter().flatten().all(|x| x.is_finite()) {
            return panel.get_or_init(|| Panel::Rough);
        }
        let filled = Panel::through(&values, tolerance);
        panel.get_or_init(|| filled.unwrap_or_else(|| Panel::halved(ends)))
    }
}

impl<const N: usize, const P: usize> Panel<N, P> {
    /// In two at `x`.
    fn split_at(x: f64) -> Self {
        Panel::Split(x, Box::new([OnceLock::new(), OnceLock::new()]))
    }

    /// In halves; rough where it is too narrow for that.
    fn halved(ends: Ends) -> Self {
        match ends.width() > NARROWEST {
            true => Panel::split_at(0.5 * (ends.from + ends.to)),
            false => Panel::Rough,
        }
    }

    /// The polynomials through these values; `None` where they are not good enough.
    fn through(values: &[[f64; N]], tolerance: f64) -> Option<Self> {
        let mut coefficients = [[0.0; N]; P];
        for (n, coefficient) in coefficients.iter_mut().enumerate() {
            for (k, value) in values.iter().enumerate() {
                // Values are in increasing order of x, nodes in decreasing.
                let weight = (std::f64::consts::PI * n as f64 * (k as f64 + 0.5) / P as f64).cos()
                    * if n == 0 { 1.0 } else { 2.0 }
                    * if n % 2 == 0 { 1.0 } else { -1.0 };
                for i in 0..N {
                    coefficient[i] += weight * value[i] / P as f64;
                }
            }
        }
        let smooth = (0..N).all(|i| {
            let (low, high) = values
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v[i]), b.max(v[i])));
            let size =
                if low < 0.0 && high > 0.0 { high.max(-low) } else { low.abs().min(high.abs()) };
            let last = coefficients[P - 1][i].abs().max(coefficients[P - 2][i].abs());
            if !(last <= tolerance * size) {
                return false;
            }
            // What is left out at the end is no larger than the error that is allowed: values that
            // are known to a few digits only do not make a curve of many wiggles.
            let mut dropped = 0.0;
            for coefficient in coefficients.iter_mut().rev() {
                dropped += coefficient[i].abs();
                if dropped > 0.5 * tolerance * size {
                    break;
                }
                coefficient[i] = 0.0;
            }
            true
        });
        smooth.then(|| Panel::Smooth(Box::new(coefficients)))
    }
}

impl Ends {
    /// Where $x$ is on $\[-1, 1\]$.
    fn place(self, x: f64) -> f64 {
        (2.0 * x - self.from - self.to) / (self.to - self.from)
    }

    fn width(self) -> f64 {
        self.to - self.from
    }

    /// Whether $x$ is inside, and not at an end.
    fn contains(self, x: f64) -> bool {
        x > self.from + AT_END && x < self.to - AT_END
    }

    /// An end of these risks that is inside.
    fn inner(self, span: Span) -> Option<f64> {
        [span.0, span.1].map(place_of).into_iter().find(|x| self.contains(*x))
    }
}

/// $x$ at risk $r$.
fn place_of(r: f64) -> f64 {
    spread(r).ln()
}

/// The risk at $x$.
fn risk_at(x: f64) -> f64 {
    0.5 * (2.0 * x).exp()
}

/// Chebyshev's points, from the largest.
fn node(k: usize, points: usize) -> f64 {
    (std::f64::consts::PI * (k as f64 + 0.5) / points as f64).cos()
}

/// $\sum_n a_n T_n(x)$.
fn clenshaw<const N: usize, const P: usize>(a: &[[f64; N]; P], x: f64) -> [f64; N] {
    let (mut one, mut two) = ([0.0; N], [0.0; N]);
    for a in a[1..].iter().rev() {
        for i in 0..N {
            (one[i], two[i]) = (a[i] + 2.0 * x * one[i] - two[i], one[i]);
        }
    }
    std::array::from_fn(|i| a[0][i] + x * one[i] - two[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::map_timed;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn smooth(r: f64) -> [f64; 2] {
        [1.0 / (1.0 + r), (0.3 + r).ln()]
    }

    proptest! {
        #[test]
        fn smooth_functions_are_met(log_r in -12.0..8.0f64) {
            let table = RiskTable::<2, 16>::new(1e-12);
            let r = 10f64.powf(log_r);
            let got = table.at(r, EVERYWHERE, &|risks| Filled::Values(map_timed(risks, |r| smooth(*r)))).unwrap();
            let want = smooth(r);
            // The logarithm has a zero: there the error is absolute.
            prop_assert!((got[0] / want[0] - 1.0).abs() < 1e-11, "{got:?} {want:?}");
            prop_assert!((got[1] - want[1]).abs() < 1e-11 * want[1].abs().max(0.1));
        }
    }

    #[test]
    fn a_panel_is_filled_once_and_bits_do_not_depend_on_the_order() {
        let risks: Vec<f64> = (0..200).map(|k| 1e-3 * 1.04f64.powi(k)).collect();
        let calls = AtomicUsize::new(0);
        let fill = |risks: &[f64]| {
            calls.fetch_add(risks.len(), Ordering::Relaxed);
            Filled::Values(map_timed(risks, |r| smooth(*r)))
        };
        let (up, down) = (RiskTable::<2, 16>::new(1e-12), RiskTable::<2, 16>::new(1e-12));
        let first: Vec<_> = risks.iter().map(|&r| up.at(r, EVERYWHERE, &fill)).collect();
        let filled = calls.load(Ordering::Relaxed);
        let again: Vec<_> = risks.iter().map(|&r| up.at(r, EVERYWHERE, &fill)).collect();
        assert_eq!(calls.load(Ordering::Relaxed), filled);
        let mut other: Vec<_> =
            risks.iter().rev().map(|&r| down.at(r, EVERYWHERE, &fill)).collect();
        other.reverse();
        assert_eq!(first, again);
        assert_eq!(first, other);
    }

    #[test]
    fn jumps_and_missing_numbers_have_no_answer_and_their_surroundings_do() {
        let table = RiskTable::<1, 16>::new(1e-12);
        let jump = |risks: &[f64]| {
            Filled::Values(map_timed(risks, |&r| [if r < 0.3 { 1.0 } else { 2.0 }]))
        };
        assert_eq!(table.at(0.3 + 1e-9, EVERYWHERE, &jump), None);
        assert!((table.at(0.2, EVERYWHERE, &jump).unwrap()[0] - 1.0).abs() < 1e-12);
        assert!((table.at(0.5, EVERYWHERE, &jump).unwrap()[0] - 2.0).abs() < 1e-12);
        // Told where it is, the table has both sides to the last digit.
        let told = RiskTable::<1, 16>::new(1e-12);
        let fill = |risks: &[f64]| match risks {
            [first, .., last] if *first < 0.3 && *last >= 0.3 => Filled::Jump(0.3),
            _ => jump(risks),
        };
        assert!((told.at(0.3 - 1e-9, EVERYWHERE, &fill).unwrap()[0] - 1.0).abs() < 1e-12);
        assert!((told.at(0.3 + 1e-9, EVERYWHERE, &fill).unwrap()[0] - 2.0).abs() < 1e-12);
        let table = RiskTable::<1, 16>::new(1e-12);
        assert_eq!(
            table.at(0.5, EVERYWHERE, &|risks| Filled::Values(map_timed(risks, |_| [f64::NAN]))),
            None
        );
        assert_eq!(
            table.at(0.0, EVERYWHERE, &|risks| Filled::Values(map_timed(risks, |&r| [r]))),
            None
        );
    }
}
