//! Values that cannot be used, as data; the sentence comes last.

use serde::de::{Expected, Unexpected};
use std::fmt;
use toclip_words::unknown;
use toml::Value;

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mistake {
    /// It is this, and something else was expected.
    Is {
        /// The value, as people read it.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// Anything else, as a sentence of its own.
    Said(String),
}

impl Mistake {
    /// A value where something else was expected.
    pub fn is(found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Mistake::Is { found: found.to_string(), expected: expected.to_string() }
    }

    /// The sentence about a value of this name: "clip is 0; expected …", or "clip: …".
    ///
    /// ```
    /// use toclip_experiment::Mistake;
    /// let (is, said) = (Mistake::is(0, "a positive number"), Mistake::from("not with momentum"));
    /// assert_eq!(is.about("clip"), "clip is 0; expected a positive number");
    /// assert_eq!(said.about("clip"), "clip: not with momentum");
    /// ```
    pub fn about(&self, name: &str) -> String {
        match self {
            Mistake::Is { .. } => format!("{name} {self}"),
            Mistake::Said(said) => format!("{name}: {said}"),
        }
    }

    /// The same as an error of serde.
    pub(crate) fn into_serde<E: serde::de::Error>(self) -> E {
        match self {
            Mistake::Is { found, expected } => {
                E::invalid_value(Unexpected::Other(&found), &expected.as_str())
            }
            Mistake::Said(said) => E::custom(said),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mistake::Is { found, expected } => write!(f, "is {found}; expected {expected}"),
            Mistake::Said(said) => f.write_str(said),
        }
    }
}

impl From<String> for Mistake {
    fn from(said: String) -> Self {
        Mistake::Said(said)
    }
}

impl From<&str> for Mistake {
    fn from(said: &str) -> Self {
        Mistake::Said(said.into())
    }
}

impl From<toclip::Error> for Mistake {
    fn from(error: toclip::Error) -> Self {
        Mistake::Said(error.to_string())
    }
}

/// A mistake inside a value, and the key of the table that has it, where it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError {
    /// The key inside the value.
    pub key: Option<String>,
    /// What is wrong.
    pub mistake: Mistake,
}

impl ValueError {
    /// The same as a mistake of the value as a whole.
    pub fn whole(self) -> Mistake {
        match (&self.key, self.mistake) {
            (Some(key), mistake @ Mistake::Is { .. }) => {
                Mistake::Said(mistake.about(&format!("`{key}`")))
            }
            (_, mistake) => mistake,
        }
    }

    /// Finds the key where serde has lost it, which it does in tables with a kind: the only key with the
    /// value that was found.
    pub(crate) fn within(mut self, value: &Value) -> Self {
        if let (None, Mistake::Is { found, .. }, Some(table)) =
            (&self.key, &self.mistake, value.as_table())
        {
            let mut keys = table.iter().filter(|(_, value)| shown(value) == *found);
            match (keys.next(), keys.next()) {
                (Some((key, _)), None) => self.key = Some(key.clone()),
                _ => self.mistake = Mistake::Said(self.mistake.about("a value")),
            }
        }
        self
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.clone().whole())
    }
}

impl std::error::Error for ValueError {}

impl serde::de::Error for ValueError {
    fn custom<T: fmt::Display>(said: T) -> Self {
        ValueError { key: None, mistake: Mistake::Said(said.to_string()) }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        ValueError { key: None, mistake: Mistake::is(found_words(found), expected_words(expected)) }
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::custom(unknown("key", name, known))
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Self::custom(unknown("kind", name, known))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::custom(format_args!("the key `{name}` is missing"))
    }
}

fn found_words(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(truth) => truth.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => Value::Float(number).to_string(),
        Unexpected::Str(string) => format!("the string {string:?}"),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a table".into(),
        Unexpected::Other(words) => words.into(),
        other => other.to_string(),
    }
}

/// A value as [`found_words`] has it.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(string) => format!("the string {string:?}"),
        Value::Array(_) => "a list".into(),
        Value::Table(_) => "a table".into(),
        other => other.to_string(),
    }
}

/// Serde says what a type expects by its name in Rust.
fn expected_words(expected: &dyn Expected) -> String {
    let name = expected.to_string();
    match &*name {
        "f64" => "a number",
        "u64" | "usize" | "u32" => "an integer, at least 0",
        "a sequence" => "a list",
        "a map" => "a table",
        "variant identifier" => "a string",
        tagged if tagged.starts_with("internally tagged enum ") => "a table",
        other => other,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_value;
    use toclip::spectrum::Start;

    fn says(text: &str) -> String {
        let table: Value =
            toml::Table::from_iter(toml::from_str::<toml::Table>(text).unwrap()).into();
        from_value::<Start>(table).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_of_serde_are_told_in_plain_words() {
        assert_eq!(
            says("kind = 'uniform'\nnorm = 'large'"),
            "`norm` is the string \"large\"; expected a number"
        );
        assert_eq!(says("kind = 'uniform'"), "the key `norm` is missing");
        assert_eq!(says("kind = 'unifrm'"), "unknown kind `unifrm`; did you mean `uniform`?");
        let list = says("kind = 'uniform'\nnorm = [1.0]");
        assert_eq!(list, "`norm` is a list; expected a number");
        assert!(says("kind = 'uniform'\nnorm = 1\nq = 2").starts_with("unknown key `q`"));
    }

    #[test]
    fn a_value_that_two_keys_have_names_neither() {
        let said = says("kind = 'random'\nnorm = 'x'\nseed = 'x'");
        assert_eq!(said, "a value is the string \"x\"; expected a number");
    }
}
