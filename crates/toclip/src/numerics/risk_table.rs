//! Functions of the risk that are slow to evaluate, as piecewise polynomials.

use crate::factors::LARGEST_RISK;
use crate::noise::spread;
use crate::numerics::chebyshev;
use std::sync::OnceLock;

/// The width of a panel in $\ln\sqrt{2R}$: an e-fold of the size of the model's error, over which
/// factors change by a factor of a few.
const WIDTH: f64 = 1.0;
/// Panels of this width, in the same unit, are not halved any more: eight times halved. A panel that
/// contains a jump is then left to the caller, on less than a hundredth of the risk.
const NARROWEST: f64 = WIDTH / 256.0 * (1.0 + 1e-9);
/// Values on a panel. Smooth factors have twelve digits with so many.
const POINTS: usize = 16;
/// The first panel begins here, in the same unit: below the smallest positive risk.
const FIRST: f64 = -373.0;
/// So many panels reach to the [largest risk](LARGEST_RISK).
const PANELS: usize = 720;
/// A place this near to the end of a panel counts as the end.
const AT_END: f64 = 1e-9;

/// $N$ functions of the risk, interpolated where they are smooth, and of each piece its kind: what
/// the numbers mean there.
///
/// The variable is $x = \ln s$ with $s = \sqrt{2R}$, the spread that the error of the model gives the
/// residual. Panels have the same ends whatever is asked for, and are filled when first needed; so
/// values depend neither on the order of the questions nor on the number of threads.
///
/// A panel is filled with the functions at 16 risks and the error that each may have
/// ([`PanelValues`]). The error is estimated by the last coefficients of the Chebyshev series
/// ([`estimated_error`]). A panel whose error is too large is halved. Where that does not help, as
/// around a jump, or values are not finite, the table has no answer and the caller evaluates the
/// function itself.
#[derive(Debug)]
pub(crate) struct RiskTable<const N: usize, Kind = ()> {
    panels: Vec<OnceLock<Panel<N, Kind>>>,
}

#[derive(Debug)]
enum Panel<const N: usize, Kind> {
    /// Coefficients of Chebyshev polynomials.
    Smooth(Vec<[f64; N]>, Kind),
    /// In two at this $x$.
    Split(f64, Box<[OnceLock<Panel<N, Kind>>; 2]>),
    Rough,
}

/// The functions at the risks of a panel, and how exactly they are needed.
#[derive(Debug)]
pub(crate) struct PanelValues<const N: usize, Kind = ()> {
    /// What the numbers mean on this panel.
    pub kind: Kind,
    /// In the order of the risks.
    pub values: Vec<[f64; N]>,
    /// The absolute error that each function may have.
    pub allowed: [f64; N],
}

impl<const N: usize> PanelValues<N> {
    /// With this error relative to the smallest value on the panel, or to the largest of a
    /// function that changes its sign there.
    pub fn relative(values: Vec<[f64; N]>, tolerance: f64) -> Self {
        let allowed = std::array::from_fn(|i| {
            let (low, high) = values
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v[i]), b.max(v[i])));
            let changes_sign = low < 0.0 && high > 0.0;
            tolerance * if changes_sign { high.max(-low) } else { low.abs().min(high.abs()) }
        });
        PanelValues { kind: (), values, allowed }
    }
}

/// Gives the functions at several risks, in increasing order; `None` where they are not smooth.
pub(crate) type Fill<'a, const N: usize, Kind> =
    dyn Fn(&[f64]) -> Option<PanelValues<N, Kind>> + 'a;

/// From one risk to another.
pub(crate) type Span = (f64, f64);
/// All risks.
pub(crate) const EVERYWHERE: Span = (0.0, f64::INFINITY);

/// The functions at a risk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Piece<const N: usize, Kind> {
    pub values: [f64; N],
    pub kind: Kind,
    /// The risks around this one on which they are the same polynomials.
    pub span: Span,
}

/// The ends of a panel, in $x$.
#[derive(Debug, Clone, Copy)]
struct Ends {
    from: f64,
    to: f64,
}

impl<const N: usize, Kind> Default for RiskTable<N, Kind> {
    /// An empty table.
    fn default() -> Self {
        RiskTable { panels: (0..PANELS).map(|_| OnceLock::new()).collect() }
    }
}

impl<const N: usize, Kind: Copy> RiskTable<N, Kind> {
    /// The functions at risk $r$, from the table or by `fill`; `None` where they are not smooth or
    /// not finite, and at $R = 0$.
    ///
    /// `smooth` is the range of risks around $r$ on which the functions are smooth; all such ranges
    /// together divide the risks into pieces. Panels that reach beyond it are split at its ends
    /// without being evaluated.
    pub fn at(&self, r: f64, smooth: Span, fill: &Fill<'_, N, Kind>) -> Option<Piece<N, Kind>> {
        if !(r > 0.0 && r <= LARGEST_RISK) {
            return None;
        }
        let x = place_of(r);
        let place = ((x - FIRST) / WIDTH).floor().max(0.0);
        let panel = self.panels.get(place as usize)?;
        let mut ends = Ends { from: FIRST + place * WIDTH, to: FIRST + (place + 1.0) * WIDTH };
        let mut panel = filled(panel, ends, smooth, fill);
        while let Panel::Split(at, parts) = panel {
            let right = x >= *at;
            if right {
                ends.from = *at;
            } else {
                ends.to = *at;
            }
            panel = filled(&parts[usize::from(right)], ends, smooth, fill);
        }
        let Panel::Smooth(coefficients, kind) = panel else { return None };
        let values = chebyshev::sum(coefficients, ends.place(x));
        Some(Piece { values, kind: *kind, span: (risk_at(ends.from), risk_at(ends.to)) })
    }
}

/// The panel, filled if it is not yet. Two threads may both fill it, with the same numbers: to wait
/// for each other inside a thread pool could be for ever.
fn filled<'a, const N: usize, Kind: Copy>(
    panel: &'a OnceLock<Panel<N, Kind>>,
    ends: Ends,
    smooth: Span,
    fill: &Fill<'_, N, Kind>,
) -> &'a Panel<N, Kind> {
    if let Some(panel) = panel.get() {
        return panel;
    }
    if let Some(x) = ends.inner(smooth) {
        return panel.get_or_init(|| Panel::split_at(x));
    }
    let (centre, half) = (0.5 * (ends.from + ends.to), 0.5 * (ends.to - ends.from));
    let risks: Vec<f64> = chebyshev::points(POINTS).map(|t| risk_at(centre + half * t)).collect();
    let new = match fill(&risks) {
        Some(filled) if !filled.values.iter().flatten().all(|x| x.is_finite()) => Panel::Rough,
        filled => filled.and_then(Panel::through).unwrap_or_else(|| Panel::halved(ends)),
    };
    panel.get_or_init(|| new)
}

impl<const N: usize, Kind> Panel<N, Kind> {
    /// In two at `x`.
    fn split_at(x: f64) -> Self {
        Panel::Split(x, Box::new([OnceLock::new(), OnceLock::new()]))
    }

    /// In halves; rough where it is too narrow for that.
    fn halved(ends: Ends) -> Self {
        match ends.to - ends.from > NARROWEST {
            true => Panel::split_at(0.5 * (ends.from + ends.to)),
            false => Panel::Rough,
        }
    }

    /// The polynomials through these values; `None` where they are not good enough.
    fn through(PanelValues { kind, values, allowed }: PanelValues<N, Kind>) -> Option<Self> {
        let mut coefficients = chebyshev::coefficients(&values);
        let error = estimated_error(&coefficients);
        if !error.iter().zip(&allowed).all(|(error, allowed)| error <= allowed) {
            return None;
        }
        // What is left out at the end is no larger than the error that is allowed: values that are
        // known to a few digits only do not make a curve of many wiggles.
        for (i, allowed) in allowed.iter().enumerate() {
            let mut dropped = 0.0;
            for coefficient in coefficients.iter_mut().rev() {
                dropped += coefficient[i].abs();
                if dropped > 0.5 * allowed {
                    break;
                }
                coefficient[i] = 0.0;
            }
        }
        let used = coefficients.iter().rposition(|a| a.iter().any(|a| *a != 0.0)).unwrap_or(0);
        coefficients.truncate(used + 1);
        Some(Panel::Smooth(coefficients, kind))
    }
}

/// The error of the polynomials, by the size of their last two coefficients: those left out are
/// smaller by the rate at which the series converges.
fn estimated_error<const N: usize>(coefficients: &[[f64; N]]) -> [f64; N] {
    let last = &coefficients[coefficients.len() - 2..];
    std::array::from_fn(|i| last[0][i].abs().max(last[1][i].abs()))
}

impl Ends {
    /// Where $x$ is on $\[-1, 1\]$.
    fn place(self, x: f64) -> f64 {
        (2.0 * x - self.from - self.to) / (self.to - self.from)
    }

    /// An end of these risks that is inside, and not at an end.
    fn inner(self, span: Span) -> Option<f64> {
        let is_inside = |x: &f64| *x > self.from + AT_END && *x < self.to - AT_END;
        [span.0, span.1].map(place_of).into_iter().find(is_inside)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const TOLERANCE: f64 = 1e-12;

    fn smooth(r: f64) -> [f64; 2] {
        [1.0 / (1.0 + r), (0.3 + r).ln()]
    }

    /// The fill of a function that is known everywhere.
    fn of<const N: usize>(
        f: impl Fn(f64) -> [f64; N],
    ) -> impl Fn(&[f64]) -> Option<PanelValues<N>> {
        move |risks| {
            let values = risks.iter().map(|r| f(*r)).collect();
            Some(PanelValues::relative(values, TOLERANCE))
        }
    }

    fn values<const N: usize>(
        table: &RiskTable<N>,
        r: f64,
        f: impl Fn(f64) -> [f64; N],
    ) -> Option<[f64; N]> {
        table.at(r, EVERYWHERE, &of(f)).map(|piece| piece.values)
    }

    proptest! {
        #[test]
        fn smooth_functions_are_met(log_r in -12.0..8.0f64) {
            let r = 10f64.powf(log_r);
            let (got, want) = (values(&RiskTable::default(), r, smooth).unwrap(), smooth(r));
            // The logarithm has a zero: there the error is absolute.
            prop_assert!((got[0] / want[0] - 1.0).abs() < 1e-11, "{got:?} {want:?}");
            prop_assert!((got[1] - want[1]).abs() < 1e-11 * want[1].abs().max(0.1));
        }

        /// Whatever is allowed, the error of a smooth function is no larger.
        #[test]
        fn the_error_is_what_is_allowed(log_r in -6.0..4.0f64, digits in 3..13i32) {
            let (r, allowed) = (10f64.powf(log_r), 10f64.powi(-digits));
            let table = RiskTable::default();
            let fill = |risks: &[f64]| {
                let values = risks.iter().map(|r| [(1.0 + r).recip().sin()]).collect();
                Some(PanelValues { kind: (), values, allowed: [allowed] })
            };
            let [got] = table.at(r, EVERYWHERE, &fill).unwrap().values;
            let error = (got - (1.0 + r).recip().sin()).abs();
            prop_assert!(error <= allowed, "{error:e} exceeds {allowed:e} at R = {r}");
        }
    }

    /// A geometric series, whose error is known.
    #[test]
    fn the_estimate_is_about_the_error() {
        for pole in [1.2, 1.5, 2.0, 4.0] {
            let f = |x: f64| [1.0 / (pole - x)];
            let a = chebyshev::coefficients(&chebyshev::points(POINTS).map(f).collect::<Vec<_>>());
            let grid = (0..=2000).map(|k| -1.0 + 1e-3 * f64::from(k));
            let gap = |x: f64| (chebyshev::sum(&a, x)[0] - f(x)[0]).abs();
            let error = grid.map(gap).fold(0.0, f64::max);
            let [estimate] = estimated_error(&a);
            assert!((0.01..3.0).contains(&(error / estimate)), "{pole}: {error:e} {estimate:e}");
        }
    }

    #[test]
    fn a_panel_is_filled_once_and_bits_do_not_depend_on_the_order() {
        let risks: Vec<f64> = (0..200).map(|k| 1e-3 * 1.04f64.powi(k)).collect();
        let calls = AtomicUsize::new(0);
        let counted = |r: f64| {
            calls.fetch_add(1, Ordering::Relaxed);
            smooth(r)
        };
        let (up, down) = (RiskTable::default(), RiskTable::default());
        let first: Vec<_> = risks.iter().map(|&r| values(&up, r, counted)).collect();
        let filled = calls.load(Ordering::Relaxed);
        let again: Vec<_> = risks.iter().map(|&r| values(&up, r, counted)).collect();
        assert_eq!(calls.load(Ordering::Relaxed), filled);
        let mut other: Vec<_> = risks.iter().rev().map(|&r| values(&down, r, counted)).collect();
        other.reverse();
        assert_eq!(first, again);
        assert_eq!(first, other);
        // Threads that fill the same panels at the same time.
        let shared = RiskTable::default();
        let at_once: Vec<Vec<_>> = std::thread::scope(|scope| {
            let all = || risks.iter().map(|&r| values(&shared, r, smooth)).collect();
            let threads = [0, 1, 2].map(|_| scope.spawn(all));
            threads.map(|thread| thread.join().unwrap()).into()
        });
        assert!(at_once.iter().all(|values| *values == first));
    }

    #[test]
    fn jumps_and_missing_numbers_have_no_answer_and_their_surroundings_do() {
        let jump = |r: f64| [if r < 0.3 { 1.0 } else { 2.0 }];
        let table = RiskTable::default();
        assert_eq!(values(&table, 0.3 + 1e-9, jump), None);
        assert!((values(&table, 0.2, jump).unwrap()[0] - 1.0).abs() < 1e-12);
        assert!((values(&table, 0.5, jump).unwrap()[0] - 2.0).abs() < 1e-12);
        // Less than a hundredth of the risk is without an answer.
        assert!(values(&table, 0.297, jump).is_some() && values(&table, 0.303, jump).is_some());
        // Told where it is, the table has both sides to the last digit.
        let told = RiskTable::default();
        for (r, smooth, want) in [(0.3 - 1e-9, (0.0, 0.3), 1.0), (0.3 + 1e-9, (0.3, 9.0), 2.0)] {
            let [got] = told.at(r, smooth, &of(jump)).unwrap().values;
            assert!((got - want).abs() < 1e-12, "{got} at {r}");
        }
        assert_eq!(values(&RiskTable::default(), 0.5, |_| [f64::NAN]), None);
        assert_eq!(values(&RiskTable::default(), 0.0, |r| [r]), None);
    }

    /// A kind belongs to a piece: no panel has two.
    #[test]
    fn every_piece_has_its_kind() {
        let table: RiskTable<1, &str> = RiskTable::default();
        let kind = |r: f64| if r < 0.3 { "small" } else { "large" };
        let fill = |risks: &[f64]| {
            let kinds: Vec<_> = risks.iter().map(|r| kind(*r)).collect();
            let values = risks.iter().map(|r| [r.ln()]).collect();
            let is_one = kinds.iter().all(|k| *k == kinds[0]);
            is_one.then_some(PanelValues { kind: kinds[0], values, allowed: [1e-9] })
        };
        let (mut answers, risks) = (0, (0..400).map(|k| 0.1 * 1.008f64.powi(k)));
        for r in risks {
            let Some(piece) = table.at(r, EVERYWHERE, &fill) else { continue };
            answers += 1;
            assert_eq!(piece.kind, kind(r), "at {r}");
            assert!((piece.values[0] - r.ln()).abs() < 1e-9);
            assert!(piece.span.0 <= r && r <= piece.span.1);
        }
        assert!(answers > 395, "{answers}");
    }
}
