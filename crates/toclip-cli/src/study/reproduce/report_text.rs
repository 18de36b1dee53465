//! The fixed text of the report: its introduction, notes on figures, and corrections of the paper.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::report::Correction;

/// What `report_text.toml` contains.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportText {
    pub intro: Vec<String>,
    /// What the paper says, by the name of the claim.
    pub claims: BTreeMap<String, String>,
    /// By figure.
    pub notes: BTreeMap<String, Vec<String>>,
    corrections: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    place: String,
    printed: String,
    right: String,
}

impl ReportText {
    pub fn read() -> Result<Self> {
        toml::from_str(include_str!("report_text.toml")).context("report_text.toml")
    }

    pub fn corrections(self) -> Vec<Correction> {
        let correction = |Entry { place, printed, right }| Correction { place, printed, right };
        self.corrections.into_iter().map(correction).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_about_data_that_is_not_here_have_their_text() {
        let text = ReportText::read().unwrap();
        let claims =
            ["ode_is_close", "corrections_help", "numbers_of_cifar10", "residuals_are_gaussian"];
        assert!(claims.iter().all(|claim| text.claims.contains_key(*claim)));
    }
}
