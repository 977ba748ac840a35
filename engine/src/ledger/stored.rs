//! The format of stored facts and snapshots. It is separate from the engine's
//! types and from those on the wire: one byte that names the version, then the
//! value.
//!
//! Each kind of record has a golden file in `tests/golden` of the engine. A
//! test reads all of them, and its documentation says how to add one.

mod mirror;
mod v1;

use minicbor::{Decoder, Encoder};

use crate::ledger::record::Fact;
use crate::{Files, State};
use mirror::Mirror as _;

/// A first byte of at least this value names a version.
const VERSIONS: u8 = 0x80;
/// The version that is written today.
const V1: u8 = VERSIONS | 1;

/// The reason why bytes cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A newer touchmark wrote the bytes.
    #[error("its format {found} is newer than the newest known, {known}")]
    Newer {
        /// The number of the bytes' format.
        found: u8,
        /// The newest number that this version reads.
        known: u8,
    },
    /// The bytes are not a valid value.
    #[error("{0}")]
    Damaged(String),
}

/// What one run of the engine leaves for the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The durable state.
    pub state: State,
    /// Stats that save reads after a restart. May be empty.
    pub stamps: Files,
}

impl From<State> for Saved {
    fn from(state: State) -> Self {
        Self {
            state,
            stamps: Files::default(),
        }
    }
}

/// Encodes a fact.
pub fn encode_fact(fact: Fact) -> Vec<u8> {
    written(|to| to.encode(v1::Fact::of(fact)).map(|_| ()))
}

/// Decodes a fact.
///
/// # Errors
/// [`Unreadable`].
pub fn decode_fact(bytes: &[u8]) -> Result<Fact, Unreadable> {
    whole(bytes, |from| from.decode::<v1::Fact>().map(v1::Fact::back))
}

/// Encodes the state together with the stamps that prove contents. The next
/// start continues from it.
pub fn encode_snapshot(state: &State, stamps: &Files) -> Vec<u8> {
    written(|to| v1::snapshot::encode(state, stamps, to))
}

/// Decodes a snapshot.
///
/// # Errors
/// [`Unreadable`].
pub fn decode_snapshot(bytes: &[u8]) -> Result<Saved, Unreadable> {
    let mut kept = whole(bytes, v1::snapshot::decode)?;
    kept.state.share_sessions();
    Ok(kept)
}

fn written(
    put: impl FnOnce(
        &mut Encoder<&mut Vec<u8>>,
    ) -> Result<(), minicbor::encode::Error<std::convert::Infallible>>,
) -> Vec<u8> {
    let mut bytes = vec![V1];
    // Writing to a `Vec` cannot fail, and no stored type refuses a value. If
    // one did, the incomplete bytes would be reported as damaged when they are
    // read.
    let _never = put(&mut Encoder::new(&mut bytes));
    bytes.shrink_to_fit();
    bytes
}

/// Decodes a value that fills all bytes after the version.
fn whole<T>(
    bytes: &[u8],
    take: impl FnOnce(&mut Decoder<'_>) -> Result<T, minicbor::decode::Error>,
) -> Result<T, Unreadable> {
    match bytes.first() {
        Some(&V1) => {}
        Some(&first) if first >= VERSIONS => {
            return Err(Unreadable::Newer {
                found: first - VERSIONS,
                known: V1 - VERSIONS,
            });
        }
        _ => return Err(damaged("it does not begin with a version")),
    }
    let mut from = Decoder::new(bytes);
    from.set_position(1);
    let value = take(&mut from).map_err(damaged)?;
    if from.position() != bytes.len() {
        return Err(damaged("there are bytes after the value"));
    }
    Ok(value)
}

fn damaged(cause: impl std::fmt::Display) -> Unreadable {
    Unreadable::Damaged(cause.to_string())
}
