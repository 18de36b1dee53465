//! The curves of an experiment as one long table: one row for each method and time.

use toclip::dynamics::{PathPoint, Trajectory};
use toclip::ensemble::{Statistics, Summary};

use super::run::{MethodCurve, Outcome};
use crate::output::Table;

/// | column | |
/// |---|---|
/// | `method` | `ode`, `unclipped`, `volterra`, `hsgd`, `sgd` |
/// | `t` | time |
/// | `risk`, `distance` | $R$ and $D$; of an ensemble the median |
/// | `risk_mean`, `risk_low`, `risk_high`, `distance_…` | of an ensemble: mean and band |
/// | `risk_flow` | of the integral equation: the part that is gradient flow |
/// | `runs` | of an ensemble: runs that had not diverged by then |
/// | `mu`, `m2`, `eta`, `c` | factors, learning rate and threshold along the curve; not for ensembles |
///
/// A curve that diverged has rows only for the times that it reached.
pub fn trajectory_table(curves: &[MethodCurve]) -> Table {
    let rows = || curves.iter().flat_map(|curve| (0..curve.times().len()).map(move |k| (curve, k)));
    let table = Table::default()
        .text("method", rows().map(|(curve, _)| curve.method.key()))
        .numbers("t", column(curves, |curve| Some(curve.times())));
    let table = statistics(table, curves, "risk", |path| &path.risk, |band| &band.risk);
    let flow = column(curves, |curve| match &curve.outcome {
        Outcome::Path { flow, .. } => flow.as_deref(),
        Outcome::Band(_) => None,
    });
    let table = table.numbers("risk_flow", flow);
    let table = statistics(table, curves, "distance", |path| &path.distance, |band| &band.distance);
    let runs = rows().map(|(curve, k)| curve.band()?.alive.get(k).copied());
    let acting = |of: fn(&PathPoint) -> f64| {
        rows().map(move |(curve, k)| curve.path()?.path.as_ref()?.get(k).map(of))
    };
    table
        .counts("runs", runs)
        .numbers("mu", acting(|p| p.mu))
        .numbers("m2", acting(|p| p.m2))
        .numbers("eta", acting(|p| p.eta))
        .numbers("c", acting(|p| p.c))
}

/// One column below the other for all curves; missing where a curve does not have it.
fn column<'a>(
    curves: &'a [MethodCurve],
    of: impl Fn(&'a MethodCurve) -> Option<&'a [f64]>,
) -> impl Iterator<Item = Option<f64>> {
    curves.iter().flat_map(move |curve| {
        let values = of(curve).unwrap_or(&[]);
        (0..curve.times().len()).map(|k| values.get(k).copied())
    })
}

/// Adds R or D: of a path its values, of an ensemble the median, the mean and the band.
fn statistics(
    table: Table,
    curves: &[MethodCurve],
    name: &str,
    path: fn(&Trajectory) -> &Vec<f64>,
    band: fn(&Summary) -> &Statistics,
) -> Table {
    let of = |statistic: fn(&Statistics) -> &Vec<f64>| {
        column(curves, move |curve| Some(statistic(band(curve.band()?))))
    };
    let middle = column(curves, |curve| match &curve.outcome {
        Outcome::Path { path: found, .. } => Some(path(found)),
        Outcome::Band(found) => Some(&band(found).median),
    });
    table
        .numbers(name.to_owned(), middle)
        .numbers(format!("{name}_mean"), of(|s| &s.mean))
        .numbers(format!("{name}_low"), of(|s| &s.quantiles[0]))
        .numbers(format!("{name}_high"), of(|s| &s.quantiles[1]))
}
