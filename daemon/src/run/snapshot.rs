//! The engine's state as bytes: what the next start goes on from. It is read
//! at every start, so it is bincode, as facts are, and no text.

use touchmark_engine::{Engine, Kept, Stamps, State};
use touchmark_proto::Error;
use touchmark_proto::codec::frames;

/// The layout of what follows this byte. Whoever changes [`State`] or what is
/// in it counts on, and goes on reading the layouts before.
const LAYOUT: u8 = 1;

/// Why a snapshot means nothing to this touchmark.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotUnderstood {
    #[error("it is empty")]
    Empty,
    #[error("its layout {0} is not known")]
    Layout(u8),
    #[error("{0}")]
    Content(Error),
}

pub(super) fn encode(engine: &Engine) -> Result<Vec<u8>, Error> {
    of(engine.state(), engine.stamps())
}

fn of(state: &State, stamps: &Stamps) -> Result<Vec<u8>, Error> {
    let mut bytes = frames::encode(&(LAYOUT, state, stamps.in_order(state)))?;
    bytes.shrink_to_fit();
    Ok(bytes)
}

pub(super) fn decode(bytes: &[u8]) -> Result<Kept, NotUnderstood> {
    match bytes.split_first() {
        None => Err(NotUnderstood::Empty),
        Some((&LAYOUT, rest)) => {
            let (mut state, stamps): (State, _) =
                frames::decode_trusted(rest).map_err(NotUnderstood::Content)?;
            state.share_names();
            let stamps = Stamps::of_order(stamps, &state);
            Ok(Kept { state, stamps })
        }
        Some((layout, _)) => Err(NotUnderstood::Layout(*layout)),
    }
}
