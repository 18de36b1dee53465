//! Cells that are left out: combinations of values that a study does not need.

use toclip_experiment::words::did_you_mean;
use toml::{Table, Value};

use crate::axis::{Axis, number};

/// A combination of conditions on keys that vary.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exclude {
    /// For each condition the axis, and for each of its values whether it meets the condition.
    met: Vec<(usize, Vec<bool>)>,
}

impl Exclude {
    pub(crate) fn parse(table: &Table, axes: &[Axis]) -> Result<Self, String> {
        let mut conditions = Vec::new();
        let known: Vec<&str> =
            axes.iter().flat_map(|axis| &axis.keys).map(|key| key.key.as_str()).collect();
        flatten("", table, &known, &mut conditions);
        if conditions.is_empty() {
            return Err("exclude: the table is empty; expected at least one key that varies".into());
        }
        let mut met = Vec::new();
        for (name, condition) in conditions {
            let place = axes.iter().enumerate().find_map(|(i, axis)| {
                axis.keys.iter().find(|key| key.key == name).map(|key| (i, key))
            });
            let Some((axis, key)) = place else {
                let hint = did_you_mean(&name, known.iter().copied());
                let known = known.join(", ");
                return Err(match hint.is_empty() {
                    true => format!("exclude: `{name}` does not vary; expected one of: {known}"),
                    false => format!("exclude: `{name}` does not vary{hint}"),
                });
            };
            let met_by = meets(condition).map_err(|what| format!("exclude.{name} {what}"))?;
            let flags: Vec<bool> = key.values.iter().map(met_by).collect();
            let listed = match condition {
                Value::Array(list) => list.iter().collect(),
                _ => vec![condition],
            };
            let occurs = |item: &&Value| key.values.iter().any(|value| same(item, value));
            let bounds = condition.is_table();
            let absent = listed.into_iter().find(|item| !bounds && !occurs(item));
            if absent.is_some() || !flags.contains(&true) {
                let item = absent.unwrap_or(condition);
                return Err(format!("exclude.{name} is {item}, which is not one of its values"));
            }
            met.push((axis, flags));
        }
        Ok(Exclude { met })
    }

    /// Whether a cell, given by the place of its value on each axis, is left out.
    pub(crate) fn matches(&self, places: &[usize]) -> bool {
        self.met.iter().all(|(axis, flags)| flags[places[*axis]])
    }
}

/// The conditions in a table by key, those of inner tables with dots. A table is a condition where it has
/// bounds or nothing at all, or where its key varies and no key inside it does.
fn flatten<'a>(
    prefix: &str,
    table: &'a Table,
    known: &[&str],
    found: &mut Vec<(String, &'a Value)>,
) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        let inside =
            |name: &&str| name.strip_prefix(&*key).is_some_and(|rest| rest.starts_with('.'));
        let varies = known.contains(&&*key) && !known.iter().any(inside);
        match value {
            Value::Table(inner)
                if !varies
                    && !inner.is_empty()
                    && !inner.contains_key("below")
                    && !inner.contains_key("above") =>
            {
                flatten(&key, inner, known, found);
            }
            _ => found.push((key, value)),
        }
    }
}

/// The test that a condition stands for: a value, one of a list, or `{ below = 1, above = 0 }`.
fn meets(condition: &Value) -> Result<impl Fn(&Value) -> bool, String> {
    let bound = |table: &Table, name: &str| match table.get(name) {
        None => Ok(None),
        Some(value) => match number(value) {
            Some(x) if !x.is_nan() => Ok(Some(x)),
            _ => Err(format!("has `{name}` = {value}; expected a number")),
        },
    };
    if let Value::Table(table) = condition {
        if table.is_empty() {
            return Err("is {}; expected a value, a list of values, or { below = 1.0 }".into());
        }
        if let Some(other) = table.keys().find(|key| *key != "below" && *key != "above") {
            return Err(format!("has the unknown bound `{other}`; expected one of: below, above"));
        }
    }
    let bounds = match condition {
        Value::Table(table) => Some((bound(table, "below")?, bound(table, "above")?)),
        _ => None,
    };
    let listed: Vec<Value> = match condition {
        Value::Array(list) => list.clone(),
        value => vec![value.clone()],
    };
    Ok(move |value: &Value| match bounds {
        Some((below, above)) => number(value).is_some_and(|x| {
            below.is_none_or(|below| x < below) && above.is_none_or(|above| x > above)
        }),
        None => listed.iter().any(|other| same(other, value)),
    })
}

/// Equal, 1 and 1.0 included.
fn same(a: &Value, b: &Value) -> bool {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}
