//! Reading types from values, with errors that a sentence can be made of.
//!
//! `toml` reads values too, but its errors are English sentences about Rust types.

use serde::de::value::SeqDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::Value;

use crate::mistake::{Mistake, ValueError, shown};

/// Reads a type from a value.
///
/// # Errors
/// [`ValueError`] with the key that is wrong.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, ValueError> {
    T::deserialize(Source(value.clone())).map_err(|error: ValueError| error.within(&value))
}

/// Reads a type from a value by its own function.
pub(crate) fn read_value<T>(
    value: Value,
    read: impl FnOnce(Source) -> Result<T, ValueError>,
) -> Result<T, Mistake> {
    read(Source(value.clone())).map_err(|error| error.within(&value).whole())
}

/// A value as a source of data.
pub(crate) struct Source(pub Value);

impl<'de> IntoDeserializer<'de, ValueError> for Source {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Source {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::String(string) => visitor.visit_string(string),
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Float(number) => visitor.visit_f64(number),
            Value::Boolean(truth) => visitor.visit_bool(truth),
            Value::Datetime(time) => visitor.visit_string(time.to_string()),
            Value::Array(all) => {
                visitor.visit_seq(SeqDeserializer::new(all.into_iter().map(Source)))
            }
            Value::Table(table) => {
                visitor.visit_map(Entries { rest: table.into_iter(), next: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::Table(_) => self.deserialize_any(visitor),
            other => Err(ValueError::invalid_type(Unexpected::Other(&shown(&other)), &"a table")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        match self.0 {
            Value::String(string) => visitor.visit_enum(string.into_deserializer()),
            other => Err(ValueError::invalid_type(Unexpected::Other(&shown(&other)), &"a string")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The entries of a table.
struct Entries {
    rest: toml::map::IntoIter<String, Value>,
    next: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ValueError> {
        self.next = self.rest.next();
        let key = self.next.as_ref().map(|(key, _)| key.as_str());
        key.map(|key| seed.deserialize(key.into_deserializer())).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, ValueError> {
        let Some((key, value)) = self.next.take() else {
            return Err(ValueError::custom("a value without a key"));
        };
        seed.deserialize(Source(value))
            .map_err(|error| ValueError { key: error.key.or(Some(key)), ..error })
    }
}
