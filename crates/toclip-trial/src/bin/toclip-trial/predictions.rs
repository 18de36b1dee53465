//! Predicted beside measured risks.

use anyhow::Result;
use rayon::prelude::*;
use toclip_cli::output::Table;
use toclip_trial::{Problem, predicted_risk};
use toclip_words::short;

use crate::results::{Entry, Results};

/// A rule on a problem, with the predicted risks of the rule and of unclipped SGD.
pub struct Prediction<'a> {
    problem: &'a str,
    entry: &'a Entry,
    risk: f64,
    /// Over the prediction of unclipped SGD.
    ratio: f64,
}

/// The predictions for all entries that the theory covers, each at its measured learning rate.
pub fn all<'a>(problems: &[Problem], results: &'a Results) -> Result<Vec<Prediction<'a>>> {
    let steps = results.effort.steps;
    let of_problem = |(problem, row): (&Problem, &'a crate::results::Row)| {
        let risk =
            |entry: &Entry| predicted_risk(problem, entry.cell.contender, entry.cell.eta, steps);
        let base = row.entries.first().map(risk).transpose()?.flatten();
        let Some(base) = base else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for entry in &row.entries {
            if let Some(risk) = risk(entry)? {
                found.push(Prediction { problem: &row.problem, entry, risk, ratio: risk / base });
            }
        }
        Ok(found)
    };
    let pairs: Vec<_> = problems.iter().zip(&results.rows).collect();
    let found: Result<Vec<Vec<_>>> = pairs.into_par_iter().map(of_problem).collect();
    Ok(found?.into_iter().flatten().collect())
}

/// For documents.
pub fn markdown(predictions: &[Prediction<'_>]) -> String {
    let mut text = String::from(
        "| problem | rule | η | measured risk | ODE | ODE / measured | measured ratio | ODE ratio |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for p in predictions {
        let Entry { cell, risk, ratio } = p.entry;
        text += &format!(
            "| {} | {} | {} | {} ({}–{}) | {} | {:.2} | {:.2} ({:.2}–{:.2}) | {:.2} |\n",
            p.problem,
            cell.contender.name(),
            short(cell.eta),
            short(risk.mean),
            short(risk.low),
            short(risk.high),
            short(p.risk),
            p.risk / risk.mean,
            ratio.mean,
            ratio.low,
            ratio.high,
            p.ratio,
        );
    }
    text
}

/// For programs.
pub fn csv(predictions: &[Prediction<'_>]) -> Table {
    let numbers = |of: fn(&Prediction<'_>) -> f64| predictions.iter().map(of);
    Table::default()
        .text("problem", predictions.iter().map(|p| p.problem.to_owned()))
        .text("rule", predictions.iter().map(|p| p.entry.cell.contender.name()))
        .numbers("eta", numbers(|p| p.entry.cell.eta))
        .numbers("measured", numbers(|p| p.entry.risk.mean))
        .numbers("measured_low", numbers(|p| p.entry.risk.low))
        .numbers("measured_high", numbers(|p| p.entry.risk.high))
        .numbers("predicted", numbers(|p| p.risk))
        .numbers("measured_ratio", numbers(|p| p.entry.ratio.mean))
        .numbers("predicted_ratio", numbers(|p| p.ratio))
}
