//! The engine's state as bytes: what the next start goes on from. It is read
//! at every start, so it is bincode, as facts are, and no text.

use touchmark_engine::{Engine, Kept, Stamps, State};
use touchmark_proto::Error;
use touchmark_proto::codec::frames;

/// The layout of what follows this byte. Whoever changes [`State`] or what is
/// in it counts on, and goes on reading every layout that was ever released.
const LAYOUT: u8 = 2;

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use sha2::{Digest as _, Sha256};
    use touchmark_engine::{Fact, Held, Record, VersionFact};
    use touchmark_proto::files::{Source, Verdict};
    use touchmark_proto::{Author, Evidence, Hash, RelPath, SessionId, VersionKind};

    /// One session, and a file that it has read and a user has changed since.
    fn example() -> State {
        let session = SessionId::new("s").unwrap();
        let path = RelPath::new(b"d/a").unwrap();
        let held = |number: u8| Held {
            hash: Some(Hash([number; 32])),
            size: number.into(),
            lines: 2,
            mtime_ms: 3,
        };
        let facts = [
            Fact::Baseline {
                path: path.clone(),
                held: held(1),
            },
            Fact::Tracked {
                session: session.clone(),
                path: path.clone(),
                source: Source::ReadTool,
                step: Some(4),
            },
            Fact::Read {
                session: session.clone(),
                path: path.clone(),
                hash: held(1).hash,
                lines: 2,
                range: None,
                verdict: Verdict::First,
                source: Source::ReadTool,
                step: Some(4),
            },
            Fact::Version(VersionFact {
                candidates: vec![session.clone()],
                before: held(1).hash,
                ..VersionFact::new(
                    path.clone(),
                    VersionKind::Modified,
                    held(2),
                    Author::USER,
                    Evidence::Unmarked,
                )
            }),
            Fact::Saved {
                path,
                hash: Hash([2; 32]),
                time: 8,
                formatted: true,
            },
        ];
        let mut state = State::new(5, false);
        for (n, fact) in (1..).zip(facts) {
            state.apply(&Record { n, time: 7, fact });
        }
        state
    }

    #[test]
    fn what_was_encoded_is_decoded_and_nothing_else() {
        let state = example();
        let bytes = of(&state, &Stamps::default()).unwrap();
        assert_eq!(decode(&bytes).unwrap().state, state);
        assert!(matches!(decode(&[]), Err(NotUnderstood::Empty)));
        assert!(matches!(decode(b"{}"), Err(NotUnderstood::Layout(b'{'))));
        let short = bytes.split_last().unwrap().1;
        assert!(matches!(decode(short), Err(NotUnderstood::Content(_))));
        let longer = [&bytes[..], b"x"].concat();
        assert!(matches!(decode(&longer), Err(NotUnderstood::Content(_))));
    }

    /// Stores are read by the programs of later years: if this fails, another
    /// [`LAYOUT`] is due, and, once this one is released, a way to go on
    /// reading it.
    #[test]
    fn the_layout_is_what_it_was() {
        let bytes = of(&example(), &Stamps::default()).unwrap();
        let hash = Hash(Sha256::digest(bytes).into());
        assert_eq!(
            (LAYOUT, hash.to_string().as_str()),
            (
                2,
                "54a8913c87c593d8c301048c1dfce149589e8a814a27e7e997d06c633ec7f25a"
            )
        );
    }
}
