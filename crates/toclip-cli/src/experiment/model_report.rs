//! Generalised linear models as a table, a plot and a summary.

use std::fmt;

use serde::Serialize;
use toclip::dynamics::Stop;
use toclip::ensemble::{MeasureStatistics, Statistics};
use toclip::model::{Overlaps, Quantity};

use super::figure::{band_label, path_series, slot, time_axis};
use super::report::diverged;
use super::run::{MethodCurve, Outcome};
use super::{Experiment, Method, Prepared, Runs};
use crate::output::Table;
use crate::output::terminal::columns;
use crate::plot::{Axis, Chart, Figure, Series};
use toclip_words::percent;
use toclip_words::short;

/// The factor from a quantity to its unit in charts.
fn unit(quantity: Quantity) -> f64 {
    if quantity == Quantity::Angle { 180.0 / std::f64::consts::PI } else { 1.0 }
}

/// The model in words.
fn describe(prepared: &Prepared) -> String {
    prepared.problem.model().map_or("least squares".into(), |model| model.describe())
}

/// `classes` is whether labels are classes.
fn axis(quantity: Quantity, classes: bool) -> &'static str {
    match quantity {
        Quantity::Loss if classes => "cross-entropy (nats)",
        Quantity::Loss => "loss",
        Quantity::ErrorRate => "error rate (labels before flips)",
        Quantity::Angle => "angle to the teacher (degrees)",
        Quantity::Calibration => "calibration slope",
    }
}

/// | column | |
/// |---|---|
/// | `method` | `ode`, `unclipped`, `sgd` |
/// | `t` | time |
/// | `loss`, `error_rate`, `angle`, `calibration` | of an ensemble the median; the angle in radians |
/// | `loss_mean`, `loss_low`, `loss_high`, … | of an ensemble: mean and band |
/// | `q`, `p` | the variance of the logits, and their covariance with the teacher's; of an ensemble the mean |
/// | `runs` | of an ensemble: runs that had not diverged by then |
pub fn model_table(curves: &[MethodCurve]) -> Table {
    let rows = || curves.iter().flat_map(|curve| (0..curve.times().len()).map(move |k| (curve, k)));
    let mut table = Table::default()
        .text("method", rows().map(|(curve, _)| curve.method.key()))
        .numbers("t", rows().map(|(curve, k)| curve.times()[k]));
    for quantity in Quantity::ALL {
        let of = |statistic: fn(&Statistics) -> &[f64]| {
            rows().map(move |(curve, k)| {
                statistic(curve.band()?.measures.as_ref()?.get(quantity)?).get(k).copied()
            })
        };
        let key = quantity.key();
        table = table
            .numbers(key, rows().map(|(curve, k)| curve.at(quantity, k)))
            .numbers(format!("{key}_mean"), of(|s| &s.mean))
            .numbers(format!("{key}_low"), of(|s| &s.quantiles[0]))
            .numbers(format!("{key}_high"), of(|s| &s.quantiles[1]));
    }
    let overlap = |of: fn(&Overlaps) -> f64, mean: fn(&MeasureStatistics) -> &Statistics| {
        rows().map(move |(curve, k)| match &curve.outcome {
            Outcome::Path { path, .. } => path.overlaps.as_ref()?.get(k).map(of),
            Outcome::Band(band) => mean(band.measures.as_ref()?).mean.get(k).copied(),
        })
    };
    table
        .numbers("q", overlap(|at| at.q, |s| &s.q))
        .numbers("p", overlap(|at| at.p, |s| &s.p))
        .counts("runs", rows().map(|(curve, k)| curve.band()?.alive.get(k).copied()))
}

/// A chart for each quantity that the model has.
pub fn model_figure(
    experiment: &Experiment,
    prepared: &Prepared,
    curves: &[MethodCurve],
) -> Figure {
    let clipped = experiment.clip.clips();
    let mut figure = Figure::new(&experiment.name).columns(2);
    let has = |quantity: &Quantity| curves.iter().any(|curve| curve.has(*quantity));
    for quantity in Quantity::ALL.into_iter().filter(has) {
        let axis = axis(quantity, has(&Quantity::ErrorRate));
        let x = time_axis(experiment.points.spacing);
        let mut chart = Chart::new(axis).x(x).y(Axis::linear(axis));
        if quantity == Quantity::Loss {
            let d = short(prepared.spectrum.intrinsic_dim());
            chart = chart.subtitle(&format!("{}, d = {d}", describe(prepared)));
        }
        for curve in curves {
            chart = draw(chart, quantity, curve, clipped, experiment.ensemble);
        }
        if quantity == Quantity::Calibration {
            chart = chart.hline(1.0, "calibrated");
        }
        figure = figure.chart(chart);
    }
    figure
}

fn draw(
    chart: Chart,
    quantity: Quantity,
    curve: &MethodCurve,
    clipped: bool,
    ensemble: Runs,
) -> Chart {
    let title = curve.method.title(clipped);
    // A start at zero has no calibration.
    let kept = |values: Vec<Option<f64>>| -> (Vec<f64>, Vec<f64>) {
        let pairs = curve.times().iter().zip(values);
        pairs.filter_map(|(t, x)| Some((*t, unit(quantity) * x.filter(|x| !x.is_nan())?))).unzip()
    };
    match &curve.outcome {
        Outcome::Path { path, .. } => {
            let measures = path.measures.iter().flatten();
            let (t, y) = kept(measures.map(|m| m.get(quantity)).collect());
            chart.series(path_series(curve.method, title, &t, &y))
        }
        Outcome::Band(band) => {
            let measures = band.measures.as_ref();
            let Some(statistics) = measures.and_then(|m| m.get(quantity)) else { return chart };
            let column = |x: &[f64]| kept(x.iter().copied().map(Some).collect());
            let (t, low) = column(&statistics.quantiles[0]);
            let (high, median) = (column(&statistics.quantiles[1]).1, column(&statistics.median).1);
            let label = band_label(title, ensemble, band.runs);
            let series = Series::band(&label, &t, &low, &high).middle(&median);
            chart.series(series.slot(slot(curve.method)))
        }
    }
}

/// The results of an experiment in numbers, for JSON and for the terminal.
#[derive(Debug, Clone, Serialize)]
pub struct ModelReport {
    pub name: String,
    pub model: String,
    pub intrinsic_dim: f64,
    pub ambient_dim: u64,
    /// The variance of the teacher's logits.
    pub teacher_variance: f64,
    /// The learning rate and the threshold at the start, in the coordinates of the file.
    pub eta: f64,
    pub c: Option<f64>,
    /// The norm of the fixed point over that of the teacher, at the last threshold and unclipped.
    pub fixed_point: Option<f64>,
    pub fixed_point_unclipped: Option<f64>,
    pub methods: Vec<ModelMethodReport>,
    #[serde(skip)]
    clipped: bool,
}

/// The end of one curve; of an ensemble the medians.
#[derive(Debug, Clone, Serialize)]
pub struct ModelMethodReport {
    pub method: Method,
    pub t: Option<f64>,
    pub loss: Option<f64>,
    pub error_rate: Option<f64>,
    /// In radians.
    pub angle: Option<f64>,
    pub calibration: Option<f64>,
    pub runs: Option<u64>,
    pub diverged_runs: Option<u64>,
    #[serde(skip)]
    stop: Option<Stop>,
}

impl ModelReport {
    pub fn new(experiment: &Experiment, prepared: &Prepared, curves: &[MethodCurve]) -> Self {
        let control = prepared.control_at_start();
        let [fixed_point, fixed_point_unclipped] = prepared.fixed_points();
        let start = Overlaps::at_start(prepared.problem.modes());
        ModelReport {
            name: experiment.name.clone(),
            model: describe(prepared),
            intrinsic_dim: prepared.spectrum.intrinsic_dim(),
            ambient_dim: prepared.spectrum.ambient_dim(),
            teacher_variance: start.map_or(0.0, |start| start.v),
            eta: control.eta,
            c: control.c.is_finite().then_some(control.c),
            fixed_point,
            fixed_point_unclipped,
            methods: curves.iter().map(ModelMethodReport::new).collect(),
            clipped: experiment.clip.clips(),
        }
    }

    fn table(&self) -> String {
        let header = ["method", "t", "loss", "error rate", "angle", "calibration"];
        let or = |text: Option<String>| text.unwrap_or("-".into());
        let rows = self.methods.iter().map(|line| {
            let runs = line.runs.map_or(String::new(), |n| format!(" ({n} runs)"));
            [
                format!("{}{runs}", line.method.title(self.clipped)),
                or(line.t.map(short)),
                or(line.loss.map(short)),
                or(line.error_rate.map(percent)),
                or(line.angle.map(|angle| format!("{:.1}°", angle.to_degrees()))),
                or(line.calibration.map(short)),
            ]
        });
        columns("llllll", header, rows)
    }
}

impl ModelMethodReport {
    fn new(curve: &MethodCurve) -> Self {
        let end = |quantity| curve.at(quantity, curve.times().len().checked_sub(1)?);
        let [loss, error_rate, angle, calibration] = Quantity::ALL.map(end);
        ModelMethodReport {
            method: curve.method,
            t: curve.times().last().copied(),
            loss,
            error_rate,
            angle,
            calibration: calibration.filter(|x| !x.is_nan()),
            runs: curve.band().map(|band| band.runs),
            diverged_runs: curve.band().map(|band| band.diverged.len() as u64),
            stop: curve.stop(),
        }
    }
}

/// The summary for the terminal.
impl fmt::Display for ModelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        writeln!(
            f,
            "  data    {} dimensions, d = {}",
            self.ambient_dim,
            short(self.intrinsic_dim)
        )?;
        writeln!(f, "  model   {}", self.model)?;
        let clip = self.c.map_or("no clipping".into(), |c| format!("c = {}", short(c)));
        writeln!(f, "  start   η = {}, {clip}", short(self.eta))?;
        writeln!(f, "  teacher logits of variance {}", short(self.teacher_variance))?;
        if let Some(kappa) = self.fixed_point {
            write!(f, "          fixed point at {} times the teacher", short(kappa))?;
            match self.fixed_point_unclipped.filter(|_| self.c.is_some()) {
                Some(open) => writeln!(f, ", unclipped at {}", short(open))?,
                None => writeln!(f)?,
            }
        }
        writeln!(f)?;
        f.write_str(&self.table())?;
        for line in &self.methods {
            let title = line.method.title(self.clipped);
            if let (Some(count @ 1..), Some(runs)) = (line.diverged_runs, line.runs) {
                writeln!(f, "{title}: {count} of {runs} runs diverged")?;
            }
            if let Some(when) = line.stop.and_then(diverged) {
                writeln!(f, "{title}: {when}")?;
            }
        }
        Ok(())
    }
}
