//! Figures 6 and 7: networks measured along their training on a GPU.
//!
//! A training run is no part of this command: the tables of ours are, and `--networks` takes others.

mod dimension;
mod dimension_claims;
mod factor_claims;
mod factors;
mod lines;
mod notes;
mod run;
mod table;

pub use run::Networks;

use anyhow::Result;

use super::part::Part;
use crate::report::{Claim, Section};

pub fn figure_6(networks: &Networks) -> Result<Part> {
    let section = Section {
        id: "6".into(),
        title: "Figure 6: μ, ν and CCC in networks".into(),
        settings: notes::settings(networks),
        figures: factors::figures(networks),
        notes: notes::figure_6(networks),
        ..Section::default()
    };
    Ok(part(networks, section, factor_claims::figure_6(networks), factors::tables(networks)))
}

pub fn figure_7(networks: &Networks) -> Result<Part> {
    let section = Section {
        id: "7".into(),
        title: "Figure 7: intrinsic dimension of networks".into(),
        settings: notes::settings(networks),
        figures: vec![dimension::figure(networks)],
        notes: notes::figure_7(networks),
        ..Section::default()
    };
    Ok(part(networks, section, dimension_claims::figure_7(networks), dimension::tables(networks)))
}

fn part(
    networks: &Networks,
    mut section: Section,
    mut claims: Vec<Claim>,
    tables: Vec<(String, crate::output::Table)>,
) -> Part {
    section.command = format!("toclip reproduce {}", section.id);
    if let Some(folder) = &networks.folder {
        factor_claims::soften(&mut claims);
        section.command += &format!(" --networks {}", quoted(folder));
        section.notes.push(format!(
            "These are the runs in {folder}, not those of the project: where they are not as the paper \
             says, that is no failure of either."
        ));
    }
    section.notes.extend(networks.notes.iter().map(|note| format!("{note}.")));
    section.claims = claims;
    Part { section, tables, experiment: ("", "") }
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    match path.chars().all(plain) && !path.is_empty() {
        true => path.into(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
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
