//! Durations and sizes as people write them.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use touchmark_proto::Millis;

/// A duration in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span(Millis);

/// A size in bytes, within these bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size<const LEAST: u64, const MOST: u64>(u64);

/// A limit of stored bytes: more than a tebibyte is treated as a mistake.
pub(super) type Bytes = Size<0, { 1 << 40 }>;
/// The size of one message: the shortest are a few kibibytes, and all of it is
/// in memory.
pub(super) type FrameBytes = Size<{ 64 << 10 }, { 1 << 30 }>;
/// The size of the text in one answer, all of which is in memory.
pub(super) type TextBytes = Size<1, { 1 << 30 }>;

/// A number of simultaneous connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connections(u32);

/// The units of durations, in milliseconds, the smallest first.
const SPANS: &[(&str, u64)] = &[
    ("ms", 1),
    ("s", 1_000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("days", 86_400_000),
];

/// The units of sizes, in bytes, the smallest first.
const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// The maximum duration, in milliseconds; its sum with a current time cannot
/// overflow.
const LONGEST: Millis = 36_500 * 86_400_000;
/// The maximum of `limits.connections`.
const MOST_CONNECTIONS: u64 = 1_000_000;

/// A number and a duration: `"10,000 per path, 30 days"`; either may be given
/// alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Keep {
    /// The maximum number; `None` if not given.
    pub(super) count: Option<u64>,
    /// The maximum age; `None` if not given.
    pub(super) age: Option<Span>,
}

/// A number of bytes and a duration: `"30 days, 1 GiB"`; either may be given
/// alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeepBytes {
    /// The maximum number of bytes; `None` if not given.
    pub(super) bytes: Option<Bytes>,
    /// The maximum age; `None` if not given.
    pub(super) age: Option<Span>,
}

impl From<Span> for Millis {
    fn from(span: Span) -> Self {
        span.0
    }
}

impl<const LEAST: u64, const MOST: u64> From<Size<LEAST, MOST>> for u64 {
    fn from(size: Size<LEAST, MOST>) -> Self {
        size.0
    }
}

impl From<Millis> for Span {
    fn from(millis: Millis) -> Self {
        Self(millis)
    }
}

impl<const LEAST: u64, const MOST: u64> From<u64> for Size<LEAST, MOST> {
    fn from(bytes: u64) -> Self {
        Self(bytes)
    }
}

impl From<u32> for Connections {
    fn from(connections: u32) -> Self {
        Self(connections)
    }
}

impl From<Connections> for u32 {
    fn from(connections: Connections) -> Self {
        connections.0
    }
}

impl Span {
    fn new(number: u64, factor: u64) -> Option<Self> {
        let millis = number.checked_mul(factor)?;
        (millis <= LONGEST).then_some(Self(millis))
    }
}

impl<const LEAST: u64, const MOST: u64> Size<LEAST, MOST> {
    fn new(bytes: u64) -> Option<Self> {
        (LEAST..=MOST).contains(&bytes).then_some(Self(bytes))
    }
}

/// Splits `"10 min"` into number and unit; commas may separate thousands.
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
    let unit = match unit {
        "" => "s",
        "day" => "days",
        unit => unit,
    };
    let (_, factor) = SPANS.iter().find(|(name, _)| *name == unit)?;
    Span::new(number, *factor)
}

fn bytes<const LEAST: u64, const MOST: u64>(text: &str) -> Option<Size<LEAST, MOST>> {
    let (number, unit) = split(text)?;
    let unit = if unit.is_empty() { "B" } else { unit };
    let (_, factor) = SIZES.iter().find(|(name, _)| *name == unit)?;
    Size::new(number.checked_mul(*factor)?)
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
            // A number without a unit could be either, even if one meaning is
            // out of bounds.
            _ if part
                .trim_end()
                .ends_with(|last: char| last.is_ascii_digit()) =>
            {
                return None;
            }
            (Some(_), Some(_)) | (None, None) => return None,
            (Some(age), None) => keep.age = Some(age),
            (None, Some(bytes)) => keep.bytes = Some(bytes),
        }
    }
    Some(keep)
}

/// Returns a number and the largest unit that needs no fraction.
fn whole(number: u64, units: &[(&'static str, u64)]) -> String {
    let fits = |unit: &&(&str, u64)| number != 0 && number.is_multiple_of(unit.1);
    match units.iter().rev().find(fits).or(units.first()) {
        Some((unit, of)) => format!("{} {unit}", number / of),
        None => number.to_string(),
    }
}

/// Returns the parts of a bound that are given.
fn both(one: Option<String>, other: Option<String>) -> String {
    let parts: Vec<String> = one.into_iter().chain(other).collect();
    parts.join(", ")
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = whole(self.0, SPANS);
        f.write_str(if text == "1 days" { "1 day" } else { &text })
    }
}

impl<const LEAST: u64, const MOST: u64> fmt::Display for Size<LEAST, MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&whole(self.0, SIZES))
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count.map(|count| format!("{count} per path"));
        f.write_str(&both(count, self.age.map(|age| age.to_string())))
    }
}

impl fmt::Display for KeepBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let age = self.age.map(|age| age.to_string());
        f.write_str(&both(age, self.bytes.map(|bytes| bytes.to_string())))
    }
}

/// A visitor that reads a text with one function, and a whole number with
/// another.
struct Quantity<T> {
    what: String,
    text: fn(&str) -> Option<T>,
    number: fn(u64) -> Option<T>,
}

impl<T> Visitor<'_> for Quantity<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
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

/// Writes a value as the text that is read.
macro_rules! written_as_text {
    ($($what:ty),+) => {
        $(impl Serialize for $what {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        })+
    };
}

written_as_text!(Span, Bytes, FrameBytes, TextBytes, Keep, KeepBytes);

impl Serialize for Connections {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity {
            what: "a duration like \"60 s\", \"10 min\", \"30 days\", at most 36500 days".into(),
            text: span,
            number: |seconds| Span::new(seconds, 1_000),
        })
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Size<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity {
            what: format!("a size like \"16 MiB\", from {LEAST} to {MOST} bytes"),
            text: bytes,
            number: Self::new,
        })
    }
}

impl<'de> Deserialize<'de> for Connections {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity {
            what: format!("a number from 1 to {MOST_CONNECTIONS}"),
            text: |_| None,
            number: |number| {
                let within = (1..=MOST_CONNECTIONS).contains(&number);
                within.then_some(Self(u32::try_from(number).ok()?))
            },
        })
    }
}

impl<'de> Deserialize<'de> for Keep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity {
            what: "a bound like \"10,000 per path, 30 days\"".into(),
            text: keep,
            number: |_| None,
        })
    }
}

impl<'de> Deserialize<'de> for KeepBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity {
            what: "a bound like \"30 days, 1 GiB\"".into(),
            text: keep_bytes,
            number: |_| None,
        })
    }
}
