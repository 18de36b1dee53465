//! Sentences about values that cannot be used.

use toclip_words::unknown;
use toml::Value;

/// A message about a value, with the name of the value: "clip is 0; expected …" where the message lacks
/// its subject, "clip: …" otherwise.
pub fn about(name: &str, said: &str) -> String {
    if said.starts_with("is ") { format!("{name} {said}") } else { format!("{name}: {said}") }
}

/// Reads a value by `read`. The error is in plain English and names the wrong key of a table.
///
/// # Errors
/// A message for [`about`].
///
/// ```
/// use serde::Deserialize;
/// use toclip::spectrum::Start;
/// let table = toml::from_str("kind = 'uniform'\nnorm = 'large'").unwrap();
/// let said = toclip_experiment::words::deserialize(table, Start::deserialize).unwrap_err();
/// assert_eq!(said, "`norm` is the string \"large\"; expected a number");
/// ```
pub fn deserialize<T>(
    value: Value,
    read: impl FnOnce(Value) -> Result<T, toml::de::Error>,
) -> Result<T, String> {
    let table = value.as_table().cloned();
    read(value).map_err(|error| {
        let said = plain(error.message());
        match table.filter(|_| said.starts_with("is ")) {
            None => said,
            Some(table) => match key_of(&table, error.message()) {
                Some(key) => format!("`{key}` {said}"),
                None => format!("a value {said}"),
            },
        }
    })
}

/// The key whose value a message of a deserializer is about, if only one can be meant.
fn key_of<'a>(table: &'a toml::Table, message: &str) -> Option<&'a str> {
    let (_, found) = message.split_once(": ")?;
    let called = |value: &Value| match value {
        Value::String(string) => format!("string {string:?},"),
        Value::Integer(number) => format!("integer `{number}`,"),
        Value::Float(number) => format!("floating point `{number:?}`,"),
        Value::Boolean(truth) => format!("boolean `{truth}`,"),
        Value::Array(_) => "sequence,".into(),
        _ => "map,".into(),
    };
    let mut keys = table.iter().filter(|(_, value)| found.starts_with(&called(value)));
    keys.next().filter(|_| keys.next().is_none()).map(|(key, _)| &**key)
}

/// The message of a deserializer in plain English, on one line.
///
/// ```
/// use toclip_experiment::words::plain;
/// let said = "invalid type: string \"x\", expected f64\n";
/// assert_eq!(plain(said), "is the string \"x\"; expected a number");
/// let said = "unknown field `sigm`, expected `sigma`";
/// assert_eq!(plain(said), "unknown key `sigm`; did you mean `sigma`?");
/// ```
pub fn plain(said: &str) -> String {
    let text = said.trim_end().replace('\n', ", ");
    let names = || text.split('`').skip(1).step_by(2).collect::<Vec<_>>();
    if let ("unknown field" | "unknown variant", [name, known @ ..]) =
        (text.split(" `").next().unwrap_or_default(), &names()[..])
    {
        let what = if text.starts_with("unknown field") { "key" } else { "kind" };
        return unknown(what, name, known);
    }
    if let Some(name) = text.strip_prefix("missing field ") {
        return format!("the key {name} is missing");
    }
    let found = text.strip_prefix("invalid type: ").or(text.strip_prefix("invalid value: "));
    let Some((found, expected)) = found.and_then(|rest| rest.rsplit_once(", expected ")) else {
        return text;
    };
    let found = match found.split_once(' ') {
        _ if found == "map" => "a table".into(),
        _ if found == "sequence" => "a list".into(),
        Some(("string", value)) => format!("the string {value}"),
        _ => found.split('`').nth(1).unwrap_or(found).to_owned(),
    };
    let expected = match expected {
        "f64" => "a number",
        "u64" | "usize" | "u32" => "an integer, at least 0",
        "a sequence" => "a list",
        "a map" => "a table",
        _ if expected.contains("tagged enum") || expected.starts_with("struct ") => "a table",
        _ if expected.starts_with("enum ") || expected == "variant identifier" => "a string",
        _ => expected,
    };
    format!("is {found}; expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_deserializers_are_translated() {
        for (said, plainly) in [
            ("unknown field `q`, expected `a` or `b`", "unknown key `q`; expected one of: a, b"),
            ("unknown field `q`, there are no fields", "unknown key `q`; none is allowed here"),
            (
                "unknown variant `gausian`, expected one of `none`, `gaussian`",
                "unknown kind `gausian`; did you mean `gaussian`?",
            ),
            ("missing field `norm`", "the key `norm` is missing"),
            ("invalid type: integer `5`, expected a string", "is 5; expected a string"),
            ("invalid value: integer `-1`, expected u64", "is -1; expected an integer, at least 0"),
            ("invalid type: sequence, expected f64", "is a list; expected a number"),
            ("clip is 0; expected a number", "clip is 0; expected a number"),
        ] {
            assert_eq!(plain(said), plainly);
        }
    }
}
