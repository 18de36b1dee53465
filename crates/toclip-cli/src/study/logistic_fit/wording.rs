//! The result of a logistic fit for people, for programs and as tables.

use serde_json::{Value, json};
use toclip::ensemble::Statistics;
use toclip::model::{Measures, Quantity};
use toclip::tuning::Tuned;
use toclip::verdict::WORTH_IT;
use toclip_data::RidgeReason;
use toclip_words::verdict::headline;

use super::{LogisticFit, MeasuredEnsemble, figures};
use crate::output::Table;
use crate::output::terminal::columns;
use crate::study::fit::figures::clip;
use crate::study::fit::report::FitReport;
use crate::study::fit::statistics_columns;
use toclip_words::{percent, short, significant};

/// With a share of one class this far from a half, the missing intercept is mentioned.
const UNBALANCED: f64 = 0.1;

/// The whole report.
pub fn report(fit: &LogisticFit) -> FitReport {
    let verdict = verdict(fit);
    FitReport {
        name: fit.data.name.clone(),
        settings: format!(
            "logistic regression, {} samples, d = {}, variance of the logits {}; {} passes",
            fit.data.rows,
            short(fit.data.dim),
            short(fit.variance),
            fit.data.settings.runs
        ),
        facts: facts(fit),
        ends: Some(ends(fit)),
        gaps: (
            "Cross-entropy over that of θ*, mean of the runs relative to the ODE over the second half of \
             the pass; every line adds one cause:",
            fit.ensembles.iter().map(gap).collect(),
        ),
        notes: Vec::new(),
        figures: figures::all(fit),
        tables: tables(fit),
        json: json(fit, &verdict),
        verdict,
    }
}

/// Whether to clip, and what clipping does to the point SGD converges to.
fn verdict(fit: &LogisticFit) -> Vec<String> {
    if let Some(why) = lost(fit) {
        return vec![why];
    }
    let (advice, c) = (&fit.advice, fit.data.settings.clip);
    let tuned =
        |(tuned, end): &(Tuned, Measures)| format!("{} (η = {})", judged(end), short(tuned.eta));
    let (best, unclipped) = (tuned(&advice.tuned), tuned(&advice.unclipped));
    let mut verdict = vec![if advice.verdict.clips() {
        let [gain, share] = [advice.verdict.gain, advice.share_of_loss()].map(percent);
        let in_norm_only = match advice.gains_in_norm_only() {
            true => {
                " The gain is in the length of θ, not in its direction: the error rate is not lower."
            }
            false => "",
        };
        format!(
            "{} The ODE ends at {best}, and without clipping, at its best constant rate, at {unclipped}. The \
             excess cross-entropy over θ* is {gain} lower, the cross-entropy itself {share}.{in_norm_only}",
            headline(&advice.verdict)
        )
    } else {
        format!(
            "{} With the best constant learning rate of each threshold, no threshold lowers the excess \
             cross-entropy of the ODE by more than {}. Without clipping it ends at {unclipped}.",
            headline(&advice.verdict),
            percent(WORTH_IT)
        )
    }];
    if let (Some(end), Some(open), true) =
        (fit.predicted.last(), fit.unclipped.last(), c.is_finite())
    {
        let ccc = advice.ccc.map_or(String::new(), |ccc| {
            let change = if ccc > 1.0 { "lowers" } else { "raises" };
            format!(" CCC = {ccc:.3} there: clipping {change} the noise in the direction at equal speed.")
        });
        let (eta, c) = (short(fit.data.settings.eta), clip(c));
        let [end, open] = [end, open].map(|end| nats(end.loss));
        verdict.push(format!(
            "At η = {eta} and c = {c} the ODE ends at {end}, without clipping at {open}.{ccc}"
        ));
        verdict.push(bias(fit));
    }
    if (fit.ones - 0.5).abs() > UNBALANCED {
        verdict.push(format!(
            "{} of the labels are 1, and the model has no intercept: part of the cross-entropy is due to \
             that.",
            percent(fit.ones)
        ));
    }
    if fit.ridge.is_some_and(|ridge| ridge.reason == RidgeReason::Separable) {
        verdict.push(
            "The classes are separable: θ* and the error rates depend on the ridge, and the labels do not \
             follow the model at θ*."
                .into(),
        );
    }
    verdict
}

/// The point to which clipped SGD converges, by the theory.
fn bias(fit: &LogisticFit) -> String {
    let (advice, c) = (&fit.advice, clip(fit.data.settings.clip));
    if (advice.kappa - 1.0).abs() < 5e-4 {
        return format!("Clipping at c = {c} does not move the point to which SGD converges.");
    }
    let (kappa, off) = (advice.kappa, short(advice.fixed_point.loss - advice.least));
    let slope = advice.fixed_point.calibration;
    let slope = slope.map_or(String::new(), |slope| format!(", calibration slope {slope:.3}"));
    format!(
        "Clipping is biased: for Gaussian features, at c = {c} and small learning rates, SGD converges to \
         {kappa:.3} θ* and not to θ* (cross-entropy +{off} nats{slope}). The direction and the error rate \
         stay those of θ*."
    )
}

/// The verdict if runs or the ODE diverged.
fn lost(fit: &LogisticFit) -> Option<String> {
    let eta = short(fit.data.settings.eta);
    let lost = format!(
        "Use a smaller --eta: at η = {eta} runs or the ODE diverged. No advice on clipping."
    );
    fit.diverged().then_some(lost)
}

fn facts(fit: &LogisticFit) -> Vec<[String; 2]> {
    let more = vec![
        ("  by the model", judged(&fit.best_of_model)),
        ("variance of ⟨x, θ*⟩", short(fit.variance)),
    ];
    let train = fit.train.as_ref().map(judged);
    let ridge = fit.ridge.map(|ridge| ridge.to_string());
    let mut facts = fit.data.facts("logistic fit θ*", judged(&fit.best), train, ridge, more);
    facts.insert(1, ["label 1".into(), format!("{} of the samples", percent(fit.ones))]);
    facts
}

/// "0.4213 nats, error rate 18.9%, calibration 1.00".
fn judged(m: &Measures) -> String {
    let error = m.error_rate.map_or(String::new(), |e| format!(", error rate {}", percent(e)));
    let slope = m.calibration.map_or(String::new(), |c| format!(", calibration slope {c:.3}"));
    format!("cross-entropy {}{error}{slope}", nats(m.loss))
}

/// Four digits: differences are in the third.
fn nats(loss: f64) -> String {
    significant(loss, 4)
}

/// An ensemble, how far it is from the ODE, and the cause that it adds.
fn gap(e: &MeasuredEnsemble) -> [String; 3] {
    let gap = e.gap.map(|gap| gap.mean_words());
    let gap = gap.unwrap_or("not compared: a run or the ODE diverged".into());
    [e.label.into(), gap, format!("adds: {}", e.cause)]
}

/// The ODE and the runs at the end of the pass.
fn ends(fit: &LogisticFit) -> String {
    let header = ["", "cross-entropy", "error rate", "calibration"];
    let path = |name: &str, measures: &[Measures]| {
        let end = measures.last().filter(|_| measures.len() == fit.data.times.len());
        let or = |text: Option<String>| text.unwrap_or("-".into());
        [
            name.to_owned(),
            or(end.map(|m| nats(m.loss))),
            or(end.and_then(|m| m.error_rate).map(percent)),
            or(end.and_then(|m| m.calibration).map(|c| format!("{c:.3}"))),
        ]
    };
    let mut rows = vec![path("ODE", &fit.predicted)];
    if fit.data.settings.clip.is_finite() {
        rows.push(path("ODE without clipping", &fit.unclipped));
    }
    for e in &fit.ensembles {
        type Say<'a> = &'a dyn Fn(f64) -> String;
        let last = |s: &Statistics, (say, say_error): (Say<'_>, Say<'_>)| -> Option<String> {
            let whole = e.band.times.len() == fit.data.times.len();
            let (mean, error) = (s.mean.last()?, s.standard_error.last()?);
            (whole && !mean.is_nan()).then(|| format!("{} ± {}", say(*mean), say_error(*error)))
        };
        let two: Say<'_> = &|error| significant(error, 2);
        let or = |text: Option<String>| text.unwrap_or("-".into());
        rows.push([
            e.label.to_owned(),
            or(e.band.get(Quantity::Loss).and_then(|s| last(s, (&nats, two)))),
            or(e.band.get(Quantity::ErrorRate).and_then(|s| last(s, (&percent, &percent)))),
            or(e.band
                .get(Quantity::Calibration)
                .and_then(|s| last(s, (&|x| format!("{x:.3}"), two)))),
        ]);
    }
    columns("llll", header, rows)
}

/// For programs.
fn json(fit: &LogisticFit, verdict: &[String]) -> Value {
    let finite = |x: f64| x.is_finite().then_some(x);
    let tuned = |(t, end): &(Tuned, Measures)| json!({ "eta": t.eta, "clip": finite(t.c), "loss": t.end, "end": end });
    let last = |s: Option<&Statistics>| {
        s.map(|s| json!({ "mean": s.mean.last(), "standard_error": s.standard_error.last() }))
    };
    let ensemble = |e: &MeasuredEnsemble| {
        json!({
            "key": e.key, "label": e.label, "adds": e.cause, "optimum": e.best,
            "loss": last(e.band.get(Quantity::Loss)), "error_rate": last(e.band.get(Quantity::ErrorRate)),
            "calibration": last(e.band.get(Quantity::Calibration)),
            "diverged": e.band.diverged.len(), "excess_gap": e.gap,
        })
    };
    fit.data.add_to(json!({
        "model": "logistic",
        "label_1": fit.ones,
        "ridge": fit.ridge.map(|r| json!({ "value": r.value, "reason": r.to_string() })),
        "logit_variance": fit.variance,
        "optimum": fit.best,
        "optimum_by_model": fit.best_of_model,
        "train": fit.train,
        "predicted": fit.predicted.last(),
        "predicted_unclipped": fit.unclipped.last(),
        "measured": fit.ensembles.iter().map(ensemble).collect::<Vec<_>>(),
        "advice": {
            "clip": fit.advice.verdict.clips(), "gain": fit.advice.verdict.gain,
            "fixed_point": fit.advice.kappa, "at_fixed_point": fit.advice.fixed_point,
            "ccc_at_end": fit.advice.ccc,
            "best_at_end": fit.advice.best_at_end.map(|b| json!({ "clip": finite(b.c), "ccc": b.ccc })),
            "tuned": tuned(&fit.advice.tuned), "tuned_unclipped": tuned(&fit.advice.unclipped),
        },
        "decision": fit.advice.verdict,
        "verdict": verdict,
    }))
}

/// The quantities in the tables; the angle to θ* is not among them.
const TABLED: [Quantity; 3] = [Quantity::Loss, Quantity::ErrorRate, Quantity::Calibration];

/// The tables, by name.
fn tables(fit: &LogisticFit) -> Vec<(String, Table)> {
    let mut curves = Table::default().numbers("t", fit.data.times.iter().copied());
    for (name, path) in [("ode", &fit.predicted), ("ode_unclipped", &fit.unclipped)] {
        for quantity in TABLED {
            let values = path.iter().map(|m| m.get(quantity));
            curves = curves.numbers(format!("{name}_{}", quantity.key()), values);
        }
    }
    for e in &fit.ensembles {
        for quantity in TABLED {
            let name = format!("{}_{}", e.key, quantity.key());
            if let Some(statistics) = e.band.get(quantity) {
                curves = statistics_columns(curves, &name, statistics, &e.band.probabilities);
            }
        }
    }
    let bins = |j: usize| fit.reliability.iter().map(move |bin| bin[j]);
    let reliability =
        Table::default().numbers("probability", bins(0)).numbers("share_label_1", bins(1));
    let [spectrum, theta] = fit.data.tables();
    vec![("curves".into(), curves), spectrum, theta, ("reliability".into(), reliability)]
}
