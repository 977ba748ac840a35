//! Values to write into settings. Members keep their order.

use std::fmt;

/// A JSON value.
#[derive(Clone, Debug)]
pub(super) enum Json {
    /// A string.
    Text(String),
    /// A number.
    Number(u64),
    /// True or false.
    Flag(bool),
    /// A list.
    List(Vec<Json>),
    /// An object.
    Object(Vec<(&'static str, Json)>),
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Formats the value on one line.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{}", quoted(text)),
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    let comma = if index == 0 { " " } else { ", " };
                    write!(f, "{comma}{}: {value}", quoted(name))?;
                }
                f.write_str(" }")
            }
        }
    }
}

/// Returns a string in JSON notation.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
