//! Parses text into a tree of JSON values of limited size.
//!
//! A tree needs much more memory than its text (`[{},{},...]`), so its values
//! are counted (LIM-1). An object with the same member twice is refused, since
//! two readers could understand it differently.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::codec::refused::invalid_request;
use crate::{Error, ErrorCode, ErrorData};

/// The maximum number of values in one message: members and elements together.
pub(super) const MAX_VALUES: usize = 1 << 18;

/// Parses one JSON value. `serde_json` limits nesting to 128 levels.
///
/// # Errors
/// `parseError` for what is not JSON, `invalidRequest` for an object with the
/// same member twice, `tooLarge` for more than [`MAX_VALUES`] values.
pub(crate) fn read(text: &[u8]) -> Result<Value, Error> {
    let left = Cell::new(Some(MAX_VALUES));
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    Tree { left: &left }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| {
            if left.get().is_none() {
                Error::new(ErrorCode::TooLarge, "the message has too many values")
                    .hint("send fewer at a time")
                    .with(ErrorData {
                        limit: Some(MAX_VALUES as u64),
                        ..ErrorData::default()
                    })
            } else if error.is_data() {
                invalid_request(error.to_string())
            } else {
                Error::new(ErrorCode::ParseError, format!("not JSON: {error}"))
            }
        })
}

#[derive(Clone, Copy)]
struct Tree<'a> {
    /// The number of further values that are allowed; `None` once there were
    /// too many.
    left: &'a Cell<Option<usize>>,
}

impl Tree<'_> {
    fn count<E: de::Error>(self) -> Result<(), E> {
        self.left
            .set(self.left.get().and_then(|left| left.checked_sub(1)));
        match self.left.get() {
            Some(_) => Ok(()),
            None => Err(E::custom("too many values")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }
    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(element) = elements.next_element_seed(self)? {
            array.push(element);
        }
        Ok(Value::Array(array))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(self)?;
            if object.contains_key(&name) {
                let name = crate::quoting::quoted(&name, 80);
                return Err(de::Error::custom(format!("{name} is there twice")));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}
