//! The stamps that vouch for contents over a gap: where a file's stat is what
//! it was when its content was read, and that was not within the clock tick
//! of a write, nothing was written since (SYNC-4). What is not vouched for is
//! read.
//!
//! No facts: kept beside the state in its snapshots, and worth only time.

use crate::by_path::ByPath;
use touchmark_proto::RelPath;

use crate::input::{Content, Stamp};
use crate::record::{Fact, Record};

/// For a tracked path the stat at which the content was read that the path is
/// recorded to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps(ByPath<Stamp>);

impl Stamps {
    /// The stat that vouches for what a path is recorded to hold.
    pub fn of(&self, path: &RelPath) -> Option<Stamp> {
        self.0.get(path).copied()
    }

    /// A content was read that the path is recorded to hold. Says whether
    /// that is news.
    pub(crate) fn note(&mut self, path: &RelPath, content: Content) -> bool {
        if content.settled {
            self.0.insert(path.clone(), content.stamp) != Some(content.stamp)
        } else {
            self.forget(path);
            false
        }
    }

    /// Nothing vouches for what the path is recorded to hold.
    pub(crate) fn forget(&mut self, path: &RelPath) {
        self.0.remove(path);
    }

    /// What a fact says of contents was not read with these stats.
    pub(crate) fn recorded(&mut self, record: &Record) {
        match &record.fact {
            Fact::Baseline { path, .. } | Fact::CopyDropped { path } => self.forget(path),
            Fact::Version(version) => self.forget(&version.path),
            _ => {}
        }
    }
}

impl FromIterator<(RelPath, Stamp)> for Stamps {
    fn from_iter<I: IntoIterator<Item = (RelPath, Stamp)>>(stamps: I) -> Self {
        Self(stamps.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::Config;
    use crate::effect::{Comparison, Effect, ReadOrder};
    use crate::engine::{Engine, Kept};
    use crate::input::{Found, Hint, Input};
    use crate::state::State;
    use touchmark_proto::edits::EditMark;
    use touchmark_proto::files::FileRead;
    use touchmark_proto::{
        Author, ConnectionId, Evidence, Hash, HashOrAbsent, Request, RequestId, SessionId,
    };

    /// An engine, one file, and what is to be done for it.
    struct Stage {
        engine: Engine,
        content: Content,
        requests: u64,
        records: Vec<Record>,
        reads: Vec<ReadOrder>,
        comparisons: Vec<Comparison>,
    }

    fn path() -> RelPath {
        RelPath::new(b"a").unwrap()
    }

    fn content(number: u8, settled: bool) -> Content {
        Content {
            hash: Hash([number; 32]),
            size: 1,
            lines: 1,
            mtime_ms: 1,
            stamp: Stamp {
                modified: number.into(),
                ..Stamp::default()
            },
            settled,
        }
    }

    impl Stage {
        /// A session has read the file.
        fn new(content: Content) -> Self {
            let mut stage = Self {
                engine: Engine::restore(Config::default(), State::new(1, false), [], 1),
                content,
                requests: 0,
                records: Vec::new(),
                reads: Vec::new(),
                comparisons: Vec::new(),
            };
            stage.ask(Request::FileRead(FileRead {
                session: SessionId::new("s").unwrap(),
                path: "a".into(),
                hash: None,
                range: None,
                total_lines: None,
                text: None,
                step: None,
                source: None,
                sync: None,
                verify: None,
            }));
            stage.read_all();
            assert!(stage.engine.state().paths.contains_key(&path()));
            stage
        }

        fn ask(&mut self, ask: Request) {
            self.requests += 1;
            self.feed(Input::Request {
                request: RequestId(self.requests),
                connection: ConnectionId(1),
                ask,
                until: None,
            });
        }

        fn feed(&mut self, input: Input) {
            let mut effects = Vec::new();
            self.engine.handle(1, input, &mut effects);
            self.carry_out(effects);
        }

        fn carry_out(&mut self, effects: Vec<Effect>) {
            for effect in effects {
                match effect {
                    Effect::Record(record) => self.records.push(record),
                    Effect::Read(order) => self.reads.push(order),
                    Effect::Compare(comparison) => self.comparisons.push(comparison),
                    Effect::Fence(fence) => self.feed(Input::FenceReached { fence }),
                    _ => {}
                }
            }
        }

        fn read_all(&mut self) {
            while let Some(order) = self.reads.pop() {
                self.feed(Input::Read {
                    path: order.path,
                    ticket: order.ticket,
                    outcome: Found::File(self.content).into(),
                });
            }
        }

        fn compared(&mut self, differs: bool) {
            let comparison = self.comparisons.pop().unwrap();
            let files = comparison.files.into_iter().filter(|_| differs);
            self.feed(Input::Compared {
                number: comparison.number,
                differ: files.map(|(path, _)| path).collect(),
            });
        }

        /// The next life, with what this one would leave in a snapshot.
        fn restart(&mut self) {
            let kept = Kept {
                state: self.engine.state().clone(),
                stamps: self.engine.stamps().clone(),
            };
            self.begin(Engine::restore(Config::default(), kept, [], 1));
        }

        fn begin(&mut self, engine: Engine) {
            self.engine = engine;
            let mut effects = Vec::new();
            self.engine.start(1, &mut effects);
            self.carry_out(effects);
        }

        fn newest(&self) -> Option<(Author, Evidence)> {
            let kept = self.engine.state().paths[&path()].versions.back()?;
            Some((kept.author(), kept.evidence))
        }
    }

    #[test]
    fn a_stamp_vouches_until_it_differs() {
        let mut stage = Stage::new(content(1, true));
        stage.restart();
        assert!(stage.engine.is_reconciling());
        assert!(stage.comparisons[0].track);
        stage.compared(false);
        assert!(!stage.engine.is_reconciling());
        assert_eq!((stage.reads.len(), stage.newest()), (0, None));

        stage.content = content(2, true);
        stage.feed(Input::Overflow);
        assert!(!stage.comparisons[0].track);
        stage.compared(true);
        assert!(stage.engine.is_reconciling());
        stage.read_all();
        assert!(!stage.engine.is_reconciling());
        assert_eq!(stage.newest(), Some((Author::UNKNOWN, Evidence::Gap)));
        assert_eq!(
            stage.engine.stamps().of(&path()),
            Some(content(2, true).stamp)
        );
    }

    #[test]
    fn a_stamp_of_before_a_version_does_not_vouch_after_it() {
        let mut stage = Stage::new(content(1, true));
        let kept = Kept {
            state: stage.engine.state().clone(),
            stamps: stage.engine.stamps().clone(),
        };
        // Recorded after the snapshot; then the daemon is killed, and the old
        // file, with its old stat, is put back.
        stage.content = content(2, true);
        stage.feed(Input::Hint {
            path: path(),
            hint: Hint::Closed,
        });
        stage.read_all();
        let records = std::mem::take(&mut stage.records);
        stage.content = content(1, true);
        stage.begin(Engine::restore(Config::default(), kept, records, 1));
        assert_eq!((stage.comparisons.len(), stage.reads.len()), (0, 1));
        stage.read_all();
        assert_eq!(stage.newest(), Some((Author::UNKNOWN, Evidence::Gap)));
    }

    #[test]
    fn a_stamp_within_a_clock_tick_vouches_for_nothing() {
        let mut stage = Stage::new(content(1, false));
        stage.restart();
        assert_eq!((stage.comparisons.len(), stage.reads.len()), (0, 1));
    }

    #[test]
    fn a_content_that_is_held_back_is_not_vouched_for() {
        let mut stage = Stage::new(content(1, true));
        stage.ask(Request::EditMark(EditMark {
            session: SessionId::new("s").unwrap(),
            path: "a".into(),
            expect: Some(HashOrAbsent::Hash(Hash([9; 32]))),
            require_read: false,
            bind: false,
            ttl_ms: None,
            step: None,
        }));
        stage.read_all();
        // Half of what was declared: no version, since more may come (ATTR-5).
        stage.content = content(2, true);
        stage.feed(Input::Hint {
            path: path(),
            hint: Hint::Written,
        });
        stage.feed(Input::Hint {
            path: path(),
            hint: Hint::Touched,
        });
        stage.ask(Request::Sync(touchmark_proto::daemon::Sync {}));
        stage.read_all();
        assert_eq!(stage.newest(), None);
        stage.restart();
        assert_eq!((stage.comparisons.len(), stage.reads.len()), (0, 1));
    }

    #[test]
    fn a_difference_found_before_the_comparison_is_of_the_gap() {
        let mut stage = Stage::new(content(1, true));
        stage.content = content(2, true);
        stage.restart();
        stage.feed(Input::Hint {
            path: path(),
            hint: Hint::Closed,
        });
        stage.read_all();
        assert_eq!(stage.newest(), Some((Author::UNKNOWN, Evidence::Gap)));
    }
}
