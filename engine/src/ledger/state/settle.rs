//! Which versions stay at hand one by one.
//!
//! The log has all of them. At hand are those of which something is still to
//! be told or decided: whose they are may be corrected for a while (ATTR-11,
//! ATTR-14), and a session is told who has changed a file since its copy
//! (MOD-1). After that, what every session has behind it is let go, and what
//! differs in nothing but time and content becomes one. Of what every session
//! has behind it a few are kept for the while, not all: a file that is written
//! each second is also read each second.

use super::{KeptVersion, PathState, State};
use touchmark_proto::{Millis, RelPath};

/// After so long nothing is decided about a version that is not the newest:
/// longer than the usual `marks.late`, editors' reports and formatters take.
const DECIDED_AFTER: Millis = 30_000;

/// Fewer versions than these are not looked through.
const FEW: usize = 2;

/// So many of the newest versions may still be corrected although every
/// session has them behind it.
const CORRECTED: usize = 4;

/// Versions at hand of each path at most, whatever is still to be told.
const MOST: usize = 64;

impl State {
    /// Looks through a path's versions, the newest of which was recorded at
    /// `now`.
    pub(super) fn settle(&mut self, path: &RelPath, now: Millis) {
        // What an open edit began after, its end may speak of.
        let open = self.edits.values().next().map_or(u64::MAX, |edit| edit.n);
        let Some(state) = self.paths.get_mut(path) else {
            return;
        };
        if state.versions.len() < FEW {
            return;
        }
        // The facts up to which copies speak, each once.
        let mut copies: Vec<u64> = state
            .holders
            .iter()
            .filter_map(|holder| self.sessions.get(holder)?.files.at(path))
            .collect();
        copies.sort_unstable();
        let all_told = copies.first().copied().unwrap_or(0);
        let decided = |kept: &KeptVersion, newer: usize| {
            let old = kept.time.saturating_add(DECIDED_AFTER) <= now;
            kept.n < open && (old || (newer >= CORRECTED && kept.n <= all_told))
        };
        state.settle(&copies, decided);
        while state.versions.len() > MOST {
            state.versions.remove(0);
        }
    }
}

impl PathState {
    /// `decided` is told of a version and how many are newer.
    fn settle(&mut self, copies: &[u64], decided: impl Fn(&KeptVersion, usize) -> bool) {
        let told_to_all = copies.first().copied().unwrap_or(0);
        let apart = |older: &KeptVersion, newer: &KeptVersion| {
            copies.iter().any(|at| (older.n..newer.n).contains(at))
        };
        let mut index = 0;
        while let (Some(kept), Some(next)) =
            (self.versions.get(index), self.versions.get(index + 1))
        {
            if !decided(next, self.versions.len() - index - 2) {
                // They are in the order of their times.
                break;
            }
            let told = kept.n <= told_to_all && !kept.lost && !self.may_be_reverted(index);
            if told && self.by_another() != Some(index) {
                self.versions.remove(index);
            } else if next.is_like(kept) && !apart(kept, next) && !self.may_be_reverted(index + 1) {
                let older = self.versions.remove(index);
                if let Some(newer) = self.versions.get_mut(index) {
                    newer.take_in(&older);
                }
            } else {
                index += 1;
            }
        }
        if self.versions.capacity() > 2 * self.versions.len() {
            self.versions.shrink_to_fit();
        }
    }

    /// The newest version of a session that holds the file: whoever takes it
    /// back takes back what that session wrote (SEEN-7).
    fn may_be_reverted(&self, index: usize) -> bool {
        let mut from = self.versions.iter().skip(index);
        let Some(writer) = from.next().and_then(|kept| kept.session()) else {
            return false;
        };
        self.holders.iter().any(|holder| holder == writer) && !from.any(|kept| kept.is_by(writer))
    }

    /// The newest version that is not by who wrote the newest of all: a
    /// session asks for the newest that is not its own.
    fn by_another(&self) -> Option<usize> {
        let newest = self.versions.last()?;
        self.versions
            .iter()
            .rposition(|kept| kept.writer() != newest.writer())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ledger::record::{Fact, Held, Record, VersionFact};
    use touchmark_proto::files::{Source, Verdict};
    use touchmark_proto::{Author, Evidence, Hash, SessionId, VersionKind};

    /// A state with one file, which sessions hold.
    struct Fixture {
        state: State,
        path: RelPath,
    }

    impl Fixture {
        fn new(sessions: &[&str]) -> Self {
            let path = RelPath::new(b"f").unwrap();
            let mut fixture = Self {
                state: State::new(1, false),
                path: path.clone(),
            };
            let held = held(0);
            fixture.at(
                0,
                Fact::Baseline {
                    path: path.clone(),
                    held,
                    untracked: false,
                },
            );
            for session in sessions {
                fixture.at(
                    0,
                    Fact::Tracked {
                        session: SessionId::new(session).unwrap(),
                        path: path.clone(),
                        source: Source::ReadTool,
                        step: None,
                    },
                );
            }
            fixture
        }

        fn at(&mut self, time: Millis, fact: Fact) -> u64 {
            let n = self.state.n + 1;
            self.state.apply(&Record { n, time, fact });
            n
        }

        fn version(&mut self, time: Millis, content: u8, author: Author) -> u64 {
            let (path, kind) = (self.path.clone(), VersionKind::Modified);
            let fact = VersionFact {
                before: held(content - 1).hash,
                ..VersionFact::new(path, kind, held(content), author, Evidence::Unmarked)
            };
            self.at(time, Fact::Version(fact))
        }

        fn read(&mut self, time: Millis, session: &str, content: u8) {
            self.at(
                time,
                Fact::Read {
                    session: SessionId::new(session).unwrap(),
                    path: self.path.clone(),
                    hash: held(content).hash,
                    lines: 1,
                    range: None,
                    verdict: Verdict::First,
                    source: Source::ReadTool,
                    step: None,
                },
            );
        }

        /// Of each version at hand: how many it is, its content, since when.
        fn at_hand(&self) -> Vec<(u32, u8, Millis)> {
            let versions = &self.state.paths.get(&self.path).unwrap().versions;
            let versions = versions.iter();
            versions
                .map(|kept| (kept.count, kept.hash.unwrap().0[0], kept.first_time))
                .collect()
        }
    }

    fn held(content: u8) -> Held {
        Held {
            hash: Some(Hash([content; 32])),
            size: 1,
            lines: 1,
            mtime_ms: 0,
        }
    }

    #[test]
    fn versions_that_may_still_be_corrected_stay_one_by_one() {
        let mut fixture = Fixture::new(&["a"]);
        for content in 1..=20 {
            fixture.version(u64::from(content) * 1_000, content, Author::USER);
        }
        assert_eq!(fixture.at_hand().len(), 20);
    }

    #[test]
    fn of_what_every_session_has_read_the_newest_may_still_be_corrected() {
        let mut fixture = Fixture::new(&["a"]);
        for content in 1..=20 {
            fixture.version(u64::from(content), content, Author::USER);
            fixture.read(u64::from(content), "a", content);
        }
        let at_hand = fixture.at_hand();
        let contents: Vec<u8> = at_hand.iter().map(|(_, content, _)| *content).collect();
        assert_eq!(contents, [16, 17, 18, 19, 20]);
    }

    #[test]
    fn what_a_session_has_not_read_becomes_one_per_author() {
        let mut fixture = Fixture::new(&["a"]);
        let other = Author::agent(SessionId::new("b").unwrap());
        for content in 1..=5 {
            fixture.version(u64::from(content), content, Author::USER);
        }
        fixture.version(6, 6, other);
        fixture.version(7, 7, Author::USER);
        fixture.version(8, 8, Author::USER);
        fixture.version(100_000, 9, Author::USER);
        assert_eq!(
            fixture.at_hand(),
            [(5, 5, 1), (1, 6, 6), (2, 8, 7), (1, 9, 100_000)]
        );
        let first = fixture
            .state
            .paths
            .get(&fixture.path)
            .unwrap()
            .versions
            .first()
            .unwrap();
        assert_eq!(first.before, held(0).hash, "before the oldest of them");
    }

    #[test]
    fn no_copy_speaks_of_the_middle_of_what_became_one() {
        let mut fixture = Fixture::new(&["a", "b"]);
        fixture.version(1, 1, Author::USER);
        fixture.version(2, 2, Author::USER);
        fixture.read(3, "b", 2);
        fixture.version(4, 3, Author::USER);
        fixture.version(5, 4, Author::USER);
        fixture.version(100_000, 5, Author::USER);
        assert_eq!(fixture.at_hand(), [(2, 2, 1), (2, 4, 4), (1, 5, 100_000)]);
    }

    #[test]
    fn what_every_session_has_read_is_let_go_but_for_the_newest_of_another() {
        let mut fixture = Fixture::new(&["a", "b"]);
        let own = Author::agent(SessionId::new("a").unwrap());
        for content in 1..=5 {
            fixture.version(u64::from(content), content, Author::USER);
        }
        for content in 6..=8 {
            fixture.version(u64::from(content), content, own.clone());
        }
        fixture.read(9, "a", 8);
        fixture.version(50_000, 9, own.clone());
        // B has read nothing yet.
        let (users, owns) = ((5, 5, 1), (3, 8, 6));
        assert_eq!(fixture.at_hand(), [users, owns, (1, 9, 50_000)]);
        fixture.read(50_001, "a", 9);
        fixture.read(50_001, "b", 9);
        fixture.version(99_000, 10, own.clone());
        fixture.version(99_001, 11, own);
        assert_eq!(
            fixture.at_hand(),
            [users, (1, 9, 50_000), (1, 10, 99_000), (1, 11, 99_001)]
        );
    }

    #[test]
    fn what_an_open_edit_may_speak_of_stays() {
        let mut fixture = Fixture::new(&["a"]);
        let session = SessionId::new("a").unwrap();
        fixture.version(1, 1, Author::USER);
        fixture.version(2, 2, Author::USER);
        fixture.at(
            3,
            Fact::EditBegun(crate::ledger::record::EditFact {
                edit: 1,
                session: session.clone(),
                call: None,
                files: Vec::new(),
                deadline: 1_000_000,
                one_shot: false,
                bound: None,
                tool: None,
                step: None,
            }),
        );
        fixture.version(4, 3, Author::USER);
        fixture.version(5, 4, Author::USER);
        fixture.version(100_000, 5, Author::USER);
        let whole = [(2, 2, 1), (1, 3, 4), (1, 4, 5), (1, 5, 100_000)];
        assert_eq!(fixture.at_hand(), whole);
        fixture.at(
            100_001,
            Fact::EditEnded {
                edit: 1,
                session,
                paths: Vec::new(),
                phase: touchmark_proto::events::EditPhase::Committed,
            },
        );
        fixture.version(200_000, 6, Author::USER);
        assert_eq!(fixture.at_hand(), [(5, 5, 1), (1, 6, 200_000)]);
    }
}
