//! Cells that are left out: combinations of values that a study does not need.

use std::slice;

use toclip_words::did_you_mean_or_list;
use toml::{Table, Value};

use crate::axis::{SweepAxis, number};
use crate::dotted_keys;

/// A combination of conditions on keys that vary.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exclude {
    /// For each condition the axis, and for each of its values whether it meets the condition.
    met: Vec<(usize, Vec<bool>)>,
}

impl Exclude {
    pub(crate) fn parse(table: &Table, axes: &[SweepAxis]) -> Result<Self, String> {
        let known: Vec<&str> =
            axes.iter().flat_map(|axis| &axis.keys).map(|key| key.key.as_str()).collect();
        // A table is a condition where it has bounds or nothing at all, or where its key varies and no key
        // inside it does.
        let is_condition = |key: &str, table: &Table| {
            let inside =
                |name: &&str| name.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
            let bounds = table.contains_key("below") || table.contains_key("above");
            let varies = known.contains(&key) && !known.iter().any(inside);
            varies || bounds || table.is_empty()
        };
        let conditions = dotted_keys::values(table, &is_condition);
        if conditions.is_empty() {
            return Err("exclude: the table is empty; expected at least one key that varies".into());
        }
        let mut met = Vec::new();
        for (name, written) in conditions {
            let place = axes.iter().enumerate().find_map(|(i, axis)| {
                axis.keys.iter().find(|key| key.key == name).map(|key| (i, key))
            });
            let Some((axis, key)) = place else {
                let hint = did_you_mean_or_list(&name, &known);
                return Err(format!("exclude: `{name}` does not vary{hint}"));
            };
            let condition =
                Condition::parse(written).map_err(|what| format!("exclude.{name} {what}"))?;
            if let Some(absent) = condition.absent(written, &key.values) {
                return Err(format!("exclude.{name} is {absent}, which is not one of its values"));
            }
            met.push((axis, key.values.iter().map(|value| condition.met_by(value)).collect()));
        }
        Ok(Exclude { met })
    }

    /// Whether a cell, given by the place of its value on each axis, is left out.
    pub(crate) fn matches(&self, places: &[usize]) -> bool {
        self.met.iter().all(|(axis, flags)| flags[places[*axis]])
    }
}

/// A condition on a value: one of a list, or inside bounds.
enum Condition<'a> {
    OneOf(&'a [Value]),
    Between { above: Option<f64>, below: Option<f64> },
}

impl<'a> Condition<'a> {
    /// Reads a value, a list of values, or `{ below = 1, above = 0 }`.
    fn parse(written: &'a Value) -> Result<Self, String> {
        let table = match written {
            Value::Table(table) if !table.is_empty() => table,
            Value::Array(list) if !list.is_empty() => return Ok(Condition::OneOf(list)),
            Value::Table(_) | Value::Array(_) => {
                return Err(format!(
                    "is {written}; expected a value, a list of values, or {{ below = 1.0 }}"
                ));
            }
            value => return Ok(Condition::OneOf(slice::from_ref(value))),
        };
        if let Some(other) = table.keys().find(|key| *key != "below" && *key != "above") {
            return Err(format!("has the unknown bound `{other}`; expected one of: below, above"));
        }
        let bound = |name: &str| match table.get(name) {
            None => Ok(None),
            Some(value) => match number(value) {
                Some(x) if !x.is_nan() => Ok(Some(x)),
                _ => Err(format!("has `{name}` = {value}; expected a number")),
            },
        };
        Ok(Condition::Between { above: bound("above")?, below: bound("below")? })
    }

    fn met_by(&self, value: &Value) -> bool {
        match *self {
            Condition::OneOf(list) => list.iter().any(|listed| same(listed, value)),
            Condition::Between { above, below } => number(value).is_some_and(|x| {
                below.is_none_or(|below| x < below) && above.is_none_or(|above| x > above)
            }),
        }
    }

    /// The part of a condition that no value meets.
    fn absent(&self, written: &'a Value, values: &[Value]) -> Option<&'a Value> {
        match *self {
            Condition::OneOf(list) => {
                list.iter().find(|listed| !values.iter().any(|value| same(listed, value)))
            }
            _ => (!values.iter().any(|value| self.met_by(value))).then_some(written),
        }
    }
}

/// Equal, 1 and 1.0 included.
fn same(a: &Value, b: &Value) -> bool {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}
