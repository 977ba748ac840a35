//! Requests about background tasks.

use crate::{Millis, SessionId};

/// The kind of a background task.
#[apply(choice!)]
pub enum TaskType {
    /// A shell command.
    Shell,
    /// A process.
    Process,
    /// Another agent.
    Agent,
}

/// A background task.
#[apply(request!)]
pub struct Task {
    /// The agent's id for the task, unique in its session.
    pub id: String,
    /// The kind of the task.
    #[serde(rename = "type")]
    pub task_type: TaskType,
    /// The command line that the task runs; `None` if there is none.
    pub command: Option<String>,
    /// The id of the task's process. The process's start time is stored with
    /// it, so that a later process with the same id is not mistaken for it.
    pub pid: Option<u32>,
    /// When the task was started, according to the agent.
    pub start_time: Millis,
    /// The task's working directory.
    pub working_directory: String,
}

/// Stores a task. It replaces a task with the same id.
#[apply(request!)]
pub struct TaskSave {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The task.
    pub task: Task,
}

/// Lists the stored tasks.
#[apply(request!)]
pub struct TaskList {
    /// Only this session, by its id or label; `None` means all sessions.
    pub session: Option<SessionId>,
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
    /// The `more` of the previous answer, to continue after it. `None` starts
    /// at the beginning.
    pub cursor: Option<String>,
}

/// A stored task with its current state.
#[apply(answer!)]
pub struct TaskRow {
    /// The task's session.
    pub session: SessionId,
    /// The agent's id for the task.
    pub id: String,
    /// The kind of the task.
    #[serde(rename = "type")]
    pub task_type: TaskType,
    /// The command line that the task runs; `None` if there is none.
    pub command: Option<String>,
    /// The id of the task's process.
    pub pid: Option<u32>,
    /// When the task was started, according to the agent.
    pub start_time: Millis,
    /// The task's working directory.
    pub working_directory: String,
    /// Whether the task's process is running; `null` if the task names no
    /// process.
    pub alive: Option<bool>,
    /// The session's label; `None` if it has none (SES-2).
    pub label: Option<String>,
}

/// A list of tasks.
#[apply(answer!)]
pub struct TaskRows {
    /// The tasks, sorted by session and id.
    pub tasks: Vec<TaskRow>,
    /// The `cursor` of the next request; `None` if there are no more rows.
    pub more: Option<String>,
}

/// Removes a task.
#[apply(request!)]
pub struct TaskRemove {
    /// The task's id.
    pub id: String,
    /// The session, by its id or label; `None` means the tasks with this id of
    /// all sessions.
    pub session: Option<SessionId>,
}

/// Removes the tasks whose process no longer exists.
#[apply(request!)]
#[derive(Copy)]
pub struct TaskCleanup {}

/// The number of items that a request removed.
#[apply(answer!)]
#[derive(Copy)]
pub struct Removed {
    /// The number of removed items.
    pub removed: u64,
}
