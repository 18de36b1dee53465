//! Figures 6 and 7: networks measured along their training on a GPU.
//!
//! The command trains nothing: the tables of the project's runs are compiled in, and `--networks`
//! reads others.

mod chart;
mod dimension;
mod factor_claims;
mod factors;
mod json_lines;
mod measurements;
mod runs;

use measurements::TrainingSettings;
use runs::NetworkRun;
pub use runs::Networks;

use super::figure_section::{FigureSection, shell_quoted};
use crate::plot::Figure;
use crate::report::{Claim, Verdict};

pub fn figure_6(networks: &Networks) -> FigureSection {
    let part = FigureSection {
        tables: factors::tables(networks),
        ..FigureSection::new("6", "μ, ν and CCC in networks")
    };
    with(part, networks, factor_claims::claims(networks), factors::figures(networks))
}

pub fn figure_7(networks: &Networks) -> FigureSection {
    let part = FigureSection::new("7", "intrinsic dimension of networks");
    let part = FigureSection { tables: dimension::tables(networks), ..part };
    with(part, networks, dimension::claims(networks), vec![dimension::figure(networks)])
}

/// Adds the claims and figures, and which networks they are of.
fn with(
    mut part: FigureSection,
    networks: &Networks,
    claims: Vec<Claim>,
    figures: Vec<Figure>,
) -> FigureSection {
    let section = &mut part.section;
    (section.claims, section.figures) = (claims, figures);
    section.settings = settings(networks);
    if let Some(folder) = &networks.folder {
        section.command += &format!(" --networks {}", shell_quoted(folder));
        section.notes.push(format!(
            "These are the runs in {folder}, not those of the project. Other networks cannot refute the \
             paper: claims that do not hold for them are marked as different, not as failed."
        ));
        for claim in section.claims.iter_mut().filter(|claim| claim.verdict == Verdict::Fails) {
            claim.verdict = Verdict::Differs;
        }
    }
    section.notes.extend(networks.notes.iter().map(|note| format!("{note}.")));
    part
}

/// The runs in a line.
fn settings(networks: &Networks) -> String {
    let all = &networks.runs;
    let describe = |run: &NetworkRun| {
        let TrainingSettings { epochs, batch, rate, momentum, seed, .. } = &run.settings;
        let (name, done) = (run.name(all), run.epochs_done());
        let part =
            if done < 0.999 * epochs { format!("{} of ", epoch(done)) } else { String::new() };
        format!(
            "{name}: {part}{epochs} epochs, batch {batch}, η = {rate}, momentum {momentum}, seed {seed}"
        )
    };
    let runs: Vec<String> = all.iter().map(describe).collect();
    format!("{}; trained without clipping; 200 epochs in the paper", runs.join("; "))
}

/// Runs of one network of the paper, with its loss.
fn of_paper<'a>(networks: &'a Networks, model: &str) -> Vec<&'a NetworkRun> {
    let same = |run: &&NetworkRun| run.settings.model == model && run.settings.loss == "mse";
    networks.runs.iter().filter(same).collect()
}

/// The item with the largest value; the last of equals.
fn most<T>(items: impl Iterator<Item = T>, of: impl Fn(&T) -> f64) -> Option<T> {
    items.max_by(|a, b| of(a).total_cmp(&of(b)))
}

/// The item with the smallest value; the first of equals.
fn least<T>(items: impl Iterator<Item = T>, of: impl Fn(&T) -> f64) -> Option<T> {
    items.min_by(|a, b| of(a).total_cmp(&of(b)))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
    sum / count
}

fn epoch(epoch: f64) -> String {
    if epoch < 10.0 { format!("{epoch:.1}") } else { format!("{epoch:.0}") }
}

/// "at epoch 54", or "before training".
fn when(at: f64) -> String {
    if at == 0.0 { "before training".into() } else { format!("at epoch {}", epoch(at)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    #[test]
    fn the_runs_of_a_user_are_no_failure() {
        let mut networks = Networks::load(None).unwrap();
        let all = networks.runs.iter_mut().flat_map(|run| &mut run.dimensions);
        all.for_each(|d| (d.dimension, d.dimension_stderr) = (300.0, 1.0));
        let verdicts = |networks: &Networks| -> Vec<Verdict> {
            figure_7(networks).section.claims.iter().map(|c| c.verdict).collect()
        };
        assert_eq!(verdicts(&networks)[0], Verdict::Fails);
        networks.folder = Some("my runs".into());
        assert_eq!(verdicts(&networks)[0], Verdict::Differs);
        let part = figure_6(&networks);
        assert_eq!(part.section.command, "toclip reproduce 6 --networks 'my runs'");
        networks.runs[0].factors.retain(|line| line.epoch < 20.0);
        networks.runs[0].dimensions.retain(|d| d.epoch < 20.0);
        insta::assert_snapshot!(settings(&networks));
    }
}
