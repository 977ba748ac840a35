//! The engine's state as bytes: what the next start goes on from. It is read
//! at every start, so it is bincode, as facts are, and no text.

use std::time::{Duration, Instant};

use touchmark_engine::{Engine, Kept, Stamps, State};
use touchmark_proto::Error;
use touchmark_proto::codec::frames;

/// The layout of what follows this byte. Whoever changes [`State`] or what is
/// in it counts on, and goes on reading every layout that was ever released.
const LAYOUT: u8 = 4;

/// The layout before that, when every name was a file.
const WITHOUT_NAMES: u8 = 3;

/// The layout before that, whose stamps knew of no device: none of them vouches
/// for anything any more (FILE-5).
const WITHOUT_DEVICES: u8 = 2;

/// A stamp in that layout: inode, size and two times.
type OldStamp = (u64, u64, i64, i64);

/// Facts since the last snapshot, before a new one is made.
const FACTS: u64 = 50_000;

/// The same for each byte of the last one: a large state is not written anew
/// for a few facts. The next start folds the facts since, at some hundred
/// thousand a second.
const BYTES_PER_FACT: u64 = 256;

/// It is made once no fact has come for so long: while it is put together,
/// nobody is answered.
const REST: Duration = Duration::from_millis(500);

/// Or when so many times as many facts have come.
const OVERDUE: u64 = 4;

/// When the next one is made.
pub(super) struct Next {
    /// Of the last one.
    bytes: u64,
    /// Since then.
    facts: u64,
    /// If nothing happens until then.
    at: Option<Instant>,
}

impl Next {
    /// After one of so many bytes, with so many facts since.
    pub(super) fn after(bytes: u64, facts: u64) -> Self {
        Self {
            bytes,
            facts,
            at: None,
        }
    }

    /// A turn has recorded facts.
    pub(super) fn count(&mut self, facts: u64) {
        self.facts += facts;
        let due = FACTS.max(self.bytes / BYTES_PER_FACT);
        if facts > 0 && self.facts >= due {
            let overdue = self.facts >= due * OVERDUE;
            let rest = if overdue { Duration::ZERO } else { REST };
            self.at = Some(Instant::now() + rest);
        }
    }

    /// When to look whether it is time.
    pub(super) fn due(&self) -> Option<Instant> {
        self.at
    }

    /// Whether it is time; says so once.
    pub(super) fn take_due(&mut self) -> bool {
        self.at.take_if(|at| *at <= Instant::now()).is_some()
    }

    /// Whether there is something that the last one does not hold.
    pub(super) fn has_news(&self) -> bool {
        self.facts > 0
    }
}

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
    let content = (LAYOUT, state, stamps.in_order(state), &state.names);
    let mut bytes = frames::encode(&content)?;
    bytes.shrink_to_fit();
    Ok(bytes)
}

pub(super) fn decode(bytes: &[u8]) -> Result<Kept, NotUnderstood> {
    match bytes.split_first() {
        None => Err(NotUnderstood::Empty),
        Some((&LAYOUT, rest)) => {
            let (mut state, stamps, names): (State, _, _) =
                frames::decode_trusted(rest).map_err(NotUnderstood::Content)?;
            state.names = names;
            state.share_names();
            let stamps = Stamps::of_order(stamps, &state);
            Ok(Kept { state, stamps })
        }
        Some((&WITHOUT_NAMES, rest)) => {
            let (mut state, stamps): (State, _) =
                frames::decode_trusted(rest).map_err(NotUnderstood::Content)?;
            state.share_names();
            let stamps = Stamps::of_order(stamps, &state);
            Ok(Kept { state, stamps })
        }
        Some((&WITHOUT_DEVICES, rest)) => {
            let (mut state, _): (State, Vec<Option<OldStamp>>) =
                frames::decode_trusted(rest).map_err(NotUnderstood::Content)?;
            state.share_names();
            Ok(state.into())
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
    fn the_next_one_waits_for_quiet_but_not_for_ever() {
        let mut next = Next::after(BYTES_PER_FACT * FACTS * 2, 0);
        next.count(FACTS * 2 - 1);
        assert_eq!((next.due(), next.take_due()), (None, false), "too few");
        next.count(1);
        assert!(next.due().is_some_and(|at| at > Instant::now()));
        next.count(FACTS * 2 * (OVERDUE - 1));
        assert!(next.take_due(), "overdue");
        assert!(!next.take_due(), "said once");
        assert!(next.has_news());
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

    #[test]
    fn a_snapshot_of_before_devices_is_read_without_its_stamps() {
        let state = example();
        let old: Vec<Option<OldStamp>> = state.paths.keys().map(|_| Some((1, 2, 3, 4))).collect();
        let bytes = frames::encode(&(WITHOUT_DEVICES, &state, old)).unwrap();
        let kept = decode(&bytes).unwrap();
        assert_eq!(kept, Kept::from(state));
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
                3,
                "2f4aad3db8c980311667f173cdea10a7642e5590833b26fe2337408eb043a9b4"
            )
        );
    }
}
