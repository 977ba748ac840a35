//! `task/*`: background tasks. A task runs as long as its process. A process is
//! identified by its number and its start time together, since the system
//! reuses numbers.

use std::collections::BTreeMap;

use touchmark_proto::daemon::Done;
use touchmark_proto::tasks::{
    Removed, TaskCleanup, TaskList, TaskRemove, TaskRow, TaskRows, TaskSave,
};
use touchmark_proto::{Error, ErrorCode, Reply, SessionId};

use crate::base::Base;
use crate::effect::Question;
use crate::input::Learned;
use crate::ledger::session_memory::{KeptTask, Note};
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::text::tokens::masked;

/// The maximum number of bytes of an id, a command or a directory.
const TEXT: usize = 64 << 10;
/// The maximum number of tasks of one session.
const TASKS: usize = 1_000;

/// Processes, each with its start in ticks since boot; `None` if there is no
/// such process.
type Starts = BTreeMap<u32, Option<u64>>;

impl Base {
    pub(crate) fn task_save(&mut self, pending: &mut Pending, ask: &TaskSave) -> Answered {
        let task = &ask.task;
        let texts = [
            &task.id,
            task.command.as_ref().unwrap_or(&task.id),
            &task.working_directory,
        ];
        if task.id.is_empty() || texts.iter().any(|text| text.len() > TEXT) {
            return Err(Error::invalid(format!(
                "a task has an id, and no text of more than {TEXT} bytes"
            ))
            .into());
        }
        let full = self.state.memory(&ask.session).is_some_and(|memory| {
            memory.tasks.len() >= TASKS && !memory.tasks.contains_key(&task.id)
        });
        if full {
            return Err(Error::new(
                ErrorCode::TooLarge,
                format!("the session keeps {TASKS} tasks already"),
            )
            .hint("remove some with `task/remove` or `task/cleanup`")
            .into());
        }
        let starts = self.starts(pending, || task.pid.into_iter().collect())?;
        self.ensure_session(&ask.session);
        let mut task = task.clone();
        if let Some(command) = &mut task.command {
            *command = masked(command).into_owned();
        }
        self.note(
            &ask.session,
            Note::TaskSaved {
                started: task.pid.and_then(|pid| starts.get(&pid).copied().flatten()),
                task,
            },
        );
        done(Reply::TaskSave(Done {}))
    }

    pub(crate) fn task_list(&mut self, pending: &mut Pending, ask: &TaskList) -> Answered {
        let starts = self.starts(pending, || self.task_processes(ask.session.as_ref()))?;
        let limit = ask.limit.unwrap_or(self.config.list_limit) as usize;
        let mut tasks = Vec::new();
        let mut more = None;
        for (session, kept) in self.tasks_of(ask.session.as_ref()) {
            let cursor = write_cursor(session, &kept.task.id);
            if ask.cursor.as_ref().is_some_and(|from| cursor <= *from) {
                continue;
            }
            if tasks.len() == limit {
                more = tasks
                    .last()
                    .map(|row: &TaskRow| write_cursor(&row.session, &row.id));
                break;
            }
            let task = kept.task.clone();
            tasks.push(TaskRow {
                session: session.clone(),
                id: task.id,
                task_type: task.task_type,
                command: task.command,
                pid: task.pid,
                start_time: task.start_time,
                working_directory: task.working_directory,
                alive: task.pid.map(|_| is_alive(kept, &starts)),
                label: None,
            });
        }
        done(Reply::TaskList(TaskRows { tasks, more }))
    }

    pub(crate) fn task_remove(&mut self, ask: &TaskRemove) -> Answered {
        let whose: Vec<SessionId> = self
            .tasks_of(ask.session.as_ref())
            .filter(|(_, kept)| kept.task.id == ask.id)
            .map(|(session, _)| session.clone())
            .collect();
        for session in &whose {
            self.note(session, Note::TaskRemoved { id: ask.id.clone() });
        }
        done(Reply::TaskRemove(Removed {
            removed: whose.len() as u64,
        }))
    }

    /// Removes tasks whose process has ended. Tasks without a process stay,
    /// since nothing shows that they have ended.
    pub(crate) fn task_cleanup(&mut self, pending: &mut Pending, _: &TaskCleanup) -> Answered {
        let starts = self.starts(pending, || self.task_processes(None))?;
        let gone: Vec<(SessionId, String)> = self
            .tasks_of(None)
            .filter(|(_, kept)| kept.task.pid.is_some() && !is_alive(kept, &starts))
            .map(|(session, kept)| (session.clone(), kept.task.id.clone()))
            .collect();
        let removed = gone.len() as u64;
        for (session, id) in gone {
            self.note(&session, Note::TaskRemoved { id });
        }
        done(Reply::TaskCleanup(Removed { removed }))
    }

    /// Returns the start times of these processes, or the step that asks for
    /// them.
    fn starts(
        &self,
        pending: &Pending,
        processes: impl FnOnce() -> Vec<u32>,
    ) -> Result<Starts, Box<Stop>> {
        match &pending.learned {
            Some(Ok(Learned::Processes(starts))) => Ok(starts.iter().copied().collect()),
            Some(Err(error)) => Err(error.clone().into()),
            Some(Ok(_)) => Ok(Starts::new()),
            None => {
                let processes = processes();
                if processes.is_empty() {
                    return Ok(Starts::new());
                }
                Err(Stop::Learn(Question::Processes(processes)).into())
            }
        }
    }

    fn task_processes(&self, session: Option<&SessionId>) -> Vec<u32> {
        let mut processes: Vec<u32> = self
            .tasks_of(session)
            .filter_map(|(_, kept)| kept.task.pid)
            .collect();
        processes.sort_unstable();
        processes.dedup();
        processes
    }

    fn tasks_of<'a>(
        &'a self,
        session: Option<&'a SessionId>,
    ) -> impl Iterator<Item = (&'a SessionId, &'a KeptTask)> + 'a {
        self.state
            .sessions
            .iter()
            .filter(move |(name, _)| session.is_none_or(|wanted| wanted == *name))
            .flat_map(|(name, session)| session.memory.tasks.values().map(move |kept| (name, kept)))
    }
}

/// Returns whether the process that a task named still runs and is the same
/// process.
fn is_alive(kept: &KeptTask, starts: &Starts) -> bool {
    let now = kept
        .task
        .pid
        .and_then(|pid| starts.get(&pid).copied().flatten());
    now.is_some() && now == kept.started
}

/// Returns the cursor after a row: the session and the id. The separator NUL
/// occurs in neither, so the order of cursors is the order of the list.
fn write_cursor(session: &SessionId, id: &str) -> String {
    format!("{}\0{id}", session.as_str())
}
