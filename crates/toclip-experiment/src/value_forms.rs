//! Values that may be written in several forms: a number or a table, the name of a kind or a table.
//!
//! The forms are told apart by hand: serde's untagged enums can only say that no form fits, not which
//! key is wrong.

use toml::Value;

use crate::Mistake;

/// A value that is a number, or is of a kind: a table with the key `kind`, or the name of a kind
/// alone, which stands for the table without further keys.
pub(crate) enum NumberOrKind {
    Number(f64),
    Kind(String, Value),
}

/// Reads a number, the string `"inf"`, the name of a kind or a table with a kind; `expected`
/// lists the allowed forms.
pub(crate) fn number_or_kind(value: Value, expected: &str) -> Result<NumberOrKind, Mistake> {
    match value {
        Value::Float(number) => Ok(NumberOrKind::Number(number)),
        Value::Integer(number) => Ok(NumberOrKind::Number(number as f64)),
        Value::String(word) if word == "inf" => Ok(NumberOrKind::Number(f64::INFINITY)),
        value => {
            let table = table_with("kind", value, Value::is_str, expected)?;
            match table.get("kind").and_then(Value::as_str) {
                Some(kind) => Ok(NumberOrKind::Kind(kind.to_owned(), table)),
                None => Err("the key `kind` is missing".into()),
            }
        }
    }
}

/// The table that was given, or the table with one key that a short form stands for: `32` for
/// `{ size = 32 }`.
pub(crate) fn table_with(
    key: &str,
    value: Value,
    is_short: fn(&Value) -> bool,
    expected: &str,
) -> Result<Value, Mistake> {
    match value {
        Value::Table(_) => Ok(value),
        short if is_short(&short) => Ok(toml::Table::from_iter([(key.to_owned(), short)]).into()),
        other => Err(Mistake::is(other, expected)),
    }
}

/// Refuses further keys in a table whose kind has no parameters: serde overlooks them.
pub(crate) fn no_parameters(value: &Value, kinds: &[&str]) -> Result<(), Mistake> {
    let (Some(kind), Some(table)) = (value.get("kind").and_then(Value::as_str), value.as_table())
    else {
        return Ok(());
    };
    match table.keys().find(|key| *key != "kind") {
        Some(key) if kinds.contains(&kind) => {
            Err(format!("unknown key `{key}`: \"{kind}\" has no parameters").into())
        }
        _ => Ok(()),
    }
}

/// Implements `Deserialize` by the type's own function `parse`.
macro_rules! deserialize_by_parse {
    ($($name:ty),*) => {$(
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let value = <toml::Value as serde::Deserialize>::deserialize(from)?;
                <$name>::parse(value).map_err($crate::Mistake::into_serde)
            }
        }
    )*};
}

/// Implements `Deserialize` by the type's own function `parse`, which reads the long form by the derived
/// function of a type with `serde(remote = "Self")`, and `Serialize` by the derived one.
macro_rules! serde_by_parse {
    ($($name:ty),*) => {$(
        $crate::value_forms::deserialize_by_parse!($name);

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                <$name>::serialize(self, to)
            }
        }
    )*};
}

pub(crate) use {deserialize_by_parse, serde_by_parse};
