//! The quantities kept of each cell, and their columns.

use toclip::model::Quantity;
use toclip_experiment::Method;
use toclip_words::unknown;
use toml::Value;

/// A quantity along a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// R, of least squares.
    Risk,
    /// A quantity of a generalised linear model.
    Model(Quantity),
}

impl Measure {
    /// The quantity that falls in training: the risk of least squares, the loss of other models.
    pub fn main(model: bool) -> Self {
        if model { Measure::Model(Quantity::Loss) } else { Measure::Risk }
    }
}

/// Something to keep of each cell.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Keep {
    /// A quantity at the last time: `"final_risk"`.
    Final(Measure),
    /// When risk or loss first reaches a level: `{ time_to = 0.1 }`.
    TimeTo(f64),
    /// The threshold of the largest CCC, at a risk or at the final one: `{ best_threshold = 0.1 }`.
    BestThreshold(Option<f64>),
    /// The whole curves, in a table of their own: `"curves"`.
    Curves,
}

impl Keep {
    /// The names without a level.
    const NAMED: [(&str, Keep); 7] = [
        ("final_risk", Keep::Final(Measure::Risk)),
        ("final_loss", Keep::Final(Measure::Model(Quantity::Loss))),
        ("final_error_rate", Keep::Final(Measure::Model(Quantity::ErrorRate))),
        ("final_angle", Keep::Final(Measure::Model(Quantity::Angle))),
        ("final_calibration", Keep::Final(Measure::Model(Quantity::Calibration))),
        ("best_threshold", Keep::BestThreshold(None)),
        ("curves", Keep::Curves),
    ];

    /// The list unless the file gives one: the final risk, or loss and error rate of a model.
    pub(crate) fn usual(model: bool) -> Vec<Keep> {
        match model {
            false => vec![Keep::Final(Measure::Risk)],
            true => [Quantity::Loss, Quantity::ErrorRate]
                .map(|quantity| Keep::Final(Measure::Model(quantity)))
                .to_vec(),
        }
    }

    /// Whether cells have it: least squares, or a generalised linear model.
    fn applies_to(self, model: bool) -> bool {
        match self {
            Keep::Final(measure) => (measure != Measure::Risk) == model,
            Keep::BestThreshold(_) => !model,
            Keep::TimeTo(_) | Keep::Curves => true,
        }
    }

    /// The list that a file gives under `keep`.
    pub(crate) fn parse_list(value: &Value, model: bool) -> Result<Vec<Keep>, String> {
        let Some(list) = value.as_array() else {
            return Err(format!("keep is {value}; expected a list such as [\"final_risk\"]"));
        };
        if list.is_empty() {
            return Err("keep: the list is empty; expected for example [\"final_risk\"]".into());
        }
        let mut found = Vec::new();
        for item in list {
            let keep = Keep::parse(item, model).map_err(|what| format!("keep: {what}"))?;
            if found.contains(&keep) {
                return Err(format!("keep: {item} is given twice"));
            }
            found.push(keep);
        }
        Ok(found)
    }

    fn parse(item: &Value, model: bool) -> Result<Keep, String> {
        let level = |name: &str, value: &Value| {
            let number = value.as_float().or(value.as_integer().map(|n| n as f64));
            number
                .filter(|x| *x > 0.0 && x.is_finite())
                .ok_or_else(|| format!("`{name}` is {value}; expected a positive number"))
        };
        let keep = match item {
            Value::String(name) => Keep::named(name, model)?,
            Value::Table(table) if table.len() == 1 => match table.iter().next() {
                Some((key, value)) if key == "time_to" => Keep::TimeTo(level(key, value)?),
                Some((key, value)) if key == "best_threshold" => {
                    Keep::BestThreshold(Some(level(key, value)?))
                }
                Some((key, _)) => return Err(unknown("key", key, &["time_to", "best_threshold"])),
                None => return Err("a table is empty".into()),
            },
            other => {
                return Err(format!(
                    "{other} is neither a name such as \"final_risk\" nor a table such as \
                     {{ time_to = 0.1 }}"
                ));
            }
        };
        match (keep.applies_to(model), model) {
            (true, _) => Ok(keep),
            (false, true) => Err(format!("{item} is for least squares, without `model`")),
            (false, false) => Err(format!("{item} needs a `model`, such as logistic regression")),
        }
    }

    fn named(name: &str, model: bool) -> Result<Keep, String> {
        match Keep::NAMED.into_iter().find(|(known, _)| *known == name) {
            Some((_, keep)) => Ok(keep),
            None if name == "time_to" => {
                Err("`time_to` needs a level; for example { time_to = 0.1 }".into())
            }
            None => {
                let known = Keep::NAMED.into_iter().filter(|(_, keep)| keep.applies_to(model));
                let known: Vec<&str> = known.map(|(name, _)| name).chain(["time_to"]).collect();
                Err(unknown("quantity", name, &known))
            }
        }
    }

    /// The columns of one method.
    pub(crate) fn columns_of(self, method: Method) -> Vec<String> {
        let key = method.key();
        match self {
            Keep::Final(_) => {
                let name = Keep::NAMED.iter().find(|(_, keep)| *keep == self);
                let name = name.map_or("", |(name, _)| name);
                let mut columns = vec![format!("{key}_{name}")];
                if method.is_ensemble() {
                    columns.extend(["low", "high"].map(|end| format!("{key}_{name}_{end}")));
                }
                columns
            }
            Keep::TimeTo(level) => vec![format!("{key}_time_to_{level}")],
            Keep::BestThreshold(_) | Keep::Curves => Vec::new(),
        }
    }

    /// The columns that belong to no method.
    pub(crate) fn columns_of_cell(self) -> Vec<String> {
        match self {
            Keep::BestThreshold(at) => {
                let at = at.map(|risk| format!("_at_{risk}")).unwrap_or_default();
                vec![format!("best_threshold{at}"), format!("best_ccc{at}")]
            }
            _ => Vec::new(),
        }
    }
}

/// The column that says when a path diverged, or which share of the runs did.
pub(crate) fn divergence_column(method: Method) -> String {
    let what = if method.is_ensemble() { "diverged_share" } else { "diverged_at" };
    format!("{}_{what}", method.key())
}
