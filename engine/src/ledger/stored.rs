//! The format of what is stored, apart from the engine's types and from those
//! on the wire: a byte that names the version, then the value.
//!
//! A golden file of every kind of record stands in `tests/golden` of the
//! engine; a test reads all of them, and says how one is added.

mod mirror;
mod v0;
mod v1;

use minicbor::{Decoder, Encoder};

use crate::engine::Saved;
use crate::ledger::record::Fact;
use crate::{Files, State};
use mirror::Mirror as _;

/// First bytes from here on name a version; before there were versions they
/// were smaller.
const VERSIONS: u8 = 0x80;
/// The version that is written.
const V1: u8 = VERSIONS | 1;

/// Why bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A newer touchmark wrote them.
    #[error("its format {found} is newer than the newest known, {known}")]
    Newer {
        /// The format's number.
        found: u8,
        /// The newest number known.
        known: u8,
    },
    /// They are no such value.
    #[error("{0}")]
    Damaged(String),
}

/// A fact as bytes.
pub fn encode_fact(fact: Fact) -> Vec<u8> {
    written(|to| to.encode(v1::Fact::of(fact)).map(|_| ()))
}

/// The fact of bytes, of any version.
///
/// # Errors
/// [`Unreadable`].
pub fn decode_fact(bytes: &[u8]) -> Result<Fact, Unreadable> {
    match format(bytes)? {
        0 => v0::fact(bytes).map_err(damaged).map(v1::Fact::back),
        _ => whole(bytes, |from| from.decode::<v1::Fact>().map(v1::Fact::back)),
    }
}

/// The state as bytes, with the stamps that vouch for contents: what the next
/// start goes on from.
pub fn encode_snapshot(state: &State, stamps: &Files) -> Vec<u8> {
    written(|to| v1::snapshot::encode(state, stamps, to))
}

/// The state of bytes, of any version.
///
/// # Errors
/// [`Unreadable`].
pub fn decode_snapshot(bytes: &[u8]) -> Result<Saved, Unreadable> {
    let mut kept = match format(bytes)? {
        0 => v0::snapshot(bytes).map_err(damaged)?,
        _ => whole(bytes, v1::snapshot::decode)?,
    };
    kept.state.share_sessions();
    Ok(kept)
}

fn written(
    put: impl FnOnce(
        &mut Encoder<&mut Vec<u8>>,
    ) -> Result<(), minicbor::encode::Error<std::convert::Infallible>>,
) -> Vec<u8> {
    let mut bytes = vec![V1];
    // A Vec takes everything, and no type of ours refuses. Should one, what is
    // there is found as damage when it is read.
    let _never = put(&mut Encoder::new(&mut bytes));
    bytes.shrink_to_fit();
    bytes
}

/// The number of the format: 0 for what has none.
fn format(bytes: &[u8]) -> Result<u8, Unreadable> {
    match bytes.first() {
        None => Err(damaged("it is empty")),
        Some(first) if *first < VERSIONS => Ok(0),
        Some(&V1) => Ok(1),
        Some(first) => Err(Unreadable::Newer {
            found: first - VERSIONS,
            known: V1 - VERSIONS,
        }),
    }
}

/// A value that takes all bytes after the first.
fn whole<T>(
    bytes: &[u8],
    take: impl FnOnce(&mut Decoder<'_>) -> Result<T, minicbor::decode::Error>,
) -> Result<T, Unreadable> {
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
