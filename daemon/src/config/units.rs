//! Durations and sizes as people write them.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use touchmark_proto::Millis;

/// A duration in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span(Millis);

/// A size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bytes(u64);

/// How many and how long: `"10,000 per path, 30 days"`; either may stand
/// alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Keep {
    /// How many.
    pub(super) count: Option<u64>,
    /// How long.
    pub(super) age: Option<Span>,
}

/// How many bytes and how long: `"30 days, 1 GiB"`; either may stand alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeepBytes {
    /// How many.
    pub(super) bytes: Option<Bytes>,
    /// How long.
    pub(super) age: Option<Span>,
}

impl From<Span> for Millis {
    fn from(span: Span) -> Self {
        span.0
    }
}

impl From<Bytes> for u64 {
    fn from(bytes: Bytes) -> Self {
        bytes.0
    }
}

/// Splits `"10 min"` into number and unit; thousands may be set off by commas.
fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != ',')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let number = number.replace(',', "").parse().ok()?;
    Some((number, unit.trim()))
}

fn span(text: &str) -> Option<Span> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "day" | "days" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(factor).map(Span)
}

fn bytes(text: &str) -> Option<Bytes> {
    let (number, unit) = split(text)?;
    let shift = match unit {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift).map(Bytes)
}

fn keep(text: &str) -> Option<Keep> {
    let mut keep = Keep::default();
    for part in text.split(", ") {
        if let Some(count) = part.trim().strip_suffix(" per path") {
            match split(count)? {
                (number, "") => keep.count = Some(number),
                _ => return None,
            }
        } else {
            keep.age = Some(span(part)?);
        }
    }
    Some(keep)
}

fn keep_bytes(text: &str) -> Option<KeepBytes> {
    let mut keep = KeepBytes::default();
    for part in text.split(", ") {
        match (span(part), bytes(part)) {
            // A number alone could be either.
            (Some(_), Some(_)) | (None, None) => return None,
            (Some(age), None) => keep.age = Some(age),
            (None, Some(bytes)) => keep.bytes = Some(bytes),
        }
    }
    Some(keep)
}

/// Reads a text by a function, or a whole number by another.
struct Quantity<T> {
    what: &'static str,
    text: fn(&str) -> Option<T>,
    number: fn(u64) -> Option<T>,
}

impl<T> Visitor<'_> for Quantity<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.text)(text).ok_or_else(|| E::custom(format!("{text:?} is not {}", self.what)))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        u64::try_from(number)
            .ok()
            .and_then(self.number)
            .ok_or_else(|| E::custom(format!("{number} is not {}", self.what)))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity {
            what: "a duration like \"60 s\", \"10 min\", \"30 days\"",
            text: span,
            number: |seconds| seconds.checked_mul(1_000).map(Span),
        })
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity {
            what: "a size like \"16 MiB\"",
            text: bytes,
            number: |bytes| Some(Bytes(bytes)),
        })
    }
}

impl<'de> Deserialize<'de> for Keep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity {
            what: "a bound like \"10,000 per path, 30 days\"",
            text: keep,
            number: |_| None,
        })
    }
}

impl<'de> Deserialize<'de> for KeepBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity {
            what: "a bound like \"30 days, 1 GiB\"",
            text: keep_bytes,
            number: |_| None,
        })
    }
}
