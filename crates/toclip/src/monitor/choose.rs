//! The choice of a threshold: no change that its own interval does not support.

use super::advice::{Evidence, MonitorAdvice, Reason, ThresholdChoice};
use super::candidates::{CANDIDATES, StretchTable, ThresholdSums, multiple};
use super::drift::Drift;
use super::estimates::{Interval, Product, Tail, inflation, single, wilson};
use super::monitor::MonitorSettings;
use crate::numerics::student::simultaneous;
use crate::verdict::WORTH_IT;

/// Fewer stretches give no useful intervals.
pub(super) const LEAST_BLOCKS: usize = 20;
/// Twenty of the shortest.
const LEAST_STEPS: f64 = 320.0;
/// Candidates exceeded by fewer norms are not considered: their estimates rest on a few spikes.
const LEAST_ABOVE: f64 = 10.0;
/// Candidates with fewer single samples below them are not considered either: $\mu$, the share of
/// these samples, is then not known.
const LEAST_BELOW: f64 = 50.0;
/// A smaller error than this means that all norms are equal.
const ROUNDING: f64 = 1e-9;
/// Candidates whose lower bounds are this close count as equal, and the highest of them, which
/// changes the least, is chosen. Where every norm is above, all are the same.
const AS_GOOD: f64 = 0.02;
/// Where less than this share of $\ln$ CCC remains without the heaviest stretches, the CCC of the
/// others is reported: the whole is not known to within a half.
const REMAINS: f64 = 0.5;
/// Where the correlation of neighbouring norms is above this, most of their variance is not
/// sampling noise, which is independent from step to step.
const SWINGS: f64 = 0.5;
/// A guard clips at most this share of the steps.
const GUARD: f64 = 0.001;

/// The evidence for one candidate.
struct Case {
    candidate: usize,
    /// CCC.
    ccc: Product,
    /// CCC over that of the current threshold.
    gain: Product,
}

/// The advice, compared with a current threshold or with no clipping.
pub(super) fn choose(
    table: &StretchTable,
    in_force: Option<&ThresholdSums>,
    settings: &MonitorSettings,
    scale: f64,
) -> MonitorAdvice {
    if table.blocks() < LEAST_BLOCKS || table.steps() < LEAST_STEPS {
        let (seen, needed) = (table.steps() as u64, LEAST_STEPS as u64);
        return MonitorAdvice::Stay(Reason::TooFew { seen, needed });
    }
    let evidence = if table.direct() { Evidence::Direct } else { Evidence::Norms };
    let at_most = match evidence {
        Evidence::Norms => in_force.and_then(|at| at_most(at, table, settings)),
        Evidence::Direct => None,
    };
    let in_force = at_most.as_ref().or(in_force);
    let cases: Vec<Case> =
        (0..CANDIDATES).filter_map(|k| case(table, in_force, settings, evidence, k)).collect();
    let alpha = 1.0 - settings.confidence;
    let freedom = table.blocks() - 1;
    let t_ccc = simultaneous(alpha, freedom, length(cases.iter().map(|case| &case.ccc)));
    let t_gain = simultaneous(alpha, freedom, length(cases.iter().map(|case| &case.gain)));
    let bound = at_most.is_some();
    let context = ChoiceContext { table, in_force, bound, settings, evidence, scale };

    let drift = Drift::new(table);
    if drift.found() {
        return MonitorAdvice::Stay(Reason::Drift(drift));
    }
    let margin = match evidence {
        Evidence::Norms => settings.margin,
        Evidence::Direct => 0.0,
    };
    // The best by its lower bound, which holds for all candidates at once, so that any may be
    // chosen.
    let sure = |case: &Case| case.ccc.at_least(t_ccc);
    let most = cases.iter().map(sure).fold(f64::NEG_INFINITY, f64::max);
    let best = cases.iter().rfind(|case| sure(case) >= most - AS_GOOD.min(0.5 * most.abs()));
    if let Some(best) = best
        && sure(best) > margin.ln_1p()
    {
        let choice = context.choice(best, t_ccc, t_gain);
        let shows = |case: &Case| {
            // The margin applies to a change of threshold as well: norms are as uncertain about it.
            sure(case) > margin.ln_1p() && case.gain.at_least(t_gain) > WORTH_IT.max(margin.ln_1p())
        };
        if !shows(best) {
            return MonitorAdvice::Stay(Reason::NoBetter(choice));
        }
        let Some(rest) = context.of_most(best.candidate).filter(shows) else {
            let guard = multiple(guard(table));
            return MonitorAdvice::Stay(Reason::OneStretch { best: choice, guard });
        };
        let choice = if rest.ccc.log < REMAINS * best.ccc.log {
            context.choice(&rest, t_ccc, t_gain)
        } else {
            choice
        };
        // The correlation is the product of the swing's share of the variance and of its own
        // correlation from step to step. Taking both as equal, each is its root.
        let noise = 1.0 - drift.correlation.max(0.0).sqrt();
        let left = noise * sure(best);
        return if drift.correlation > SWINGS && left <= WORTH_IT.max(margin.ln_1p()) {
            MonitorAdvice::Stay(Reason::Swings { best: choice, correlation: drift.correlation })
        } else {
            MonitorAdvice::Clip(choice)
        };
    }
    if let Some(guard) = loosen(table, in_force, settings, evidence) {
        return MonitorAdvice::Loosen(context.choice(
            &guard,
            t_ccc,
            single(settings.confidence, table.blocks()),
        ));
    }
    match best {
        Some(best) if sure(best) > 0.0 => MonitorAdvice::Stay(Reason::NormsAlone {
            best: context.choice(best, t_ccc, t_gain),
            margin,
        }),
        Some(best) => MonitorAdvice::Stay(Reason::NoGain(context.choice(best, t_ccc, t_gain))),
        // Norms that are all alike: no candidate has norms on both sides.
        None => {
            let flat = Product { log: 0.0, shares: vec![0.0; table.blocks()] };
            let case = Case { candidate: CANDIDATES - 1, ccc: flat.clone(), gain: flat };
            MonitorAdvice::Stay(Reason::NoGain(context.choice(&case, t_ccc, t_gain)))
        }
    }
}

fn case(
    table: &StretchTable,
    in_force: Option<&ThresholdSums>,
    settings: &MonitorSettings,
    evidence: Evidence,
    candidate: usize,
) -> Option<Case> {
    let at = &table.candidates[candidate];
    let above = at.exceedances();
    let few = settings.kept() < 0.5 && table.steps() - above < LEAST_BELOW;
    if above < LEAST_ABOVE || few {
        return None;
    }
    let ccc = table.criterion(at, evidence, 2.0)?;
    let gain = match in_force {
        Some(column) => ccc.clone().over(&table.criterion(column, evidence, 2.0)?),
        None => ccc.clone(),
    };
    (ccc.error() > ROUNDING).then_some(Case { candidate, ccc, gain })
}

/// An upper bound for the current threshold, where it clips every single sample and $\mu$ cannot be
/// measured; `None` where some samples pass unclipped.
fn at_most(
    in_force: &ThresholdSums,
    table: &StretchTable,
    settings: &MonitorSettings,
) -> Option<ThresholdSums> {
    if in_force.mu.iter().sum::<f64>() > 0.0 {
        return None;
    }
    let t = single(settings.confidence, table.blocks());
    let whole = 1.0 - wilson(&in_force.above, &table.count, inflation(table), t).low;
    let share = whole.min(in_force.step.iter().sum::<f64>() / table.steps());
    let mu = table.count.iter().map(|n| n * share).collect();
    Some(ThresholdSums { mu, ..in_force.clone() })
}

/// The lowest candidate that clips rare spikes only.
fn guard(table: &StretchTable) -> usize {
    let rare = |at: &ThresholdSums| at.exceedances() <= GUARD * table.steps();
    table.candidates.iter().position(rare).unwrap_or(CANDIDATES - 1)
}

/// A guard against spikes, if the present threshold measurably costs more than it saves. Norms
/// overestimate clipping, so evidence against it needs no margin.
fn loosen(
    table: &StretchTable,
    in_force: Option<&ThresholdSums>,
    settings: &MonitorSettings,
    evidence: Evidence,
) -> Option<Case> {
    let in_force = in_force?;
    let candidate = guard(table);
    let at = &table.candidates[candidate];
    let now = table.criterion(in_force, evidence, 2.0)?;
    let ccc = table.criterion(at, evidence, 2.0)?;
    let gain = ccc.clone().over(&now);
    let t = single(settings.confidence, table.blocks());
    let costs = now.interval(t).high < 1.0;
    let helps = gain.at_least(t) > WORTH_IT;
    (costs && helps && at.exceedances() < in_force.exceedances()).then_some(Case {
        candidate,
        ccc,
        gain,
    })
}

/// The length in radians of the curve that the candidates' shares describe, from one candidate to
/// the next: it determines how many independent tests the candidates are worth.
fn length<'a>(products: impl Iterator<Item = &'a Product>) -> f64 {
    let mut last: Option<&Product> = None;
    let mut sum = 0.0;
    for product in products {
        if let Some(before) = last {
            let dot = |a: &Product, b: &Product| -> f64 {
                a.shares.iter().zip(&b.shares).map(|(x, y)| x * y).sum()
            };
            let norms = dot(before, before) * dot(product, product);
            if norms > 0.0 {
                sum += (dot(before, product) / norms.sqrt()).clamp(-1.0, 1.0).acos();
            }
        }
        last = Some(product);
    }
    sum
}

/// The data that turn a case into a [`ThresholdChoice`].
struct ChoiceContext<'a> {
    table: &'a StretchTable,
    in_force: Option<&'a ThresholdSums>,
    /// Whether $\mu$ of the present threshold is an upper bound.
    bound: bool,
    settings: &'a MonitorSettings,
    evidence: Evidence,
    scale: f64,
}

impl ChoiceContext<'_> {
    /// The case of a candidate without the stretches that weigh most.
    fn of_most(&self, candidate: usize) -> Option<Case> {
        let kept = without_heaviest(&self.table.square);
        let in_force = self.in_force.map(|at| at.only(&kept));
        case(&self.table.only(&kept), in_force.as_ref(), self.settings, self.evidence, candidate)
    }

    fn mu(&self, at: &ThresholdSums) -> f64 {
        self.table.mu(at, self.evidence).map_or(1.0, |mu| mu.log.exp())
    }

    /// $\mu$ of the current threshold at the present scale: the scale may have drifted, and a
    /// number was then another multiple of it at first.
    fn mu_in_force(&self) -> f64 {
        let Some(in_force) = self.in_force else { return 1.0 };
        let Some(number) = self.settings.watched else { return self.mu(in_force) };
        let at = number / self.scale;
        let mu = |k: usize| self.table.mu(&self.table.candidates[k], self.evidence);
        let candidate = |k: usize| (multiple(k), mu(k).map_or(0.0, |mu| mu.log.exp()));
        let now = match (0..CANDIDATES).find(|k| multiple(*k) >= at) {
            // Below all candidates nearly all norms are clipped, and μ is proportional to τ.
            Some(0) => candidate(0).1 * at / candidate(0).0,
            Some(k) => {
                let ((x, low), (y, high)) = (candidate(k - 1), candidate(k));
                low + (high - low) * (at - x) / (y - x)
            }
            None => 1.0,
        };
        // Where every sample is clipped, the upper bound.
        if now > 0.0 { now } else { self.mu(in_force) }
    }

    fn choice(&self, case: &Case, t_ccc: f64, t_gain: f64) -> ThresholdChoice {
        let at = &self.table.candidates[case.candidate];
        let mu = self.mu(at);
        let t = single(self.settings.confidence, self.table.blocks());
        let multiple_of_scale = multiple(case.candidate);
        let mut gain = cautious(&case.gain, t_gain);
        if self.bound {
            gain.high = f64::INFINITY;
        }
        ThresholdChoice {
            threshold: multiple_of_scale * self.scale,
            multiple: multiple_of_scale,
            candidate: case.candidate,
            clip_fraction: at.exceedances() / self.table.steps(),
            mu,
            rate_factor: mu.recip(),
            rate_change: self.mu_in_force() / mu,
            ccc: cautious(&case.ccc, t_ccc),
            gain,
            evidence: self.evidence,
            second_moment: Tail::new(self.table, multiple, t).map(|tail| tail.second_moment()),
        }
    }
}

/// The interval whose lower end the choice went by.
fn cautious(product: &Product, t: f64) -> Interval {
    Interval { low: product.at_least(t).exp(), ..product.interval(t) }
}

/// A stretch with a larger share of the remaining sum than this weighs like a spike.
const SPIKE: f64 = 0.2;

/// The stretches without the heaviest, and without any that then has more than a fifth of the
/// remaining sum: a few equal spikes hide one another. `squares` are the sums of $u^2$, what each weighs in
/// $E G^2$.
///
/// An interval comes from the spread of the stretches, and one spike among them does not show how
/// often such spikes come: its contribution to $E G^2$, and so to CCC, has no valid interval.
pub(super) fn without_heaviest(squares: &[f64]) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..squares.len()).collect();
    kept.sort_by(|a, b| squares[*a].total_cmp(&squares[*b]));
    kept.pop();
    let mut left: f64 = kept.iter().map(|b| squares[*b]).sum();
    while let Some(last) = kept.last()
        && kept.len() > 1
        && squares[*last] > SPIKE * left
    {
        kept.pop();
        // Summed again, because of rounding where one is larger than the rest by sixteen digits.
        left = kept.iter().map(|b| squares[*b]).sum();
    }
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_heaviest_stretch_and_spikes_are_left_out() {
        let mut squares = vec![1.0; 20];
        squares[7] = 1.5;
        let even = without_heaviest(&squares);
        assert!(even.len() == 19 && !even.contains(&7));
        squares[3] = 1e300;
        squares[12] = 1e6;
        let spikes = without_heaviest(&squares);
        // 1.5 of 18.5 is no spike.
        assert!(spikes.len() == 18 && !spikes.contains(&3) && !spikes.contains(&12));
        assert!(without_heaviest(&[1.0]).is_empty() && without_heaviest(&[]).is_empty());
    }
}
