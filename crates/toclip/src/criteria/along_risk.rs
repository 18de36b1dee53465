//! The best threshold along the risk, where factors take long to compute.

use super::best::{Efficiency, Optimum, best_for_residual, is_as_good, thresholds, without_search};
use crate::factors::step::Step;
use crate::numerics::maximise::brent;
use crate::numerics::risk_table::{EVERYWHERE, Filled, RiskTable, Span};
use crate::parallel::map_timed;

/// Points on a panel.
const POINTS: usize = 12;
/// The share of CCC that an error of $c^\ast$ may cost. It enters squared: with a curvature $\kappa$ of
/// $\ln\text{CCC}$ in $\ln c$, an error $\delta$ costs $\tfrac12\kappa\delta^2$.
const LOSS: f64 = 1e-11;
/// Relative errors of $c^\ast$ that are allowed at least, and at most.
const ERRORS: (f64, f64) = (1e-6, 0.03);
/// The relative error of $c^\ast$ at the end of a plateau, where CCC is nearly flat; the precision to
/// which the end is bisected; and how often the interval around a guess is doubled to contain it.
const OF_PLATEAU: f64 = 1e-3;
const END_OF_PLATEAU: f64 = 2e-4;
const DOUBLINGS: usize = 6;
/// A peak that exceeds the limit $c \to 0$ by less than this share of it does not count: factors of
/// batches have errors of up to a tenth of that.
const FLAT: f64 = 1e-8;
/// Points of a search for each factor of ten in $c$, and about every feature. Coarser than the
/// search for a single risk: peaks are followed from one risk to the next.
const PER_DECADE: f64 = 5.0;
const OFFSETS: [f64; 5] = [-3.0, -1.0, 0.0, 1.0, 3.0];
/// Peaks of the grid lower than this share of the highest are not climbed.
const WORTH: f64 = 0.8;
/// How near to a peak of the grid its top is looked for before it is climbed.
const NEAR: f64 = 5e-3;
/// A peak this much higher than the limit $c \to 0$ has not vanished at the next risk: what it gains
/// there is not computed.
const CLEAR: f64 = 0.01;
/// How often a guess is moved before a peak counts as lost.
const MOVES: usize = 12;
/// How far a guess is moved at once, in widths of the stencil.
const FARTHEST: f64 = 16.0;
/// On a panel no wider than this in $\ln R$ the threshold is that of its middle. Panels become so
/// narrow where a peak comes out of the limit $c \to 0$: there $c^\ast$ grows like a root, and a peak
/// so near to its birth is hardly higher than the limit.
const NARROW: f64 = 0.016;
/// A jump this near to an end of its panel, as a share of it, does not divide it well.
const END: f64 = 0.1;
/// How often the interval in which a peak vanishes, or a plateau becomes one, is halved.
const BISECTIONS: usize = 6;
/// A panel wider than this in $\ln R$ is divided where a plateau becomes a peak.
const TRANSITION: f64 = 0.5;
/// Efficiencies that differ by less belong to the same peak.
const SAME: f64 = 1e-9;
/// Thresholds with a CCC this near to one, and all above them so, are as good as none.
const PLATEAU: f64 = 1e-8;

/// $c^\ast(R)$ as a table in $\ln R$.
///
/// At both ends of a panel the best threshold is searched for on a grid. In between the maximum is
/// followed: five values around the one extrapolated from the risks before give it by their
/// polynomial. If the peak that was followed is not the highest at the other end, there is a jump
/// in between and the panel is divided there, or halved; on the narrowest panels the threshold is
/// constant, so that there are at most 128 of them in an e-fold of $\sqrt R$.
///
/// The polynomial knows the height of a peak to nine digits only. So two peaks are the same also
/// where they are at the same threshold; heights alone would find jumps where there are none.
#[derive(Debug)]
pub(crate) struct BestAlongRisk {
    table: RiskTable<2, POINTS>,
}

impl BestAlongRisk {
    pub fn new() -> Self {
        BestAlongRisk { table: RiskTable::new(ERRORS.0) }
    }

    /// The optimum at risk $r$, `None` where the table has no answer; and the risks around it on
    /// which the threshold is one polynomial.
    pub fn at(&self, step: &Step<'_>, r: f64) -> (Option<Optimum>, Span) {
        let (values, span) = self.table.piece(r, EVERYWHERE, &|risks| path(step, risks));
        let optimum = values.map(|[c, kind]| match kind.round() {
            0.0 => Optimum::At(c),
            1.0 => Optimum::Unclipped,
            _ => Optimum::Small,
        });
        (optimum, span)
    }
}

fn encoded(optimum: Optimum) -> [f64; 2] {
    match optimum {
        Optimum::At(c) => [c, 0.0],
        Optimum::Unclipped => [1.0, 1.0],
        Optimum::Small => [1.0, 2.0],
    }
}

/// The optimum at increasing risks, or where it jumps.
fn path(step: &Step<'_>, risks: &[f64]) -> Filled<2> {
    if let Some(values) = without_search_at(step, risks) {
        return Filled::Values(values);
    }
    let (first, last) = (risks[0], risks[risks.len() - 1]);
    if (last / first).ln() < NARROW {
        let r = risks[risks.len() / 2];
        let searched = || best_for_residual(step, r).ok().map(|best| best.optimum());
        let optimum = Peak::highest(step, r).map(|peak| peak.optimum).or_else(searched);
        return optimum.map_or(Filled::Unknown, |optimum| {
            Filled::Values(vec![encoded(optimum); risks.len()])
        });
    }
    let (Some(mut from), Some(mut to)) = (Peak::highest(step, first), Peak::highest(step, last))
    else {
        return Filled::Unknown;
    };
    if from.is_flat && to.is_flat {
        return along_plateau(step, risks, from, to);
    }
    // A plateau becomes a peak. The two are tabulated apart, except on a panel that is narrow, where
    // the peak is followed from its own side, since the plateau has no maximum to follow.
    if from.is_flat != to.is_flat && (last / first).ln() > TRANSITION {
        return jump(first, last, Some(end_of_flatness(step, [first, last], from.is_flat)));
    }
    if from.is_flat && to.optimum.is_at() {
        let back: Vec<f64> = risks.iter().rev().copied().collect();
        let mut followed = to.followed(step, &back);
        if followed.len() == risks.len() && followed[risks.len() - 1].is_same(&from, step, first) {
            followed.reverse();
            return rounded(followed);
        }
    }
    // Next to a risk without a peak, a peak that is hardly higher than the limit does not count.
    if from.optimum == Optimum::Small && to.gain < 4.0 * FLAT {
        to.optimum = Optimum::Small;
    } else if to.optimum == Optimum::Small && from.gain < 4.0 * FLAT {
        from.optimum = Optimum::Small;
    }
    let followed = from.followed(step, risks);
    if let Some(r) = lost(step, risks, &followed) {
        return jump(first, last, Some(r));
    }
    let (middle, end) = (risks.len() / 2, risks.len() - 1);
    if !followed[end].is_same(&to, step, last) || from.optimum.is_at() != to.optimum.is_at() {
        let back: Vec<f64> = risks.iter().rev().copied().collect();
        let other = to.followed(step, &back);
        let at = lost(step, &back, &other).or_else(|| crossing(risks, &followed, &other));
        return jump(first, last, at);
    }
    // Without a peak to follow, the middle is checked as well.
    if !from.optimum.is_at() {
        match Peak::highest(step, risks[middle]) {
            Some(highest) if followed[middle].is_same(&highest, step, risks[middle]) => {}
            _ => return Filled::Unknown,
        }
    }
    rounded(followed)
}

/// The thresholds of a peak, to the error that costs no more than [`LOSS`].
fn rounded(followed: Vec<Peak>) -> Filled<2> {
    let bend = followed.iter().map(|peak| peak.bend).fold(0.0, f64::max);
    let error = (2.0 * LOSS / bend).sqrt().clamp(ERRORS.0, ERRORS.1);
    Filled::Rounded(followed.into_iter().map(|peak| encoded(peak.optimum)).collect(), error)
}

/// The end of a plateau, which is where the search for a single risk puts the best threshold. It is
/// searched for at the first and the last risk, and in between next to the line through these.
fn along_plateau(step: &Step<'_>, risks: &[f64], from: Peak, to: Peak) -> Filled<2> {
    let searched = |r: f64| best_for_residual(step, r).ok().map(|best| best.optimum());
    let (first, last) = (risks[0], risks[risks.len() - 1]);
    let between = |r: f64, one: f64, other: f64| {
        let share = (r / first).ln() / (last / first).ln();
        one.powf(1.0 - share) * other.powf(share)
    };
    let ends = (searched(first), searched(last));
    let each = map_timed(risks, |&r| {
        let near = match (from.optimum, to.optimum, ends) {
            (Optimum::At(a), Optimum::At(b), (Some(Optimum::At(x)), Some(Optimum::At(y)))) => {
                let efficiency = Efficiency::new(step, r);
                end_of_plateau(&efficiency, between(r, a, b), between(r, x, y))
            }
            _ => None,
        };
        near.map(Optimum::At).or_else(|| searched(r)).map(encoded)
    });
    match each.into_iter().collect::<Option<Vec<_>>>() {
        Some(values) => Filled::Rounded(values, OF_PLATEAU),
        None => Filled::Unknown,
    }
}

/// The risk at which a plateau becomes a peak, or a peak a plateau.
fn end_of_flatness(step: &Step<'_>, [first, last]: [f64; 2], is_flat_first: bool) -> f64 {
    let (mut low, mut high) = (first, last);
    for _ in 0..BISECTIONS {
        let middle = (low * high).sqrt();
        let is_flat = Peak::highest(step, middle).is_some_and(|peak| peak.is_flat);
        if is_flat == is_flat_first { low = middle } else { high = middle }
    }
    (low * high).sqrt()
}

/// The end of the plateau that `inside` is on, if it is near the guess.
fn end_of_plateau(efficiency: &Efficiency<'_>, inside: f64, guess: f64) -> Option<f64> {
    let top = efficiency.at(inside);
    let is_on = |c: f64| is_as_good(efficiency.at(c), top);
    let (mut low, mut high, mut width) = (guess, guess, 0.005);
    let is_guess_on = is_on(guess);
    for doubling in 0..=DOUBLINGS {
        if is_guess_on {
            high = guess * (1.0 + width);
        } else {
            low = guess * (1.0 - width).max(0.5);
        }
        match (is_guess_on, is_on(if is_guess_on { high } else { low })) {
            (true, false) | (false, true) => break,
            _ if doubling == DOUBLINGS => return None,
            (true, true) => low = high,
            (false, false) => high = low,
        }
        width *= 2.0;
    }
    while high / low > 1.0 + END_OF_PLATEAU {
        let middle = (low * high).sqrt();
        if is_on(middle) { low = middle } else { high = middle }
    }
    // As high everywhere: not higher at the end.
    (efficiency.at(low) <= top * (1.0 + SAME)).then_some(low)
}

/// A panel that is divided at a jump; in halves where that is not known, or would leave nearly all
/// of it in one part.
fn jump(first: f64, last: f64, at: Option<f64>) -> Filled<2> {
    let share = |r: f64| (r / first).ln() / (last / first).ln();
    match at {
        Some(r) if (END..=1.0 - END).contains(&share(r)) => Filled::Jump(r),
        _ => Filled::Unknown,
    }
}

/// Where a peak is lost that could not be followed to the end: between the last risk that has it and
/// the next, where it is hardly one any more.
fn lost(step: &Step<'_>, risks: &[f64], followed: &[Peak]) -> Option<f64> {
    let (mut there, mut gone) = (risks[followed.len() - 1], *risks.get(followed.len())?);
    if step.batch().together() > 1 {
        for _ in 0..BISECTIONS {
            let middle = (there * gone).sqrt();
            let is_there = Peak::highest(step, middle).is_some_and(|peak| peak.gain > 2.0 * FLAT);
            if is_there { there = middle } else { gone = middle }
        }
    }
    Some((there * gone).sqrt())
}

fn without_search_at(step: &Step<'_>, risks: &[f64]) -> Option<Vec<[f64; 2]>> {
    without_search(step, *risks.first()?)?.ok()?;
    let each = map_timed(risks, |&r| without_search(step, r));
    each.into_iter().map(|best| Some(encoded(best?.ok()?.optimum()))).collect()
}

/// The risk at which the best threshold leaves one peak for another: where the two are equally
/// high. The second is given in decreasing order of the risk.
fn crossing(risks: &[f64], one: &[Peak], other: &[Peak]) -> Option<f64> {
    let pairs = one.iter().zip(other.iter().rev());
    let gaps: Vec<f64> = pairs.map(|(one, other)| (one.height / other.height).ln()).collect();
    let x: Vec<f64> = risks.iter().map(|r| r.ln()).collect();
    let k = gaps.windows(2).position(|gap| gap[0] >= 0.0 && gap[1] < 0.0)?;
    let (mut low, mut high) = (x[k], x[k + 1]);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if through(&x, &gaps, middle) >= 0.0 { low = middle } else { high = middle }
    }
    Some((0.5 * (low + high)).exp())
}

/// The polynomial through these points, at `x`.
fn through(points: &[f64], values: &[f64], x: f64) -> f64 {
    let term = |i: usize| {
        let others = points.iter().enumerate().filter(|(j, _)| *j != i);
        others.map(|(_, p)| (x - p) / (points[i] - p)).product::<f64>()
    };
    values.iter().enumerate().map(|(i, value)| term(i) * value).sum()
}

/// One of the candidates for the best threshold at some risk.
#[derive(Debug, Clone, Copy)]
struct Peak {
    optimum: Optimum,
    /// Its efficiency.
    height: f64,
    /// $\kappa$; zero where there is no threshold to be found.
    bend: f64,
    /// How much higher it is than the limit $c \to 0$, relatively. One residual always has a peak
    /// well above that.
    gain: f64,
    /// Whether thresholds far from this one are equally good, to rounding.
    is_flat: bool,
}

impl Peak {
    /// The best threshold at one risk, on the coarse grid and climbed to the top.
    fn highest(step: &Step<'_>, r: f64) -> Option<Self> {
        let efficiency = Efficiency::new(step, r);
        let mut grid = thresholds(&step.features(r), PER_DECADE, &OFFSETS);
        grid.dedup_by(|b, a| *b <= *a * (1.0 + 1e-6));
        let smallest = *grid.first()?;
        let values = map_timed(&grid, |&c| efficiency.at(c));
        // Without a peak the highest value is at an end of the grid.
        let end = (0..values.len()).fold(0, |a, i| if values[i] > values[a] { i } else { a });
        let (mut best, mut height, mut bend) = (grid[end], values[end], 0.0);
        // Large thresholds are as good as none: rounding must not make a peak there, nor send a
        // search uphill without end.
        let unclipped = 1.0 / efficiency.second_moment();
        let as_unclipped = |v: &&f64| (**v / unclipped - 1.0).abs() <= PLATEAU;
        let plateau = grid.len() - values.iter().rev().take_while(as_unclipped).count();
        if end >= plateau {
            return Peak::without_threshold(Optimum::Unclipped, step, r);
        }
        for i in 1..plateau.min(grid.len().saturating_sub(1)) {
            // Where all batches are clipped the efficiency is the same for every threshold: that is
            // no peak, and rounding must not make it one.
            let (value, around) = (values[i], [values[i - 1], values[i + 1]]);
            let is_top = around.iter().all(|v| value >= v * (1.0 - SAME));
            let is_peak = is_top && around.iter().any(|v| value > v * (1.0 + SAME));
            if is_peak && value >= WORTH * values[end] {
                let f = |c| efficiency.at(c);
                let near = brent(grid[i - 1], grid[i], grid[i + 1], value, NEAR, &f);
                let Some(top) = climbed(&efficiency, near.0.ln(), stencil(step, r)) else {
                    // Rounding on the plateau of small thresholds is no peak.
                    if gain(step, r, value)? < FLAT {
                        continue;
                    }
                    return None;
                };
                if top.height >= height {
                    (best, height, bend) = (top.ln_c.exp(), top.height, top.bend);
                }
            }
        }
        let gain = gain(step, r, height)?;
        match efficiency.optimum(smallest, best, height) {
            Optimum::At(_) if gain < FLAT => Peak::without_threshold(Optimum::Small, step, r),
            optimum @ Optimum::At(_) => {
                let is_flat = Efficiency::is_flat(&grid, &values, best, height);
                Some(Peak { optimum, height, bend, gain, is_flat })
            }
            optimum => Peak::without_threshold(optimum, step, r),
        }
    }

    fn without_threshold(optimum: Optimum, step: &Step<'_>, r: f64) -> Option<Self> {
        let height = match optimum {
            Optimum::Small => small(step, r)?,
            _ => 1.0 / step.residual_second_moment(r),
        };
        let gain = if optimum == Optimum::Small { 0.0 } else { f64::INFINITY };
        Some(Peak { optimum, height, bend: 0.0, gain, is_flat: false })
    }

    /// Whether this peak, followed to risk $r$, is the highest there.
    fn is_same(&self, highest: &Peak, step: &Step<'_>, r: f64) -> bool {
        let is_as_high = self.height >= highest.height * (1.0 - SAME);
        match (self.optimum, highest.optimum) {
            (Optimum::At(a), Optimum::At(b)) => {
                is_as_high || (a / b).ln().abs() < 0.5 * stencil(step, r)
            }
            _ => is_as_high,
        }
    }

    /// The same peak at these risks, which go on from its own, the first, as far as it goes.
    fn followed(self, step: &Step<'_>, risks: &[f64]) -> Vec<Self> {
        let mut path = vec![self];
        let Optimum::At(c) = self.optimum else {
            let rest = risks[1..].iter();
            path.extend(rest.map_while(|&r| Peak::without_threshold(self.optimum, step, r)));
            return path;
        };
        let mut found = vec![c.ln()];
        for (k, &r) in risks.iter().enumerate().skip(1) {
            let guess = extrapolated(&found, risks, k);
            let top = climbed(&Efficiency::new(step, r), guess, stencil(step, r));
            let Some(Top { ln_c, height, bend }) = top else { break };
            let before = path[path.len() - 1].gain;
            let is_clear = before > CLEAR && k + 1 < risks.len();
            let gain = if is_clear { Some(0.5 * before) } else { gain(step, r, height) };
            let Some(gain) = gain.filter(|gain| *gain > FLAT) else { break };
            found.push(ln_c);
            let optimum = Optimum::At(ln_c.exp());
            path.push(Peak { optimum, height, bend, gain, is_flat: false });
        }
        path
    }
}

/// How much higher a peak is than the limit $c \to 0$.
fn gain(step: &Step<'_>, r: f64, height: f64) -> Option<f64> {
    if step.batch().together() == 1 {
        return Some(f64::INFINITY);
    }
    Some(height / small(step, r)? - 1.0)
}

/// The efficiency as $c \to 0$.
fn small(step: &Step<'_>, r: f64) -> Option<f64> {
    let grid = thresholds(&step.features(r), PER_DECADE, &OFFSETS);
    Some(Efficiency::new(step, r).at(1e-7 * grid.first()?))
}

/// How far apart the five values are, in $\ln c$: a fraction of the narrowest feature there.
fn stencil(step: &Step<'_>, r: f64) -> f64 {
    let features = step.features(r);
    let apart = features.iter().filter(|f| f.at != 0.0);
    let narrowest = apart.map(|f| f.width / f.at.abs()).fold(0.4, f64::min);
    0.05 * narrowest.max(1e-3)
}

/// The next $\ln c^\ast$ from those before, as a polynomial in $\ln R$ of degree two at most.
fn extrapolated(found: &[f64], risks: &[f64], k: usize) -> f64 {
    let from = k - k.min(3);
    let x: Vec<f64> = risks[from..k].iter().map(|r| r.ln()).collect();
    through(&x, &found[from..k], risks[k].ln())
}

/// The top of the peak near `guess`, in $\ln c$, and its height: the maximum of the polynomial
/// through five values, around a guess that is moved until they enclose it.
fn climbed(efficiency: &Efficiency<'_>, guess: f64, width: f64) -> Option<Top> {
    let at = |u: f64| efficiency.at(u.exp());
    let around = |centre: f64| [-2.0, -1.0, 0.0, 1.0, 2.0].map(|k| at(centre + k * width));
    let mut centre = guess;
    let mut values = around(centre);
    for _ in 0..MOVES {
        if values.iter().any(|v| v.is_nan()) {
            return None;
        }
        // On a plateau every threshold is the top.
        let (least, most) =
            values.iter().fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(*v), b.max(*v)));
        if least > most * (1.0 - LOSS) {
            return Some(Top { ln_c: centre, height: most, bend: 0.0 });
        }
        let highest = (0..5).fold(2, |best, i| if values[i] > values[best] { i } else { best });
        let step = if highest == 2 {
            let (offset, height, bend) = vertex(values);
            // Such a guess needs no further iteration.
            if offset.abs() <= 0.6 {
                let ln_c = centre + offset * width;
                return Some(Top { ln_c, height, bend: bend.max(0.0) / (height * width * width) });
            }
            offset.clamp(-1.0, 1.0)
        } else {
            uphill(values, highest as f64 - 2.0)
        };
        centre += step * width;
        values = around(centre);
    }
    None
}

/// How far to go on a slope, in this direction: to the top of the parabola if it bends down, and
/// as far as is sensible if it does not.
fn uphill([a, b, c, d, e]: [f64; 5], direction: f64) -> f64 {
    let first = (a - 8.0 * b + 8.0 * d - e) / 12.0;
    let second = (-a + 16.0 * b - 30.0 * c + 16.0 * d - e) / 12.0;
    let newton = -first / second * direction.signum();
    let far = if second < 0.0 && newton > 0.0 { newton } else { FARTHEST };
    far.clamp(1.0, FARTHEST).copysign(direction)
}

/// The top of a peak: where, how high, and $\kappa$.
struct Top {
    ln_c: f64,
    height: f64,
    bend: f64,
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
