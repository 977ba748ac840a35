//! How a fact becomes bytes: the one place to change the format.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of a value.
pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    // Facts hold only numbers, texts, lists and enums, which JSON cannot
    // refuse. Empty bytes would be found as damage when read.
    serde_json::to_vec(value).unwrap_or_default()
}

/// The value of bytes.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(bytes)
}
