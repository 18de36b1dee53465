//! The plot of an experiment: bands of the ensembles, lines of the theory.

use toclip::dynamics::Stop;

use super::report::{band_edges, diverged};
use super::run::{MethodCurve, Outcome};
use super::{Experiment, Method, Prepared, Runs, Spacing};
use crate::plot::{Axis, Chart, Figure, Series};
use toclip_words::short;

/// From this ratio of the largest to the smallest risk on, the axis is logarithmic.
const LOG_FROM: f64 = 20.0;
/// A curve that diverges, or the unclipped one for comparison, is followed so far above the others.
const HEADROOM: f64 = 3.0;

/// R(t) of all curves.
pub fn figure(experiment: &Experiment, prepared: &Prepared, curves: &[MethodCurve]) -> Figure {
    let clipped = experiment.clip.clips();
    let subtitle = format!(
        "{}, d = {}",
        prepared.problem.step().describe(),
        short(prepared.spectrum.intrinsic_dim())
    );
    let (low, high, cut) = range(curves);
    let logarithmic = low > 0.0 && high / low > LOG_FROM;
    let mut y = if logarithmic { Axis::log("risk R(t)") } else { Axis::linear("risk R(t)") };
    if cut {
        y = y.range(if logarithmic { f64::NAN } else { 0.0 }, high);
    }
    let x = time_axis(experiment.points.spacing);
    let mut chart = Chart::new(&experiment.name).subtitle(&subtitle).x(x).y(y);
    // Bands are drawn below all lines. The theory comes first: the first line is the solid one.
    for curve in curves.iter().filter(|c| !c.method.is_ensemble() && c.times().len() > 1) {
        let title = curve.method.title(clipped);
        chart = chart.series(path_series(curve.method, title, curve.times(), curve.risk()));
    }
    for (curve, band) in curves.iter().filter_map(|curve| Some((curve, curve.band()?))) {
        let label = band_label(curve.method.title(clipped), experiment.ensemble, band.runs);
        let [low, high] = band_edges(band);
        let series = Series::band(&label, &band.times, low, high).middle(&band.risk.median);
        chart = chart.series(series.slot(slot(curve.method)));
    }
    let notes: Vec<String> = curves.iter().filter_map(|c| note(c, clipped)).collect();
    if !notes.is_empty() {
        chart = chart.note(&notes.join("; "));
    }
    chart.into()
}

/// The axis of the time, which is spaced like the saved points.
pub(super) fn time_axis(spacing: Spacing) -> Axis {
    match spacing {
        Spacing::Linear => Axis::linear("time t = k/d"),
        Spacing::Log => Axis::log("time t = k/d"),
    }
}

/// The line of a deterministic method, solid for the ODE.
pub(super) fn path_series(method: Method, title: &str, x: &[f64], y: &[f64]) -> Series {
    let series = if method == Method::Ode { Series::line } else { Series::dashed };
    series(title, x, y).slot(slot(method))
}

/// "C-SGD, median and 80% of 100 runs".
pub(super) fn band_label(title: &str, ensemble: Runs, runs: u64) -> String {
    format!("{title}, median and {:.0}% of {runs} runs", 100.0 * ensemble.confidence)
}

/// The same method has the same colour in every plot.
pub(super) fn slot(method: Method) -> usize {
    match method {
        Method::Sgd => 0,
        Method::Hsgd => 1,
        Method::Ode => 2,
        Method::Unclipped => 3,
        Method::Volterra => 4,
    }
}

fn note(curve: &MethodCurve, clipped: bool) -> Option<String> {
    let title = curve.method.title(clipped);
    match &curve.outcome {
        Outcome::Path { path, .. } => diverged(path.stop).map(|when| format!("{title}: {when}")),
        Outcome::Band(band) if band.diverged.is_empty() => None,
        Outcome::Band(band) => {
            Some(format!("{title}: {} of {} runs diverged", band.diverged.len(), band.runs))
        }
    }
}

/// The lowest and the highest risk of a curve along time.
fn edges(curve: &MethodCurve) -> [&[f64]; 2] {
    curve.band().map_or([curve.risk(); 2], band_edges)
}

/// The smallest risk, the largest worth showing, and whether that cuts a curve off.
fn range(curves: &[MethodCurve]) -> (f64, f64, bool) {
    let whole = |curve: &&MethodCurve| match &curve.outcome {
        Outcome::Path { path, .. } => {
            path.stop == Stop::Finished && curve.method != Method::Unclipped
        }
        Outcome::Band(band) => band.diverged.is_empty(),
    };
    let top = |curve: &MethodCurve| edges(curve)[1].iter().copied().fold(0.0, f64::max);
    let bottom =
        |curve: &MethodCurve| edges(curve)[0].iter().copied().fold(f64::INFINITY, f64::min);
    let low = curves.iter().map(bottom).fold(f64::INFINITY, f64::min);
    let high = curves.iter().map(top).fold(0.0, f64::max);
    let calm = curves.iter().filter(whole).map(top).fold(0.0, f64::max);
    if calm > 0.0 && high > HEADROOM * calm {
        return (low, HEADROOM * calm, true);
    }
    (low, high, false)
}
