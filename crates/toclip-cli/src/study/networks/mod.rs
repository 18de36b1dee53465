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

pub use runs::Networks;
use runs::Run;

use anyhow::Result;

use super::part::{Part, shell_quoted};
use crate::report::Verdict;

const NOTES_6: [&str; 3] = [
    "Three estimates of μ from the same batches at fixed weights. The paper's is the fraction of \
     unclipped gradients: right for single samples, far too small for batches, because a clipped batch \
     still points downhill. The batch form adds what clipped batches keep, (1 − 1/N)·E[c/G; G > c] with \
     N = batch × outputs; it assumes that the norm G is independent of the direction. The direct one is \
     ⟨E clip g, E g⟩/‖E g‖² from independent blocks of batches.",
    "Where every gradient is clipped the unclipped fraction and its CCC are 0; where none is, every \
     estimate is 1.",
    "No direct estimate is drawn where the batches do not show a mean gradient above their noise: the \
     error of CCC would exceed 50%. The tables mark these lines in the column direct_determined.",
];

const NOTES_7: [&str; 2] = [
    "d depends on the mode of batch norm, and the paper does not say which it used. Before training the \
     running statistics of evaluation mode are not yet those of the data. ViT has neither batch norm nor \
     dropout: its d is the same in both modes.",
    "Why d is smaller than in the paper is not known. docs/networks.md lists what was ruled out, such as \
     the number of images.",
];

pub fn figure_6(networks: &Networks) -> Result<Part> {
    let mut part = Part::new("6", "μ, ν and CCC in networks");
    part.section.claims = factor_claims::claims(networks);
    part.section.figures = factors::figures(networks);
    part.section.notes = NOTES_6.map(String::from).into();
    part.tables = factors::tables(networks);
    Ok(finish(part, networks))
}

pub fn figure_7(networks: &Networks) -> Result<Part> {
    let mut part = Part::new("7", "intrinsic dimension of networks");
    part.section.claims = dimension::claims(networks);
    part.section.figures = vec![dimension::figure(networks)];
    part.section.notes = NOTES_7.map(String::from).into();
    part.tables = dimension::tables(networks);
    Ok(finish(part, networks))
}

fn finish(mut part: Part, networks: &Networks) -> Part {
    let section = &mut part.section;
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
    let describe = |run: &Run| {
        let (s, done) = (&run.settings, run.epochs_done());
        let stopped = (done < 0.999 * s.epochs).then(|| format!("{} of ", epoch(done)));
        format!(
            "{}: {}{} epochs, batch {}, η = {}, momentum {}, seed {}",
            run.name(all),
            stopped.unwrap_or_default(),
            s.epochs,
            s.batch,
            s.rate,
            s.momentum,
            s.seed
        )
    };
    let runs: Vec<String> = all.iter().map(describe).collect();
    format!("{}; trained without clipping; 200 epochs in the paper", runs.join("; "))
}

/// Runs of one network of the paper, with its loss.
fn of_paper<'a>(networks: &'a Networks, model: &str) -> Vec<&'a Run> {
    let same = |run: &&Run| run.settings.model == model && run.settings.loss == "mse";
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
            figure_7(networks).unwrap().section.claims.iter().map(|c| c.verdict).collect()
        };
        assert_eq!(verdicts(&networks)[0], Verdict::Fails);
        networks.folder = Some("my runs".into());
        assert_eq!(verdicts(&networks)[0], Verdict::Differs);
        let part = figure_6(&networks).unwrap();
        assert_eq!(part.section.command, "toclip reproduce 6 --networks 'my runs'");
        assert!(part.section.notes.iter().any(|note| note.contains("my runs")));
    }
}
