//! The table of methods: one row joins a name, its parameters, its result and
//! its errors.

use crate::activity::{Activities, ActivityList};
use crate::calls::{
    CallCheck, CallChecked, CallClear, CallCounts, CallRecord, CallRecorded, CallStats,
};
use crate::changes::{Changes, ModifiedAck, ModifiedList, ModifiedTake, ModifiedTaken};
use crate::checkpoints::{
    CheckpointCreate, CheckpointCreated, CheckpointDelete, CheckpointDetect, CheckpointDetected,
    CheckpointList, CheckpointRows, WarningCleanup, WarningStore, WarningTake, WarningTaken,
};
use crate::claim::{Claim, Claimed};
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
use crate::fleet::{FleetYield, FleetYielded};
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
use crate::survival::{SurvivalList, SurvivalRows};
use crate::tasks::{Removed, TaskCleanup, TaskList, TaskRemove, TaskRows, TaskSave};
use crate::undo::{Redo, Undo, UndoList, UndoRows, Undone};
use crate::worktrees::{WorktreeList, WorktreeRows};
use crate::writes::{
    FileEdit, FileEdited, FileWrite, FileWritten, QuotesFound, QuotesMatch, QuotesNormalize,
    QuotesNormalized, RecoveryDelete, RecoveryItems, RecoveryList, RecoveryRestore,
    RecoveryRestored, RecoveryShow, RecoveryShown,
};

/// The errors that a request of any method can be answered with. Each method can
/// answer its own in addition ([`Method::ERRORS`]). A request whose method is not
/// known yet is answered with `parseError`, `invalidRequest`, `methodNotFound` or
/// `denied`.
pub const COMMON_ERRORS: &[ErrorCode] = &[
    ErrorCode::InvalidParams,
    ErrorCode::InternalError,
    ErrorCode::TooLarge,
    ErrorCode::ShuttingDown,
    ErrorCode::TooLate,
];

/// The parameters of a method, with the method's name, result and errors.
pub trait Method: Sized {
    /// The method's name on the wire.
    const NAME: &'static str;
    /// The errors that the method can answer in addition to [`COMMON_ERRORS`].
    const ERRORS: &'static [ErrorCode];
    /// The type of the result.
    type Result;
    /// Returns these parameters as a request.
    fn into_request(self) -> Request;
    /// Returns the result from a reply; `None` if the reply is of another
    /// method.
    fn from_reply(reply: Reply) -> Option<Self::Result>;
}

/// A method as the protocol's schema describes it.
#[cfg(feature = "schema")]
#[derive(Debug)]
pub struct MethodSchema {
    /// The method's name on the wire.
    pub name: &'static str,
    /// The schema of the parameters.
    pub params: schemars::Schema,
    /// The schema of the result.
    pub result: schemars::Schema,
    /// The errors that the method can answer in addition to [`COMMON_ERRORS`].
    pub errors: &'static [ErrorCode],
    /// The arguments of the parameters' `new`.
    pub arguments: &'static [&'static str],
}

/// Returns the error for parameters of the wrong shape. serde's messages quote
/// the parameters, so hidden characters are escaped.
fn not_that_shape(method: &str, error: &serde_json::Error) -> Error {
    let error = without_hidden(&error.to_string());
    Error::invalid(format!("{method}: {error}"))
}

macro_rules! methods {
    ($($variant:ident: $name:literal, $params:ty => $result:ty, [$($error:ident)*];)*) => {
        /// All requests. The order of the variants is their numbering on the
        /// binary wire, so new ones are added at the end.
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs)] // each is documented at the type of its parameters
        #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
        pub enum Request { $($variant($params),)* }

        /// Returns the documentation of a method's errors, by the type of its
        /// parameters, for the `# Errors` section of a function that sends it.
        #[macro_export]
        macro_rules! errors_of {
            $(($variant) => {
                concat!(
                    "[Those of every method](touchmark_proto::COMMON_ERRORS)",
                    $(", [`", stringify!($error), "`](touchmark_proto::ErrorCode::",
                        stringify!($error), ")",)*
                    ".",
                )
            };)*
        }

        /// All results, in the order of [`Request`].
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs)] // each is documented at the type of its result
        #[allow(clippy::large_enum_variant, reason = "replies are boxed where they wait")]
        #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
        pub enum Reply { $($variant($result),)* }

        /// The names of all methods, in the order of [`Request`].
        pub const METHODS: &[&str] = &[$($name,)*];

        impl Request {
            /// Returns the method's name on the wire.
            pub fn method(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// Returns the errors that the method can answer in addition to
            /// [`COMMON_ERRORS`].
            pub fn errors(&self) -> &'static [ErrorCode] {
                match self { $(Self::$variant(_) => <$params as Method>::ERRORS,)* }
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
            const ERRORS: &'static [ErrorCode] = &[$(ErrorCode::$error,)*];
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

        #[cfg(feature = "schema")]
        /// Returns the schemas of each method, in the order of [`Request`].
        pub fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<MethodSchema> {
            vec![$(MethodSchema {
                name: $name,
                params: generator.subschema_for::<$params>(),
                result: generator.subschema_for::<$result>(),
                errors: <$params as Method>::ERRORS,
                arguments: <$params as crate::new::HasNew>::ARGUMENTS,
            },)*]
        }
    };
}

// The errors of a row are those of docs/protocol.md's table. In a debug build the
// daemon checks each answer against them, so the tests show what a row lacks.
methods! {
    Initialize: "initialize", Initialize => Initialized, [Incompatible];
    Ping: "ping", Ping => Done, [];
    Status: "status", Status => StatusReport, [];
    Sync: "sync", Sync => Synced, [];
    Shutdown: "shutdown", Shutdown => Done, [];
    Subscribe: "subscribe", Subscribe => Subscribed, [Storage UnknownClock];
    Unsubscribe: "unsubscribe", Unsubscribe => Done, [NotFound];
    SessionOpen: "session/open", SessionOpen => SessionOpened, [Storage];
    SessionClose: "session/close", SessionClose => Done, [Storage];
    SessionList: "session/list", SessionList => SessionRows, [];
    SessionCompacted: "session/compacted", SessionCompacted => Evicted, [
        OutsideWorkspace NotAFile Storage UnknownSession
    ];
    SessionTruncated: "session/truncated", SessionTruncated => Evicted, [
        OutsideWorkspace NotAFile Storage UnknownSession
    ];
    FileRead: "file/read", FileRead => FileReadResult, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage
    ];
    FileReadText: "file/readText", FileReadText => FileText, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage
    ];
    FileMention: "file/mention", FileMention => FileState, [
        OutsideWorkspace NotAFile Unreadable Storage
    ];
    FileInvalidate: "file/invalidate", FileInvalidate => Done, [
        OutsideWorkspace NotAFile Storage UnknownSession
    ];
    FileStatus: "file/status", FileStatus => FileStates, [OutsideWorkspace NotAFile UnknownSession];
    FileList: "file/list", FileList => FileRecords, [UnknownSession];
    FileHistory: "file/history", FileHistory => Versions, [
        OutsideWorkspace NotAFile Storage UnknownClock
    ];
    FileUntrack: "file/untrack", FileUntrack => Done, [
        OutsideWorkspace NotAFile Storage UnknownSession
    ];
    EditBegin: "edit/begin", EditBegin => EditBegun, [
        NotRead Stale Busy OutsideWorkspace NotAFile Unreadable Storage
    ];
    EditCommit: "edit/commit", EditCommit => EditCommitted, [
        OutsideWorkspace NotAFile Storage UnknownEdit
    ];
    EditAbort: "edit/abort", EditAbort => Done, [Storage UnknownEdit];
    EditMark: "edit/mark", EditMark => EditMarked, [
        NotRead Stale Busy OutsideWorkspace NotAFile Unreadable Storage
    ];
    ModifiedList: "modified/list", ModifiedList => Changes, [Storage UnknownClock UnknownSession];
    ModifiedTake: "modified/take", ModifiedTake => ModifiedTaken, [
        OutsideWorkspace NotAFile Storage UnknownSession
    ];
    ModifiedAck: "modified/ack", ModifiedAck => Done, [Storage UnknownClock UnknownSession];
    EditorDidOpen: "editor/didOpen", EditorDidOpen => Done, [OutsideWorkspace NotAFile];
    EditorDidClose: "editor/didClose", EditorDidClose => Done, [OutsideWorkspace NotAFile];
    EditorDirty: "editor/dirty", EditorDirty => Done, [OutsideWorkspace NotAFile];
    EditorDidSave: "editor/didSave", EditorDidSave => Done, [OutsideWorkspace NotAFile Storage];
    CommandBegin: "command/begin", CommandBegin => CommandBegun, [Storage];
    CommandEnd: "command/end", CommandEnd => CommandEnded, [NotFound Storage];
    Audit: "audit", Audit => Audited, [];
    FileWrite: "file/write", FileWrite => FileWritten, [
        NotRead Stale Busy Conflict OutsideWorkspace NotAFile NotFound Unreadable Storage ReadOnly
        Protected
    ];
    FileEdit: "file/edit", FileEdit => FileEdited, [
        NotRead Stale Busy Conflict OutsideWorkspace NotAFile NotFound Unreadable NoMatch Storage
        ReadOnly Protected
    ];
    RecoveryList: "recovery/list", RecoveryList => RecoveryItems, [NotFound];
    RecoveryShow: "recovery/show", RecoveryShow => RecoveryShown, [NotFound Storage];
    RecoveryRestore: "recovery/restore", RecoveryRestore => RecoveryRestored, [
        Conflict OutsideWorkspace NotAFile NotFound Unreadable Storage ReadOnly Protected NotKept
    ];
    RecoveryDelete: "recovery/delete", RecoveryDelete => RecoveryItems, [NotFound Storage];
    QuotesNormalize: "quotes/normalize", QuotesNormalize => QuotesNormalized, [];
    QuotesMatch: "quotes/match", QuotesMatch => Option<QuotesFound>, [];
    Stats: "stats", Stats => Savings, [UnknownSession];
    FileRecent: "file/recent", FileRecent => FileRecords, [UnknownSession];
    FileIsStale: "file/isStale", FileIsStale => FileAge, [OutsideWorkspace NotAFile UnknownSession];
    FileSnapshot: "file/snapshot", FileSnapshot => Snapshot, [OutsideWorkspace NotAFile Unreadable];
    FileDetect: "file/detect", FileDetect => SnapshotCompared, [
        OutsideWorkspace NotAFile Unreadable
    ];
    CheckpointCreate: "checkpoint/create", CheckpointCreate => CheckpointCreated, [Storage];
    CheckpointList: "checkpoint/list", CheckpointList => CheckpointRows, [UnknownSession];
    CheckpointDelete: "checkpoint/delete", CheckpointDelete => Done, [
        NotFound Storage UnknownSession
    ];
    CheckpointDetect: "checkpoint/detect", CheckpointDetect => CheckpointDetected, [
        OutsideWorkspace NotAFile NotFound Storage UnknownClock UnknownSession
    ];
    WarningStore: "warning/store", WarningStore => Done, [OutsideWorkspace NotAFile Storage];
    WarningTake: "warning/take", WarningTake => WarningTaken, [Storage UnknownSession];
    WarningCleanup: "warning/cleanup", WarningCleanup => Removed, [Storage];
    CallCheck: "call/check", CallCheck => CallChecked, [];
    CallRecord: "call/record", CallRecord => CallRecorded, [OutsideWorkspace NotAFile Storage];
    CallStats: "call/stats", CallStats => CallCounts, [UnknownSession];
    CallClear: "call/clear", CallClear => Removed, [Storage UnknownSession];
    RetentionRank: "retention/rank", RetentionRank => RetentionRanked, [
        OutsideWorkspace NotAFile UnknownSession
    ];
    TaskSave: "task/save", TaskSave => Done, [Storage];
    TaskList: "task/list", TaskList => TaskRows, [UnknownSession];
    TaskRemove: "task/remove", TaskRemove => Removed, [Storage];
    TaskCleanup: "task/cleanup", TaskCleanup => Removed, [Storage];
    ModelRecord: "model/record", ModelRecord => ModelRecorded, [Storage];
    ModelList: "model/list", ModelList => ModelEntries, [UnknownSession];
    SearchGrep: "search/grep", SearchGrep => Matches, [
        OutsideWorkspace NotAFile NotFound Unreadable
    ];
    ContentsForget: "contents/forget", ContentsForget => Done, [Storage];
    HookClaude: "hook/claude", HookClaude => HookPrinted, [];
    HookCodex: "hook/codex", HookCodex => HookPrinted, [];
    HookGemini: "hook/gemini", HookGemini => HookPrinted, [];
    HookCursor: "hook/cursor", HookCursor => HookPrinted, [];
    HookOpencode: "hook/opencode", HookOpencode => HookPrinted, [];
    HookAck: "hook/ack", HookAck => Done, [Storage UnknownClock UnknownSession];
    HookEvent: "hook/event", HookEvent => HookPrinted, [];
    HookJoin: "hook/join", HookJoin => HookJoined, [];
    Undo: "undo", Undo => Undone, [
        Busy Conflict OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownClock UnknownSession
        NotKept
    ];
    Redo: "redo", Redo => Undone, [NotFound Storage];
    UndoList: "undo/list", UndoList => UndoRows, [Storage];
    ReviewList: "review/list", ReviewList => ReviewHunks, [
        OutsideWorkspace NotAFile Storage UnknownClock UnknownSession
    ];
    ReviewKeep: "review/keep", ReviewKeep => ReviewKept, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage
    ];
    ReviewUndo: "review/undo", ReviewUndo => Undone, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage
    ];
    CommandList: "command/list", CommandList => CommandRows, [UnknownSession];
    FileContent: "file/content", FileContent => ContentAt, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownClock UnknownSession NotKept
    ];
    FileDiff: "file/diff", FileDiff => FileDiffs, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownClock UnknownSession NotKept
    ];
    FileBlame: "file/blame", FileBlame => Blame, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownClock UnknownSession NotKept
    ];
    FileLog: "file/log", FileLog => LogEntries, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownClock UnknownSession
    ];
    FileRestore: "file/restore", FileRestore => Restored, [
        Conflict OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownClock ReadOnly
        UnknownSession Protected NotKept
    ];
    ActivityList: "activity/list", ActivityList => Activities, [
        NotFound Storage UnknownClock UnknownSession
    ];
    SurvivalList: "survival/list", SurvivalList => SurvivalRows, [Storage UnknownSession];
    WorktreeList: "worktree/list", WorktreeList => WorktreeRows, [];
    FleetYield: "fleet/yield", FleetYield => FleetYielded, [];
    Claim: "claim", Claim => Claimed, [
        OutsideWorkspace NotAFile NotFound NotKept Unreadable Storage UnknownSession
    ];
}
