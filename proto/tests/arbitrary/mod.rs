//! Strategies for arbitrary messages of the protocol, for property tests.
#![allow(clippy::unwrap_used, unreachable_pub, missing_docs)]

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use touchmark_proto::calls::{CallCheck, CallChecked, CallRecord, Duplicate, Validity};
use touchmark_proto::changes::{Ack, ModifiedTake, ModifiedTaken};
use touchmark_proto::checkpoints::{
    CheckpointDetect, CheckpointDetected, DeletedOperation, EditedFile, WarningTaken,
};
use touchmark_proto::codec::{ClientMessage, MessageId, ServerMessage};
use touchmark_proto::commands::CommandRow;
use touchmark_proto::daemon::{Done, Initialize, Ping, Program, Role, Subscribe};
use touchmark_proto::editors::{EditorDidSave, EditorDirty};
use touchmark_proto::edits::{
    CommitFile, CommittedFile, EditBegin, EditBegun, EditCommit, EditCommitted, EditFile, EditMark,
    EditMarked, Outcome,
};
use touchmark_proto::events::{EditPhase, Event, Happening, SessionPhase};
use touchmark_proto::files::{
    FileDetect, FileInvalidate, FileRead, FileReadText, FileRecord, FileRecords, FileStates,
    FileStatus, FileText, RecordState, Snapshot, Source, TextEncoding, Verdict, Versions,
};
use touchmark_proto::retention::{RetentionItem, RetentionRank};
use touchmark_proto::sessions::{
    SessionCompacted, SessionOpen, SessionOpened, SessionRow, SessionRows, SessionTruncated,
    Truncated, Warning,
};
use touchmark_proto::tasks::{Task, TaskRow, TaskRows, TaskSave, TaskType};
use touchmark_proto::writes::{
    FileEdit, FileEdited, FileWrite, Guard, Matched, RecoveryItem, RecoveryItems,
};
use touchmark_proto::*;

/// The workspace of the paths in this file.
pub const ROOT: &[u8] = b"/home/u/my work";

pub fn session() -> impl Strategy<Value = SessionId> {
    "[^\u{0}]{1,20}".prop_map(|text| SessionId::new(&text).unwrap())
}

pub fn hash() -> impl Strategy<Value = Hash> {
    any::<[u8; 32]>().prop_map(Hash)
}

pub fn hash_or_absent() -> impl Strategy<Value = HashOrAbsent> {
    of(hash()).prop_map(HashOrAbsent::from)
}

pub fn clock() -> impl Strategy<Value = Clock> {
    any::<(u64, u64)>().prop_map(|(epoch, n)| Clock { epoch, n })
}

/// Generates paths inside the workspace; about a third are not UTF-8.
pub fn rel_path() -> impl Strategy<Value = RelPath> {
    let text = vec("[a-zA-Zé%#? .~-]{0,6}[a-z]", 1..4).prop_map(|parts| parts.join("/"));
    let bytes = vec(any::<u8>(), 1..20);
    prop_oneof![
        2 => text.prop_map(|text| RelPath::new(text.as_bytes()).unwrap()),
        1 => bytes.prop_map(|bytes| {
            RelPath::new(&bytes).unwrap_or_else(|_| RelPath::new(b"src/\xff\x80").unwrap())
        }),
    ]
}

/// Generates paths as clients send them. Those that are not UTF-8 are absolute,
/// because a URI is.
pub fn client_path() -> impl Strategy<Value = ClientPath> {
    prop_oneof![
        2 => "(\\./|/|\\.\\./)?[a-zé]{1,5}(/[a-z%# ]{1,5}){0,3}".prop_map(ClientPath::from),
        1 => vec(any::<u8>(), 0..12)
            .prop_map(|tail| ClientPath::new([b"/home/\xff".as_slice(), &tail].concat())),
    ]
}

pub fn range() -> impl Strategy<Value = LineRange> {
    any::<(u32, u32)>().prop_map(|(start, end)| LineRange { start, end })
}

pub fn author() -> impl Strategy<Value = Author> {
    prop_oneof![
        Just(Author::USER),
        Just(Author::UNKNOWN),
        (session(), any::<Option<String>>()).prop_map(|(session, label)| Author {
            label,
            ..Author::agent(session)
        })
    ]
}

fn evidence() -> impl Strategy<Value = Evidence> {
    select(vec![Evidence::Declared, Evidence::Editor, Evidence::Gap])
}

fn kind() -> impl Strategy<Value = VersionKind> {
    select(vec![
        VersionKind::Created,
        VersionKind::Modified,
        VersionKind::Deleted,
        VersionKind::Renamed,
    ])
}

fn verdict() -> impl Strategy<Value = Verdict> {
    select(vec![Verdict::First, Verdict::Repeat, Verdict::Changed])
}

fn program() -> impl Strategy<Value = Program> {
    any::<(String, String)>().prop_map(|(name, version)| Program { name, version })
}

prop_compose! {
    fn command_row()(
        (command, session, begun) in (any::<String>(), session(), clock()),
        [session_label, label, branch_before, branch_after] in any::<[Option<String>; 4]>(),
        (begun_at, versions, exit) in any::<(u64, u64, Option<i32>)>(),
        (ended, ended_at) in (of(clock()), any::<Option<u64>>()),
    ) -> CommandRow {
        CommandRow {
            command, session, session_label, label, begun, begun_at, ended, ended_at, exit,
            branch_before, branch_after, versions,
        }
    }
}

prop_compose! {
    pub fn version()(
        (clock, path, kind) in (clock(), rel_path(), kind()),
        (from, real) in (of(rel_path()), of(rel_path())),
        (hash, size, time, author) in (of(hash()), any::<u64>(), any::<u64>(), author()),
        (evidence, amends) in (evidence(), of(clock())),
        flags in any::<[Option<bool>; 6]>(),
        candidates in of(vec(session(), 0..3)),
        (edit, command) in any::<(Option<String>, Option<String>)>(),
        modes in any::<[Option<u8>; 2]>(),
    ) -> Version {
        let [overwritten, unobserved, provisional, late, formatted, before_unknown] = flags;
        let [mode, mode_before] =
            modes.map(|mode| FileMode::new(0o100_000 | u32::from(mode?)));
        Version {
            clock, path, kind, from, hash, size, time, author, evidence, amends,
            overwritten, unobserved, provisional, late, formatted, candidates,
            edit, command, mode, mode_before, before_unknown, real,
        }
    }
}

prop_compose! {
    pub fn change()(
        (path, kind, from, hash) in (rel_path(), kind(), of(rel_path()), of(hash())),
        changed_by in vec(author(), 0..3),
        evidence in vec(evidence(), 0..3),
        (first_time, last_time, versions) in any::<(u64, u64, u32)>(),
        lines in of(any::<(u32, u32)>()),
        (lost, writing) in (of(version().prop_map(Box::new)), any::<Option<bool>>()),
        (reverts, reverted_lines) in (any::<Option<Vec<String>>>(), of(vec(range(), 0..3))),
    ) -> Change {
        let lines = lines.map(|(added, removed)| LineCounts { added, removed });
        Change {
            path, kind, from, hash, changed_by, evidence, first_time, last_time,
            versions, lines, lost, writing, reverts, reverted_lines,
        }
    }
}

prop_compose! {
    pub fn file_state()(
        (path, hash, seen_hash) in (rel_path(), of(hash()), of(hash())),
        state in select(vec![State::Unread, State::Fresh, State::Stale, State::Deleted]),
        (may_edit, resident, assumed, unsaved) in
            any::<(bool, bool, Option<bool>, Option<bool>)>(),
        stale_ranges in of(vec(range(), 0..3)),
        (read_count, line_count, size, mtime_ms) in any::<(u32, u32, u64, u64)>(),
        (read_at, since) in any::<(Option<u64>, Option<u64>)>(),
        (changed_by, unsaved_lines) in (of(vec(author(), 0..3)), of(range())),
    ) -> FileState {
        FileState {
            path, state, may_edit, resident, stale_ranges, hash, seen_hash, assumed,
            read_count, read_at, line_count, size, mtime_ms, unsaved, unsaved_lines,
            changed_by, since,
        }
    }
}

fn reads() -> impl Strategy<Value = Request> {
    let read = (
        (session(), client_path(), of(hash()), of(range())),
        any::<(Option<u32>, Option<String>, Option<u64>)>(),
        of(select(vec![Source::ReadTool, Source::FileMentioned])),
        any::<(Option<bool>, Option<bool>)>(),
    )
        .prop_map(|((session, path, hash, range), rest, source, how)| {
            Request::FileRead(FileRead {
                session,
                path,
                hash,
                range,
                total_lines: rest.0,
                text: rest.1,
                step: rest.2,
                source,
                sync: how.0,
                verify: how.1,
            })
        });
    let text = (session(), client_path(), any::<(Option<u64>, bool)>()).prop_map(
        |(session, path, (step, force))| {
            Request::FileReadText(FileReadText {
                session,
                path,
                range: None,
                step,
                force,
                track: Some(force),
                sync: None,
                verify: None,
            })
        },
    );
    let status = (
        session(),
        of(vec(client_path(), 0..4)),
        any::<Option<String>>(),
    )
        .prop_map(|(session, paths, cursor)| {
            Request::FileStatus(FileStatus {
                session,
                paths,
                state: vec![State::Stale],
                sync: None,
                verify: None,
                limit: Some(7),
                cursor,
            })
        });
    let invalidate = (session(), of(client_path()))
        .prop_map(|(session, path)| Request::FileInvalidate(FileInvalidate { session, path }));
    prop_oneof![read, text, status, invalidate]
}

fn writes() -> impl Strategy<Value = Request> {
    let file = (client_path(), of(hash_or_absent()), of(hash()))
        .prop_map(|(path, expect, base)| EditFile { path, expect, base });
    let begin = (
        session(),
        vec(file, 0..4),
        any::<(bool, bool, Option<u64>)>(),
    )
        .prop_map(|(session, files, (bind, force, wait_ms))| {
            Request::EditBegin(EditBegin {
                session,
                files,
                bind,
                call_id: None,
                require_read: Some(force),
                force,
                wait_ms,
                ttl_ms: wait_ms,
                tool: Some("écrire\n\u{1}\"".into()),
                step: None,
            })
        });
    let committed =
        (client_path(), of(hash_or_absent())).prop_map(|(path, hash)| CommitFile { path, hash });
    let commit = (any::<Option<String>>(), of(session()), vec(committed, 0..4)).prop_map(
        |(edit, session, files)| {
            Request::EditCommit(EditCommit {
                edit,
                session,
                call_id: None,
                files,
            })
        },
    );
    let mark =
        (session(), client_path(), of(hash_or_absent())).prop_map(|(session, path, expect)| {
            Request::EditMark(EditMark {
                session,
                path,
                expect,
                require_read: false,
                bind: true,
                ttl_ms: None,
                step: Some(u64::MAX),
            })
        });
    let write = (
        session(),
        client_path(),
        any::<(Option<String>, bool)>(),
        of(hash()),
    )
        .prop_map(|(session, path, (text, force), base)| {
            Request::FileWrite(FileWrite {
                session,
                path,
                base64: text.is_none().then(|| "/wD/".into()),
                text,
                base,
                force,
                require_read: Some(!force),
                create_directories: force,
                step: None,
            })
        });
    let edit = (session(), client_path(), any::<(String, String, bool)>()).prop_map(
        |(session, path, (old_string, new_string, replace_all))| {
            Request::FileEdit(FileEdit {
                session,
                path,
                old_string,
                new_string,
                replace_all,
                force: !replace_all,
                step: Some(7),
            })
        },
    );
    prop_oneof![begin, commit, mark, write, edit]
}

pub fn request() -> impl Strategy<Value = Request> {
    let initialize =
        (program(), any::<u32>(), of(session())).prop_map(|(client, protocol, session)| {
            Request::Initialize(Initialize {
                client,
                protocol,
                session,
                role: Some(Role::Agent),
            })
        });
    let subscribe = (of(session()), of(clock())).prop_map(|(session, since)| {
        Request::Subscribe(Subscribe {
            session,
            kinds: vec!["version".into()],
            since,
        })
    });
    let open = (
        session(),
        of(program()),
        of(session()),
        any::<Option<u32>>(),
    )
        .prop_map(|(session, agent, parent, pid)| {
            Request::SessionOpen(SessionOpen {
                session,
                agent,
                parent,
                pid,
            })
        });
    let compacted = (session(), vec(client_path(), 0..4))
        .prop_map(|(session, keep)| Request::SessionCompacted(SessionCompacted { session, keep }));
    let truncated =
        (session(), vec((client_path(), of(range())), 0..4)).prop_map(|(session, items)| {
            let items = items
                .into_iter()
                .map(|(path, range)| Truncated { path, range })
                .collect();
            Request::SessionTruncated(SessionTruncated { session, items })
        });
    let take = (session(), any::<bool>(), of(vec(client_path(), 0..3))).prop_map(
        |(session, peek, paths)| {
            Request::ModifiedTake(ModifiedTake {
                session,
                peek,
                ack: Ack::Explicit,
                paths,
                sync: Some(peek),
                verify: None,
                limit: None,
            })
        },
    );
    let saved = (client_path(), hash(), any::<Option<u64>>()).prop_map(|(path, hash, time)| {
        Request::EditorDidSave(EditorDidSave {
            path,
            hash,
            time,
            formatted: true,
        })
    });
    let dirty = (client_path(), any::<bool>(), of(hash()), of(range())).prop_map(
        |(path, dirty, hash, lines)| {
            Request::EditorDirty(EditorDirty {
                path,
                dirty,
                hash,
                lines,
            })
        },
    );
    prop_oneof![
        1 => Just(Request::Ping(Ping {})),
        1 => initialize,
        1 => subscribe,
        1 => open,
        1 => compacted,
        1 => truncated,
        1 => take,
        1 => saved,
        1 => dirty,
        4 => reads(),
        4 => writes(),
        4 => remembered(),
    ]
}

/// Generates JSON of any shape, with members that have a meaning elsewhere in
/// the protocol.
fn free_json() -> impl Strategy<Value = FreeJson> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        Just(Value::from("file:///home/u/a")),
        Just(Value::from("\0%41")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let name = select(vec!["path", "uri", "from", "paths", "hash", "args", "x"]);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name, inner), 0..4).prop_map(|members| {
                let named = members
                    .into_iter()
                    .map(|(name, value)| (name.into(), value));
                Value::Object(named.collect())
            }),
        ]
    })
    .prop_map(FreeJson)
}

fn task() -> impl Strategy<Value = Task> {
    any::<(String, Option<String>, Option<u32>, u64, String)>().prop_map(
        |(id, command, pid, start_time, working_directory)| Task {
            id,
            task_type: TaskType::Process,
            command,
            pid,
            start_time,
            working_directory,
        },
    )
}

/// Generates requests that store something other than files for a session.
fn remembered() -> impl Strategy<Value = Request> {
    let check = (session(), any::<(String, Option<bool>)>(), free_json()).prop_map(
        |(session, (tool, sync), args)| {
            Request::CallCheck(CallCheck {
                session,
                tool,
                args,
                sync,
                verify: None,
            })
        },
    );
    let record = (
        session(),
        (free_json(), free_json()),
        of(vec(client_path(), 0..3)),
    )
        .prop_map(|(session, (args, result), paths)| {
            Request::CallRecord(CallRecord {
                session,
                tool: "readFile".into(),
                args,
                result,
                paths,
            })
        });
    let detect = (
        (session(), of(clock()), of(vec(client_path(), 0..3))),
        vec((client_path(), any::<(String, Option<u64>)>()), 0..3),
        any::<(Option<String>, Option<u64>, bool)>(),
    )
        .prop_map(
            |((session, clock, paths), deleted, (checkpoint, time, store_warning))| {
                let deleted = deleted
                    .into_iter()
                    .map(|(path, (operation, time))| DeletedOperation {
                        path,
                        operation,
                        time,
                    })
                    .collect();
                Request::CheckpointDetect(CheckpointDetect {
                    session,
                    checkpoint,
                    clock,
                    time,
                    paths,
                    deleted,
                    store_warning,
                    sync: None,
                    verify: Some(true),
                    limit: None,
                    cursor: None,
                })
            },
        );
    let detected = (client_path(), of(hash()), any::<(u64, u64)>()).prop_map(
        |(path, hash, (mtime_ms, size))| {
            let snapshot = Snapshot {
                path,
                mtime_ms,
                size,
                hash,
            };
            Request::FileDetect(FileDetect { snapshot })
        },
    );
    let save = (session(), task())
        .prop_map(|(session, task)| Request::TaskSave(TaskSave { session, task }));
    let rank = (
        session(),
        vec((any::<(String, String, bool)>(), of(client_path())), 0..3),
    )
        .prop_map(|(session, items)| {
            let items = items
                .into_iter()
                .map(|((id, tool, mentioned), path)| RetentionItem {
                    id,
                    tool,
                    path,
                    step: 3,
                    lines: None,
                    mentioned,
                })
                .collect();
            Request::RetentionRank(RetentionRank {
                session,
                step: 9,
                max_age: 2,
                items,
            })
        });
    prop_oneof![check, record, detect, detected, save, rank]
}

pub fn message_id() -> impl Strategy<Value = MessageId> {
    prop_oneof![
        Just(MessageId::Null),
        any::<u64>().prop_map(MessageId::Number),
        (i64::MIN..0).prop_map(MessageId::Negative),
        ".{0,60}".prop_map(MessageId::Text),
    ]
}

pub fn client_message() -> impl Strategy<Value = ClientMessage> {
    (of(message_id()), any::<Option<u64>>(), request()).prop_map(|(id, within_ms, request)| {
        ClientMessage {
            id,
            within_ms,
            request,
        }
    })
}

fn warning() -> impl Strategy<Value = Warning> {
    (vec(rel_path(), 0..3), any::<(Option<String>, u64)>()).prop_map(
        |(files, (note, created_at))| Warning {
            files,
            note,
            created_at,
        },
    )
}

prop_compose! {
    fn file_record()(
        path in rel_path(),
        dates in any::<[Option<u64>; 3]>(),
        (last_step, preview, was_modified) in any::<(Option<u64>, String, bool)>(),
    ) -> FileRecord {
        let [agent_read_date, agent_edit_date, user_edit_date] = dates;
        FileRecord {
            path, record_state: RecordState::Active, record_source: Source::AgentEdited,
            agent_read_date, agent_edit_date, user_edit_date, read_count: 1, last_step,
            last_access_time: 5, line_count: 3, preview, was_modified,
        }
    }
}

prop_compose! {
    fn file_text()(
        verdict in verdict(),
        // A text may begin with any character, NUL included.
        (text, message) in any::<(Option<String>, Option<String>)>(),
        nul in any::<bool>(),
        (hash, range) in (of(hash()), of(range())),
    ) -> FileText {
        let text = if nul { Some(format!("\0%41{}", text.unwrap_or_default())) } else { text };
        FileText {
            verdict, text, message, hash, line_count: 9, range, truncated: nul,
            encoding: TextEncoding::Utf8,
        }
    }
}

prop_compose! {
    fn session_row()(
        (session, agent, parent) in (session(), of(program()), of(session())),
        (opened_at, open, label) in any::<(u64, bool, Option<String>)>(),
    ) -> SessionRow {
        SessionRow {
            session, agent, parent, opened_at, last_active: opened_at, open,
            reads: 1, edits: 2, stale: 3, modified: 4, model: label.clone(), label,
        }
    }
}

/// Generates a method's name with one of its replies.
pub fn reply() -> impl Strategy<Value = (&'static str, Reply)> {
    let opened = (
        session(),
        clock(),
        of(warning()),
        vec(change(), 0..2),
        any::<Option<String>>(),
    );
    let opened = opened.prop_map(|(session, clock, warning, modified, label)| {
        Reply::SessionOpen(SessionOpened {
            session,
            resumed: true,
            clock,
            warning,
            modified,
            label,
            pending: None,
        })
    });
    let states = (vec(file_state(), 0..3), any::<Option<String>>()).prop_map(|(files, more)| {
        Reply::FileStatus(FileStates {
            files,
            more,
            pending: None,
        })
    });
    let records = (vec(file_record(), 0..3), any::<Option<String>>()).prop_map(|(files, more)| {
        Reply::FileList(FileRecords {
            files,
            more,
            pending: None,
        })
    });
    let versions = (vec(version(), 0..3), of(clock()))
        .prop_map(|(versions, more)| Reply::FileHistory(Versions { versions, more }));
    let taken = (vec(change(), 0..3), any::<(String, Option<bool>)>()).prop_map(
        |(changes, (cursor, more))| {
            Reply::ModifiedTake(ModifiedTaken {
                changes,
                cursor,
                more,
                reset: more,
                pending: None,
            })
        },
    );
    let begun =
        (any::<(String, u64)>(), vec(file_state(), 0..2)).prop_map(|((edit, deadline), files)| {
            Reply::EditBegin(EditBegun {
                edit,
                deadline,
                files,
            })
        });
    let committed = (
        vec((rel_path(), of(version())), 0..3),
        vec(change(), 0..2),
        any::<Option<bool>>(),
    )
        .prop_map(|(files, changes, late)| {
            let files = files
                .into_iter()
                .map(|(path, version)| CommittedFile {
                    path,
                    outcome: Outcome::Clobbered,
                    late,
                    version,
                })
                .collect();
            Reply::EditCommit(EditCommitted { files, changes })
        });
    let marked = (any::<(Option<String>, Option<u64>)>(), file_state()).prop_map(
        |((edit, deadline), file)| {
            Reply::EditMark(EditMarked {
                edit,
                deadline,
                file,
                late: Some(true),
            })
        },
    );
    let rows = vec(session_row(), 0..3).prop_map(|sessions| {
        Reply::SessionList(SessionRows {
            sessions,
            more: None,
        })
    });
    let edited = (of(version()), any::<Vec<String>>(), any::<(u32, u32)>()).prop_map(
        |(version, recovered, (replacements, line))| {
            Reply::FileEdit(FileEdited {
                version,
                outcome: Outcome::Applied,
                guard: Guard::Exchange,
                lease: true,
                recovered,
                matched: Matched::LineEndings,
                replacements,
                line,
            })
        },
    );
    let kept = (rel_path(), hash(), of(author()), any::<(String, u64)>()).prop_map(
        |(path, hash, author, (id, time))| {
            let item = RecoveryItem {
                file: format!("/kept/{id}"),
                id,
                path,
                hash,
                author,
                time,
                size: time,
            };
            Reply::RecoveryList(RecoveryItems { items: vec![item] })
        },
    );
    let checked = (of(free_json()), any::<(Option<String>, Option<u64>)>()).prop_map(
        |(result, (message, age_ms))| {
            Reply::CallCheck(CallChecked {
                duplicate: Duplicate::Similar,
                cached: false,
                // In JSON a `null` result is the same as none.
                result: result.filter(|result| !result.0.is_null()),
                message,
                age_ms,
                call_id: None,
                validity: Some(Validity::Timed),
            })
        },
    );
    let detected = (
        vec(
            (
                rel_path(),
                vec(author(), 0..2),
                any::<(Option<u64>, Option<bool>, bool)>(),
            ),
            0..3,
        ),
        of(warning()),
    )
        .prop_map(|(files, warning)| {
            let files = files
                .into_iter()
                .map(|(path, edited_by, (time, differs, deleted))| EditedFile {
                    path,
                    edited_by,
                    first_edit: time,
                    last_edit: time,
                    versions: 2,
                    differs,
                    from_deleted_messages: deleted,
                })
                .collect();
            Reply::CheckpointDetect(CheckpointDetected {
                files,
                warning,
                more: None,
            })
        });
    let tasks = vec((session(), task(), any::<Option<bool>>()), 0..3).prop_map(|tasks| {
        let tasks = tasks
            .into_iter()
            .map(|(session, task, alive)| TaskRow {
                session,
                id: task.id,
                task_type: task.task_type,
                command: task.command,
                pid: task.pid,
                start_time: task.start_time,
                working_directory: task.working_directory,
                alive,
                label: Some("claude-1".into()),
            })
            .collect();
        Reply::TaskList(TaskRows { tasks, more: None })
    });
    prop_oneof![
        checked.prop_map(|reply| ("call/check", reply)),
        detected.prop_map(|reply| ("checkpoint/detect", reply)),
        tasks.prop_map(|reply| ("task/list", reply)),
        of(warning())
            .prop_map(|warning| { ("warning/take", Reply::WarningTake(WarningTaken { warning })) }),
        edited.prop_map(|reply| ("file/edit", reply)),
        kept.prop_map(|reply| ("recovery/list", reply)),
        Just(("quotes/match", Reply::QuotesMatch(None))),
        Just(("ping", Reply::Ping(Done {}))),
        opened.prop_map(|reply| ("session/open", reply)),
        rows.prop_map(|reply| ("session/list", reply)),
        states.prop_map(|reply| ("file/status", reply)),
        records.prop_map(|reply| ("file/list", reply)),
        versions.prop_map(|reply| ("file/history", reply)),
        file_text().prop_map(|text| ("file/readText", Reply::FileReadText(text))),
        taken.prop_map(|reply| ("modified/take", reply)),
        begun.prop_map(|reply| ("edit/begin", reply)),
        committed.prop_map(|reply| ("edit/commit", reply)),
        marked.prop_map(|reply| ("edit/mark", reply)),
    ]
}

fn error_data() -> impl Strategy<Value = ErrorData> {
    (
        (of(rel_path()), of(hash()), of(hash()), of(hash_or_absent())),
        (of(vec(author(), 0..3)), of(session()), of(clock())),
        any::<(Option<u64>, Option<u32>, Option<Vec<String>>)>(),
    )
        .prop_map(|(content, people, plain)| ErrorData {
            path: content.0,
            hash: content.1,
            seen_hash: content.2,
            expected: content.3,
            changed_by: people.0,
            holder: people.1,
            clock: people.2,
            since: plain.0,
            within_ms: plain.0,
            matches: plain.1,
            server: plain.1,
            client: plain.1,
            recovered: plain.2,
            ..ErrorData::default()
        })
}

pub fn error() -> impl Strategy<Value = Error> {
    (
        select(ErrorCode::ALL),
        any::<(String, String)>(),
        error_data(),
        vec(error_data(), 0..3),
    )
        .prop_map(|(code, (message, hint), data, files)| Error {
            code,
            message,
            hint,
            data: Box::new(data),
            files,
        })
}

pub fn event() -> impl Strategy<Value = Event> {
    let happening = prop_oneof![
        (version(), of(any::<(u32, u32)>())).prop_map(|(version, lines)| {
            let lines = lines.map(|(added, removed)| LineCounts { added, removed });
            Happening::Version { version, lines }
        }),
        (session(), file_state()).prop_map(|(session, file)| Happening::Stale {
            session,
            file,
            label: Some("claude-1".into())
        }),
        (session(), rel_path(), verdict(), of(range())).prop_map(
            |(session, path, verdict, range)| Happening::Read {
                session,
                path,
                verdict,
                range,
                label: Some("claude-1".into())
            }
        ),
        (session(), any::<String>(), vec(rel_path(), 0..4)).prop_map(|(session, edit, paths)| {
            Happening::Edit {
                session,
                edit,
                phase: EditPhase::Lapsed,
                paths,
                label: Some("claude-1".into()),
            }
        }),
        session().prop_map(|session| Happening::Session {
            session,
            phase: SessionPhase::Forgotten,
            label: Some("claude-1".into())
        }),
        (rel_path(), any::<String>()).prop_map(|(path, kept)| Happening::Recovered { path, kept }),
        (of(rel_path()), any::<String>())
            .prop_map(|(path, cause)| { Happening::Degraded { path, cause } }),
        Just(Happening::Overflow {}),
        command_row().prop_map(|command| Happening::Command { command }),
    ];
    (any::<u64>(), clock(), happening).prop_map(|(subscription, clock, happening)| Event {
        subscription,
        clock,
        happening,
    })
}

/// Generates a message of the daemon, with the method that it answers.
pub fn server_message() -> impl Strategy<Value = (&'static str, ServerMessage)> {
    prop_oneof![
        3 => (message_id(), reply()).prop_map(|(id, (method, reply))| {
            (method, ServerMessage::Reply { id, outcome: Ok(reply) })
        }),
        1 => (message_id(), error()).prop_map(|(id, error)| ("ping", ServerMessage::error(id, error))),
        1 => event().prop_map(|event| ("ping", ServerMessage::Event(event))),
    ]
}
