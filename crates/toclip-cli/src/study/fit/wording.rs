//! What was found, in words, in numbers for programs, and in tables.

use serde_json::{Value, json};
use toclip_data::Residuals;

use super::figures::clip;
use super::Fit;
use crate::study::noise_fit_figure;
use crate::study::part::table;
use crate::words::short;

/// A gain of CCC below this is within what the residuals themselves are known to.
const WORTH: f64 = 1.01;

/// Whether to clip, where, and what the corrections say.
pub fn verdict(fit: &Fit) -> Vec<String> {
    if let Some(said) = lost(fit) {
        return vec![said];
    }
    let [first, last] = fit.best;
    let c = fit.settings.clip;
    let mut said = Vec::new();
    if fit.is_perfect() {
        said.push(format!(
            "Least squares fits every target: residual σ is {}, rounding errors. There is no noise to \
             clip; perhaps a feature is the target, or features are about as many as samples. Nothing \
             below is to be relied on.",
            short(fit.residuals.sigma)
        ));
    }
    let (from, to) = (fit.curves.first().and_then(|c| c.risk.first()), end(fit));
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
    if let Some((point, second)) = fit.path.last().filter(|_| c.is_finite()) {
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
    if c.is_finite() && !fit.is_perfect() {
        said.push(destination(fit));
    }
    said
}

/// Where clipped SGD goes, and whether that is chance.
fn destination(fit: &Fit) -> String {
    let [c, bias] = [clip(fit.settings.clip), short(fit.bias)];
    let [chance, limit] = [fit.chance.mean, fit.chance.limit].map(short);
    if fit.is_biased() {
        format!(
            "SGD clipped at c = {c} does not tend to least squares here but to a point whose risk is \
             {bias}, where chance alone would make it {chance} and pass {limit} once in 1000 cases: \
             the residuals depend on the features, or are not symmetric. That is {:.0}% of what the \
             runs end with. No learning rate takes it away; a larger threshold takes away what is \
             above chance.",
            100.0 * fit.bias / end(fit)
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
fn lost(fit: &Fit) -> Option<String> {
    let (diverged, runs) = (fit.band.diverged.len() as u64, fit.band.runs);
    let first = fit.band.diverged.values().copied().reduce(f64::min)?;
    let who =
        if diverged == runs { "every run".into() } else { format!("{diverged} of {runs} runs") };
    Some(format!(
        "At η = {} {who} diverged, the first at t = {}: no prediction is compared and nothing is \
         advised. Take a smaller --eta.",
        short(fit.settings.eta),
        short(first)
    ))
}

/// The mean risk of the runs at the end of the pass; NaN where none came there.
fn end(fit: &Fit) -> f64 {
    let whole = fit.band.times.len() == fit.times.len();
    fit.band.risk.mean.last().copied().filter(|_| whole).unwrap_or(f64::NAN)
}

/// What was found, name and value.
pub fn facts(fit: &Fit) -> Vec<(String, String)> {
    let settings = &fit.settings;
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("samples", format!("{} of {} features ({})", fit.rows, fit.cols, settings.features));
    fact("d = Tr K/‖K‖", short(fit.dim));
    fact("‖x‖²/d", format!("1 ± {}", short(fit.norm_spread)));
    fact("least squares", left(&fit.residuals));
    if let Some(train) = &fit.train {
        fact("  on its own half", left(train));
    }
    if let Some(ridge) = &fit.ridge {
        fact("  with", ridge.to_string());
    }
    if fit.target_mean != 0.0 {
        fact("taken off targets", short(fit.target_mean));
    }
    fact("noise", fit.fitted.describe());
    if fit.noise.best().kind != fit.fitted.kind {
        fact("  advised", fit.noise.best().describe());
    }
    for note in &fit.noise.notes {
        fact("  note", note.clone());
    }
    fact(
        "one pass",
        format!(
            "T = n/d = {}, η = {}, c = {}, {} runs, seed {}",
            short(fit.end()),
            short(settings.eta),
            clip(settings.clip),
            fit.band.runs,
            settings.seed
        ),
    );
    let stats = &fit.band.risk;
    let last = |v: Option<&Vec<f64>>| v.and_then(|v| v.last()).copied().unwrap_or(f64::NAN);
    if fit.band.diverged.is_empty() {
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
        let more = if fit.band.runs > 1 { several() } else { String::new() };
        fact("R at the end", mean + &more);
    }
    if !fit.band.diverged.is_empty() {
        fact("diverged", format!("{} of {} runs", fit.band.diverged.len(), fit.band.runs));
    }
    facts
}

/// How far the runs are from each prediction: its name, its end, and the gap.
pub fn gaps(fit: &Fit) -> Vec<[String; 3]> {
    let said = |curve: &super::Curve| match &curve.gap {
        Some(gap) => format!(
            "{} ({}), inside the band {:.0}% of the times",
            gap.words(),
            gap.mean_words(),
            100.0 * gap.inside
        ),
        None => "cannot be compared: not all paths reached the end".into(),
    };
    let end = |curve: &super::Curve| short(curve.risk.last().copied().unwrap_or(f64::NAN));
    fit.curves.iter().map(|c| [c.label.clone(), end(c), said(c)]).collect()
}

/// What the gaps are.
pub const GAPS: &str =
    "The mean of the runs over the second half of the pass, against each prediction:";

/// The lines for the terminal.
pub fn text(fit: &Fit) -> String {
    let mut out = format!("{}\n\n", fit.name);
    for (name, value) in facts(fit) {
        out += &format!("  {name:<19}{value}\n");
    }
    out += &format!("\n{GAPS}\n");
    let gaps = gaps(fit);
    let width = gaps.iter().map(|[label, ..]| label.chars().count()).max().unwrap_or(0);
    for [label, end, said] in gaps {
        out += &format!("  {label:<width$}  R = {end:<9} {said}\n");
    }
    out += "\n";
    for said in verdict(fit) {
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
pub fn json(fit: &Fit) -> Value {
    let residual =
        |r: &Residuals| json!({ "mse": r.mse, "sigma": r.sigma, "accuracy": r.accuracy });
    let finite = |x: f64| x.is_finite().then_some(x);
    let curve = |c: &super::Curve| json!({ "key": c.key, "label": c.label, "end": c.risk.last(), "gap": c.gap });
    let best = |b: &toclip::criteria::BestThreshold| json!({ "clip": finite(b.c), "ccc": finite(b.ccc), "mu": b.mu });
    let settings = &fit.settings;
    json!({
        "name": fit.name,
        "settings": {
            "features": settings.features, "eta": settings.eta, "clip": finite(settings.clip),
            "runs": settings.runs, "seed": settings.seed, "start_noise": settings.start_noise,
            "held_out": settings.held_out,
        },
        "samples": fit.rows,
        "features": fit.cols,
        "dim": fit.dim,
        "norm": fit.norm,
        "target_mean": fit.target_mean,
        "norm_spread": fit.norm_spread,
        "least_squares": residual(&fit.residuals),
        "perfect_fit": fit.is_perfect(),
        "train": fit.train.as_ref().map(residual),
        "ridge": fit.ridge.map(|r| json!({ "value": r.value, "without_variance": r.without_variance })),
        "noise": noise_fit_figure::json(&fit.noise),
        "noise_of_curve": fit.fitted.kind.name(),
        "end": fit.end(),
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
        "best_threshold": { "start": best(&fit.best[0]), "end": best(&fit.best[1]) },
        "verdict": verdict(fit),
    })
}

/// Names and texts of the CSV tables.
pub fn tables(fit: &Fit) -> Vec<(String, crate::output::Table)> {
    let band = &fit.band;
    let mut columns: Vec<(String, &[f64])> = vec![
        ("t".into(), &fit.times),
        ("measured_mean".into(), &band.risk.mean),
        ("measured_standard_error".into(), &band.risk.standard_error),
    ];
    for (p, q) in band.probabilities.iter().zip(&band.risk.quantiles) {
        columns.push((format!("measured_q{}", short(100.0 * p)), q));
    }
    columns.extend(fit.curves.iter().map(|c| (c.key.to_owned(), &c.risk[..])));
    let of = |f: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        fit.path.iter().map(|(at, second)| f(at.mu, at.m2 / second)).collect()
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
        ("spectrum".into(), table(&[("eigenvalue".into(), &fit.eigenvalues)])),
        ("theta".into(), table(&[("theta".into(), &fit.optimum)])),
        ("residuals".into(), table(&[("residual".into(), &fit.residuals.values)])),
    ]
}
