//! What privacy costs: the risk of one pass of private SGD, against the threshold and against ε.

use anyhow::{Context, Result};
use toclip::dynamics::Ode;
use toclip::policy::PrivateGreedy;

use super::figure_file::FigureFile;
use super::threshold_curves::{self, ThresholdCurve};
use super::{FigureSection, RunSizes, last};
use crate::output::Table;
use crate::plot::Series;

/// The ε of the curves of the file after the first, which is without privacy.
const EPSILONS: [f64; 6] = [8.0, 4.0, 2.0, 1.0, 0.5, 0.25];

/// R(T) of the best schedule η(t), c(t).
fn best_schedule(one: &ThresholdCurve) -> Result<f64> {
    let problem = &one.problem;
    let greedy = PrivateGreedy::new(problem.step().clone(), problem.modes().ambient_dim())?;
    let ode = Ode::new(&problem.with_policy(greedy)?)?.tolerance(1e-6, 0.0);
    Ok(last(&ode.solve(&[one.time])?))
}

pub fn what_it_costs(file: &FigureFile, sizes: &RunSizes) -> Result<FigureSection> {
    let all = threshold_curves::curves(file, sizes)?;
    let mut facts = threshold_curves::facts(&all)?;
    let (none, private) = all.split_first().context("the figure has no curves")?;
    let schedules = private.iter().map(best_schedule).collect::<Result<Vec<f64>>>()?;
    let lowest = private.iter().map(|one| Ok(one.curve.best()?.risk));
    let lowest = lowest.collect::<Result<Vec<f64>>>()?;
    for (one, &schedule) in private.iter().zip(&schedules) {
        let curve = &one.curve;
        let risk = curve.best()?.risk;
        let over = |at: Option<&super::tuned::Tuned>| at.map_or(f64::NAN, |at| at.risk / risk);
        facts.add(&curve.name, [("schedule", schedule), ("private", risk)]);
        facts.add(&curve.name, [("small", over(curve.points.first()))]);
        facts.add(&curve.name, [("large", over(curve.points.last()))]);
    }
    let mut charts = threshold_curves::charts(file, &all);
    let drawn = all.iter().filter(|one| !one.curve.runs.is_empty());
    let best = drawn.map(|one| one.curve.best()).collect::<Result<Vec<_>>>()?;
    let (c, risk): (Vec<f64>, Vec<f64>) = best.iter().map(|at| (at.c, at.risk)).unzip();
    let against_epsilon = charts.pop().context("the figure has no second chart")?;
    let against_c = charts.pop().context("the figure has no first chart")?;
    let charts = vec![
        against_c.series(Series::points("best threshold", &c, &risk).slot(best.len())),
        against_epsilon
            .line("best constant c and η", &EPSILONS, &lowest)
            .line("best schedule", &EPSILONS, &schedules)
            .hline(none.curve.best()?.risk, "constants, no privacy"),
    ];
    let by_epsilon = Table::default()
        .numbers("epsilon", EPSILONS)
        .numbers("best_constants", lowest)
        .numbers("best_schedule", schedules);
    let mut section = threshold_curves::section(file, (charts, &all, &facts), sizes)?;
    section.tables.push((format!("{}-epsilon", file.id), by_epsilon));
    Ok(section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip::privacy::noise_multiplier;

    #[test]
    fn the_multipliers_of_the_file_are_those_of_its_epsilons() {
        let file = FigureFile::read("beyond-privacy", include_str!("beyond-privacy.toml")).unwrap();
        let curves: Vec<_> = file.curves().skip(1).collect();
        assert_eq!(curves.len(), EPSILONS.len());
        for (epsilon, (_, curve, name)) in EPSILONS.into_iter().zip(curves) {
            let (experiment, _) = file.prepared_of(curve).unwrap();
            let found = experiment.privacy.unwrap().noise_multiplier;
            assert_eq!(found, noise_multiplier(epsilon, 1e-6).unwrap(), "{name}");
            assert_eq!(name, format!("ε = {epsilon}"));
        }
    }
}
