//! What comes with the turns of a conversation: checkpoints, mentions, models,
//! tasks.

use std::collections::BTreeMap;
use std::path::Path;

use touchmark_proto::checkpoints::{CheckpointCreate, CheckpointDelete};
use touchmark_proto::files::FileMention;
use touchmark_proto::models::ModelRecord;
use touchmark_proto::tasks::{Task, TaskList, TaskRemove, TaskSave, TaskType};
use touchmark_proto::{Millis, SessionId};

use super::super::daemon_handle::{DaemonHandle, Standing};
use super::super::{Background, Model};
use super::{cut, reads};

/// Checkpoints that hooks keep of a session; the oldest go first.
const CHECKPOINTS: usize = 500;

/// Files mentioned in one prompt at most.
const MENTIONS: usize = 20;

/// Tasks looked at in one event.
const TASKS: usize = 50;

/// Bytes of texts that are only kept.
const KEPT: usize = 200;

/// One checkpoint for each prompt, so that who goes back to it can be warned
/// of what was edited since (CHK).
pub(super) async fn checkpoint(
    daemon: &DaemonHandle,
    session: &SessionId,
    standing: &Standing,
    prompt: Option<String>,
) {
    let message = prompt.map(|id| cut(&id, KEPT));
    if message.is_some() && message == standing.last_message {
        return;
    }
    let create = CheckpointCreate {
        session: session.clone(),
        label: None,
        message,
        step: None,
    };
    if daemon.ask(create).await.is_err() {
        return;
    }
    if let (CHECKPOINTS.., Some(oldest)) = (standing.checkpoints, &standing.oldest_checkpoint) {
        let delete = CheckpointDelete {
            session: session.clone(),
            checkpoint: oldest.clone(),
        };
        let _deleted_already = daemon.ask(delete).await;
    }
}

/// `@path` in a prompt puts a file into the context, and no tool says so.
pub(super) async fn mentions(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    prompt: &str,
) {
    for named in mentioned(prompt) {
        let Some(path) = daemon.place(cwd, &named).await else {
            continue;
        };
        if reads::look(daemon, session, &path).await.is_none() {
            continue;
        }
        let mention = FileMention {
            session: session.clone(),
            path,
            hash: None,
            range: None,
            step: None,
            missed: false,
        };
        let _not_a_file = daemon.ask(mention).await;
    }
}

/// The paths after an `@` that begins a word.
fn mentioned(prompt: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut before = ' ';
    for (at, letter) in prompt.char_indices() {
        let begins = before.is_whitespace() || "([{<\"'`,".contains(before);
        before = letter;
        if letter != '@' || !begins || found.len() >= MENTIONS {
            continue;
        }
        let rest = prompt.get(at + 1..).unwrap_or_default();
        let named = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => {
                let word = rest.split(char::is_whitespace).next().unwrap_or_default();
                word.trim_end_matches([
                    '.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '"', '\'', '`',
                ])
            }
        };
        // `@a.rs#L10-20` names lines of it.
        let named = named.split("#L").next().unwrap_or_default();
        if !named.is_empty() && named.len() <= 4_096 && !found.iter().any(|known| known == named) {
            found.push(named.to_owned());
        }
    }
    found
}

/// Which model answers.
pub(super) async fn used(daemon: &DaemonHandle, session: &SessionId, model: Model) {
    let record = ModelRecord {
        session: session.clone(),
        model_id: cut(&model.id, KEPT),
        provider_id: model.provider,
        mode: cut(&model.mode, KEPT),
        message_id: model.message.map(|message| cut(&message, KEPT)),
    };
    let _known_already = daemon.ask(record).await;
}

/// The tasks that go on in the background; those that are not named any more
/// have ended.
pub(super) async fn tasks(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    tasks: Vec<Background>,
) {
    let list = TaskList {
        session: Some(session.clone()),
        limit: None,
        cursor: None,
    };
    let Ok(kept) = daemon.ask(list).await else {
        return;
    };
    // Agents do not say which process it is: a task with one is another
    // client's.
    let mut ended: BTreeMap<String, Millis> = kept
        .tasks
        .into_iter()
        .filter(|task| task.pid.is_none())
        .map(|task| (task.id, task.start_time))
        .collect();
    for task in tasks.into_iter().filter(|task| task.running).take(TASKS) {
        let id = cut(&task.id, KEPT);
        let started = ended.remove(&id);
        let save = TaskSave {
            session: session.clone(),
            task: Task {
                id,
                task_type: match task.is_agent {
                    true => TaskType::Agent,
                    false => TaskType::Shell,
                },
                command: task.command.map(|command| cut(&command, KEPT)),
                pid: None,
                start_time: started.unwrap_or(daemon.now),
                working_directory: cwd.unwrap_or(&daemon.root).to_string_lossy().into_owned(),
            },
        };
        let _too_many = daemon.ask(save).await;
    }
    for id in ended.into_keys().take(TASKS) {
        let remove = TaskRemove {
            id,
            session: Some(session.clone()),
        };
        let _removed_already = daemon.ask(remove).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_after_an_at_that_begins_a_word() {
        assert_eq!(
            mentioned("look at @src/a.rs, (@b.md) and @\"my file.txt\" or @c.rs#L1-5."),
            ["src/a.rs", "b.md", "my file.txt", "c.rs"]
        );
        assert_eq!(
            mentioned("mail me@example.org @ @. x@y"),
            Vec::<String>::new()
        );
        assert_eq!(mentioned("@a @a"), ["a"]);
        assert_eq!(mentioned(&"@a ".repeat(100)), ["a"]);
        let many: String = (0..100).map(|n| format!("@{n} ")).collect();
        assert_eq!(mentioned(&many).len(), MENTIONS);
    }
}
