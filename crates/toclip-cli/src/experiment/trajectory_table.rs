//! The curves of an experiment as one long table: one row for each method and time.

use super::run::{Curve, Outcome};
use crate::output::Table;
use toclip::dynamics::PathPoint;

/// | column | |
/// |---|---|
/// | `method` | `ode`, `unclipped`, `volterra`, `hsgd`, `sgd` |
/// | `t` | time |
/// | `risk`, `distance` | $R$ and $D$; of an ensemble the median |
/// | `risk_mean`, `risk_low`, `risk_high`, `distance_…` | of an ensemble: mean and band |
/// | `risk_flow` | of the integral equation: the part that is gradient flow |
/// | `runs` | of an ensemble: runs that had not diverged by then |
/// | `mu`, `m2`, `eta`, `c` | what acts on the curve; not for ensembles |
///
/// A curve that diverged has rows only for the times that it reached.
pub fn trajectory_table(curves: &[Curve]) -> Table {
    let mut rows = Rows::default();
    for curve in curves {
        rows.add(curve);
    }
    Table::default()
        .text("method", rows.method)
        .numbers("t", rows.t)
        .numbers("risk", rows.risk[0].clone())
        .numbers("risk_mean", rows.risk[1].clone())
        .numbers("risk_low", rows.risk[2].clone())
        .numbers("risk_high", rows.risk[3].clone())
        .numbers("risk_flow", rows.flow)
        .numbers("distance", rows.distance[0].clone())
        .numbers("distance_mean", rows.distance[1].clone())
        .numbers("distance_low", rows.distance[2].clone())
        .numbers("distance_high", rows.distance[3].clone())
        .counts("runs", rows.runs)
        .numbers("mu", rows.acting[0].clone())
        .numbers("m2", rows.acting[1].clone())
        .numbers("eta", rows.acting[2].clone())
        .numbers("c", rows.acting[3].clone())
}

type Cells = Vec<Option<f64>>;

#[derive(Default)]
struct Rows {
    method: Vec<&'static str>,
    t: Cells,
    risk: [Cells; 4],
    distance: [Cells; 4],
    flow: Cells,
    runs: Vec<Option<u64>>,
    acting: [Cells; 4],
}

impl Rows {
    fn add(&mut self, curve: &Curve) {
        for (k, &t) in curve.times().iter().enumerate() {
            self.method.push(curve.method.key());
            self.t.push(Some(t));
            let at = |column: &[f64]| column.get(k).copied();
            let (risk, distance, flow, runs, acting) = match &curve.outcome {
                Outcome::Path { path, flow } => (
                    [at(&path.risk), None, None, None],
                    [at(&path.distance), None, None, None],
                    flow.as_deref().and_then(at),
                    None,
                    path.path.as_ref().and_then(|points| points.get(k)),
                ),
                Outcome::Band(band) => {
                    let of = |s: &toclip::ensemble::Statistics| {
                        [at(&s.median), at(&s.mean), at(&s.quantiles[0]), at(&s.quantiles[1])]
                    };
                    let runs = band.alive.get(k).copied();
                    (of(&band.risk), of(&band.distance), None, runs, None)
                }
            };
            push(&mut self.risk, risk);
            push(&mut self.distance, distance);
            self.flow.push(flow);
            self.runs.push(runs);
            push(
                &mut self.acting,
                match acting {
                    Some(PathPoint { mu, m2, eta, c, .. }) => [mu, m2, eta, c].map(|x| Some(*x)),
                    None => [None; 4],
                },
            );
        }
    }
}

fn push(columns: &mut [Cells; 4], row: [Option<f64>; 4]) {
    for (column, cell) in columns.iter_mut().zip(row) {
        column.push(cell);
    }
}
