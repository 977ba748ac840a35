//! JSON of any shape, which the protocol carries without interpreting it.

use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::codec::json::read_tree;

/// Any JSON value, unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeJson(pub Value);

impl FreeJson {
    /// Returns the canonical text: members sorted by name, no white space. Two
    /// values with the same canonical text count as the same value.
    pub fn canonical(&self) -> String {
        let mut text = String::new();
        write_canonical(&self.0, &mut text);
        text
    }
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Array(elements) => {
            text.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(element, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            text.push('{');
            for (index, name) in names.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(&members[name], text);
            }
            text.push('}');
        }
        // Agents do not distinguish 1.0 from 1, so both have the same text.
        Value::Number(number) => match number.as_f64() {
            Some(float)
                if number.is_f64()
                    && float.fract() == 0.0
                    && float.abs() < 9_007_199_254_740_992.0 =>
            {
                text.push_str(&format!("{float:.0}"));
            }
            _ => text.push_str(&number.to_string()),
        },
        other => text.push_str(&other.to_string()),
    }
}

impl Serialize for FreeJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            self.0.serialize(serializer)
        } else {
            // bincode cannot carry self-describing values, so they travel as
            // text.
            serializer.serialize_str(&self.0.to_string())
        }
    }
}

impl<'de> Deserialize<'de> for FreeJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            Value::deserialize(deserializer).map(Self)
        } else {
            let text = Cow::<'de, str>::deserialize(deserializer)?;
            // This has the same bounds as any other JSON message (LIM-1).
            read_tree(text.as_bytes())
                .map(Self)
                .map_err(de::Error::custom)
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for FreeJson {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "FreeJson".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::from(true)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_members_and_the_spelling_of_numbers_do_not_matter() {
        let one = FreeJson(json!({"b": [1, {"y": null, "x": "é"}], "a": 2.0}));
        let other = FreeJson(json!({"a": 2, "b": [1, {"x": "é", "y": null}]}));
        assert_eq!(one.canonical(), other.canonical());
        assert_eq!(one.canonical(), r#"{"a":2,"b":[1,{"x":"é","y":null}]}"#);
    }
}
