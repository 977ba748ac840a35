//! Which versions the state keeps separately.
//!
//! The log has all versions. The state keeps those that may still be reported
//! or corrected: an author may be corrected for some time (ATTR-11, ATTR-14),
//! and a session has to be reported who changed a file since its copy (MOD-1).
//! After that, a version is dropped if every session has seen a newer one.
//! Other neighbouring versions that differ only in time and content are merged.
//! Of the versions that every session has seen, a few recent ones are kept for
//! corrections; not all, since a file that is written each second is also read
//! each second.

use super::{KeptVersion, PathState, State};
use touchmark_proto::{Millis, RelPath};

/// After this time, nothing about a version changes any more, unless it is the
/// newest. It is longer than the usual `marks.late` and the time for editors'
/// reports and formatters. In milliseconds.
const DECIDED_AFTER: Millis = 30_000;

/// With fewer versions than this, a path is not examined.
const FEW: usize = 2;

/// The number of the newest versions that may still be corrected, even if every
/// session has seen newer ones.
const CORRECTED: usize = 4;

/// The maximum number of versions kept for each path, even if some were not
/// reported yet.
const MOST: usize = 64;

impl State {
    /// Drops and merges versions of a path, the newest of which was recorded at
    /// `now`.
    pub(super) fn settle(&mut self, path: &RelPath, now: Millis) {
        // The end of an open edit may still correct versions from after its
        // beginning.
        let open = self.edits.values().next().map_or(u64::MAX, |edit| edit.n);
        let Some(state) = self.paths.get_mut(path) else {
            return;
        };
        if state.versions.len() < FEW {
            return;
        }
        // The facts up to which the copies of the path are current, without
        // duplicates.
        let mut copies: Vec<u64> = state
            .holders
            .iter()
            .filter_map(|holder| self.sessions.get(holder)?.files.at(path))
            .collect();
        copies.sort_unstable();
        let reported_to_all = copies.first().copied().unwrap_or(0);
        let decided = |kept: &KeptVersion, newer: usize| {
            let old = kept.time.saturating_add(DECIDED_AFTER) <= now;
            kept.n < open && (old || (newer >= CORRECTED && kept.n <= reported_to_all))
        };
        state.settle(&copies, decided);
        while state.versions.len() > MOST {
            state.versions.remove(0);
        }
    }
}

impl PathState {
    /// Drops and merges versions. `decided` gets a version and the number of
    /// newer ones, and returns whether the version can no longer be corrected.
    fn settle(&mut self, copies: &[u64], decided: impl Fn(&KeptVersion, usize) -> bool) {
        let reported_to_all = copies.first().copied().unwrap_or(0);
        let apart = |older: &KeptVersion, newer: &KeptVersion| {
            copies.iter().any(|at| (older.n..newer.n).contains(at))
        };
        let mut index = 0;
        while let (Some(kept), Some(next)) =
            (self.versions.get(index), self.versions.get(index + 1))
        {
            if !decided(next, self.versions.len() - index - 2) {
                // Versions are in the order of their times, so all later ones
                // are undecided too.
                break;
            }
            let reported = kept.n <= reported_to_all && !kept.lost && !self.may_be_reverted(index);
            if reported && self.by_another() != Some(index) {
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

    /// Returns whether the version is the newest of a session that tracks the
    /// file. If the file returns to the content before it, the session's edits
    /// are reported as reverted (SEEN-7).
    fn may_be_reverted(&self, index: usize) -> bool {
        let mut from = self.versions.iter().skip(index);
        let Some(writer) = from.next().and_then(|kept| kept.session()) else {
            return false;
        };
        self.holders.iter().any(|holder| holder == writer) && !from.any(|kept| kept.is_by(writer))
    }

    /// Returns the index of the newest version by another writer than that of
    /// the newest version of all. A session needs the newest version that is
    /// not its own.
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

    /// A state with one file that several sessions track.
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
                    real: None,
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

        /// Returns for each kept version: how many versions it stands for, its
        /// content, and the time of the first of them.
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
            mode: None,
            owner: None,
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
        // Session B has read nothing yet.
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
