//! Makes facts of every kind with any fields, from a number.

use touchmark_engine::globs::Globs;
use touchmark_engine::ranges::RangeSet;
use touchmark_engine::session_memory::{Call, Dropped, Note, Searched};
use touchmark_engine::{
    Carriage, CommandFact, EditFact, EditFileFact, Fact, Held, Passing, Refusal, Stamp, VersionFact,
};
use touchmark_proto::daemon::{Program, Savings};
use touchmark_proto::events::EditPhase;
use touchmark_proto::files::{Source, Verdict};
use touchmark_proto::survival::Horizon;
use touchmark_proto::tasks::{Task, TaskType};
use touchmark_proto::{
    Author, AuthorKind, Evidence, FileMode, Hash, HashOrAbsent, LineRange, RelPath, SessionId,
    VersionKind,
};

/// A splitmix64 generator. It uses few names, so that facts concern the same
/// files.
pub(crate) struct Arbitrary(u64);

impl Arbitrary {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// Returns a number of any length in bytes, within the range of times and
    /// counts.
    pub(crate) fn number(&mut self) -> u64 {
        let shift = self.below(63) + 1;
        self.next() >> shift
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    fn small(&mut self) -> u32 {
        let shift = self.below(32);
        (self.next() as u32) >> shift
    }

    fn lines(&mut self) -> RangeSet {
        (0..self.below(3)).fold(RangeSet::default(), |set, _| {
            let start = self.small();
            set.with(start, start.saturating_add(self.small()))
        })
    }

    fn maybe<T>(&mut self, some: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| some(self))
    }

    fn list<T>(&mut self, one: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| one(self)).collect()
    }

    fn text(&mut self) -> String {
        self.one_of(&["", "x", "some words", "Ünïcode ☃"])
            .to_owned()
    }

    fn path(&mut self) -> RelPath {
        RelPath::new(self.one_of(&[&b"a"[..], b"b", b"d/a", b"d/\xff", b"d/e/f"])).unwrap()
    }

    fn session(&mut self) -> SessionId {
        SessionId::new(self.one_of(&["s", "t", "another session"])).unwrap()
    }

    fn hash(&mut self) -> Hash {
        Hash([self.below(5) as u8; 32])
    }

    fn declared(&mut self) -> HashOrAbsent {
        self.maybe(Self::hash).into()
    }

    fn range(&mut self) -> LineRange {
        let (start, more) = (self.below(9) as u32 + 1, self.below(9) as u32);
        LineRange {
            start,
            end: start + more,
        }
    }

    pub(crate) fn stamp(&mut self) -> Stamp {
        Stamp {
            inode: self.number(),
            size: self.number(),
            modified: self.next() as i64,
            changed: self.next() as i64,
            device: self.next(),
            mount: self.number(),
        }
    }

    fn mode(&mut self) -> Option<FileMode> {
        self.maybe(|from| 0o100_000 | from.small() & 0o7777)
            .and_then(FileMode::new)
    }

    fn held(&mut self) -> Held {
        Held {
            hash: self.maybe(Self::hash),
            size: self.number(),
            lines: self.small(),
            mtime_ms: self.number(),
            mode: self.mode(),
            owner: self.maybe(Self::small),
        }
    }

    fn source(&mut self) -> Source {
        self.one_of(&[
            Source::ReadTool,
            Source::AgentEdited,
            Source::UserEdited,
            Source::FileMentioned,
            Source::ReadMissed,
        ])
    }

    fn version(&mut self) -> VersionFact {
        VersionFact {
            path: self.path(),
            kind: self.one_of(&[
                VersionKind::Created,
                VersionKind::Modified,
                VersionKind::Deleted,
                VersionKind::Renamed,
            ]),
            from: self.maybe(Self::path),
            held: self.held(),
            author: Author {
                kind: self.one_of(&[AuthorKind::Agent, AuthorKind::User, AuthorKind::Unknown]),
                session: self.maybe(Self::session),
                label: None,
            },
            evidence: self.one_of(&[
                Evidence::Declared,
                Evidence::Marked,
                Evidence::Command,
                Evidence::Editor,
                Evidence::Process,
                Evidence::Unmarked,
                Evidence::Gap,
            ]),
            amends: self.maybe(|from| from.below(80)),
            edit: self.maybe(|from| from.below(80)),
            unobserved: self.flag(),
            late: self.flag(),
            formatted: self.flag(),
            candidates: self.list(Self::session),
            before: self.maybe(Self::hash),
            command: self.maybe(|from| from.below(80)),
            mode_before: self.mode(),
            real: self.maybe(Self::path),
        }
    }

    fn edit(&mut self) -> EditFact {
        EditFact {
            edit: self.below(80),
            session: self.session(),
            call: self.maybe(Self::text),
            files: self.list(|from| EditFileFact {
                path: from.path(),
                expect: from.maybe(Self::declared),
                began: from.maybe(Self::hash),
                base: from.maybe(Self::hash),
            }),
            deadline: self.number(),
            one_shot: self.flag(),
            bound: self.maybe(Self::number),
            tool: self.maybe(Self::text),
            step: self.maybe(Self::number),
        }
    }

    fn command(&mut self) -> CommandFact {
        CommandFact {
            command: self.below(80),
            session: self.session(),
            call: self.maybe(Self::text),
            label: self.maybe(Self::text),
            globs: Globs {
                patterns: self.maybe(|from| from.list(Self::text)),
                case_insensitive: self.flag(),
            },
            deadline: self.number(),
            bound: self.maybe(Self::number),
            pid: self.maybe(Self::small),
            formatter: self.flag(),
            workspace: self.flag(),
            branch: self.maybe(Self::text),
        }
    }

    fn note(&mut self) -> Note {
        match self.below(16) {
            0 => Note::CheckpointCreated {
                checkpoint: self.number(),
                label: self.maybe(Self::text),
                message: self.maybe(Self::text),
                step: self.maybe(Self::number),
                text: self.maybe(Self::text),
            },
            1 => Note::CheckpointDeleted {
                checkpoint: self.number(),
            },
            2 => Note::WarningStored {
                files: self.list(Self::path),
                note: self.maybe(Self::text),
            },
            3 => Note::WarningTaken,
            4 => Note::ModelRecorded {
                model: self.text(),
                provider: self.text(),
                mode: self.text(),
                message: self.maybe(Self::text),
            },
            5 => Note::TaskSaved {
                task: Task {
                    id: self.text(),
                    task_type: self.one_of(&[TaskType::Shell, TaskType::Process, TaskType::Agent]),
                    command: self.maybe(Self::text),
                    pid: self.maybe(Self::small),
                    start_time: self.number(),
                    working_directory: self.text(),
                },
                started: self.maybe(Self::number),
            },
            6 => Note::TaskRemoved { id: self.text() },
            7 => Note::CallRecorded(Call {
                call: self.below(80),
                time: self.number(),
                n: self.number(),
                tool: self.text(),
                args: self.text(),
                result: self.maybe(Self::text),
                rests_on: self.list(|from| (from.path(), from.maybe(Self::hash))),
                searched: match self.below(3) {
                    0 => Searched::No,
                    1 => Searched::Below(self.path()),
                    _ => Searched::Everywhere,
                },
            }),
            8 => Note::CallsDropped {
                calls: self.list(Self::number),
                reason: self.one_of(&[Dropped::Invalidated, Dropped::Evicted, Dropped::Cleared]),
            },
            9 => Note::CallChecked { hit: self.flag() },
            10 => Note::Saved(Savings {
                repeats: self.below(9),
                bytes_not_sent: self.below(9_000),
                stale_refused: self.below(9),
                not_read_refused: self.below(9),
                conflicts: self.below(9),
                duplicate_calls: self.below(9),
                duplicate_bytes: self.below(9),
                notices: self.below(9),
                unanswered_hooks: self.below(9),
                unclear_hooks: self.below(9),
            }),
            11 => Note::Turn {
                begins: self.flag(),
            },
            12 => Note::ToSay { text: self.text() },
            13 => Note::Said {
                count: self.below(3),
            },
            14 => Note::UndoToSay {
                undo: self.below(9),
                text: self.maybe(Self::text),
            },
            _ => Note::MessageSeen {
                message: self.text(),
            },
        }
    }

    pub(crate) fn fact(&mut self) -> Fact {
        match self.below(38) {
            0 => Fact::SessionOpened {
                session: self.session(),
                agent: self.maybe(|from| Program {
                    name: from.text(),
                    version: from.text(),
                }),
                parent: self.maybe(Self::session),
                pid: self.maybe(Self::small),
            },
            1 => Fact::SessionClosed {
                session: self.session(),
            },
            2 => Fact::SessionForgotten {
                session: self.session(),
            },
            3 => Fact::Baseline {
                path: self.path(),
                held: self.held(),
                untracked: self.flag(),
                real: self.maybe(Self::path),
            },
            4 => Fact::Version(self.version()),
            5 => Fact::Tracked {
                session: self.session(),
                path: self.path(),
                source: self.source(),
                step: self.maybe(Self::number),
            },
            6 => Fact::Untracked {
                session: self.session(),
                path: self.path(),
            },
            7 => Fact::Copied {
                from: self.path(),
                to: self.path(),
            },
            8 => Fact::CopyDropped { path: self.path() },
            9 => Fact::Read {
                session: self.session(),
                path: self.path(),
                hash: self.maybe(Self::hash),
                lines: self.small(),
                range: self.maybe(Self::range),
                verdict: self.one_of(&[
                    Verdict::First,
                    Verdict::Repeat,
                    Verdict::Extends,
                    Verdict::Changed,
                ]),
                source: self.source(),
                step: self.maybe(Self::number),
            },
            10 => Fact::Wrote {
                session: self.session(),
                path: self.path(),
                hash: self.declared(),
                assumed: self.flag(),
            },
            11 => Fact::Invalidated {
                session: self.session(),
                path: self.maybe(Self::path),
            },
            12 => Fact::Compacted {
                session: self.session(),
                keep: self.list(Self::path),
            },
            13 => Fact::Truncated {
                session: self.session(),
                items: self.list(|from| (from.path(), from.maybe(Self::range))),
            },
            14 => Fact::EditBegun(self.edit()),
            15 => Fact::EditEnded {
                edit: self.below(80),
                session: self.session(),
                paths: self.list(Self::path),
                phase: self.one_of(&[
                    EditPhase::Begun,
                    EditPhase::Committed,
                    EditPhase::Aborted,
                    EditPhase::Lapsed,
                ]),
            },
            16 => Fact::Delivered {
                session: self.session(),
                paths: self.list(|from| (from.path(), from.number())),
                lost: self.list(|from| from.below(80)),
            },
            17 => Fact::ResetTold {
                session: self.session(),
            },
            18 => Fact::Lost {
                session: self.session(),
                path: self.path(),
                version: self.below(80),
                by: self.below(80),
            },
            19 => Fact::Saved {
                path: self.path(),
                hash: self.hash(),
                time: self.number(),
                formatted: self.flag(),
            },
            20 => Fact::CommandBegun(self.command()),
            21 => Fact::CommandEnded {
                command: self.below(80),
                session: self.session(),
                exit: self.maybe(|from| from.below(80) as i32 - 40),
                branch: self.maybe(Self::text),
            },
            22 => Fact::Labelled {
                session: self.session(),
                label: self.text(),
            },
            23 => Fact::NameUsed {
                session: self.session(),
                name: self.path(),
                file: self.path(),
            },
            24 => Fact::NamesJoined {
                name: self.path(),
                file: self.path(),
            },
            26 => Fact::Carried {
                session: self.session(),
                path: self.path(),
                from: self.hash(),
                to: self.hash(),
                kept: self.lines(),
                changed: self.lines(),
            },
            27 => Fact::Inherited {
                session: self.session(),
                from: self.session(),
            },
            28 => Fact::Refused {
                session: self.session(),
                path: self.maybe(Self::path),
                cause: self.one_of(&[Refusal::Stale, Refusal::NotRead, Refusal::Conflict]),
            },
            29 => Fact::Passed {
                session: self.session(),
                path: self.path(),
                cause: self.one_of(&[Passing::Beside, Passing::Unread, Passing::Late]),
            },
            30 => Fact::Undone {
                session: self.maybe(Self::session),
                undo: self.below(80),
                redo: self.flag(),
                files: self.small(),
                hunks: self.small(),
                conflicts: self.small(),
            },
            31 => Fact::BroughtBack {
                session: self.maybe(Self::session),
                path: self.path(),
                version: self.maybe(Self::number),
            },
            33 => Fact::Kept {
                session: self.maybe(Self::session),
                files: self.small(),
                changes: self.small(),
            },
            32 => Fact::Survival {
                version: self.number(),
                session: self.session(),
                path: self.path(),
                horizon: self.one_of(&[Horizon::Commit, Horizon::Day, Horizon::Week]),
                added: self.small(),
                alive: self.small(),
            },
            34 => Fact::Claimed {
                path: self.path(),
                version: self.number(),
                lines: self.list(|own| (own.small(), own.number())),
                session: self.maybe(Self::session),
            },
            35 => Fact::GitBrought {
                version: self.number(),
                path: self.path(),
                how: self.one_of(&[
                    Carriage::Carried,
                    Carriage::Wiped,
                    Carriage::TakenBack,
                    Carriage::Unclear,
                ]),
            },
            36 => Fact::Lineage {
                path: self.path(),
                version: self.maybe(Self::number),
                from: self.maybe(Self::path),
                until: self.number(),
            },
            25 => Fact::NamesParted {
                file: self.path(),
                leaving: self.list(Self::path),
            },
            _ => Fact::Noted {
                session: self.session(),
                note: self.note(),
            },
        }
    }
}
