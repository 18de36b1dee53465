//! The best threshold along the risk.

use super::best::{Efficiency, Optimum, Search, best_for_residual, without_search};
use crate::factors::step::Step;
use crate::numerics::risk_table::{EVERYWHERE, PanelValues, RiskTable, Span};
use crate::parallel::map_timed;

/// The search at the ends of a panel. It is coarser than the one at a single risk, since peaks are
/// followed from there and the top of each is taken from a polynomial.
const COARSE: Search =
    Search { per_decade: 5.0, offsets: &[-3.0, -1.0, 0.0, 1.0, 3.0], precision: 5e-3 };
/// The share of CCC that an error of $c^\ast$ may cost. It enters squared: with a curvature $\kappa$ of
/// $\ln\text{CCC}$ in $\ln c$, an error $\delta$ costs $\tfrac12\kappa\delta^2$.
///
/// Integrals, as for batches, are not known well enough for the share of closed forms.
const LOSS: f64 = 1e-11;
const LOSS_OF_CLOSED_FORMS: f64 = 1e-13;
/// Relative errors of $c^\ast$ that are allowed at least, whatever the curvature, and at most.
const ERRORS: (f64, f64) = (1e-7, 0.03);
/// The relative error of $c^\ast$ at the end of a plateau, where CCC is flat to rounding.
const OF_PLATEAU: f64 = 1e-3;
/// A peak that exceeds the limit $c \to 0$, or not clipping, by less than this share does not count.
/// Integrals, as for batches, have errors of up to a tenth of the first; closed forms of less than a
/// thousandth of the second.
const FLAT: f64 = 1e-8;
const FLAT_OF_CLOSED_FORMS: f64 = 1e-11;
/// Peaks whose efficiencies differ by a smaller share are equally high.
const SAME: f64 = 1e-9;
/// How far apart the five values are that give a top, in $\ln c$, as a share of the narrowest feature
/// of the residual, and the narrowest and widest that counts, relative to its place.
const STENCIL: f64 = 0.05;
const FEATURES: (f64, f64) = (1e-3, 0.4);
/// A top this near to the middle of the five values, in their distance, needs no other five.
const CENTRED: f64 = 0.6;
/// How often the five values are moved uphill before a peak counts as lost.
const MOVES: usize = 12;

/// $c^\ast(R)$ as a table along the risk.
///
/// At both ends of a panel the best threshold is searched for on a grid. In between the peak is
/// followed: five values around the threshold extrapolated from the risks before give it by their
/// polynomial. If it is not the highest peak at the other end there is a jump, and the panel is
/// halved. The narrowest panels around a jump have no curve, and every risk there is searched.
#[derive(Debug, Default)]
pub(crate) struct BestAlongRisk {
    table: RiskTable<1, Kind>,
}

/// An [`Optimum`] without its number.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    At,
    Unclipped,
    Small,
}

impl BestAlongRisk {
    /// The optimum at risk $r$, and the risks around it on which the threshold is one polynomial:
    /// none next to a jump.
    pub fn at(&self, step: &Step<'_>, r: f64) -> (Optimum, Span) {
        if let Some(piece) = self.table.at(r, EVERYWHERE, &|risks| along(step, risks)) {
            let optimum = match piece.kind {
                Kind::At => Optimum::At(piece.values[0]),
                Kind::Unclipped => Optimum::Unclipped,
                Kind::Small => Optimum::Small,
            };
            return (optimum, piece.span);
        }
        let searched = || best_for_residual(step, r).map(|best| best.optimum());
        let peak = if r > 0.0 { Peak::highest(step, r) } else { None };
        let optimum = peak.map(|peak| Ok(peak.optimum)).unwrap_or_else(searched);
        (optimum.unwrap_or(Optimum::Unclipped), (r, r))
    }
}

/// The optimum at increasing risks; `None` where it is not one smooth curve.
fn along(step: &Step<'_>, risks: &[f64]) -> Option<PanelValues<1, Kind>> {
    if without_search(step, risks[0]).is_some() {
        let each = map_timed(risks, |&r| Some(without_search(step, r)?.ok()?.optimum()));
        return curve(&each.into_iter().collect::<Option<Vec<_>>>()?, ERRORS.0);
    }
    let (first, middle, last) = (risks[0], risks[risks.len() / 2], risks[risks.len() - 1]);
    let (from, to) = (Peak::highest(step, first)?, Peak::highest(step, last)?);
    if kind(from.optimum) != kind(to.optimum) || from.is_flat != to.is_flat {
        return None;
    }
    if from.is_flat {
        let each = map_timed(risks, |&r| Some(Peak::highest(step, r)?.optimum));
        return curve(&each.into_iter().collect::<Option<Vec<_>>>()?, OF_PLATEAU);
    }
    let Optimum::At(c) = from.optimum else {
        let between = Peak::highest(step, middle)?.optimum;
        return curve(&[vec![from.optimum; risks.len() - 1], vec![between]].concat(), ERRORS.0);
    };
    let mut found = vec![c.ln()];
    let mut peaks = vec![from];
    for (k, &r) in risks.iter().enumerate().skip(1) {
        let guess = extrapolated(&found, risks, k);
        let peak = Peak::near(step, r, guess)?;
        let Optimum::At(c) = peak.optimum else { return None };
        found.push(c.ln());
        peaks.push(peak);
    }
    if !peaks[risks.len() - 1].is_same(&to, step, last) {
        return None;
    }
    let bend = peaks.iter().map(|peak| peak.bend).fold(0.0, f64::max);
    let loss = if step.is_slow() { LOSS } else { LOSS_OF_CLOSED_FORMS };
    let error = (2.0 * loss / bend).sqrt().clamp(ERRORS.0, ERRORS.1);
    curve(&peaks.iter().map(|peak| peak.optimum).collect::<Vec<_>>(), error)
}

fn kind(optimum: Optimum) -> Kind {
    match optimum {
        Optimum::At(_) => Kind::At,
        Optimum::Unclipped => Kind::Unclipped,
        Optimum::Small => Kind::Small,
    }
}

/// Optima of one kind, needed to this relative error.
fn curve(optima: &[Optimum], error: f64) -> Option<PanelValues<1, Kind>> {
    let one = kind(*optima.first()?);
    let values = optima.iter().map(|&optimum| match optimum {
        Optimum::At(c) => [c],
        _ => [1.0],
    });
    let values: Vec<[f64; 1]> = values.collect();
    let allowed = PanelValues::relative(values.clone(), error).allowed;
    let is_one = optima.iter().all(|&optimum| kind(optimum) == one);
    is_one.then_some(PanelValues { kind: one, values, allowed })
}

/// One of the candidates for the best threshold at some risk.
#[derive(Debug, Clone, Copy)]
struct Peak {
    optimum: Optimum,
    /// Its efficiency.
    height: f64,
    /// $\kappa$; zero where there is no threshold to be found.
    bend: f64,
    /// Whether thresholds far from this one are equally good, to rounding.
    is_flat: bool,
}

impl Peak {
    /// The best threshold at one risk; `None` where a peak of the grid has no top.
    fn highest(step: &Step<'_>, r: f64) -> Option<Self> {
        let efficiency = Efficiency::new(step, r);
        let found = efficiency.search(&COARSE);
        let flat = if step.is_slow() { FLAT } else { FLAT_OF_CLOSED_FORMS };
        let optimum = match found.optimum {
            Optimum::At(_) if found.top <= found.towards_zero * (1.0 + flat) => Optimum::Small,
            Optimum::At(_) if found.top * step.residual_second_moment(r) <= 1.0 + flat => {
                Optimum::Unclipped
            }
            optimum => optimum,
        };
        match optimum {
            Optimum::At(c) if !found.is_flat => Peak::near(step, r, c.ln()),
            _ => Some(Peak {
                optimum,
                height: found.top,
                bend: 0.0,
                is_flat: found.is_flat && kind(optimum) == Kind::At,
            }),
        }
    }

    /// The peak near a guess of $\ln c$: the maximum of the polynomial through five values around it,
    /// which are moved until they enclose it.
    fn near(step: &Step<'_>, r: f64, guess: f64) -> Option<Self> {
        let (efficiency, width) = (Efficiency::new(step, r), stencil(step, r));
        let mut centre = guess;
        for _ in 0..MOVES {
            let values =
                [-2.0, -1.0, 0.0, 1.0, 2.0].map(|k| efficiency.at((centre + k * width).exp()));
            if values.iter().any(|v| v.is_nan()) {
                return None;
            }
            let is_flat = false;
            // Where all are equally good each is the top.
            let (least, most) =
                values.iter().fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(*v), b.max(*v)));
            if least > most * (1.0 - LOSS) {
                let optimum = Optimum::At(centre.exp());
                return Some(Peak { optimum, height: most, bend: 0.0, is_flat });
            }
            let highest = (0..5).fold(2, |best, i| if values[i] > values[best] { i } else { best });
            let moved = if highest == 2 {
                let (offset, height, bend) = vertex(values);
                if offset.abs() <= CENTRED {
                    let optimum = Optimum::At((centre + offset * width).exp());
                    let bend = bend.max(0.0) / (height * width * width);
                    return Some(Peak { optimum, height, bend, is_flat });
                }
                offset.clamp(-1.0, 1.0)
            } else {
                highest as f64 - 2.0
            };
            centre += moved * width;
        }
        None
    }

    /// Whether this peak, followed to risk $r$, is the highest there. Heights are known to nine
    /// digits only, so two peaks are also the same where they are at the same threshold.
    fn is_same(&self, highest: &Peak, step: &Step<'_>, r: f64) -> bool {
        match (self.optimum, highest.optimum) {
            (Optimum::At(a), Optimum::At(b)) => {
                self.height >= highest.height * (1.0 - SAME)
                    || (a / b).ln().abs() < 0.5 * stencil(step, r)
            }
            (one, other) => kind(one) == kind(other),
        }
    }
}

/// How far apart the five values are, in $\ln c$.
fn stencil(step: &Step<'_>, r: f64) -> f64 {
    let features = step.features(r);
    let apart = features.iter().filter(|f| f.at != 0.0);
    let narrowest = apart.map(|f| f.width / f.at.abs()).fold(FEATURES.1, f64::min);
    STENCIL * narrowest.max(FEATURES.0)
}

/// The next $\ln c^\ast$ from those before, as a polynomial in $\ln R$ of degree two at most.
fn extrapolated(found: &[f64], risks: &[f64], k: usize) -> f64 {
    let from = k - k.min(3);
    let x: Vec<f64> = risks[from..=k].iter().map(|r| r.ln()).collect();
    let (next, known) = (x[x.len() - 1], &x[..x.len() - 1]);
    let term = |i: usize| {
        let others = known.iter().enumerate().filter(|(j, _)| *j != i);
        others.map(|(_, p)| (next - p) / (known[i] - p)).product::<f64>()
    };
    found[from..k].iter().enumerate().map(|(i, value)| term(i) * value).sum()
}

/// Where the polynomial through five values at $-2, \dots, 2$ has the maximum next to zero, how high
/// it is, and how much it bends there.
fn vertex([a, b, c, d, e]: [f64; 5]) -> (f64, f64, f64) {
    // Derivatives at zero of the polynomial of degree four.
    let first = (a - 8.0 * b + 8.0 * d - e) / 12.0;
    let second = (-a + 16.0 * b - 30.0 * c + 16.0 * d - e) / 12.0;
    let third = (-a + 2.0 * b - 2.0 * d + e) / 2.0;
    let fourth = a - 4.0 * b + 6.0 * c - 4.0 * d + e;
    let mut x = 0.0;
    for _ in 0..8 {
        let slope = first + x * (second + x * (0.5 * third + x * fourth / 6.0));
        let bend = second + x * (third + x * 0.5 * fourth);
        if !(bend < 0.0) {
            break;
        }
        x = (x - slope / bend).clamp(-2.0, 2.0);
    }
    let rise = x * (first + x * (second / 2.0 + x * (third / 6.0 + x * fourth / 24.0)));
    (x, c + rise, -second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factors::batch::Batch;
    use crate::noise::{Family, Gaussian, Laplace, Rademacher, StudentT};
    use crate::rule::{Rule, Smooth};

    fn noises() -> [Family; 4] {
        [
            Gaussian::new(0.4).unwrap().into(),
            Laplace::new(0.4).unwrap().into(),
            StudentT::new(2.2, 0.3).unwrap().into(),
            Rademacher::new(1.0, 0.3).unwrap().into(),
        ]
    }

    /// How much of CCC is lost against a search at every risk, over ten e-folds.
    fn lost(step: &Step<'_>) -> f64 {
        let best = BestAlongRisk::default();
        let mut worst = 0.0_f64;
        for k in 0..12 {
            let r = 1.3e-3 * 2.3f64.powi(k);
            let searched = best_for_residual(step, r).unwrap();
            let efficiency = match best.at(step, r).0 {
                Optimum::At(c) => Efficiency::new(step, r).at(c),
                Optimum::Unclipped => 1.0 / step.residual_second_moment(r),
                Optimum::Small => Efficiency::new(step, r).search(&COARSE).towards_zero,
            };
            worst = worst.max(1.0 - efficiency / searched.efficiency);
        }
        worst
    }

    #[test]
    fn closed_forms_lose_nothing() {
        for noise in noises() {
            let lost = lost(&Step::new(&noise));
            assert!(lost < 1e-10, "{noise:?}: {lost:e}");
        }
    }

    #[test]
    fn integrals_lose_less_than_their_errors() {
        for noise in noises() {
            for (rule, batch) in
                [(Rule::Clip, 8), (Rule::Skip, 1), (Rule::Skip, 4), (Rule::Smooth(Smooth::Tanh), 1)]
            {
                let step = Step::new(&noise).with_batch(Batch::mean(batch).unwrap()).unwrap();
                let step = step.with_rule(rule).unwrap();
                let lost = lost(&step);
                assert!(lost < 2.0 * FLAT, "{}: {lost:e}", step.describe());
            }
        }
    }

    /// From an outlier's peak to that of all residuals: on both sides of the jump the right one.
    #[test]
    fn a_jump_between_two_peaks_is_exact() {
        let noise = Rademacher::new(1.0, 0.3).unwrap();
        let step = Step::new(&noise).with_rule(Rule::Skip).unwrap();
        let best = BestAlongRisk::default();
        let at = |r: f64| best.at(&step, r).0;
        let (mut low, mut high) = (1e-3, 1.0);
        assert!(kind(at(low)) != kind(at(high)), "{:?} {:?}", at(low), at(high));
        for _ in 0..30 {
            let middle = f64::sqrt(low * high);
            if kind(at(middle)) == kind(at(low)) { low = middle } else { high = middle }
        }
        for r in [low * 0.999, high * 1.001] {
            let searched = best_for_residual(&step, r).unwrap();
            assert_eq!(kind(at(r)), kind(searched.optimum()), "at {r}: {searched:?}");
        }
    }

    #[test]
    fn the_top_of_five_values_is_that_of_their_polynomial() {
        // 3 − (x − 0.3)² + (x − 0.3)⁴/50.
        let f = |x: f64| 3.0 - (x - 0.3).powi(2) + 0.02 * (x - 0.3).powi(4);
        let (x, height, bend) = vertex([-2.0, -1.0, 0.0, 1.0, 2.0].map(f));
        assert!((x - 0.3).abs() < 1e-12 && (height - 3.0).abs() < 1e-12, "{x} {height}");
        assert!((bend - 1.98).abs() < 0.1, "{bend}");
    }

    #[test]
    fn a_parabola_is_extrapolated_exactly() {
        let risks = [0.1f64, 0.2, 0.5, 0.9];
        let y = |r: f64| 1.0 + r.ln() * (2.0 - 0.3 * r.ln());
        let found: Vec<f64> = risks[..3].iter().map(|r| y(*r)).collect();
        assert!((extrapolated(&found, &risks, 3) - y(0.9)).abs() < 1e-12);
    }
}
