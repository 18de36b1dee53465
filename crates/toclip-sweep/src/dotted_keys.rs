//! Keys inside tables, written with dots: `noise.df`.

use toml::{Table, Value};

/// The values of a table with their keys; tables are searched for more keys unless `is_value` takes them,
/// by key and content, for values.
pub(crate) fn values<'a>(
    table: &'a Table,
    is_value: &dyn Fn(&str, &Table) -> bool,
) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if !is_value(key, inner) => {
                let is_inner_value =
                    |name: &str, table: &Table| is_value(&format!("{key}.{name}"), table);
                let inner = values(inner, &is_inner_value);
                found.extend(inner.into_iter().map(|(name, v)| (format!("{key}.{name}"), v)));
            }
            _ => found.push((key.clone(), value)),
        }
    }
    found
}

/// Sets a key with dots; a value on its way that is no table is replaced.
pub(crate) fn set(table: &mut Table, key: &str, value: Value) {
    let Some((first, rest)) = key.split_once('.') else {
        table.insert(key.into(), value);
        return;
    };
    let inner = table.entry(first).or_insert_with(|| Value::Table(Table::new()));
    if !inner.is_table() {
        *inner = Value::Table(Table::new());
    }
    if let Some(inner) = inner.as_table_mut() {
        set(inner, rest, value);
    }
}
