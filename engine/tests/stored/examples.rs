//! Examples: one value of every kind of record with every field set, and one
//! without its optional fields. They never change; their stored bytes are in
//! `tests/golden`. A field that is added later is absent in all of them, and
//! gets its own example.

use touchmark_engine::globs::Globs;
use touchmark_engine::ranges::RangeSet;
use touchmark_engine::session_memory::{Call, Dropped, Note, Searched};
use touchmark_engine::{
    Carriage, CommandFact, EditFact, EditFileFact, Fact, Files, Held, Passing, Record, Refusal,
    Stamp, State, VersionFact,
};
use touchmark_proto::daemon::{Program, Savings};
use touchmark_proto::events::EditPhase;
use touchmark_proto::files::{Source, Verdict};
use touchmark_proto::survival::Horizon;
use touchmark_proto::tasks::{Task, TaskType};
use touchmark_proto::{
    Author, Evidence, FileMode, Hash, HashOrAbsent, LineRange, RelPath, SessionId, VersionKind,
};

fn path(name: &str) -> RelPath {
    RelPath::new(name.as_bytes()).unwrap()
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn hash(number: u8) -> Hash {
    Hash([number; 32])
}

fn lines(start: u32, end: u32) -> LineRange {
    LineRange { start, end }
}

fn held(number: u8) -> Held {
    Held {
        hash: Some(hash(number)),
        size: 70_000,
        lines: 300,
        mtime_ms: 1_700_000_000_123,
        mode: None,
        owner: None,
    }
}

/// Returns the examples of facts, each with its name. The names of records that
/// were ever stored do not change.
pub(crate) fn facts() -> Vec<(&'static str, Fact)> {
    let s = || session("s");
    vec![
        (
            "session-opened",
            Fact::SessionOpened {
                session: session("a longer name"),
                agent: Some(Program {
                    name: "agent".into(),
                    version: "1.2".into(),
                }),
                parent: Some(s()),
                pid: Some(4_000_000),
            },
        ),
        (
            "session-opened-bare",
            Fact::SessionOpened {
                session: s(),
                agent: None,
                parent: None,
                pid: None,
            },
        ),
        ("session-closed", Fact::SessionClosed { session: s() }),
        ("session-forgotten", Fact::SessionForgotten { session: s() }),
        (
            "baseline",
            Fact::Baseline {
                path: path("d/a"),
                held: held(1),
                untracked: false,
                real: None,
            },
        ),
        (
            "baseline-absent",
            Fact::Baseline {
                path: RelPath::new(b"\xff").unwrap(),
                held: Held::ABSENT,
                untracked: false,
                real: None,
            },
        ),
        (
            "baseline-untracked",
            Fact::Baseline {
                path: path("d/a"),
                held: held(1),
                untracked: true,
                real: None,
            },
        ),
        (
            "version-of-a-command",
            Fact::Version(VersionFact {
                command: Some(2),
                ..VersionFact::new(
                    path("a"),
                    VersionKind::Created,
                    held(3),
                    Author::agent(s()),
                    Evidence::Command,
                )
            }),
        ),
        (
            "version",
            Fact::Version(VersionFact {
                path: path("d/b"),
                kind: VersionKind::Renamed,
                from: Some(path("d/a")),
                held: held(2),
                author: Author::agent(s()),
                evidence: Evidence::Command,
                amends: Some(7),
                edit: Some(300),
                unobserved: true,
                late: true,
                formatted: true,
                candidates: vec![s(), session("t")],
                before: Some(hash(1)),
                command: None,
                mode_before: None,
                real: None,
            }),
        ),
        (
            "version-behind-a-link",
            Fact::Version(VersionFact {
                real: Some(path("behind/b")),
                ..VersionFact::new(
                    path("d/b"),
                    VersionKind::Modified,
                    held(2),
                    Author::USER,
                    Evidence::Unmarked,
                )
            }),
        ),
        (
            "baseline-behind-a-link",
            Fact::Baseline {
                path: path("d/b"),
                held: held(1),
                untracked: false,
                real: Some(path("behind/b")),
            },
        ),
        (
            "version-of-a-mode",
            Fact::Version(VersionFact {
                before: Some(hash(3)),
                command: Some(2),
                mode_before: FileMode::new(0o100_644),
                ..VersionFact::new(
                    path("a"),
                    VersionKind::Modified,
                    Held {
                        mode: FileMode::new(0o100_755),
                        ..held(3)
                    },
                    Author::agent(s()),
                    Evidence::Command,
                )
            }),
        ),
        (
            "version-bare",
            Fact::Version(VersionFact::new(
                path("a"),
                VersionKind::Deleted,
                Held::ABSENT,
                Author::USER,
                Evidence::Unmarked,
            )),
        ),
        (
            "version-of-a-gap",
            Fact::Version(VersionFact::new(
                path("a"),
                VersionKind::Created,
                held(3),
                Author::UNKNOWN,
                Evidence::Gap,
            )),
        ),
        (
            "tracked",
            Fact::Tracked {
                session: s(),
                path: path("a"),
                source: Source::FileMentioned,
                step: Some(5),
            },
        ),
        (
            "untracked",
            Fact::Untracked {
                session: s(),
                path: path("a"),
            },
        ),
        (
            "copied",
            Fact::Copied {
                from: path("a"),
                to: path("b"),
            },
        ),
        ("copy-dropped", Fact::CopyDropped { path: path("b") }),
        (
            "read",
            Fact::Read {
                session: s(),
                path: path("a"),
                hash: Some(hash(1)),
                lines: 300,
                range: Some(lines(1, 200)),
                verdict: Verdict::Changed,
                source: Source::ReadTool,
                step: Some(6),
            },
        ),
        (
            "read-bare",
            Fact::Read {
                session: s(),
                path: path("a"),
                hash: None,
                lines: 0,
                range: None,
                verdict: Verdict::First,
                source: Source::UserEdited,
                step: None,
            },
        ),
        (
            "wrote",
            Fact::Wrote {
                session: s(),
                path: path("a"),
                hash: HashOrAbsent::Hash(hash(2)),
                assumed: true,
            },
        ),
        (
            "wrote-absence",
            Fact::Wrote {
                session: s(),
                path: path("a"),
                hash: HashOrAbsent::Absent,
                assumed: false,
            },
        ),
        (
            "invalidated",
            Fact::Invalidated {
                session: s(),
                path: Some(path("a")),
            },
        ),
        (
            "invalidated-all",
            Fact::Invalidated {
                session: s(),
                path: None,
            },
        ),
        (
            "compacted",
            Fact::Compacted {
                session: s(),
                keep: vec![path("a"), path("b")],
            },
        ),
        (
            "truncated",
            Fact::Truncated {
                session: s(),
                items: vec![(path("a"), Some(lines(3, 4))), (path("b"), None)],
            },
        ),
        (
            "edit-begun",
            Fact::EditBegun(EditFact {
                edit: 300,
                session: s(),
                call: Some("call".into()),
                files: vec![
                    EditFileFact {
                        path: path("a"),
                        expect: Some(HashOrAbsent::Hash(hash(2))),
                        began: Some(hash(1)),
                        base: Some(hash(3)),
                    },
                    EditFileFact {
                        path: path("b"),
                        expect: Some(HashOrAbsent::Absent),
                        began: None,
                        base: None,
                    },
                    EditFileFact {
                        path: path("c"),
                        expect: None,
                        began: None,
                        base: None,
                    },
                ],
                deadline: 1_700_000_000_500,
                one_shot: true,
                bound: Some(9),
                tool: Some("edit".into()),
                step: Some(8),
            }),
        ),
        (
            "edit-begun-bare",
            Fact::EditBegun(EditFact {
                edit: 1,
                session: s(),
                call: None,
                files: Vec::new(),
                deadline: 0,
                one_shot: false,
                bound: None,
                tool: None,
                step: None,
            }),
        ),
        (
            "edit-ended",
            Fact::EditEnded {
                edit: 300,
                session: s(),
                paths: vec![path("a")],
                phase: EditPhase::Lapsed,
            },
        ),
        (
            "delivered",
            Fact::Delivered {
                session: s(),
                paths: vec![(path("a"), 70_000)],
                lost: vec![4],
            },
        ),
        ("reset-told", Fact::ResetTold { session: s() }),
        (
            "lost",
            Fact::Lost {
                session: s(),
                path: path("a"),
                version: 4,
                by: 5,
            },
        ),
        (
            "saved",
            Fact::Saved {
                path: path("a"),
                hash: hash(2),
                time: 1_700_000_000_400,
                formatted: true,
            },
        ),
        (
            "command-begun",
            Fact::CommandBegun(CommandFact {
                command: 2,
                session: s(),
                call: Some("call".into()),
                label: Some("make".into()),
                globs: Globs {
                    patterns: Some(vec!["src/**".into()]),
                    case_insensitive: true,
                },
                deadline: 1_700_000_000_600,
                bound: Some(9),
                pid: Some(77),
                formatter: true,
                workspace: false,
                branch: None,
            }),
        ),
        (
            "command-begun-of-all",
            Fact::CommandBegun(CommandFact {
                command: 4,
                session: s(),
                call: None,
                label: None,
                globs: Globs::default(),
                deadline: 0,
                bound: None,
                pid: None,
                formatter: false,
                workspace: true,
                branch: Some("main".into()),
            }),
        ),
        (
            "command-begun-bare",
            Fact::CommandBegun(CommandFact {
                command: 3,
                session: s(),
                call: None,
                label: None,
                globs: Globs::default(),
                deadline: 0,
                bound: None,
                pid: None,
                formatter: false,
                workspace: false,
                branch: None,
            }),
        ),
        (
            "command-ended",
            Fact::CommandEnded {
                command: 2,
                session: s(),
                exit: None,
                branch: None,
            },
        ),
        (
            "command-ended-of-all",
            Fact::CommandEnded {
                command: 2,
                session: s(),
                exit: Some(-1),
                branch: Some("topic".into()),
            },
        ),
    ]
    .into_iter()
    .chain(of_names())
    .chain(outcomes())
    .chain(notes().into_iter().map(|(name, note)| {
        let session = session("s");
        (name, Fact::Noted { session, note })
    }))
    .collect()
}

/// Returns the examples of the kinds that were added with format 1.
fn of_names() -> Vec<(&'static str, Fact)> {
    vec![
        (
            "labelled",
            Fact::Labelled {
                session: session("s"),
                label: "agent-1".into(),
            },
        ),
        (
            "name-used",
            Fact::NameUsed {
                session: session("s"),
                name: path("link"),
                file: path("a"),
            },
        ),
        (
            "names-joined",
            Fact::NamesJoined {
                name: path("link"),
                file: path("a"),
            },
        ),
        (
            "names-parted",
            Fact::NamesParted {
                file: path("a"),
                leaving: vec![path("link"), path("d/link")],
            },
        ),
        (
            "carried",
            Fact::Carried {
                session: session("s1"),
                path: path("a"),
                from: hash(1),
                to: hash(2),
                kept: RangeSet::default().with(1, 9).with(12, u32::MAX),
                changed: RangeSet::default().with(10, 11),
            },
        ),
        (
            "inherited",
            Fact::Inherited {
                session: session("s1"),
                from: session("mcp-1"),
            },
        ),
    ]
}

/// Returns the examples of results that are only for the log.
fn outcomes() -> Vec<(&'static str, Fact)> {
    let s = || session("s");
    let survival = |horizon| Fact::Survival {
        version: 70,
        session: s(),
        path: path("d/a"),
        horizon,
        added: 300,
        alive: 12,
    };
    let brought = |how| Fact::GitBrought {
        version: 70,
        path: path("d/a"),
        how,
    };
    vec![
        (
            "refused",
            Fact::Refused {
                session: s(),
                path: Some(path("a")),
                cause: Refusal::NotRead,
            },
        ),
        (
            "refused-bare",
            Fact::Refused {
                session: s(),
                path: None,
                cause: Refusal::Conflict,
            },
        ),
        (
            "passed",
            Fact::Passed {
                session: s(),
                path: path("a"),
                cause: Passing::Late,
            },
        ),
        (
            "undone",
            Fact::Undone {
                session: Some(s()),
                undo: 3,
                redo: true,
                files: 2,
                hunks: 300,
                conflicts: 1,
            },
        ),
        (
            "undone-bare",
            Fact::Undone {
                session: None,
                undo: 3,
                redo: false,
                files: 1,
                hunks: 1,
                conflicts: 0,
            },
        ),
        (
            "brought-back",
            Fact::BroughtBack {
                session: Some(s()),
                path: path("a"),
                version: Some(70),
            },
        ),
        (
            "brought-back-bare",
            Fact::BroughtBack {
                session: None,
                path: path("a"),
                version: None,
            },
        ),
        (
            "claimed",
            Fact::Claimed {
                path: path("a"),
                version: 70,
                lines: vec![(0, 5), (300, u64::MAX)],
                session: Some(s()),
            },
        ),
        (
            "claimed-by-the-user",
            Fact::Claimed {
                path: path("a"),
                version: 70,
                lines: Vec::new(),
                session: None,
            },
        ),
        ("survival-at-commit", survival(Horizon::Commit)),
        ("survival-after-a-day", survival(Horizon::Day)),
        ("survival-after-a-week", survival(Horizon::Week)),
        (
            "kept",
            Fact::Kept {
                session: Some(s()),
                files: 2,
                changes: 3,
            },
        ),
        ("git-carried", brought(Carriage::Carried)),
        ("git-wiped", brought(Carriage::Wiped)),
        ("git-taken-back", brought(Carriage::TakenBack)),
        ("git-unclear", brought(Carriage::Unclear)),
        (
            "lineage-moved",
            Fact::Lineage {
                path: path("d/b"),
                version: Some(70),
                from: Some(path("a")),
                until: 71,
            },
        ),
        (
            "lineage-moved-unrecorded",
            Fact::Lineage {
                path: path("b"),
                version: None,
                from: Some(path("a")),
                until: 300,
            },
        ),
        (
            "lineage-new",
            Fact::Lineage {
                path: path("a"),
                version: Some(70),
                from: None,
                until: 0,
            },
        ),
    ]
}

/// Returns the number under which a kind of fact is stored. A new kind needs an
/// example.
pub(crate) fn number(fact: &Fact) -> u8 {
    match fact {
        Fact::SessionOpened { .. } => 0,
        Fact::SessionClosed { .. } => 1,
        Fact::SessionForgotten { .. } => 2,
        Fact::Baseline { .. } => 3,
        Fact::Version(_) => 4,
        Fact::Tracked { .. } => 5,
        Fact::Untracked { .. } => 6,
        Fact::Copied { .. } => 7,
        Fact::CopyDropped { .. } => 8,
        Fact::Read { .. } => 9,
        Fact::Wrote { .. } => 10,
        Fact::Invalidated { .. } => 11,
        Fact::Compacted { .. } => 12,
        Fact::Truncated { .. } => 13,
        Fact::EditBegun(_) => 14,
        Fact::EditEnded { .. } => 15,
        Fact::Delivered { .. } => 16,
        Fact::ResetTold { .. } => 17,
        Fact::Lost { .. } => 18,
        Fact::Saved { .. } => 19,
        Fact::CommandBegun(_) => 20,
        Fact::CommandEnded { .. } => 21,
        Fact::Noted { .. } => 22,
        Fact::Labelled { .. } => 23,
        Fact::NameUsed { .. } => 24,
        Fact::NamesJoined { .. } => 25,
        Fact::NamesParted { .. } => 26,
        Fact::Carried { .. } => 27,
        Fact::Inherited { .. } => 28,
        Fact::Refused { .. } => 29,
        Fact::Passed { .. } => 30,
        Fact::Undone { .. } => 31,
        Fact::BroughtBack { .. } => 32,
        Fact::Survival { .. } => 33,
        Fact::Claimed { .. } => 34,
        Fact::Kept { .. } => 35,
        Fact::GitBrought { .. } => 36,
        Fact::Lineage { .. } => 37,
    }
}

/// The number of kinds.
pub(crate) const KINDS: u8 = 38;

fn notes() -> Vec<(&'static str, Note)> {
    let call = |searched| {
        Note::CallRecorded(Call {
            call: 12,
            time: 1_700_000_000_700,
            n: 70,
            tool: "grep".into(),
            args: "{}".into(),
            result: Some("\"text\"".into()),
            rests_on: vec![(path("a"), Some(hash(1))), (path("b"), None)],
            searched,
        })
    };
    vec![
        (
            "note-checkpoint-created",
            Note::CheckpointCreated {
                checkpoint: 1,
                label: Some("before".into()),
                message: Some("m".into()),
                step: Some(4),
                text: None,
            },
        ),
        (
            "note-checkpoint-of-a-prompt",
            Note::CheckpointCreated {
                checkpoint: 2,
                label: None,
                message: None,
                step: None,
                text: Some("rename it".into()),
            },
        ),
        (
            "note-checkpoint-deleted",
            Note::CheckpointDeleted { checkpoint: 9 },
        ),
        (
            "note-warning-stored",
            Note::WarningStored {
                files: vec![path("a")],
                note: Some("look".into()),
            },
        ),
        ("note-warning-taken", Note::WarningTaken),
        ("note-turn", Note::Turn { begins: true }),
        (
            "note-to-say",
            Note::ToSay {
                text: "undone".into(),
            },
        ),
        ("note-said", Note::Said { count: 1 }),
        (
            "note-undo-to-say",
            Note::UndoToSay {
                undo: 3,
                text: Some("undone".into()),
            },
        ),
        (
            "note-undo-said",
            Note::UndoToSay {
                undo: 3,
                text: None,
            },
        ),
        (
            "note-model-recorded",
            Note::ModelRecorded {
                model: "m".into(),
                provider: "p".into(),
                mode: "code".into(),
                message: Some("first".into()),
            },
        ),
        (
            "note-task-saved",
            Note::TaskSaved {
                task: Task {
                    id: "t".into(),
                    task_type: TaskType::Process,
                    command: Some("sleep 1".into()),
                    pid: Some(7),
                    start_time: 1_700_000_000_000,
                    working_directory: "/w".into(),
                },
                started: Some(123_456),
            },
        ),
        ("note-task-removed", Note::TaskRemoved { id: "x".into() }),
        ("note-call-recorded", call(Searched::Below(path("d")))),
        ("note-call-of-no-search", call(Searched::No)),
        ("note-call-of-everything", call(Searched::Everywhere)),
        (
            "note-calls-dropped",
            Note::CallsDropped {
                calls: vec![99, 100],
                reason: Dropped::Evicted,
            },
        ),
        ("note-call-checked", Note::CallChecked { hit: true }),
        (
            "note-saved",
            Note::Saved(Savings {
                repeats: 1,
                bytes_not_sent: 70_000,
                stale_refused: 3,
                not_read_refused: 4,
                conflicts: 5,
                duplicate_calls: 6,
                duplicate_bytes: 7,
                notices: 8,
                unanswered_hooks: 0,
                unclear_hooks: 0,
            }),
        ),
        (
            "note-message-seen",
            Note::MessageSeen {
                message: "second".into(),
            },
        ),
    ]
}

/// Returns a state that has something of everything, made by facts of every
/// kind.
pub(crate) fn state() -> State {
    let s = || session("s");
    let mut state = State::new(1_700_000_000_000, true);
    let read = |session: SessionId, name: &str, number| Fact::Read {
        session,
        path: path(name),
        hash: Some(hash(number)),
        lines: 300,
        range: None,
        verdict: Verdict::First,
        source: Source::ReadTool,
        step: None,
    };
    let tracked = |session: SessionId, name: &str| Fact::Tracked {
        session,
        path: path(name),
        source: Source::ReadTool,
        step: None,
    };
    let baseline = |name: &str| Fact::Baseline {
        path: path(name),
        held: held(1),
        untracked: false,
        real: None,
    };
    let version = |name: &str, number, author| {
        Fact::Version(VersionFact {
            before: Some(hash(number - 1)),
            ..VersionFact::new(
                path(name),
                VersionKind::Modified,
                held(number),
                author,
                Evidence::Unmarked,
            )
        })
    };
    let begin = [
        baseline("a"),
        baseline("d/a"),
        tracked(s(), "a"),
        read(s(), "a", 1),
        tracked(s(), "d/a"),
        tracked(session("t"), "a"),
        read(session("t"), "a", 1),
        version("a", 2, Author::USER),
        version("a", 3, Author::agent(session("t"))),
        version("d/a", 2, Author::UNKNOWN),
    ];
    let left_out = [
        "session-forgotten",
        "session-closed",
        "untracked",
        "copy-dropped",
    ];
    let rest = facts()
        .into_iter()
        .filter(|(name, _)| !left_out.contains(name))
        .map(|(_, fact)| fact);
    for (n, fact) in (1..).zip(begin.into_iter().chain(rest)) {
        let time = 1_700_000_000_000 + n;
        state.apply(&Record { n, time, fact });
    }
    state
}

/// Returns stats of some of the state's paths.
pub(crate) fn stamps() -> Files {
    let stamp = Stamp {
        inode: 12,
        size: 70_000,
        modified: 1_700_000_000_123_456_789,
        changed: -1,
        device: 66,
        mount: 9,
    };
    [(path("d/a"), stamp)].into_iter().collect()
}
