//! What one figure of the paper gives: its section of the report and the tables beside it.

use crate::plot::Figure;
use crate::report::Section;

/// One reproduced figure.
#[derive(Debug, Clone)]
pub struct Part {
    pub section: Section,
    /// Names without ending, and the text of the CSV.
    pub tables: Vec<(String, String)>,
    /// The experiment file, name and text, that it was made from.
    pub experiment: (&'static str, &'static str),
}

/// Columns of one length as CSV, 17 significant digits; what is not finite is left empty.
pub fn table(columns: &[(String, &[f64])]) -> String {
    let name = |name: &str| name.replace([',', '"', '\n'], " ");
    let header: Vec<String> = columns.iter().map(|(title, _)| name(title)).collect();
    let rows = columns.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let mut text = header.join(",") + "\n";
    for row in 0..rows {
        let cell = |values: &[f64]| match values.get(row) {
            Some(x) if x.is_finite() => format!("{x:e}"),
            Some(x) if *x == f64::INFINITY => "inf".into(),
            _ => String::new(),
        };
        let cells: Vec<String> = columns.iter().map(|(_, values)| cell(values)).collect();
        text += &(cells.join(",") + "\n");
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_every_digit_and_leaves_gaps_empty() {
        let text = table(&[
            ("t".into(), &[0.1, 1.0 / 3.0]),
            ("a, b".into(), &[f64::NAN, f64::INFINITY]),
            ("c".into(), &[2.0]),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "t,a  b,c");
        assert_eq!(lines[1], "1e-1,,2e0");
        let third: f64 = lines[2].split(',').next().unwrap().parse().unwrap();
        assert_eq!(third, 1.0 / 3.0);
        assert!(lines[2].ends_with(",inf,"));
    }
}
