//! What was found, in words, in numbers for programs, and in tables.

use serde_json::{Value, json};
use toclip_data::Residuals;

use super::figures::clip;
use super::study::Study;
use crate::commands::reproduce::part::table;
use crate::commands::residuals;
use crate::words::short;

/// A gain of CCC below this is within what the residuals themselves are known to.
const WORTH: f64 = 1.01;

/// Whether to clip, where, and what the corrections say.
pub fn verdict(study: &Study) -> Vec<String> {
    if let Some(said) = lost(study) {
        return vec![said];
    }
    let [first, last] = study.best;
    let c = study.settings.clip;
    let mut said = Vec::new();
    if study.is_perfect() {
        said.push(format!(
            "Least squares fits every target: residual σ is {}, rounding errors. There is no noise to \
             clip; perhaps a feature is the target, or features are about as many as samples. Nothing \
             below is to be relied on.",
            short(study.residuals.sigma)
        ));
    }
    let (from, to) = (study.curves.first().and_then(|c| c.risk.first()), end(study));
    if let Some(from) = from.filter(|from| to > **from) {
        said.push(format!(
            "The pass ends with more risk than it began with, {} after {}: take a smaller --eta.",
            short(to),
            short(*from)
        ));
    }
    said.push(if last.ccc < WORTH && first.ccc < WORTH {
        format!(
            "Do not clip for speed: at no threshold does CCC pass 1 by a hundredth, neither at the \
             start (at best {:.3}) nor at the end ({:.3}).",
            first.ccc, last.ccc
        )
    } else {
        let at = |b: &toclip::criteria::BestThreshold| {
            if b.ccc < WORTH {
                "not at all".into()
            } else {
                format!("at c = {} (CCC = {:.3})", clip(b.c), b.ccc)
            }
        };
        format!("Clip: at the start {}, at the end {}.", at(&first), at(&last))
    });
    if let Some((point, second)) = study.path.last().filter(|_| c.is_finite()) {
        let nu = point.m2 / second;
        said.push(format!(
            "At c = {} and the end of the pass μ = {:.3}, CSC = {:.3}, CCC = {:.3}: SGD clipped there \
             needs {:.2} times the samples of unclipped SGD for the same noise.",
            clip(c),
            point.mu,
            point.mu / nu,
            point.mu * point.mu / nu,
            nu / (point.mu * point.mu),
        ));
    }
    if c.is_finite() && !study.is_perfect() {
        said.push(destination(study));
    }
    said
}

/// Where clipped SGD goes, and whether that is chance.
fn destination(study: &Study) -> String {
    let [c, bias] = [clip(study.settings.clip), short(study.bias)];
    let [chance, limit] = [study.chance.mean, study.chance.limit].map(short);
    if study.is_biased() {
        format!(
            "SGD clipped at c = {c} does not tend to least squares here but to a point whose risk is \
             {bias}, where chance alone would make it {chance} and pass {limit} once in 1000 cases: \
             the residuals depend on the features, or are not symmetric. That is {:.0}% of what the \
             runs end with. No learning rate takes it away; a larger threshold takes away what is \
             above chance.",
            100.0 * study.bias / end(study)
        )
    } else {
        format!(
            "SGD clipped at c = {c} tends to a point whose risk is {bias}, no further from least \
             squares than chance makes it ({chance}; once in 1000 cases {limit}): these samples do \
             not show that clipping misleads it."
        )
    }
}

/// Why there is nothing to say, where runs diverged.
fn lost(study: &Study) -> Option<String> {
    let (diverged, runs) = (study.band.diverged.len() as u64, study.band.runs);
    let first = study.band.diverged.values().copied().reduce(f64::min)?;
    let who =
        if diverged == runs { "every run".into() } else { format!("{diverged} of {runs} runs") };
    Some(format!(
        "At η = {} {who} diverged, the first at t = {}: no prediction is compared and nothing is \
         advised. Take a smaller --eta.",
        short(study.settings.eta),
        short(first)
    ))
}

/// The mean risk of the runs at the end of the pass; NaN where none came there.
fn end(study: &Study) -> f64 {
    let whole = study.band.times.len() == study.times.len();
    study.band.risk.mean.last().copied().filter(|_| whole).unwrap_or(f64::NAN)
}

/// What was found, name and value.
pub fn facts(study: &Study) -> Vec<(String, String)> {
    let settings = &study.settings;
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("samples", format!("{} of {} features ({})", study.rows, study.cols, settings.features));
    fact("d = Tr K/‖K‖", short(study.dim));
    fact("‖x‖²/d", format!("1 ± {}", short(study.norm_spread)));
    fact("least squares", left(&study.residuals));
    if let Some(train) = &study.train {
        fact("  on its own half", left(train));
    }
    if let Some(ridge) = &study.ridge {
        fact("  with", ridge.to_string());
    }
    if study.target_mean != 0.0 {
        fact("taken off targets", short(study.target_mean));
    }
    fact("noise", study.fitted.describe());
    if study.noise.best().model != study.fitted.model {
        fact("  advised", study.noise.best().describe());
    }
    for note in &study.noise.notes {
        fact("  note", note.clone());
    }
    fact(
        "one pass",
        format!(
            "T = n/d = {}, η = {}, c = {}, {} runs, seed {}",
            short(study.end()),
            short(settings.eta),
            clip(settings.clip),
            study.band.runs,
            settings.seed
        ),
    );
    let stats = &study.band.risk;
    let last = |v: Option<&Vec<f64>>| v.and_then(|v| v.last()).copied().unwrap_or(f64::NAN);
    if study.band.diverged.is_empty() {
        let mean = short(last(Some(&stats.mean)));
        let several = || {
            let [error, low, high] = [
                last(Some(&stats.standard_error)),
                last(stats.quantiles.first()),
                last(stats.quantiles.last()),
            ]
            .map(short);
            format!(" ± {error}, 80% of the runs in {low} to {high}")
        };
        let more = if study.band.runs > 1 { several() } else { String::new() };
        fact("R at the end", mean + &more);
    }
    if !study.band.diverged.is_empty() {
        fact("diverged", format!("{} of {} runs", study.band.diverged.len(), study.band.runs));
    }
    facts
}

/// How far the runs are from each prediction: its name, its end, and the gap.
pub fn gaps(study: &Study) -> Vec<[String; 3]> {
    let said = |curve: &super::study::Curve| match &curve.gap {
        Some(gap) => format!(
            "{} ({}), inside the band {:.0}% of the times",
            gap.words(),
            gap.mean_words(),
            100.0 * gap.inside
        ),
        None => "cannot be compared: not all paths reached the end".into(),
    };
    let end = |curve: &super::study::Curve| short(curve.risk.last().copied().unwrap_or(f64::NAN));
    study.curves.iter().map(|c| [c.label.clone(), end(c), said(c)]).collect()
}

/// What the gaps are.
pub const GAPS: &str =
    "The mean of the runs over the second half of the pass, against each prediction:";

/// The lines for the terminal.
pub fn text(study: &Study) -> String {
    let mut out = format!("{}\n\n", study.name);
    for (name, value) in facts(study) {
        out += &format!("  {name:<19}{value}\n");
    }
    out += &format!("\n{GAPS}\n");
    let gaps = gaps(study);
    let width = gaps.iter().map(|[label, ..]| label.chars().count()).max().unwrap_or(0);
    for [label, end, said] in gaps {
        out += &format!("  {label:<width$}  R = {end:<9} {said}\n");
    }
    out += "\n";
    for said in verdict(study) {
        out += &format!("{said}\n");
    }
    out
}

/// MSE, σ and accuracy in a line.
fn left(residuals: &Residuals) -> String {
    let accuracy = residuals.accuracy.map_or(String::new(), |a| format!(", accuracy {a:.4}"));
    format!("MSE {}{accuracy}, residual σ {}", short(residuals.mse), short(residuals.sigma))
}

/// For programs.
pub fn json(study: &Study) -> Value {
    let residual =
        |r: &Residuals| json!({ "mse": r.mse, "sigma": r.sigma, "accuracy": r.accuracy });
    let finite = |x: f64| x.is_finite().then_some(x);
    let curve = |c: &super::study::Curve| json!({ "key": c.key, "label": c.label, "end": c.risk.last(), "gap": c.gap });
    let best = |b: &toclip::criteria::BestThreshold| json!({ "clip": finite(b.c), "ccc": finite(b.ccc), "mu": b.mu });
    let settings = &study.settings;
    json!({
        "name": study.name,
        "settings": {
            "features": settings.features, "eta": settings.eta, "clip": finite(settings.clip),
            "runs": settings.runs, "seed": settings.seed, "start_noise": settings.start_noise,
            "held_out": settings.held_out,
        },
        "samples": study.rows,
        "features": study.cols,
        "dim": study.dim,
        "norm": study.norm,
        "target_mean": study.target_mean,
        "norm_spread": study.norm_spread,
        "least_squares": residual(&study.residuals),
        "perfect_fit": study.is_perfect(),
        "train": study.train.as_ref().map(residual),
        "ridge": study.ridge.map(|r| json!({ "value": r.value, "without_variance": r.without_variance })),
        "noise": residuals::json(&study.noise),
        "noise_of_curve": study.fitted.model.name(),
        "end": study.end(),
        "measured": {
            "end": finite(end(study)),
            "standard_error": study.band.risk.standard_error.last(),
            "low": study.band.risk.quantiles.first().and_then(|q| q.last()),
            "high": study.band.risk.quantiles.last().and_then(|q| q.last()),
            "diverged": study.band.diverged.len(),
        },
        "predicted": study.curves.iter().map(curve).collect::<Vec<_>>(),
        "destination": {
            "bias": study.bias, "by_chance": study.chance.mean,
            "chance_limit": study.chance.limit, "unclipped": study.unclipped,
        },
        "best_threshold": { "start": best(&study.best[0]), "end": best(&study.best[1]) },
        "verdict": verdict(study),
    })
}

/// Names and texts of the CSV tables.
pub fn tables(study: &Study) -> Vec<(String, crate::output::Table)> {
    let band = &study.band;
    let mut columns: Vec<(String, &[f64])> = vec![
        ("t".into(), &study.times),
        ("measured_mean".into(), &band.risk.mean),
        ("measured_standard_error".into(), &band.risk.standard_error),
    ];
    for (p, q) in band.probabilities.iter().zip(&band.risk.quantiles) {
        columns.push((format!("measured_q{}", short(100.0 * p)), q));
    }
    columns.extend(study.curves.iter().map(|c| (c.key.to_owned(), &c.risk[..])));
    let of = |f: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        study.path.iter().map(|(at, second)| f(at.mu, at.m2 / second)).collect()
    };
    let criteria = [
        ("mu", of(&|mu, _| mu)),
        ("nu", of(&|_, nu| nu)),
        ("csc", of(&|mu, nu| mu / nu)),
        ("ccc", of(&|mu, nu| mu * mu / nu)),
    ];
    columns.extend(criteria.iter().map(|(name, values)| ((*name).to_owned(), &values[..])));
    vec![
        ("risk".into(), table(&columns)),
        ("spectrum".into(), table(&[("eigenvalue".into(), &study.eigenvalues)])),
        ("theta".into(), table(&[("theta".into(), &study.optimum)])),
        ("residuals".into(), table(&[("residual".into(), &study.residuals.values)])),
    ]
}
