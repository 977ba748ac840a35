//! Errors as values: each has a stable code, a name, and a hint that says what
//! to do.

use serde::{Deserialize, Serialize};

use crate::{Author, Clock, Hash, HashOrAbsent, Millis, RelPath, SessionId};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $name:literal, $hint:literal;)*) => {
        /// The codes of all errors that the daemon returns (docs/protocol.md).
        #[apply(choice!)]
        #[derive(Hash)]
        pub enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            /// All codes, in the order of the protocol's table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the number for JSON-RPC's `error.code`.
            pub fn code(self) -> i32 {
                match self { $(Self::$variant => $code,)* }
            }

            /// Returns the name for `error.data.code`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns what to do, for errors without a more specific hint.
            pub fn hint(self) -> &'static str {
                match self { $(Self::$variant => $hint,)* }
            }
        }
    };
}

codes! {
    /// The text is not JSON.
    ParseError = -32700, "parseError", "send one JSON value per message";
    /// The JSON is not a request.
    InvalidRequest = -32600, "invalidRequest", "send {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"...\",\"params\":{...}}";
    /// There is no such method.
    MethodNotFound = -32601, "methodNotFound", "see the methods in docs/protocol.md";
    /// A parameter is missing, unknown or of a wrong type.
    InvalidParams = -32602, "invalidParams", "compare the parameters with docs/protocol.schema.json";
    /// The daemon failed to carry out the request.
    InternalError = -32603, "internalError", "run `touchmark doctor` and look at `touchmark logs`";
    /// The session has not read the existing file that it wants to write
    /// (GUARD-4).
    NotRead = -32010, "notRead", "read the file first, or set `force`";
    /// The session's copy is out of date (GUARD-4).
    Stale = -32011, "stale", "read the file again, then repeat the edit";
    /// Another session has an open edit of the path (GUARD-5).
    Busy = -32012, "busy", "wait until the other session's edit has ended, or set `waitMs`";
    /// Another process wrote to the file between the check and the write
    /// (GUARD-1).
    Conflict = -32013, "conflict", "read the file again; `touchmark recovered` (`recovery/list`) shows the contents that were kept";
    /// The path leads out of the workspace (SEC-2).
    OutsideWorkspace = -32014, "outsideWorkspace", "name a path inside the workspace";
    /// The path is a directory, FIFO, device or socket (LOSS-4).
    NotAFile = -32015, "notAFile", "name a regular file";
    /// There is no file or item of that name.
    NotFound = -32016, "notFound", "check the name";
    /// The file cannot be read.
    Unreadable = -32017, "unreadable", "check the file's permissions";
    /// The text to replace does not occur, or occurs more than once.
    NoMatch = -32018, "noMatch", "read the file again and give a longer, unique text";
    /// Something is larger than its limit.
    TooLarge = -32019, "tooLarge", "request a part of it with `range`";
    /// The state cannot be stored (LOSS-3).
    Storage = -32020, "storage", "free space on the disk, or make the state directory writable; the daemon then continues without a restart";
    /// The clock is of another epoch, or older than the facts that are kept
    /// (DUR-2).
    UnknownClock = -32021, "unknownClock", "send the request again without a clock";
    /// There is no such edit, or it has ended.
    UnknownEdit = -32022, "unknownEdit", "begin the edit again with `edit/begin`, or commit with the path and the hash that was written";
    /// Client and daemon speak different versions of the protocol.
    Incompatible = -32023, "incompatible", "update the older of the two";
    /// The process on the other end of the connection is another user's
    /// (SEC-1), or runs below an agent where only the user may ask (OFF-5).
    Denied = -32024, "denied", "connect as the user who started the daemon";
    /// The daemon is shutting down.
    ShuttingDown = -32025, "shuttingDown", "connect again; a new daemon is started on demand";
    /// The answer would have come after `withinMs` (ATTR-9).
    TooLate = -32026, "tooLate", "send the request again with a larger `withinMs`; nothing was changed";
    /// The file's permissions protect it from being written to (GUARD-6).
    ReadOnly = -32027, "readOnly", "ask the user to make the file writable; nothing was changed";
    /// No session has that id or label, or several begin with it (SES-1).
    UnknownSession = -32028, "unknownSession", "name a session by its id or label; `touchmark sessions` (`session/list`) lists them";
    /// Programs execute what the file says, so agents may not write it
    /// (SEC-10).
    Protected = -32029, "protected", "ask the user to change the file; `guard.protect` in the user's configuration names the protected files";
    /// The content of a version is not kept (HIST-3).
    NotKept = -32030, "notKept", "name another version; `touchmark log PATH` (`file/log`) lists them";
}

/// The fields that errors may have. Each error has those that docs/protocol.md
/// lists for it.
#[apply(answer!)]
#[derive(Default)]
#[serde(default)]
#[allow(missing_docs)] // each is described in the protocol's table of errors
pub struct ErrorData {
    pub path: Option<RelPath>,
    /// The path as the client sent it, if it is not a path inside the
    /// workspace.
    pub spoken: Option<String>,
    pub hash: Option<Hash>,
    pub seen_hash: Option<Hash>,
    pub changed_by: Option<Vec<Author>>,
    pub since: Option<Millis>,
    pub holder: Option<SessionId>,
    pub deadline: Option<Millis>,
    pub expected: Option<HashOrAbsent>,
    pub recovered: Option<Vec<String>>,
    pub file_type: Option<String>,
    pub matches: Option<u32>,
    pub limit: Option<u64>,
    pub size: Option<u64>,
    pub cause: Option<String>,
    pub clock: Option<Clock>,
    pub edit: Option<String>,
    pub peer: Option<u32>,
    pub within_ms: Option<u64>,
    pub server: Option<u32>,
    pub client: Option<u32>,
    /// The label of the session in `holder`.
    pub holder_label: Option<String>,
    /// What the request named as a session.
    pub session: Option<String>,
    /// The sessions with similar names, by label, or by id if they have none.
    pub candidates: Option<Vec<String>>,
}

/// An error as a client receives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Error {
    /// The code.
    pub code: ErrorCode,
    /// One sentence for a person or a model.
    pub message: String,
    /// What to do next: a command for people, a method for programs.
    pub hint: String,
    /// The fields of the error.
    pub data: Box<ErrorData>,
    /// The fields for each path, if the error concerns several paths.
    pub files: Vec<ErrorData>,
}

impl Error {
    /// Returns an error with the hint of its code and without fields.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: code.hint().into(),
            data: Box::default(),
            files: Vec::new(),
        }
    }

    /// Returns the error with these fields.
    #[must_use]
    pub fn with(mut self, data: ErrorData) -> Self {
        *self.data = data;
        self
    }

    /// Returns the error with a more specific hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Returns an `invalidParams` error with this reason.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidParams, reason)
    }

    /// Returns an error about one path.
    pub fn path(code: ErrorCode, path: &RelPath, message: impl Into<String>) -> Self {
        Self::new(code, message).with(ErrorData {
            path: Some(path.clone()),
            ..ErrorData::default()
        })
    }
}
