//! What one figure of the paper gives: its section of the report and the tables beside it.

use crate::output::Table;
use crate::plot::Figure;
use crate::report::Section;

/// One reproduced figure.
#[derive(Debug, Clone)]
pub struct Part {
    pub section: Section,
    /// Names without ending, and the tables.
    pub tables: Vec<(String, Table)>,
    /// The experiment file, name and text, that it was made from.
    pub experiment: (&'static str, &'static str),
}

/// Columns of numbers as a table.
pub fn table(columns: &[(String, &[f64])]) -> Table {
    columns.iter().fold(Table::default(), |table, (name, values)| {
        table.numbers(name.clone(), values.iter().copied())
    })
}

impl Part {
    /// Files that the figures and tables of this part are written to, and their contents' makers.
    pub fn figures(&self) -> impl Iterator<Item = (String, &Figure)> {
        let (id, many) = (&self.section.id, self.section.figures.len() > 1);
        self.section.figures.iter().enumerate().map(move |(i, figure)| {
            let name = stem(id);
            (if many { format!("{name}-{}", i + 1) } else { name }, figure)
        })
    }
}

/// The name of the files of a figure.
pub fn stem(id: &str) -> String {
    match id.strip_prefix("theorem") {
        Some(number) => format!("theorem-{number}"),
        None => format!("figure-{id}"),
    }
}
