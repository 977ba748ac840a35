//! Requests about tool calls that repeat earlier ones.

use crate::free::FreeJson;
use crate::{ClientPath, SessionId};

/// Checks whether a tool call repeats an earlier call of the session.
#[apply(request!)]
pub struct CallCheck {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The name of the tool.
    pub tool: String,
    /// The tool's arguments, as the agent gave them.
    #[serde(default)]
    pub args: FreeJson,
    /// Whether to answer with the state as of now, after a fence (SYNC-1);
    /// default true.
    pub sync: Option<bool>,
    /// Whether to read and hash the files that the stored result depends on
    /// first (SYNC-4); default false.
    pub verify: Option<bool>,
}

/// How similar a call is to an earlier one.
#[apply(choice!)]
pub enum Duplicate {
    /// There is no such call, or its result is no longer valid.
    None,
    /// The tool is the same, and the arguments are the same in canonical form.
    Identical,
    /// The call is similar by the tool's rule in `calls.rules`, or by the
    /// general rule.
    Similar,
}

/// How it is known that a stored result is still valid.
#[apply(choice!)]
pub enum Validity {
    /// Every file that the result depends on has the same content as then.
    Verified,
    /// The result depends on no file; only its age limits its validity.
    Timed,
}

/// The result of `call/check`.
#[apply(answer!)]
pub struct CallChecked {
    /// How similar the call is to an earlier one.
    pub duplicate: Duplicate,
    /// Whether `result` may replace running the tool: the call is identical and
    /// its result is stored.
    pub cached: bool,
    /// The result of the earlier call, if it is stored.
    pub result: Option<FreeJson>,
    /// One sentence for the model, to put before the result.
    pub message: Option<String>,
    /// The time since the earlier call, in milliseconds.
    pub age_ms: Option<u64>,
    /// The id of the earlier call.
    pub call_id: Option<String>,
    /// How it is known that the result is still valid.
    pub validity: Option<Validity>,
}

/// Stores a tool call and its result.
#[apply(request!)]
pub struct CallRecord {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The name of the tool.
    pub tool: String,
    /// The tool's arguments, as the agent gave them.
    #[serde(default)]
    pub args: FreeJson,
    /// The tool's result.
    #[serde(default)]
    pub result: FreeJson,
    /// The files that the result depends on, in addition to those that the
    /// arguments name.
    #[serde(default)]
    pub paths: Option<Vec<ClientPath>>,
}

/// The result of `call/record`.
#[apply(answer!)]
pub struct CallRecorded {
    /// The id of the stored call. `None` if it was not stored: calls of the
    /// tool are never stored (`calls.never`), or the call names a file whose
    /// content may not be stored (SEC-3).
    pub call_id: Option<String>,
}

/// Requests counts of stored calls and of checks.
#[apply(request!)]
pub struct CallStats {
    /// Only this session, by its id or label; `None` means all sessions.
    pub session: Option<SessionId>,
}

/// Counts of stored calls and of checks.
#[apply(answer!)]
#[derive(Copy, Default)]
pub struct CallCounts {
    /// The number of calls that are stored now.
    pub calls: u64,
    /// The number of checks that found a stored call.
    pub hits: u64,
    /// The number of checks that found none.
    pub misses: u64,
    /// The number of calls removed because a file that they depend on changed.
    pub invalidated: u64,
    /// The number of calls removed because of their number, age or size.
    pub evicted: u64,
    /// The size in bytes of the results that are stored now.
    pub bytes: u64,
}

/// Removes the stored calls of a session.
#[apply(request!)]
pub struct CallClear {
    /// The session, by its id or label.
    pub session: SessionId,
}
