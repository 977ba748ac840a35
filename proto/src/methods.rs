//! The table of methods: one row joins a name, its parameters, its result and
//! its errors.

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

/// The parameters of a method, with the method's name and result.
pub trait Method: Sized {
    /// The method's name on the wire.
    const NAME: &'static str;
    /// The type of the result.
    type Result;
    /// Returns these parameters as a request.
    fn into_request(self) -> Request;
    /// Returns the result from a reply; `None` if the reply is of another
    /// method.
    fn from_reply(reply: Reply) -> Option<Self::Result>;
}

/// Returns the error for parameters of the wrong shape. serde's messages quote
/// the parameters, so hidden characters are escaped.
fn not_that_shape(method: &str, error: &serde_json::Error) -> Error {
    let error = without_hidden(&error.to_string());
    Error::invalid(format!("{method}: {error}"))
}

macro_rules! methods {
    ($($variant:ident: $name:literal, $params:ty => $result:ty;)*) => {
        /// All requests. The order of the variants is their numbering on the
        /// binary wire, so new ones are added at the end.
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs)] // each is documented at the type of its parameters
        pub enum Request { $($variant($params),)* }

        /// All results, in the order of [`Request`].
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs)] // each is documented at the type of its result
        pub enum Reply { $($variant($result),)* }

        /// The names of all methods, in the order of [`Request`].
        pub const METHODS: &[&str] = &[$($name,)*];

        impl Request {
            /// Returns the method's name on the wire.
            pub fn method(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// Reads the parameters of a method from JSON. Fields that are
            /// `null` must have been removed before, since absent and `null`
            /// mean the same.
            ///
            /// # Errors
            /// `methodNotFound` for an unknown method, `invalidParams` for
            /// parameters of another shape.
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

            /// Returns the parameters as JSON.
            pub fn to_json(&self) -> serde_json::Value {
                let value = match self { $(Self::$variant(params) => serde_json::to_value(params),)* };
                value.unwrap_or_default()
            }
        }

        impl Reply {
            /// Returns the result as JSON; `null` fields are not removed.
            pub fn to_json(&self) -> serde_json::Value {
                let value = match self { $(Self::$variant(result) => serde_json::to_value(result),)* };
                value.unwrap_or_default()
            }

            /// Reads the result of a method from JSON.
            ///
            /// # Errors
            /// `methodNotFound` for an unknown method, `invalidParams` for a
            /// result of another shape.
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

        /// Returns each method's name with the schemas of its parameters and of
        /// its result.
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

// The errors of a row are those of docs/protocol.md's table. In a debug build the
// daemon checks each answer against them, so the tests show what a row lacks.
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
