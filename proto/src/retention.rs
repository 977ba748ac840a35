//! The request that ranks what may leave a context.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClientPath, SessionId};

/// Which tool results may be cut, and which go first?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetentionRank {
    /// Whose context.
    pub session: SessionId,
    /// The agent's step now.
    pub step: u64,
    /// A file accessed within this many steps is kept.
    pub max_age: u64,
    /// The results in the context.
    pub items: Vec<RetentionItem>,
}

/// A tool result in a context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetentionItem {
    /// The agent's own name of it.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The file it is about.
    pub path: Option<ClientPath>,
    /// The agent's step then.
    pub step: u64,
    /// Its lines.
    pub lines: Option<u32>,
    /// The user mentioned it.
    #[serde(default)]
    pub mentioned: bool,
}

/// How much a result is worth, the least first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Priority {
    /// It can be had again by running its tool.
    Rerunnable,
    /// Anything else.
    Other,
    /// A file that was read.
    Read,
    /// A file that the user mentioned.
    Mentioned,
    /// The session's own write, or a read of a file that it wrote: never cut.
    Never,
}

/// What to do with a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RetentionAction {
    /// Leave it.
    Keep,
    /// Put `text` in its place.
    Stub,
}

/// A result, ranked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RankedItem {
    /// The agent's own name of it.
    pub id: String,
    /// Its worth.
    pub priority: Priority,
    /// The same as a number: 4 is never cut, 0 goes first.
    pub rank: u32,
    /// What to do with it.
    pub action: RetentionAction,
    /// What to put in its place.
    pub text: Option<String>,
    /// What to say of it beside that: how to see the file again, and how long
    /// ago it was read. Only of files read.
    pub hint: Option<String>,
}

/// All results, ranked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetentionRanked {
    /// In the order given.
    pub items: Vec<RankedItem>,
}
