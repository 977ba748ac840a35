//! Requests about tool calls that repeat earlier ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::free::FreeJson;
use crate::{ClientPath, SessionId};

/// Does this call repeat one of the session's?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallCheck {
    /// Whose.
    pub session: SessionId,
    /// The tool.
    pub tool: String,
    /// Its arguments, as the agent gave them.
    #[serde(default)]
    pub args: FreeJson,
    /// Answer as of now (SYNC-1); true unless told.
    pub sync: Option<bool>,
    /// Read and hash the files that the kept result rests on (SYNC-4).
    pub verify: Option<bool>,
}

/// How much two calls are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Duplicate {
    /// There is no such call, or it is not valid any more.
    None,
    /// The same tool, the same arguments in canonical form.
    Identical,
    /// Alike by the tool's own rule, or by the general one.
    Similar,
}

/// What a kept result's validity rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Validity {
    /// Every file it rests on holds what it held then.
    Verified,
    /// It names no file: only its age speaks for it.
    Timed,
}

/// What a call repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallChecked {
    /// How much.
    pub duplicate: Duplicate,
    /// `result` may stand in place of running the tool: the call is identical
    /// and its result is kept.
    pub cached: bool,
    /// The earlier result, where it is kept.
    pub result: Option<FreeJson>,
    /// One line to say before it.
    pub message: Option<String>,
    /// How old it is.
    pub age_ms: Option<u64>,
    /// The earlier call.
    pub call_id: Option<String>,
    /// What its validity rests on.
    pub validity: Option<Validity>,
}

/// Remembers a call and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallRecord {
    /// Whose.
    pub session: SessionId,
    /// The tool.
    pub tool: String,
    /// Its arguments, as the agent gave them.
    #[serde(default)]
    pub args: FreeJson,
    /// What it answered.
    #[serde(default)]
    pub result: FreeJson,
    /// The files that the result rests on, beside those that the arguments
    /// name.
    #[serde(default)]
    pub paths: Option<Vec<ClientPath>>,
}

/// A call that was remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallRecorded {
    /// Its name; absent where it was not kept: the tool is one whose calls
    /// never are, or it names a file whose content may not be (SEC-3).
    pub call_id: Option<String>,
}

/// How much is kept, and how often it served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallStats {
    /// Whose; all sessions' if absent.
    pub session: Option<SessionId>,
}

/// Counts of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallCounts {
    /// Calls held now.
    pub calls: u64,
    /// Checks that found one.
    pub hits: u64,
    /// Checks that found none.
    pub misses: u64,
    /// Calls dropped since a file they rest on changed.
    pub invalidated: u64,
    /// Calls dropped for their number, age or size.
    pub evicted: u64,
    /// Bytes of results held now.
    pub bytes: u64,
}

/// Forgets a session's calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallClear {
    /// Whose.
    pub session: SessionId,
}
