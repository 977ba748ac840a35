//! The table of methods: one row joins a name, its parameters, its result and
//! its errors.

// The table names the types of all families.
use crate::activity::*;
use crate::calls::*;
use crate::changes::*;
use crate::checkpoints::*;
use crate::claim::*;
use crate::commands::*;
use crate::daemon::*;
use crate::editors::*;
use crate::edits::*;
use crate::error::{Error, ErrorCode};
use crate::facts::FileState;
use crate::files::*;
use crate::fleet::*;
use crate::history::*;
use crate::hooks::*;
use crate::models::*;
use crate::quoting::{quoted, without_hidden};
use crate::retention::*;
use crate::review::*;
use crate::search::*;
use crate::sessions::*;
use crate::survival::*;
use crate::tasks::*;
use crate::undo::*;
use crate::worktrees::*;
use crate::writes::*;

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
    ($($method:ident: $name:literal => $result:ty, [$($error:ident)*];)*) => {
        /// All requests. The order of the variants is their numbering on the
        /// binary wire, so new ones are added at the end.
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs)] // each is documented at the type of its parameters
        #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
        pub enum Request { $($method($method),)* }

        /// Returns the documentation of a method's errors, by the type of its
        /// parameters, for the `# Errors` section of a function that sends it.
        #[macro_export]
        macro_rules! errors_of {
            $(($method) => {
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
        pub enum Reply { $($method($result),)* }

        /// The names of all methods, in the order of [`Request`].
        pub const METHODS: &[&str] = &[$($name,)*];

        impl Request {
            /// Returns the method's name on the wire.
            pub fn method(&self) -> &'static str {
                match self { $(Self::$method(_) => $name,)* }
            }

            /// Returns the errors that the method can answer in addition to
            /// [`COMMON_ERRORS`].
            pub fn errors(&self) -> &'static [ErrorCode] {
                match self { $(Self::$method(_) => <$method as Method>::ERRORS,)* }
            }

            /// Returns the id of a process that the request names, to replace
            /// it; `None` if it has none. The id is the client's.
            pub fn process_mut(&mut self) -> Option<&mut Option<u32>> {
                match self {
                    Self::AgentWitness(ask) => Some(&mut ask.pid),
                    Self::CommandBegin(ask) => Some(&mut ask.pid),
                    Self::SessionOpen(ask) => Some(&mut ask.pid),
                    Self::TaskSave(ask) => Some(&mut ask.task.pid),
                    _ => None,
                }
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
                        .map(Self::$method)
                        .map_err(|error| not_that_shape(method, &error)),)*
                    _ => Err(Error::new(
                        ErrorCode::MethodNotFound,
                        format!("there is no method {}", quoted(method, 80)),
                    )),
                }
            }

            /// Returns the parameters as JSON.
            pub fn to_json(&self) -> serde_json::Value {
                let value = match self { $(Self::$method(params) => serde_json::to_value(params),)* };
                value.unwrap_or_default()
            }
        }

        impl Reply {
            /// Returns the result as JSON; `null` fields are not removed.
            pub fn to_json(&self) -> serde_json::Value {
                let value = match self { $(Self::$method(result) => serde_json::to_value(result),)* };
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
                        .map(Self::$method)
                        .map_err(|error| not_that_shape(method, &error)),)*
                    _ => Err(Error::new(
                        ErrorCode::MethodNotFound,
                        format!("there is no method {}", quoted(method, 80)),
                    )),
                }
            }
        }

        $(impl Method for $method {
            const NAME: &'static str = $name;
            const ERRORS: &'static [ErrorCode] = &[$(ErrorCode::$error,)*];
            type Result = $result;
            fn into_request(self) -> Request {
                Request::$method(self)
            }
            fn from_reply(reply: Reply) -> Option<$result> {
                match reply {
                    Reply::$method(result) => Some(result),
                    _ => None,
                }
            }
        })*

        #[cfg(feature = "schema")]
        /// Returns the schemas of each method, in the order of [`Request`].
        pub fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<MethodSchema> {
            vec![$(MethodSchema {
                name: $name,
                params: generator.subschema_for::<$method>(),
                result: generator.subschema_for::<$result>(),
                errors: <$method as Method>::ERRORS,
                arguments: <$method as crate::new::HasNew>::ARGUMENTS,
            },)*]
        }
    };
}

// The errors of a row are those of docs/protocol.md's table. In a debug build the
// daemon checks each answer against them, so the tests show what a row lacks.
methods! {
    Initialize: "initialize" => Initialized, [Incompatible];
    Ping: "ping" => Done, [];
    Status: "status" => StatusReport, [];
    Sync: "sync" => Synced, [];
    Shutdown: "shutdown" => Done, [];
    Subscribe: "subscribe" => Subscribed, [Storage UnknownClock];
    Unsubscribe: "unsubscribe" => Done, [NotFound];
    SessionOpen: "session/open" => SessionOpened, [Storage];
    SessionClose: "session/close" => Done, [Storage];
    SessionList: "session/list" => SessionRows, [];
    SessionCompacted: "session/compacted" => Evicted, [
        OutsideWorkspace NotAFile Storage UnknownSession
    ];
    SessionTruncated: "session/truncated" => Evicted, [
        OutsideWorkspace NotAFile Storage UnknownSession
    ];
    FileRead: "file/read" => FileReadResult, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage
    ];
    FileReadText: "file/readText" => FileText, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage
    ];
    FileMention: "file/mention" => FileState, [OutsideWorkspace NotAFile Unreadable Storage];
    FileInvalidate: "file/invalidate" => Done, [OutsideWorkspace NotAFile Storage UnknownSession];
    FileStatus: "file/status" => FileStates, [OutsideWorkspace NotAFile UnknownSession];
    FileList: "file/list" => FileRecords, [UnknownSession];
    FileHistory: "file/history" => Versions, [OutsideWorkspace NotAFile Storage UnknownClock];
    FileUntrack: "file/untrack" => Done, [OutsideWorkspace NotAFile Storage UnknownSession];
    EditBegin: "edit/begin" => EditBegun, [
        NotRead Stale Busy OutsideWorkspace NotAFile Unreadable Storage
    ];
    EditCommit: "edit/commit" => EditCommitted, [OutsideWorkspace NotAFile Storage UnknownEdit];
    EditAbort: "edit/abort" => Done, [Storage UnknownEdit];
    EditMark: "edit/mark" => EditMarked, [
        NotRead Stale Busy OutsideWorkspace NotAFile Unreadable Storage
    ];
    ModifiedList: "modified/list" => Changes, [Storage UnknownClock UnknownSession];
    ModifiedTake: "modified/take" => ModifiedTaken, [
        OutsideWorkspace NotAFile Storage UnknownSession
    ];
    ModifiedAck: "modified/ack" => Done, [Storage UnknownClock UnknownSession];
    EditorDidOpen: "editor/didOpen" => Done, [OutsideWorkspace NotAFile];
    EditorDidClose: "editor/didClose" => Done, [OutsideWorkspace NotAFile];
    EditorDirty: "editor/dirty" => Done, [OutsideWorkspace NotAFile];
    EditorDidSave: "editor/didSave" => Done, [OutsideWorkspace NotAFile Storage];
    CommandBegin: "command/begin" => CommandBegun, [Storage];
    CommandEnd: "command/end" => CommandEnded, [NotFound Storage];
    Audit: "audit" => Audited, [];
    FileWrite: "file/write" => FileWritten, [
        NotRead Stale Busy Conflict OutsideWorkspace NotAFile NotFound Unreadable Storage ReadOnly
        Protected
    ];
    FileEdit: "file/edit" => FileEdited, [
        NotRead Stale Busy Conflict OutsideWorkspace NotAFile NotFound Unreadable NoMatch Storage
        ReadOnly Protected
    ];
    RecoveryList: "recovery/list" => RecoveryItems, [NotFound];
    RecoveryShow: "recovery/show" => RecoveryShown, [NotFound Storage];
    RecoveryRestore: "recovery/restore" => RecoveryRestored, [
        Conflict OutsideWorkspace NotAFile NotFound Unreadable Storage ReadOnly Protected NotKept
    ];
    RecoveryDelete: "recovery/delete" => RecoveryItems, [NotFound Storage];
    QuotesNormalize: "quotes/normalize" => QuotesNormalized, [];
    QuotesMatch: "quotes/match" => Option<QuotesFound>, [];
    Stats: "stats" => Savings, [UnknownSession];
    FileRecent: "file/recent" => FileRecords, [UnknownSession];
    FileIsStale: "file/isStale" => FileAge, [OutsideWorkspace NotAFile UnknownSession];
    FileSnapshot: "file/snapshot" => Snapshot, [OutsideWorkspace NotAFile Unreadable];
    FileDetect: "file/detect" => SnapshotCompared, [OutsideWorkspace NotAFile Unreadable];
    CheckpointCreate: "checkpoint/create" => CheckpointCreated, [Storage];
    CheckpointList: "checkpoint/list" => CheckpointRows, [UnknownSession];
    CheckpointDelete: "checkpoint/delete" => Done, [NotFound Storage UnknownSession];
    CheckpointDetect: "checkpoint/detect" => CheckpointDetected, [
        OutsideWorkspace NotAFile NotFound Storage UnknownClock UnknownSession
    ];
    WarningStore: "warning/store" => Done, [OutsideWorkspace NotAFile Storage];
    WarningTake: "warning/take" => WarningTaken, [Storage UnknownSession];
    WarningCleanup: "warning/cleanup" => Removed, [Storage];
    CallCheck: "call/check" => CallChecked, [];
    CallRecord: "call/record" => CallRecorded, [OutsideWorkspace NotAFile Storage];
    CallStats: "call/stats" => CallCounts, [UnknownSession];
    CallClear: "call/clear" => Removed, [Storage UnknownSession];
    RetentionRank: "retention/rank" => RetentionRanked, [OutsideWorkspace NotAFile UnknownSession];
    TaskSave: "task/save" => Done, [Storage];
    TaskList: "task/list" => TaskRows, [UnknownSession];
    TaskRemove: "task/remove" => Removed, [Storage];
    TaskCleanup: "task/cleanup" => Removed, [Storage];
    ModelRecord: "model/record" => ModelRecorded, [Storage];
    ModelList: "model/list" => ModelEntries, [UnknownSession];
    SearchGrep: "search/grep" => Matches, [OutsideWorkspace NotAFile NotFound Unreadable];
    ContentsForget: "contents/forget" => Done, [Storage];
    HookAck: "hook/ack" => Done, [Storage UnknownClock UnknownSession];
    HookEvent: "hook/event" => HookPrinted, [];
    HookJoin: "hook/join" => HookJoined, [];
    Undo: "undo" => Undone, [
        Busy Conflict OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownClock UnknownSession
        NotKept
    ];
    Redo: "redo" => Undone, [NotFound Storage];
    UndoList: "undo/list" => UndoRows, [Storage];
    ReviewList: "review/list" => ReviewHunks, [
        OutsideWorkspace NotAFile Storage UnknownClock UnknownSession
    ];
    ReviewKeep: "review/keep" => ReviewKept, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage
    ];
    ReviewUndo: "review/undo" => Undone, [OutsideWorkspace NotAFile NotFound Unreadable Storage];
    CommandList: "command/list" => CommandRows, [UnknownSession];
    FileContent: "file/content" => ContentAt, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownClock UnknownSession NotKept
    ];
    FileDiff: "file/diff" => FileDiffs, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownClock UnknownSession NotKept
    ];
    FileBlame: "file/blame" => Blame, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownClock UnknownSession NotKept
    ];
    FileLog: "file/log" => LogEntries, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownClock UnknownSession
    ];
    FileRestore: "file/restore" => Restored, [
        Conflict OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownClock ReadOnly
        UnknownSession Protected NotKept
    ];
    ActivityList: "activity/list" => Activities, [NotFound Storage UnknownClock UnknownSession];
    SurvivalList: "survival/list" => SurvivalRows, [Storage UnknownSession];
    WorktreeList: "worktree/list" => WorktreeRows, [];
    FleetYield: "fleet/yield" => FleetYielded, [];
    Claim: "claim" => Claimed, [
        OutsideWorkspace NotAFile NotFound NotKept Unreadable Storage UnknownSession
    ];
    HookAllow: "hook/allow" => HookAllowed, [Denied OutsideWorkspace NotAFile NotFound];
    CommandWitness: "command/witness" => Done, [NotFound];
    AgentWitness: "agent/witness" => AgentWitnessed, [];
    HookShell: "hook/shell" => HookShellBegun, [NotFound];
    ReviewView: "review/view" => ReviewViewed, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage
    ];
    ReviewComment: "review/comment" => Commented, [
        OutsideWorkspace NotAFile NotFound Unreadable Storage UnknownSession Denied
    ];
}
