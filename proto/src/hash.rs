//! The identity of a content: SHA-256 of the file's bytes.

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The SHA-256 hash of a file's bytes. It is 64 lower-case hex digits in JSON
/// and 32 bytes on the binary wire. SHA-256 is used because every client
/// language has it without a dependency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Returns the hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }
}

/// The content that a writer declares: a hash, or that there will be no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HashOrAbsent {
    /// The file will not exist. It is `"absent"` in JSON.
    Absent,
    /// The file will have exactly this content.
    Hash(Hash),
}

impl HashOrAbsent {
    /// Returns the hash, or `None` for `Absent`.
    pub fn hash(self) -> Option<Hash> {
        match self {
            Self::Absent => None,
            Self::Hash(hash) => Some(hash),
        }
    }
}

impl From<Option<Hash>> for HashOrAbsent {
    fn from(hash: Option<Hash>) -> Self {
        hash.map_or(Self::Absent, Self::Hash)
    }
}

impl FromStr for Hash {
    type Err = hex::FromHexError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0[..4]))
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            text.parse().map_err(|_| {
                de::Error::custom("a hash is SHA-256 as 64 hex digits, of the file's bytes")
            })
        } else {
            <[u8; 32]>::deserialize(deserializer).map(Self)
        }
    }
}

/// The form of [`HashOrAbsent`] on the binary wire, where enum variants have
/// numbers.
#[derive(Serialize, Deserialize)]
enum Tagged {
    Absent,
    Hash(Hash),
}

impl Serialize for HashOrAbsent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (serializer.is_human_readable(), self) {
            (true, Self::Absent) => serializer.serialize_str("absent"),
            (true, Self::Hash(hash)) => hash.serialize(serializer),
            (false, Self::Absent) => Tagged::Absent.serialize(serializer),
            (false, Self::Hash(hash)) => Tagged::Hash(*hash).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for HashOrAbsent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            if text == "absent" {
                return Ok(Self::Absent);
            }
            text.parse()
                .map(Self::Hash)
                .map_err(|_| de::Error::custom("expected \"absent\" or SHA-256 as 64 hex digits"))
        } else {
            Ok(match Tagged::deserialize(deserializer)? {
                Tagged::Absent => Self::Absent,
                Tagged::Hash(hash) => Self::Hash(hash),
            })
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Hash {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hash".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9a-f]{64}$",
            "description": "SHA-256 of the file's bytes, lower-case hex"})
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for HashOrAbsent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HashOrAbsent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^([0-9a-f]{64}|absent)$",
            "description": "SHA-256 of the file's bytes in lower-case hex, or \"absent\""})
    }
}
