//! The table of methods: one row joins a name, its parameters, its result.

use crate::calls::{
    CallCheck, CallChecked, CallClear, CallCounts, CallRecord, CallRecorded, CallStats,
};
use crate::changes::{Changes, ModifiedAck, ModifiedList, ModifiedTake, ModifiedTaken};
use crate::checkpoints::{
    CheckpointCreate, CheckpointCreated, CheckpointDelete, CheckpointDetect, CheckpointDetected,
    CheckpointList, CheckpointRows, WarningCleanup, WarningStore, WarningTake, WarningTaken,
};
use crate::commands::{
    CommandBegin, CommandBegun, CommandEnd, CommandEnded, CommandList, CommandRows,
};
use crate::daemon::{
    Audit, Audited, ContentsForget, Done, Initialize, Initialized, Ping, Savings, Shutdown, Stats,
    Status, StatusReport, Subscribe, Subscribed, Sync, Synced, Unsubscribe,
};
use crate::editors::{EditorDidClose, EditorDidOpen, EditorDidSave, EditorDirty};
use crate::edits::{
    EditAbort, EditBegin, EditBegun, EditCommit, EditCommitted, EditMark, EditMarked,
};
use crate::error::{Error, ErrorCode};
use crate::facts::FileState;
use crate::files::{
    FileAge, FileDetect, FileHistory, FileInvalidate, FileIsStale, FileList, FileMention, FileRead,
    FileReadResult, FileReadText, FileRecent, FileRecords, FileSnapshot, FileStates, FileStatus,
    FileText, FileUntrack, Snapshot, SnapshotCompared, Versions,
};
use crate::history::{
    Blame, ContentAt, FileBlame, FileContent, FileDiff, FileDiffs, FileLog, FileRestore,
    LogEntries, Restored,
};
use crate::hooks::{
    HookAck, HookClaude, HookCodex, HookCursor, HookEvent, HookGemini, HookJoin, HookJoined,
    HookOpencode, HookPrinted,
};
use crate::models::{ModelEntries, ModelList, ModelRecord, ModelRecorded};
use crate::quoting::{quoted, without_hidden};
use crate::retention::{RetentionRank, RetentionRanked};
use crate::review::{ReviewHunks, ReviewKeep, ReviewKept, ReviewList, ReviewUndo};
use crate::search::{Matches, SearchGrep};
use crate::sessions::{
    Evicted, SessionClose, SessionCompacted, SessionList, SessionOpen, SessionOpened, SessionRows,
    SessionTruncated,
};
use crate::tasks::{Removed, TaskCleanup, TaskList, TaskRemove, TaskRows, TaskSave};
use crate::undo::{Redo, Undo, UndoList, UndoRows, Undone};
use crate::writes::{
    FileEdit, FileEdited, FileWrite, FileWritten, QuotesFound, QuotesMatch, QuotesNormalize,
    QuotesNormalized, RecoveryDelete, RecoveryItems, RecoveryList, RecoveryRestore,
    RecoveryRestored, RecoveryShow, RecoveryShown,
};

/// The parameters of one method, and what it answers.
pub trait Method: Sized {
    /// Its name on the wire.
    const NAME: &'static str;
    /// What it answers.
    type Result;
    /// As one of all requests.
    fn into_request(self) -> Request;
    /// The answer out of all answers; `None` if it answers another method.
    fn from_reply(reply: Reply) -> Option<Self::Result>;
}

/// What serde says of parameters repeats words of theirs.
fn not_that_shape(method: &str, error: &serde_json::Error) -> Error {
    let error = without_hidden(&error.to_string());
    Error::invalid(format!("{method}: {error}"))
}

macro_rules! methods {
    ($($variant:ident: $name:literal, $params:ty => $result:ty;)*) => {
        /// Every request. The order of the variants is the binary wire's
        /// numbering: new ones go to the end.
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs)] // each is its parameters' type, documented there
        pub enum Request { $($variant($params),)* }

        /// Every answer, in the order of [`Request`].
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs)] // each is its result's type, documented there
        pub enum Reply { $($variant($result),)* }

        /// Every method's name, in the order of [`Request`].
        pub const METHODS: &[&str] = &[$($name,)*];

        impl Request {
            /// The method's name on the wire.
            pub fn method(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// Reads the parameters of a method from JSON. Fields that are
            /// `null` must have been taken out before: absent and `null` are
            /// the same.
            ///
            /// # Errors
            /// `methodNotFound` and `invalidParams`.
            pub fn from_json(method: &str, params: serde_json::Value) -> Result<Self, Error> {
                match method {
                    $($name => serde_json::from_value(params)
                        .map(Self::$variant)
                        .map_err(|error| not_that_shape(method, &error)),)*
                    _ => Err(Error::new(
                        ErrorCode::MethodNotFound,
                        format!("there is no method {}", quoted(method, 80)),
                    )),
                }
            }

            /// The parameters as JSON.
            pub fn to_json(&self) -> serde_json::Value {
                let value = match self { $(Self::$variant(params) => serde_json::to_value(params),)* };
                value.unwrap_or_default()
            }
        }

        impl Reply {
            /// The result as JSON, `null` fields still in it.
            pub fn to_json(&self) -> serde_json::Value {
                let value = match self { $(Self::$variant(result) => serde_json::to_value(result),)* };
                value.unwrap_or_default()
            }

            /// Reads the result of a method from JSON.
            ///
            /// # Errors
            /// `methodNotFound`, and `invalidParams` for a result of another
            /// shape.
            pub fn from_json(method: &str, result: serde_json::Value) -> Result<Self, Error> {
                match method {
                    $($name => serde_json::from_value(result)
                        .map(Self::$variant)
                        .map_err(|error| not_that_shape(method, &error)),)*
                    _ => Err(Error::new(
                        ErrorCode::MethodNotFound,
                        format!("there is no method {}", quoted(method, 80)),
                    )),
                }
            }
        }

        $(impl Method for $params {
            const NAME: &'static str = $name;
            type Result = $result;
            fn into_request(self) -> Request {
                Request::$variant(self)
            }
            fn from_reply(reply: Reply) -> Option<$result> {
                match reply {
                    Reply::$variant(result) => Some(result),
                    _ => None,
                }
            }
        })*

        /// The schemas of every method's parameters and result, by name.
        pub fn schemas(generator: &mut schemars::SchemaGenerator)
            -> Vec<(&'static str, schemars::Schema, schemars::Schema)>
        {
            vec![$((
                $name,
                generator.subschema_for::<$params>(),
                generator.subschema_for::<$result>(),
            ),)*]
        }
    };
}

methods! {
    Initialize: "initialize", Initialize => Initialized;
    Ping: "ping", Ping => Done;
    Status: "status", Status => StatusReport;
    Sync: "sync", Sync => Synced;
    Shutdown: "shutdown", Shutdown => Done;
    Subscribe: "subscribe", Subscribe => Subscribed;
    Unsubscribe: "unsubscribe", Unsubscribe => Done;
    SessionOpen: "session/open", SessionOpen => SessionOpened;
    SessionClose: "session/close", SessionClose => Done;
    SessionList: "session/list", SessionList => SessionRows;
    SessionCompacted: "session/compacted", SessionCompacted => Evicted;
    SessionTruncated: "session/truncated", SessionTruncated => Evicted;
    FileRead: "file/read", FileRead => FileReadResult;
    FileReadText: "file/readText", FileReadText => FileText;
    FileMention: "file/mention", FileMention => FileState;
    FileInvalidate: "file/invalidate", FileInvalidate => Done;
    FileStatus: "file/status", FileStatus => FileStates;
    FileList: "file/list", FileList => FileRecords;
    FileHistory: "file/history", FileHistory => Versions;
    FileUntrack: "file/untrack", FileUntrack => Done;
    EditBegin: "edit/begin", EditBegin => EditBegun;
    EditCommit: "edit/commit", EditCommit => EditCommitted;
    EditAbort: "edit/abort", EditAbort => Done;
    EditMark: "edit/mark", EditMark => EditMarked;
    ModifiedList: "modified/list", ModifiedList => Changes;
    ModifiedTake: "modified/take", ModifiedTake => ModifiedTaken;
    ModifiedAck: "modified/ack", ModifiedAck => Done;
    EditorDidOpen: "editor/didOpen", EditorDidOpen => Done;
    EditorDidClose: "editor/didClose", EditorDidClose => Done;
    EditorDirty: "editor/dirty", EditorDirty => Done;
    EditorDidSave: "editor/didSave", EditorDidSave => Done;
    CommandBegin: "command/begin", CommandBegin => CommandBegun;
    CommandEnd: "command/end", CommandEnd => CommandEnded;
    Audit: "audit", Audit => Audited;
    FileWrite: "file/write", FileWrite => FileWritten;
    FileEdit: "file/edit", FileEdit => FileEdited;
    RecoveryList: "recovery/list", RecoveryList => RecoveryItems;
    RecoveryShow: "recovery/show", RecoveryShow => RecoveryShown;
    RecoveryRestore: "recovery/restore", RecoveryRestore => RecoveryRestored;
    RecoveryDelete: "recovery/delete", RecoveryDelete => RecoveryItems;
    QuotesNormalize: "quotes/normalize", QuotesNormalize => QuotesNormalized;
    QuotesMatch: "quotes/match", QuotesMatch => Option<QuotesFound>;
    Stats: "stats", Stats => Savings;
    FileRecent: "file/recent", FileRecent => FileRecords;
    FileIsStale: "file/isStale", FileIsStale => FileAge;
    FileSnapshot: "file/snapshot", FileSnapshot => Snapshot;
    FileDetect: "file/detect", FileDetect => SnapshotCompared;
    CheckpointCreate: "checkpoint/create", CheckpointCreate => CheckpointCreated;
    CheckpointList: "checkpoint/list", CheckpointList => CheckpointRows;
    CheckpointDelete: "checkpoint/delete", CheckpointDelete => Done;
    CheckpointDetect: "checkpoint/detect", CheckpointDetect => CheckpointDetected;
    WarningStore: "warning/store", WarningStore => Done;
    WarningTake: "warning/take", WarningTake => WarningTaken;
    WarningCleanup: "warning/cleanup", WarningCleanup => Removed;
    CallCheck: "call/check", CallCheck => CallChecked;
    CallRecord: "call/record", CallRecord => CallRecorded;
    CallStats: "call/stats", CallStats => CallCounts;
    CallClear: "call/clear", CallClear => Removed;
    RetentionRank: "retention/rank", RetentionRank => RetentionRanked;
    TaskSave: "task/save", TaskSave => Done;
    TaskList: "task/list", TaskList => TaskRows;
    TaskRemove: "task/remove", TaskRemove => Removed;
    TaskCleanup: "task/cleanup", TaskCleanup => Removed;
    ModelRecord: "model/record", ModelRecord => ModelRecorded;
    ModelList: "model/list", ModelList => ModelEntries;
    SearchGrep: "search/grep", SearchGrep => Matches;
    ContentsForget: "contents/forget", ContentsForget => Done;
    HookClaude: "hook/claude", HookClaude => HookPrinted;
    HookCodex: "hook/codex", HookCodex => HookPrinted;
    HookGemini: "hook/gemini", HookGemini => HookPrinted;
    HookCursor: "hook/cursor", HookCursor => HookPrinted;
    HookOpencode: "hook/opencode", HookOpencode => HookPrinted;
    HookAck: "hook/ack", HookAck => Done;
    HookEvent: "hook/event", HookEvent => HookPrinted;
    HookJoin: "hook/join", HookJoin => HookJoined;
    Undo: "undo", Undo => Undone;
    Redo: "redo", Redo => Undone;
    UndoList: "undo/list", UndoList => UndoRows;
    ReviewList: "review/list", ReviewList => ReviewHunks;
    ReviewKeep: "review/keep", ReviewKeep => ReviewKept;
    ReviewUndo: "review/undo", ReviewUndo => Undone;
    CommandList: "command/list", CommandList => CommandRows;
    FileContent: "file/content", FileContent => ContentAt;
    FileDiff: "file/diff", FileDiff => FileDiffs;
    FileBlame: "file/blame", FileBlame => Blame;
    FileLog: "file/log", FileLog => LogEntries;
    FileRestore: "file/restore", FileRestore => Restored;
}
