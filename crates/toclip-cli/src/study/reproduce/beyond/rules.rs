//! Clip, skip, normalise or smooth? The CCC of each rule against its threshold, and its limit.

use anyhow::{Context, Result};
use rayon::prelude::*;
use toclip::criteria::fisher_limit;
use toclip::noise::{Family, Gaussian, Laplace, Rademacher, StudentT, Uniform};
use toclip::{Factors, Rule, Smooth, Step};

use super::tuned_rate::log_spaced;
use super::{FigureSection, RunSizes, check, outliers};
use crate::output::Table;
use crate::plot::{Axis, Chart, Figure};
use crate::report::Claim;
use toclip_words::short;

/// The risk at which rules are compared, with noise of variance one.
const RISK: f64 = 0.01;
const THRESHOLDS: (f64, f64) = (0.02, 10.0);
/// The rules that have a threshold, in the order of the legend.
const RULES: [Rule; 4] =
    [Rule::Clip, Rule::Skip, Rule::Smooth(Smooth::Tanh), Rule::Smooth(Smooth::Root)];
/// A number may be above a bound by this much, for rounding.
const ROUNDING: f64 = 1e-9;

/// A noise of variance one, and what each rule reaches on it.
struct Compared {
    name: &'static str,
    /// For each of [`RULES`], over the same thresholds.
    curves: Vec<Vec<Factors>>,
    /// Where skipping has the smallest μ.
    lowest: Factors,
    /// CCC of normalising, which is the same for every threshold.
    normalise: f64,
    /// The largest CCC that a rule can have.
    limit: f64,
}

impl Compared {
    fn new((name, noise): (&'static str, Family), points: usize) -> Result<Self> {
        let thresholds = log_spaced(THRESHOLDS, points);
        let points: Vec<(f64, f64)> = thresholds.into_iter().map(|c| (RISK, c)).collect();
        let curve =
            |rule: &Rule| Factors::at_points(Step::new(&noise).with_rule(rule.clone())?, &points);
        let normalise = Step::new(&noise).with_rule(Rule::Normalise)?;
        let curves: Vec<Vec<Factors>> = RULES.iter().map(curve).collect::<toclip::Result<_>>()?;
        let lowest = curves[1].iter().copied().min_by(|a, b| a.mu.total_cmp(&b.mu));
        Ok(Compared {
            name,
            lowest: lowest.context("no thresholds")?,
            curves,
            normalise: Factors::new(normalise, RISK, 1.0)?.ccc()?,
            limit: fisher_limit(&noise, RISK)?.limit,
        })
    }

    /// The point of the largest CCC among those that descend.
    fn best(&self, rule: usize) -> Option<&Factors> {
        let ccc = |at: &&Factors| at.ccc().unwrap_or(f64::NAN);
        let descending = self.curves[rule].iter().filter(|at| at.mu > 0.0);
        descending.max_by(|a, b| ccc(a).total_cmp(&ccc(b)))
    }

    fn best_ccc(&self, rule: usize) -> f64 {
        self.best(rule).and_then(|at| at.ccc().ok()).unwrap_or(f64::NAN)
    }

    /// The largest CCC of any rule here.
    fn highest(&self) -> f64 {
        (0..RULES.len()).map(|rule| self.best_ccc(rule)).fold(self.normalise, f64::max)
    }

    fn chart(&self) -> Chart {
        let mut chart = Chart::new(self.name)
            .x(Axis::log("threshold c"))
            .y(Axis::linear("CCC"))
            .hline(self.limit, "limit of any rule")
            .hline(self.normalise, "normalise");
        for (rule, curve) in RULES.iter().zip(&self.curves) {
            let x: Vec<f64> = curve.iter().map(|at| at.c).collect();
            // Below zero descent CCC means nothing, and the line is broken.
            let ccc =
                |at: &Factors| if at.mu > 0.0 { at.ccc().unwrap_or(f64::NAN) } else { f64::NAN };
            chart = chart.line(rule.name(), &x, &curve.iter().map(ccc).collect::<Vec<_>>());
        }
        chart
    }
}

fn noises() -> Result<Vec<(&'static str, Family)>> {
    Ok(vec![
        ("Gaussian noise", Gaussian::new(1.0)?.into()),
        ("Uniform noise", Uniform::from_sigma(1.0)?.into()),
        ("Laplace noise", Laplace::new(1.0)?.into()),
        ("Student-t noise, 2.5 degrees of freedom", StudentT::from_sigma(2.5, 1.0)?.into()),
        ("Rademacher-like noise, p = 0.2", Rademacher::from_sigma(1.0, 0.2)?.into()),
        ("90% σ = 0.3, 10% σ = 3", outliers()?.into()),
    ])
}

fn claims(all: &[Compared]) -> Vec<Claim> {
    let [clip, skip, tanh, root] = [0, 1, 2, 3];
    let every = |name: &str| all.iter().find(|one| one.name.starts_with(name));
    let below = |one: &Compared| one.highest() <= one.limit * (1.0 + ROUNDING);
    let mut claims = vec![check(
        "no_rule_beats_fisher",
        format!("{} of {} noises", all.iter().filter(|one| below(one)).count(), all.len()),
        !all.is_empty() && all.iter().all(below),
    )];
    if let Some(gaussian) = every("Gaussian") {
        let highest = gaussian.highest();
        claims.push(check(
            "no_rule_helps_gaussian",
            format!("the largest CCC of any rule is 1 {:+.0e}", highest - 1.0),
            highest <= 1.0 + ROUNDING,
        ));
    }
    if let (Some(rare), Some(heavy)) = (every("Rademacher"), every("Student-t")) {
        let pairs = [rare, heavy].map(|one| [one.best_ccc(skip), one.best_ccc(clip)]);
        let [[rare_skip, rare_clip], [heavy_skip, heavy_clip]] = pairs.map(|pair| pair.map(short));
        claims.push(check(
            "skip_beats_clip_on_separate_outliers",
            format!(
                "Rademacher-like: {rare_skip} skipping, {rare_clip} clipping; Student-t: {heavy_skip} and \
                 {heavy_clip}"
            ),
            pairs[0][0] > 1.2 * pairs[0][1] && pairs[1][0] < pairs[1][1],
        ));
        claims.push(check(
            "skip_can_move_away",
            format!(
                "Rademacher-like noise at R = {RISK}: the smallest μ of skipping is {}, at c = {}",
                short(rare.lowest.mu),
                short(rare.lowest.c)
            ),
            rare.lowest.mu < 0.0,
        ));
    }
    let gain = |rule: usize| {
        let gains = all.iter().map(move |one| one.best_ccc(rule) / one.best_ccc(clip) - 1.0);
        gains.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), g| (a.min(g), b.max(g)))
    };
    let (tanh, root) = (gain(tanh), gain(root));
    let all = [tanh.0, tanh.1, root.0, root.1];
    let [a, b, c, d] = all.map(|x| format!("{:+.1}%", 100.0 * x));
    claims.push(check(
        "smooth_is_clip",
        format!("best CCC relative to clipping: tanh {a} to {b}, root {c} to {d}"),
        all.iter().all(|gain| gain.abs() < 0.05),
    ));
    claims
}

fn table(all: &[Compared]) -> Table {
    let mut rows: Vec<(String, String, f64, f64, f64)> = Vec::new();
    for one in all {
        for (rule, name) in RULES.iter().map(Rule::name).enumerate() {
            let c = one.best(rule).map_or(f64::NAN, |at| at.c);
            let ccc = one.best_ccc(rule);
            rows.push((one.name.into(), name.into(), c, ccc, ccc / one.limit));
        }
        let share = one.normalise / one.limit;
        rows.push((one.name.into(), "normalise".into(), f64::NAN, one.normalise, share));
    }
    Table::default()
        .text("noise", rows.iter().map(|row| row.0.clone()))
        .text("rule", rows.iter().map(|row| row.1.clone()))
        .numbers("best_c", rows.iter().map(|row| row.2))
        .numbers("ccc", rows.iter().map(|row| row.3))
        .numbers("share_of_limit", rows.iter().map(|row| row.4))
}

pub fn criteria(sizes: &RunSizes) -> Result<FigureSection> {
    let noises = noises()?.into_par_iter();
    let all = noises.map(|noise| Compared::new(noise, sizes.points)).collect::<Result<Vec<_>>>()?;
    let figure = Figure::new("What each rule gains, against its threshold").columns(2);
    Ok(FigureSection::new("beyond-rules", "clip, skip, normalise or smooth?")
        .settings(format!("single samples, noise of variance 1, R = {RISK}; c from 0.02 to 10"))
        .claims(claims(&all))
        .figure(all.iter().fold(figure, |figure, one| figure.chart(one.chart())))
        .table(table(&all)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    #[test]
    fn claims_hold_and_can_fail() {
        let mut all: Vec<Compared> =
            noises().unwrap().into_iter().map(|n| Compared::new(n, 60).unwrap()).collect();
        assert!(claims(&all).iter().all(|claim| claim.verdict == Verdict::Holds));
        // A limit that a rule exceeds, and a rule that gains under Gaussian noise.
        all[0].limit = 0.9;
        all[0].normalise = 1.1;
        let verdicts: Vec<Verdict> = claims(&all).iter().map(|claim| claim.verdict).collect();
        assert_eq!(verdicts[..2], [Verdict::Fails; 2]);
        assert_eq!(claims(&[])[0].verdict, Verdict::Fails);
    }
}
