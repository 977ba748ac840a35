//! Time, and the order of facts.

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A moment in milliseconds since the Unix epoch, or a length of time in
/// milliseconds.
pub type Millis = u64;

/// The number of a fact: `"<epoch>:<n>"`. `n` grows with every recorded fact.
/// `epoch` changes when facts were lost. Clocks of different epochs cannot be
/// compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clock {
    /// The epoch: one lifetime of the state.
    pub epoch: u64,
    /// The number of facts recorded in that epoch.
    pub n: u64,
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.n)
    }
}

/// The text is not of the form `"<epoch>:<n>"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a clock is \"<epoch>:<n>\", as an earlier answer gave it")]
pub struct ClockError;

impl FromStr for Clock {
    type Err = ClockError;
    fn from_str(text: &str) -> Result<Self, ClockError> {
        let (epoch, n) = text.split_once(':').ok_or(ClockError)?;
        Ok(Self {
            epoch: epoch.parse().map_err(|_| ClockError)?,
            n: n.parse().map_err(|_| ClockError)?,
        })
    }
}

impl Serialize for Clock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            (self.epoch, self.n).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Clock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            text.parse().map_err(de::Error::custom)
        } else {
            let (epoch, n) = Deserialize::deserialize(deserializer)?;
            Ok(Self { epoch, n })
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Clock {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Clock".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9]+:[0-9]+$"})
    }
}
