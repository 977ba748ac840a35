//! The request that ranks which tool results may be removed from a context.

use crate::{ClientPath, SessionId};

/// Ranks tool results by how much they are worth keeping in a context.
#[apply(request!)]
pub struct RetentionRank {
    /// The session whose context it is, by its id or label.
    pub session: SessionId,
    /// The agent's number for its current step.
    pub step: u64,
    /// How many steps after its last access a result is kept. What the user
    /// mentioned is kept twice as long, what can be run again half as long.
    pub max_age: u64,
    /// The tool results in the context.
    pub items: Vec<RetentionItem>,
}

/// A tool result in a context.
#[apply(request!)]
pub struct RetentionItem {
    /// The agent's id for the result.
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// The file that the result is about; `None` if it is about no file.
    pub path: Option<ClientPath>,
    /// The agent's number for the step in which the result was made.
    pub step: u64,
    /// The number of lines of the result.
    pub lines: Option<u32>,
    /// Whether the user mentioned the file; default false.
    #[serde(default)]
    pub mentioned: bool,
}

/// How much a result is worth. The variants are in ascending order.
#[apply(choice!)]
#[derive(PartialOrd, Ord)]
pub enum Priority {
    /// The result can be obtained again by running its tool.
    Rerunnable,
    /// Any other result.
    Other,
    /// The content of a file that was read.
    Read,
    /// The content of a file that the user mentioned.
    Mentioned,
    /// The session's own write, or a read of a file that the session wrote. It
    /// is never removed.
    Never,
}

/// What the agent should do with a result.
#[apply(choice!)]
pub enum RetentionAction {
    /// Keep the result.
    Keep,
    /// Replace the result with `text`.
    Stub,
}

/// A tool result with its rank.
#[apply(answer!)]
pub struct RankedItem {
    /// The agent's id for the result.
    pub id: String,
    /// How much the result is worth.
    pub priority: Priority,
    /// `priority` as a number: 0 is removed first, 4 is never removed.
    pub rank: u32,
    /// What the agent should do with the result.
    pub action: RetentionAction,
    /// The text that replaces the result; `None` if it is kept.
    pub text: Option<String>,
    /// What to add to `text`: how to see the file again, and how long ago it
    /// was read. `None` unless the result is of a file that was read.
    pub hint: Option<String>,
}

/// The result of `retention/rank`.
#[apply(answer!)]
pub struct RetentionRanked {
    /// The results, in the order of the request.
    pub items: Vec<RankedItem>,
}
