//! The result of a least-squares fit for people, for programs and as tables.

use serde_json::{Value, json};
use toclip::Factors;
use toclip::verdict::Verdict;
use toclip_data::Residuals;

use super::figures::{self, clip};
use super::report::FitReport;
use super::{Fit, RiskPrediction, statistics_columns};
use crate::output::Table;
use crate::study::noise_fit_figure;
use toclip_words::verdict::over_training;
use toclip_words::{percent, short};

/// The whole report.
pub fn report(fit: &Fit) -> FitReport {
    let verdict = verdict(fit);
    FitReport {
        name: fit.data.name.clone(),
        settings: format!(
            "{} samples, d = {}, MSE = {}; {} passes",
            fit.data.rows,
            short(fit.data.dim),
            short(fit.residuals.mse),
            fit.band.runs
        ),
        facts: facts(fit),
        ends: None,
        gaps: (
            "Mean of the runs over the second half of the pass, relative to each prediction:",
            gaps(fit),
        ),
        notes: fit.noise.notes.iter().map(|note| format!("Noise: {note}.")).collect(),
        figures: figures::all(fit),
        tables: tables(fit),
        json: json(fit, &verdict),
        verdict,
    }
}

/// Whether to clip, where, and what the corrections say.
fn verdict(fit: &Fit) -> Vec<String> {
    if let Some(why) = lost(fit) {
        return vec![why];
    }
    let c = fit.data.settings.clip;
    let mut verdict = Vec::new();
    if fit.is_perfect() {
        verdict.push(
            "Least squares fits every target up to rounding: there is no noise to clip, and the results \
             below mean nothing. Is the target among the features, or are there about as many features \
             as samples?"
                .into(),
        );
    }
    let (from, to) = (fit.curves.first().and_then(|c| c.risk.first()), end(fit));
    if let Some(from) = from.filter(|from| to > **from) {
        let (from, to) = (short(*from), short(to));
        verdict.push(format!(
            "Use a smaller --eta: the risk grew during the pass, from {from} to {to}."
        ));
    }
    let [start, end_of_pass] = &fit.decisions;
    verdict.push(over_training(start, end_of_pass));
    if let Some(at) = fit.path.last().filter(|_| c.is_finite())
        && let (Ok(csc), Ok(ccc)) = (at.csc(), at.ccc())
    {
        verdict.push(format!(
            "With c = {}, at the end of the pass μ = {:.3}, CSC = {csc:.3} and CCC = {ccc:.3}: clipped SGD \
             needs {:.2} times the samples of unclipped SGD for the same noise.",
            clip(c),
            at.mu,
            1.0 / ccc
        ));
    }
    if c.is_finite() && !fit.is_perfect() {
        verdict.push(bias(fit));
    }
    if fit.two_classes {
        verdict.push(
            "The target has two values: --model logistic fits classes, and predicts and measures the \
             cross-entropy."
                .into(),
        );
    }
    verdict
}

/// The point to which clipped SGD converges, and whether that is chance.
fn bias(fit: &Fit) -> String {
    let [c, bias] = [clip(fit.data.settings.clip), short(fit.bias)];
    let [chance, limit] = [fit.chance.mean, fit.chance.limit].map(short);
    match fit.is_biased() {
        true => format!(
            "Clipping is biased here: with c = {c} SGD does not converge to least squares but to a point \
             with risk {bias}, {} of the final risk of the runs. By chance alone it would be {chance} on \
             average, and more than {limit} once in 1000 cases. The residuals depend on the features or \
             are not symmetric. A smaller learning rate does not help; a larger threshold does.",
            percent(fit.bias / end(fit))
        ),
        false => format!(
            "These samples do not show that clipping is biased: with c = {c} SGD converges to a point with \
             risk {bias}; by chance alone it would be {chance} on average, and more than {limit} once in \
             1000 cases."
        ),
    }
}

/// The verdict if runs diverged.
fn lost(fit: &Fit) -> Option<String> {
    let (diverged, runs) = (fit.band.diverged.len() as u64, fit.band.runs);
    let first = fit.band.diverged.values().copied().reduce(f64::min)?;
    let who =
        if diverged == runs { "every run".into() } else { format!("{diverged} of {runs} runs") };
    let [eta, first] = [fit.data.settings.eta, first].map(short);
    Some(format!(
        "Use a smaller --eta: at η = {eta} {who} diverged, the first at t = {first}. Predictions were not \
         compared. No advice on clipping."
    ))
}

/// The mean risk of the runs at the end of the pass; NaN where none came there.
fn end(fit: &Fit) -> f64 {
    let whole = fit.band.times.len() == fit.data.times.len();
    fit.band.risk.mean.last().copied().filter(|_| whole).unwrap_or(f64::NAN)
}

fn facts(fit: &Fit) -> Vec<[String; 2]> {
    let mut more = Vec::new();
    if fit.target_mean != 0.0 {
        more.push(("mean of the target", short(fit.target_mean)));
    }
    more.push(("noise", fit.fitted.describe()));
    if fit.noise.best().model != fit.fitted.model {
        more.push(("  best fit", fit.noise.best().describe()));
    }
    more.extend(fit.noise.notes.iter().map(|note| ("  note", note.clone())));
    let (train, ridge) = (fit.train.as_ref().map(left), fit.ridge.map(|ridge| ridge.to_string()));
    let mut facts = fit.data.facts("least squares", left(&fit.residuals), train, ridge, more);
    let (stats, runs) = (&fit.band.risk, fit.band.runs);
    let last = |values: &Vec<f64>| short(values.last().copied().unwrap_or(f64::NAN));
    let [mean, error] = [&stats.mean, &stats.standard_error].map(last);
    let (name, value) = match (fit.band.diverged.len(), runs, &stats.quantiles[..]) {
        (0, 2.., [low, .., high]) => {
            let [low, high] = [low, high].map(last);
            let band = format!("80% of the runs between {low} and {high}");
            ("R at the end", format!("{mean}, standard error {error}; {band}"))
        }
        (0, ..) => ("R at the end", mean),
        (diverged, ..) => ("diverged", format!("{diverged} of {runs} runs")),
    };
    facts.push([name.into(), value]);
    facts
}

/// How far the runs are from each prediction: its name, its end, and the gap.
fn gaps(fit: &Fit) -> Vec<[String; 3]> {
    let describe = |curve: &RiskPrediction| match &curve.gap {
        Some(gap) => {
            let (range, mean, inside) = (gap.words(), gap.mean_words(), percent(gap.inside));
            format!("{range} ({mean}); prediction inside the band at {inside} of the times")
        }
        None => "not compared: a run or the prediction diverged".into(),
    };
    let end = |curve: &RiskPrediction| short(curve.risk.last().copied().unwrap_or(f64::NAN));
    let row = |c: &RiskPrediction| [c.label.clone(), format!("R = {}", end(c)), describe(c)];
    fit.curves.iter().map(row).collect()
}

/// MSE, σ and accuracy in a line.
fn left(residuals: &Residuals) -> String {
    let accuracy = residuals.accuracy.map_or(String::new(), |a| format!(", accuracy {a:.4}"));
    format!("MSE {}{accuracy}, residual σ {}", short(residuals.mse), short(residuals.sigma))
}

/// For programs.
fn json(fit: &Fit, verdict: &[String]) -> Value {
    let residual =
        |r: &Residuals| json!({ "mse": r.mse, "sigma": r.sigma, "accuracy": r.accuracy });
    let finite = |x: f64| x.is_finite().then_some(x);
    let curve = |c: &RiskPrediction| json!({ "key": c.key, "label": c.label, "end": c.risk.last(), "gap": c.gap });
    let best = |verdict: &Verdict| {
        verdict.moment().map(|b| json!({ "clip": finite(b.c), "ccc": finite(b.ccc), "mu": b.mu }))
    };
    let [start, end_of_pass] = &fit.decisions;
    fit.data.add_to(json!({
        "target_mean": fit.target_mean,
        "least_squares": residual(&fit.residuals),
        "perfect_fit": fit.is_perfect(),
        "train": fit.train.as_ref().map(residual),
        "ridge": fit.ridge.map(|r| json!({ "value": r.value, "without_variance": r.without_variance })),
        "noise": noise_fit_figure::json(&fit.noise),
        "noise_of_curve": fit.fitted.model.name(),
        "end": fit.data.end(),
        "measured": {
            "end": finite(end(fit)),
            "standard_error": fit.band.risk.standard_error.last(),
            "low": fit.band.risk.quantiles.first().and_then(|q| q.last()),
            "high": fit.band.risk.quantiles.last().and_then(|q| q.last()),
            "diverged": fit.band.diverged.len(),
        },
        "predicted": fit.curves.iter().map(curve).collect::<Vec<_>>(),
        "destination": {
            "bias": fit.bias, "by_chance": fit.chance.mean,
            "chance_limit": fit.chance.limit, "unclipped": fit.unclipped,
        },
        "best_threshold": { "start": best(start), "end": best(end_of_pass) },
        "decision": { "start": start, "end": end_of_pass },
        "verdict": verdict,
    }))
}

/// The tables, by name.
pub fn tables(fit: &Fit) -> Vec<(String, Table)> {
    let (times, band) = (&fit.data.times, &fit.band);
    let risk = Table::default().numbers("t", times.iter().copied());
    let mut risk = statistics_columns(risk, "measured", &band.risk, &band.probabilities);
    for curve in &fit.curves {
        risk = risk.numbers(curve.key, curve.risk.iter().copied());
    }
    let risk = risk
        .numbers("mu", fit.along(|at| Ok(at.mu)))
        .numbers("nu", fit.along(Factors::nu))
        .numbers("csc", fit.along(Factors::csc))
        .numbers("ccc", fit.along(Factors::ccc));
    let residuals = Table::from_iter([("residual", &fit.residuals.values[..])]);
    let [spectrum, theta] = fit.data.tables();
    vec![("risk".into(), risk), spectrum, theta, ("residuals".into(), residuals)]
}
