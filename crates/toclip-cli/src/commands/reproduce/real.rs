//! Figures 1c, 1d and 8: real data, where it is there.

use anyhow::{Result, bail};

use super::claims::{check, near};
use super::effort::Effort;
use super::part::{Part, stem};
use crate::commands::fit::check::Numbers;
use crate::commands::fit::figures;
use crate::commands::fit::input::{Defaults, Input, Known};
use crate::commands::fit::study::{Settings, Study};
use crate::commands::fit::words;
use crate::report::{Claim, Section};
use crate::words::short;

const CLOSE: &str = "In all cases the deterministic equivalent ODE closely matches the actual path of \
                     clipped SGD.";
/// How far the mean of the runs may be from the ODE to be called close on a log axis over a decade
/// and a half.
const NEAR: f64 = 0.15;
/// As for the synthetic figures: the share of times at which a prediction lies in the 80% band.
const INSIDE: f64 = 0.95;
/// Runs of the paper; `--full` makes more.
const RUNS: u64 = 50;

/// The fits, each made once however many figures show it.
pub struct Real {
    /// Whether the figures were asked for by name: then data that is not there is an error.
    asked: bool,
    cifar: Option<Result<Study, String>>,
    wikitext: Option<Result<Study, String>>,
}

impl Real {
    pub fn new(asked: bool) -> Self {
        Real { asked, cifar: None, wikitext: None }
    }

    /// The fit, or why there is none.
    fn study(&mut self, known: Known, effort: &Effort) -> &Result<Study, String> {
        let slot = match known {
            Known::Cifar10 => &mut self.cifar,
            Known::Wikitext2 => &mut self.wikitext,
        };
        slot.get_or_insert_with(|| study(known, effort).map_err(|e| format!("{e:#}")))
    }
}

fn study(known: Known, effort: &Effort) -> Result<Study> {
    let input = match known {
        Known::Cifar10 => Input::cifar10(None)?,
        Known::Wikitext2 => Input::wikitext2(None, None)?,
    };
    let defaults = Defaults::of(Some(known));
    let settings = Settings {
        features: defaults.features.to_string(),
        eta: defaults.eta,
        clip: defaults.clip,
        runs: if effort.runs > 200 { 4 * RUNS } else { RUNS.min(effort.runs) },
        seed: effort.seed,
        start_noise: defaults.start_noise,
        held_out: false,
        noise: defaults.noise,
        components: defaults.components,
        ridge: None,
    };
    let design = input.design(defaults.features, effort.seed)?;
    drop(input);
    Study::new(design, &settings, &|_| {})
}

/// A section that says how to get what it needs.
fn absent(id: &str, title: &str, why: &str, asked: bool) -> Result<Part> {
    if asked {
        bail!("{why}");
    }
    let section = Section {
        id: id.into(),
        title: format!("Figure {id}: {title}"),
        settings: "not drawn: the data is not there".into(),
        notes: vec![why.to_owned()],
        command: format!("toclip reproduce {id}"),
        ..Section::default()
    };
    Ok(Part { section, tables: Vec::new(), experiment: ("", "") })
}

pub fn figure_1c(real: &mut Real, effort: &Effort) -> Result<Part> {
    let (asked, title) = (real.asked, "clipped SGD on CIFAR-10");
    match real.study(Known::Cifar10, effort) {
        Err(why) => absent("1c", title, why, asked),
        Ok(study) => {
            let mut claims = numbers(study);
            claims.extend(agreement(study));
            Ok(part("1c", title, study, claims))
        }
    }
}

pub fn figure_1d(real: &mut Real, effort: &Effort) -> Result<Part> {
    let (asked, title) = (real.asked, "clipped SGD on WikiText-2");
    match real.study(Known::Wikitext2, effort) {
        Err(why) => absent("1d", title, why, asked),
        Ok(study) => {
            let mut part = part("1d", title, study, agreement(study));
            part.section.notes.push(format!(
                "The paper embeds with GPT-2 and finds d = 3.33 and MSE = 0.459. Another model gives \
                 other numbers: here d = {} and MSE = {}.",
                short(study.dim),
                short(study.residuals.mse)
            ));
            Ok(part)
        }
    }
}

pub fn figure_8(real: &mut Real, effort: &Effort) -> Result<Part> {
    let (asked, title) = (real.asked, "the noise of figures 1c and 1d");
    let mut found: Option<Part> = None;
    let mut missing = Vec::new();
    for known in [Known::Cifar10, Known::Wikitext2] {
        match real.study(known, effort) {
            Err(why) => missing.push(why.clone()),
            Ok(study) => {
                let mut figure = figures::noise(study);
                figure.title = format!("Residuals of {}", study.name);
                let note = format!(
                    "{}: drawn with {}; by held-out likelihood {} is advised.",
                    study.name,
                    study.fitted.describe(),
                    study.noise.best().describe()
                );
                let part = found.get_or_insert_with(|| Part {
                    section: Section {
                        id: "8".into(),
                        title: format!("Figure 8: {title}"),
                        settings: "residuals of least squares without intercept".into(),
                        command: "toclip reproduce 8".into(),
                        ..Section::default()
                    },
                    tables: Vec::new(),
                    experiment: ("", ""),
                });
                part.section.figures.push(figure);
                part.section.notes.push(note);
                if known == Known::Cifar10 {
                    part.section.claims.push(check(
                        "The residuals of CIFAR-10 are fitted by a Gaussian with σ = 0.754.",
                        format!("σ = {}", short(study.residuals.sigma)),
                        near(study.residuals.sigma, 0.754, 0.005),
                    ));
                }
            }
        }
    }
    match found {
        None => absent("8", title, &missing.join("; "), asked),
        Some(mut part) => {
            part.section.notes.extend(missing);
            Ok(part)
        }
    }
}

fn part(id: &str, title: &str, study: &Study, claims: Vec<Claim>) -> Part {
    let settings = &study.settings;
    let section = Section {
        id: id.into(),
        title: format!("Figure {id}: {title}"),
        settings: format!(
            "{} samples, features {}, d = {}; {}; η = {}, c = {}; θ0 = θ* + {}·N(0, I); one pass, \
             T = {}; {} runs, seed {}",
            study.rows,
            settings.features,
            short(study.dim),
            study.fitted.describe(),
            settings.eta,
            settings.clip,
            settings.start_noise,
            short(study.end()),
            settings.runs,
            settings.seed
        ),
        claims,
        figures: figures::all(study)
            .into_iter()
            .filter(|(name, _)| *name != "noise")
            .map(|(_, figure)| figure)
            .collect(),
        notes: notes(study),
        command: format!("toclip reproduce {id}"),
        ..Section::default()
    };
    let tables = words::tables(study)
        .into_iter()
        .filter(|(name, _)| name == "risk" || name == "spectrum")
        .map(|(name, text)| (format!("{}-{name}", stem(id)), text));
    Part { section, tables: tables.collect(), experiment: ("", "") }
}

fn numbers(study: &Study) -> Vec<Claim> {
    let left = &study.residuals;
    let accuracy = left.accuracy.unwrap_or(f64::NAN);
    let found = Numbers { dim: study.dim, mse: left.mse, accuracy, sigma: left.sigma };
    vec![check(
        "CIFAR-10 has d = 5.68; least squares leaves MSE = 0.568, accuracy 0.809 and residuals of \
         σ = 0.754.",
        format!(
            "d = {}, MSE = {}, accuracy {}, σ = {}; over draws of the random features d is 5.94 ± \
             0.24, the others differ by half a percent",
            short(study.dim),
            short(left.mse),
            short(accuracy),
            short(left.sigma)
        ),
        found.as_expected(),
    )]
}

/// How near the ODE of the paper and the corrected curve come.
fn agreement(study: &Study) -> Vec<Claim> {
    let gap = |key| study.curve(key).and_then(|curve| curve.gap);
    let (Some(plain), Some(own), Some(corrected)) =
        (gap("ode_fitted"), gap("ode_residuals"), gap("one_pass"))
    else {
        return vec![check(CLOSE, "a path did not reach the end", false)];
    };
    let far = |gap: &crate::commands::fit::Gap| gap.least.abs().max(gap.most.abs());
    vec![
        check(
            CLOSE,
            format!(
                "over the second half of the pass the mean of the runs is {} the ODE with the fitted \
                 law, {} that with the residuals themselves (at most {:.0}% demanded)",
                plain.words(),
                own.words(),
                100.0 * NEAR
            ),
            far(&plain) < NEAR && far(&own) < NEAR,
        ),
        check(
            "What parts theory and data is where clipped SGD goes, and that one pass draws without \
             replacement (our finding, not the paper's).",
            format!(
                "corrected for both, the mean of the runs is {} the prediction (standard error \
                 {:.1}%), which is inside the 80% band at {:.0}% of the times (at least {:.0}% \
                 demanded)",
                corrected.words(),
                100.0 * corrected.standard_error,
                100.0 * corrected.inside,
                100.0 * INSIDE
            ),
            corrected.inside >= INSIDE && corrected.mean.abs() < own.mean.abs(),
        ),
    ]
}

fn notes(study: &Study) -> Vec<String> {
    let end = study.band.risk.mean.last().copied().unwrap_or(f64::NAN);
    let last = |key| study.curve(key).and_then(|c| c.risk.last().copied()).unwrap_or(f64::NAN);
    vec![
        format!(
            "R at the end of the pass: {} measured; {} by the ODE with the fitted law, {} with the \
             residuals themselves; {} about the point that clipped SGD really tends to, had samples \
             been drawn with replacement; {} with both corrections.",
            short(end),
            short(last("ode_fitted")),
            short(last("ode_residuals")),
            short(last("with_replacement")),
            short(last("one_pass"))
        ),
        format!(
            "The residuals depend on the features, so the mean clipped gradient does not vanish at \
             least squares. It vanishes at Huber's estimate for the threshold c, whose own risk is \
             {}, where chance alone would make it {}: the floor under every clipped run. It is not \
             the norm of the samples: ‖x‖²/d is 1 ± {}.",
            short(study.bias),
            short(study.bias_by_chance),
            short(study.norm_spread)
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_is_not_there_is_asked_for_in_the_report_or_refused() {
        let part = absent("1c", "x", "get it by `toclip data get cifar10`", false).unwrap();
        assert!(part.section.notes[0].contains("toclip data get cifar10"));
        assert!(part.section.claims.is_empty());
        let refused = absent("1c", "x", "get it", true).unwrap_err();
        assert_eq!(refused.to_string(), "get it");
    }
}
