//! The fixed text of the report: its takeaway, notes on figures, and corrections of the paper. Formulas
//! are LaTeX between dollar signs.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::report::Correction;

/// The contents of `report_text.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportText {
    pub takeaway: Vec<String>,
    /// Of a report that has nothing of the paper.
    pub takeaway_beyond: Vec<String>,
    pub about: Vec<String>,
    /// Notes at the end, under this heading.
    numerics_title: String,
    numerics: Vec<String>,
    /// The statements of the paper, by the name of the claim.
    pub claims: BTreeMap<String, String>,
    /// By figure.
    pub notes: BTreeMap<String, Vec<String>>,
    pub corrections: Vec<Correction>,
}

impl ReportText {
    pub fn read() -> Result<Self> {
        toml::from_str(include_str!("report_text.toml")).context("report_text.toml")
    }

    pub fn remarks(&self) -> Vec<(String, Vec<String>)> {
        vec![(self.numerics_title.clone(), self.numerics.clone())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::math;

    #[test]
    fn every_formula_is_typeset_and_can_be_written_out() {
        let text: toml::Value = toml::from_str(include_str!("report_text.toml")).unwrap();
        let (mut texts, mut formulas, mut rest) = (Vec::new(), 0, vec![text]);
        while let Some(value) = rest.pop() {
            match value {
                toml::Value::String(text) => texts.push(text),
                toml::Value::Array(items) => rest.extend(items),
                toml::Value::Table(table) => rest.extend(table.into_iter().map(|entry| entry.1)),
                _ => {}
            }
        }
        for text in texts {
            let (page, plain) = (math::html(&text), math::plain(&text));
            assert!(!page.contains('$') && !page.contains('\\'), "{page}");
            assert!(!plain.contains(['$', '\\', '{', '}']), "{plain}");
            formulas += page.matches("<math").count();
        }
        assert!(formulas > 30, "{formulas}");
    }

    #[test]
    fn claims_about_data_that_is_not_here_have_their_text() {
        let text = ReportText::read().unwrap();
        let claims =
            ["ode_is_close", "corrections_help", "numbers_of_cifar10", "residuals_are_gaussian"];
        assert!(claims.iter().all(|claim| text.claims.contains_key(*claim)));
    }
}
