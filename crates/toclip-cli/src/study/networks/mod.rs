//! Figures 6 and 7: networks measured along their training on a GPU.
//!
//! The command trains nothing: the tables of the project's runs are compiled in, and `--networks`
//! reads others.

mod chart;
mod dimension;
mod factor_claims;
mod factors;
mod record;
mod runs;

use runs::NetworkRun;
pub use runs::Networks;

use super::figure_section::{FigureSection, shell_quoted};
use crate::report::Verdict;

pub fn figure_6(networks: &Networks) -> FigureSection {
    let mut figure = FigureSection::new("6", "μ, ν and CCC in networks")
        .settings(settings(networks))
        .claims(factor_claims::claims(networks));
    figure.section.figures = factors::figures(networks);
    figure.tables = factors::tables(networks);
    with_source(figure, networks)
}

pub fn figure_7(networks: &Networks) -> FigureSection {
    let mut figure = FigureSection::new("7", "intrinsic dimension of networks")
        .settings(settings(networks))
        .claims(dimension::claims(networks))
        .figure(dimension::figure(networks));
    figure.tables = dimension::tables(networks);
    with_source(figure, networks)
}

/// Says where the networks come from, if they are not the project's.
fn with_source(mut figure: FigureSection, networks: &Networks) -> FigureSection {
    let section = &mut figure.section;
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
    figure
}

/// The runs in a line.
fn settings(networks: &Networks) -> String {
    let all = &networks.runs;
    let describe = |run: &NetworkRun| {
        let [epochs, batch, rate, momentum, seed] =
            ["epochs", "batch", "rate", "momentum", "seed"].map(|key| run.settings[key]);
        let records = run.factors.iter().chain(&run.dimensions);
        let done = records.map(|record| record["epoch"]).fold(0.0, f64::max);
        let part =
            if done < 0.999 * epochs { format!("{} of ", epoch(done)) } else { String::new() };
        format!(
            "{}: {part}{epochs} epochs, batch {batch}, η = {rate}, momentum {momentum}, seed {seed}",
            run.name(all)
        )
    };
    let runs: Vec<String> = all.iter().map(describe).collect();
    format!("{}; trained without clipping; 200 epochs in the paper", runs.join("; "))
}

/// Runs of one network of the paper, with its loss.
fn of_paper<'a>(networks: &'a Networks, model: &str) -> Vec<&'a NetworkRun> {
    let same = |run: &&NetworkRun| {
        run.settings.words["model"] == model && run.settings.words["loss"] == "mse"
    };
    networks.runs.iter().filter(same).collect()
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
        for d in all {
            d.numbers.insert("dimension".into(), 300.0);
            d.numbers.insert("dimension_stderr".into(), 1.0);
        }
        let verdicts = |networks: &Networks| -> Vec<Verdict> {
            figure_7(networks).section.claims.iter().map(|c| c.verdict).collect()
        };
        assert_eq!(verdicts(&networks)[0], Verdict::Fails);
        networks.folder = Some("my runs".into());
        assert_eq!(verdicts(&networks)[0], Verdict::Differs);
        let part = figure_6(&networks);
        assert_eq!(part.section.command, "toclip reproduce 6 --networks 'my runs'");
        networks.runs[0].factors.retain(|line| line["epoch"] < 20.0);
        networks.runs[0].dimensions.retain(|d| d["epoch"] < 20.0);
        insta::assert_snapshot!(settings(&networks));
    }
}
