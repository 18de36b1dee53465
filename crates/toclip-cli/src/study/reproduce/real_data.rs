//! Figures 1c, 1d and 8: real data, if it is available.

use anyhow::{Result, bail};

use super::fit::check::{Numbers, PAPER};
use super::fit::input::{Input, PaperDataSet};
use super::fit::{Fit, FitSettings, FittedData, figures, wording};
use super::one_pass_claims::Gaps;
use super::{FigureSection, RunSizes, check, near, stem};
use crate::report::{Claim, Section};
use toclip_words::short;

/// Runs of the paper; `--full` makes more.
const RUNS: u64 = 50;

/// The fits, each made once however many figures show it.
pub struct RealData {
    /// Whether the figures were asked for by name: then missing data is an error.
    asked: bool,
    /// By data set; the reason where there is none.
    fits: [Option<Result<Fit, String>>; 2],
}

impl RealData {
    pub fn new(asked: bool) -> Self {
        RealData { asked, fits: [None, None] }
    }

    /// The fit, or why there is none.
    fn fit(&mut self, known: PaperDataSet, sizes: &RunSizes) -> &Result<Fit, String> {
        let slot = &mut self.fits[known as usize];
        slot.get_or_insert_with(|| fit(known, sizes).map_err(|e| format!("{e:#}")))
    }
}

fn fit(known: PaperDataSet, sizes: &RunSizes) -> Result<Fit> {
    let input = match known {
        PaperDataSet::Cifar10 => Input::cifar10(None)?,
        PaperDataSet::Wikitext2 => Input::wikitext2(None, None)?,
    };
    let settings = FitSettings {
        runs: if sizes.runs > 200 { 4 * RUNS } else { RUNS.min(sizes.runs) },
        seed: sizes.seed,
        ..FitSettings::of(Some(known))
    };
    let design = input.design(settings.features, sizes.seed)?;
    drop(input);
    Fit::new(design, &settings, &|| {})
}

/// A section that says how to get what it needs; an error if the figure was asked for by name.
fn absent(mut result: FigureSection, why: String, asked: bool) -> Result<FigureSection> {
    if asked {
        bail!("{why}");
    }
    result.section.settings = "not drawn: the data is missing".into();
    result.section.notes = vec![why];
    Ok(result)
}

pub fn figure_1c(real: &mut RealData, sizes: &RunSizes) -> Result<FigureSection> {
    let result = FigureSection::new("1c", "clipped SGD on CIFAR-10");
    // Shown with the samples of CIFAR-10 only (docs/real-data.md).
    with_fit(result, real, PaperDataSet::Cifar10, sizes, |section, fit| {
        section.claims.insert(0, numbers(fit));
        section.notes.push(format!(
            "The norms of the samples, by which thresholds differ, are not the reason: ‖x‖²/d is 1 ± {}, \
             and thresholds corrected for each norm change the prediction by 0.06 percentage points.",
            short(fit.data.norm_spread)
        ));
    })
}

pub fn figure_1d(real: &mut RealData, sizes: &RunSizes) -> Result<FigureSection> {
    let result = FigureSection::new("1d", "clipped SGD on WikiText-2");
    with_fit(result, real, PaperDataSet::Wikitext2, sizes, |section, fit| {
        section.notes.push(format!(
            "The paper embeds with GPT-2 and finds d = 3.33 and MSE = 0.459. The embedding used here has \
             d = {} and MSE = {}.",
            short(fit.data.dim),
            short(fit.residuals.mse)
        ));
    })
}

/// The figure of a fit if there is one, with what only its data set shows.
fn with_fit(
    result: FigureSection,
    real: &mut RealData,
    known: PaperDataSet,
    sizes: &RunSizes,
    add: impl Fn(&mut Section, &Fit),
) -> Result<FigureSection> {
    let asked = real.asked;
    match real.fit(known, sizes) {
        Err(why) => absent(result, why.clone(), asked),
        Ok(fit) => {
            let mut result = one_pass(result, fit);
            add(&mut result.section, fit);
            Ok(result)
        }
    }
}

pub fn figure_8(real: &mut RealData, sizes: &RunSizes) -> Result<FigureSection> {
    let mut result = FigureSection::new("8", "the noise of figures 1c and 1d");
    result.section.settings = "residuals of least squares without intercept".into();
    let asked = real.asked;
    let mut missing = Vec::new();
    for known in [PaperDataSet::Cifar10, PaperDataSet::Wikitext2] {
        let fit = match real.fit(known, sizes) {
            Err(why) => {
                missing.push(why.clone());
                continue;
            }
            Ok(fit) => fit,
        };
        let mut figure = figures::noise(fit);
        figure.title = format!("Residuals of {}", fit.data.name);
        let components =
            fit.data.settings.components.map_or(String::new(), |k| {
                format!(" (mixtures of {k} components, as in the paper)")
            });
        let (fitted, best) = (fit.fitted.describe(), fit.noise.best().describe());
        let mut note = format!(
            "{}: drawn with {fitted}; the best by held-out likelihood is {best}{components}.",
            fit.data.name
        );
        fit.noise.notes.iter().for_each(|more| note += &format!(" Note: {more}."));
        result.section.figures.push(figure);
        result.section.notes.push(note);
        if known == PaperDataSet::Cifar10 {
            result.section.claims.push(check(
                "residuals_are_gaussian",
                format!("σ = {}", short(fit.residuals.sigma)),
                near(fit.residuals.sigma, 0.754, 0.005),
            ));
        }
    }
    if result.section.figures.is_empty() {
        return absent(result, missing.join("; "), asked);
    }
    result.section.notes.extend(missing);
    Ok(result)
}

/// The settings, claims, figures and tables of a fit.
fn one_pass(mut result: FigureSection, fit: &Fit) -> FigureSection {
    let (claims, undecided) = Gaps::judge(Gaps::of(fit));
    let FittedData { name, rows, settings, .. } = &fit.data;
    let FitSettings { features, eta, clip, runs, seed, .. } = settings;
    let start_noise = settings.start_noise.unwrap_or(0.0);
    let ([dim, end], noise) = ([fit.data.dim, fit.data.end()].map(short), fit.fitted.describe());
    result.section.settings = format!(
        "{name}: {rows} samples, features {features}, d = {dim}; {noise}; η = {eta}, c = {clip}; \
         θ0 = θ* + {start_noise}·N(0, I); one pass, T = {end}; {runs} runs, seed {seed}"
    );
    let figures = figures::all(fit).into_iter().filter(|(name, _)| *name != "noise");
    result.section.figures = figures.map(|(_, figure)| figure).collect();
    result.section.claims = claims;
    result.section.notes = notes(fit).into_iter().chain(undecided).collect();
    let stem = stem(&result.section.id);
    let tables = wording::tables(fit).into_iter();
    let tables = tables.filter(|(name, _)| name == "risk" || name == "spectrum");
    result.tables = tables.map(|(name, table)| (format!("{stem}-{name}"), table)).collect();
    result
}

fn numbers(fit: &Fit) -> Claim {
    let found = Numbers::new(fit.data.dim, &fit.residuals);
    check(
        "numbers_of_cifar10",
        format!(
            "{}; the paper's d = {} is one draw of the random features; our draws allow {}",
            found.describe(),
            PAPER.dim,
            Numbers::bounds()
        ),
        found.as_expected(),
    )
}

fn notes(fit: &Fit) -> Vec<String> {
    let end = short(fit.band.risk.mean.last().copied().unwrap_or(f64::NAN));
    let last = |key| fit.curve(key).and_then(|c| c.risk.last().copied()).unwrap_or(f64::NAN);
    let [fitted, own, replaced, corrected] =
        ["ode_fitted", "ode_residuals", "with_replacement", "one_pass"].map(|key| short(last(key)));
    let predicted = format!(
        "R at the end of the pass: {end} measured; {fitted} by the ODE with the fitted distribution, {own} \
         with the measured residuals; {replaced} corrected for the bias of clipping, as if samples were \
         drawn with replacement; {corrected} with both corrections."
    );
    let [bias, chance, limit] = [fit.bias, fit.chance.mean, fit.chance.limit].map(short);
    let cause = match fit.is_biased() {
        true => {
            "The residuals depend on the features or are not symmetric, and no clipped run can end below \
             this risk."
        }
        false => "These samples do not show that clipping moves the point to which SGD converges.",
    };
    let bias = format!(
        "Clipped SGD converges to Huber's estimate for the threshold c, whose risk is {bias}; by chance \
         alone it would be {chance} on average, and more than {limit} once in 1000 cases. {cause}"
    );
    vec![predicted, bias]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_data_is_a_note_or_an_error() {
        let part = |asked| absent(FigureSection::new("1c", "x"), "get it".into(), asked);
        assert_eq!(part(false).unwrap().section.notes, ["get it"]);
        assert_eq!(part(true).unwrap_err().to_string(), "get it");
    }
}
