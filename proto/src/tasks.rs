//! Requests about background tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Millis, SessionId};

/// What a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TaskType {
    /// A shell command.
    Shell,
    /// A process.
    Process,
    /// Another agent.
    Agent,
}

/// A background task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Task {
    /// The agent's own name of it, unique in its session.
    pub id: String,
    /// What it is.
    #[serde(rename = "type")]
    pub task_type: TaskType,
    /// What it runs.
    pub command: Option<String>,
    /// Its process. The kernel's start time of it is looked up and kept, so
    /// that a number used again is not taken for it.
    pub pid: Option<u32>,
    /// When it was started, as the agent says.
    pub start_time: Millis,
    /// Where it runs.
    pub working_directory: String,
}

/// Keeps a task, in place of one with the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskSave {
    /// Whose.
    pub session: SessionId,
    /// The task.
    pub task: Task,
}

/// The tasks kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskList {
    /// Whose; all sessions' if absent.
    pub session: Option<SessionId>,
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
    /// Where the last answer stopped.
    pub cursor: Option<String>,
}

/// A task as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskRow {
    /// Whose.
    pub session: SessionId,
    /// The agent's own name of it.
    pub id: String,
    /// What it is.
    #[serde(rename = "type")]
    pub task_type: TaskType,
    /// What it runs.
    pub command: Option<String>,
    /// Its process.
    pub pid: Option<u32>,
    /// When it was started, as the agent says.
    pub start_time: Millis,
    /// Where it runs.
    pub working_directory: String,
    /// Whether its process runs; `null` for a task that names none.
    pub alive: Option<bool>,
    /// The session's label (SES-2).
    pub label: Option<String>,
}

/// Tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskRows {
    /// By session and id.
    pub tasks: Vec<TaskRow>,
    /// There is more: ask again with this cursor.
    pub more: Option<String>,
}

/// Forgets a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskRemove {
    /// Which.
    pub id: String,
    /// Whose; every session's of that id if absent.
    pub session: Option<SessionId>,
}

/// Forgets the tasks whose process is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskCleanup {}

/// How many were removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// That many.
    pub removed: u64,
}
