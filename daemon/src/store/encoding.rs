//! How a fact becomes bytes: the one place to change the format.

use serde::Serialize;
use serde::de::DeserializeOwned;
use touchmark_proto::Error;
use touchmark_proto::codec::frames;

/// Bytes of a value.
pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    // Facts hold only numbers, texts, lists and enums, which the codec cannot
    // refuse. Empty bytes would be found as damage when read.
    frames::encode(value).unwrap_or_default()
}

/// The value of bytes.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    frames::decode(bytes)
}
