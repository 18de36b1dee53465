//! One figure of the report: its section, and the files beside it.

use anyhow::Result;
use rayon::prelude::*;

use crate::output::{ReportFolder, Table, plots};
use crate::plot::Figure;
use crate::report::{Claim, Section};

/// A reproduced figure or theorem.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct FigureSection {
    pub section: Section,
    /// Names without ending, and the tables.
    pub tables: Vec<(String, Table)>,
    /// The experiment file that it was made from.
    pub experiment: Option<String>,
    /// The figure to open the report with, and its caption.
    pub opening: Option<(Figure, String)>,
}

/// A name in the report's folder and the contents.
pub type NamedFile = (String, Vec<u8>);

impl FigureSection {
    /// `id` as on the command line: a figure, or a theorem by its number.
    pub fn new(id: &str, title: &str) -> Self {
        let title = match id.strip_prefix("theorem") {
            Some(number) => format!("Theorem {number}: {title}"),
            None if is_beyond(id) => format!("Beyond the paper: {title}"),
            None => format!("Figure {id}: {title}"),
        };
        let command = format!("toclip reproduce {id}");
        let title_has_id = !is_beyond(id);
        let section = Section { id: id.into(), title, title_has_id, command, ..Section::default() };
        FigureSection { section, ..FigureSection::default() }
    }

    /// The problem, noise, rates and runs in one line.
    pub fn settings(mut self, settings: String) -> Self {
        self.section.settings = settings;
        self
    }

    /// The experiment file that it was made from.
    pub fn experiment(mut self, text: &str) -> Self {
        self.experiment = Some(text.into());
        self
    }

    /// Adds claims.
    pub fn claims(mut self, claims: impl IntoIterator<Item = Claim>) -> Self {
        self.section.claims.extend(claims);
        self
    }

    /// Adds a picture.
    pub fn figure(mut self, figure: impl Into<Figure>) -> Self {
        self.section.figures.push(figure.into());
        self
    }

    /// Adds a table under the name of the figure.
    pub fn table(mut self, table: Table) -> Self {
        self.tables.push((stem(&self.section.id), table));
        self
    }

    /// The plots, tables and the experiment file.
    pub fn files(&self) -> Result<Vec<NamedFile>> {
        let (name, figures) = (stem(&self.section.id), &self.section.figures);
        let name = |i: usize| match figures.len() {
            1 => name.clone(),
            _ => format!("{name}-{}", i + 1),
        };
        let figures: Vec<(String, &Figure)> =
            figures.iter().enumerate().map(|(i, figure)| (name(i), figure)).collect();
        let mut files = files(&figures, &self.tables)?;
        if let Some(text) = &self.experiment {
            files.push((
                format!("experiments/{}.toml", stem(&self.section.id)),
                text.clone().into(),
            ));
        }
        Ok(files)
    }
}

/// Plots in every format of this build, and tables as CSV.
pub fn files(figures: &[(String, &Figure)], tables: &[(String, Table)]) -> Result<Vec<NamedFile>> {
    let draw = |(name, figure): &(String, &Figure)| -> Result<Vec<NamedFile>> {
        let formats = plots::render(figure)?.into_iter();
        Ok(formats.map(|(extension, bytes)| (format!("{name}.{extension}"), bytes)).collect())
    };
    let plots = figures.par_iter().map(draw).collect::<Result<Vec<_>>>()?;
    let mut files: Vec<NamedFile> = plots.into_iter().flatten().collect();
    for (name, table) in tables {
        files.push((format!("{name}.csv"), table.csv()?));
    }
    Ok(files)
}

/// Writes files into the folder, and returns their names.
pub fn write(files: Vec<NamedFile>, folder: &mut ReportFolder) -> Result<Vec<String>> {
    let write = |(name, bytes): NamedFile| folder.write(&name, &bytes).map(|()| name);
    files.into_iter().map(write).collect()
}

/// All figures beyond the paper on the command line, and the beginning of the name of each.
pub const BEYOND: &str = "beyond";

/// Whether a figure is not one of the paper.
pub fn is_beyond(id: &str) -> bool {
    id.starts_with(BEYOND)
}

/// The name of the files of a figure.
pub fn stem(id: &str) -> String {
    match id.strip_prefix("theorem") {
        Some(number) => format!("theorem-{number}"),
        None if is_beyond(id) => id.into(),
        None => format!("figure-{id}"),
    }
}

/// A word as a shell reads it.
pub fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_blanks_are_quoted() {
        assert_eq!(shell_quoted("a/b-1.csv"), "a/b-1.csv");
        assert_eq!(shell_quoted("my data.csv"), "'my data.csv'");
        assert_eq!(shell_quoted("it's"), r"'it'\''s'");
        assert_eq!(shell_quoted(""), "''");
    }
}
