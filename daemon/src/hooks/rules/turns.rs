//! What belongs to the turns of a conversation: checkpoints, mentions, models,
//! tasks.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use touchmark_proto::checkpoints::{CheckpointCreate, CheckpointDelete};
use touchmark_proto::files::FileMention;
use touchmark_proto::models::ModelRecord;
use touchmark_proto::tasks::{Task, TaskList, TaskRemove, TaskSave, TaskType};
use touchmark_proto::{Hash, LineRange, Millis, SessionId};

use super::super::daemon_handle::DaemonHandle;
use super::super::happened::{Background, Model};
use super::super::shown::{self, File};
use super::{cut, prints, reads};
use crate::standing::Standing;

/// The maximum number of checkpoints that hooks store for a session; the oldest
/// are removed first.
const CHECKPOINTS: usize = 500;

/// The maximum number of files mentioned in one prompt.
const MENTIONS: usize = 20;

/// The text before the input of a read that opencode makes for a prompt.
const ATTACHED: &str = "Called the Read tool with the following input:";

/// The maximum number of lines of a file that an agent attaches to a prompt.
const ATTACHED_LINES: u32 = 2_000;

/// The maximum number of tasks in one event.
const TASKS: usize = 50;

/// The maximum length in bytes of texts that are only stored.
const KEPT: usize = 200;

/// Creates a checkpoint for each prompt, so that a user who goes back to it can
/// be warned of the edits since then (CHK).
pub(super) async fn checkpoint(
    daemon: &DaemonHandle,
    session: &SessionId,
    standing: &Standing,
    prompt: Option<String>,
    text: &str,
) {
    let message = prompt.map(|id| cut(&id, KEPT));
    if message.is_some() && message == standing.last_message {
        return;
    }
    let create = CheckpointCreate {
        message,
        text: Some(text.to_owned()),
        ..CheckpointCreate::new(session.clone())
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

/// Handles `@path` in a prompt, which puts a file into the context without a
/// tool's event. If the prompt contains the file's lines they are read
/// (SEEN-10); otherwise the file is only mentioned.
pub(super) async fn mentions(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    prompt: &str,
) {
    let text = shown::plain(prompt);
    for named in mentioned(prompt).into_iter().chain(attached(prompt)) {
        // `@a.rs#L10-20` names lines of the file.
        let (named, range) = match named.split_once("#L") {
            Some((name, range)) => (name.to_owned(), lines(range)),
            None => (named, None),
        };
        let range = range.filter(|_| daemon.settings.attaches);
        let Some(path) = daemon.place(cwd, &named).await else {
            continue;
        };
        if reads::look(daemon, session, &path).await.is_none() {
            continue;
        }
        let mut hash = None;
        if let Some((file, held)) = prints::content(daemon, &path).await {
            let names = [named];
            let file_shown = File {
                names: &names,
                text: &held,
            };
            let ranges = shown::shown(&text, &[file_shown], 1).concat();
            let is_long = file.lines > ATTACHED_LINES;
            let beginning = (daemon.settings.attaches && is_long).then_some(LineRange {
                start: 1,
                end: ATTACHED_LINES,
            });
            let ranges = match ranges.is_empty() {
                true => range.or(beginning).into_iter().collect(),
                false => ranges,
            };
            if !ranges.is_empty() {
                prints::record(daemon, session, &file, ranges).await;
                continue;
            }
            hash = Some(file.hash).filter(|_| daemon.settings.attaches);
        }
        let mention = FileMention {
            hash,
            ..FileMention::new(session.clone(), path)
        };
        let _not_a_file = daemon.ask(mention).await;
    }
}

/// Reads `10` or `10-20` (Claude Code writes `L10-20` and `L10-L20`).
fn lines(range: &str) -> Option<LineRange> {
    let (start, end) = range.split_once('-').unwrap_or((range, range));
    let start = start.parse().ok().filter(|start| *start > 0)?;
    let end = end.trim_start_matches('L').parse().ok()?;
    (start <= end).then_some(LineRange { start, end })
}

/// Returns the paths after an `@` that begins a word, with the lines that they
/// name.
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
        if !named.is_empty() && named.len() <= 4_096 && !found.iter().any(|known| known == named) {
            found.push(named.to_owned());
        }
    }
    found
}

/// Returns the paths of files that opencode has read for the prompt, as if by a
/// tool.
fn attached(prompt: &str) -> Vec<String> {
    let calls = prompt.split(ATTACHED).skip(1).take(MENTIONS);
    let path = |call: &str| {
        let mut input = serde_json::Deserializer::from_str(call).into_iter::<Value>();
        let input = input.next()?.ok()?;
        input.get("filePath")?.as_str().map(str::to_owned)
    };
    calls.filter_map(path).collect()
}

/// Records which model answers.
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

/// Records the tasks that continue in the background. Tasks that are no longer
/// in the list have ended.
pub(super) async fn tasks(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    tasks: Vec<Background>,
) {
    let list = TaskList::new().session(session.clone());
    let Ok(kept) = daemon.ask(list).await else {
        return;
    };
    // Agents do not report a task's process, so a task with a process belongs
    // to another client.
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
                start_time: started.unwrap_or(daemon.cx.now),
                working_directory: cwd
                    .unwrap_or(&daemon.cx.workspace.root)
                    .to_string_lossy()
                    .into_owned(),
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

/// A file's content is sent to the model without a tool. It counts as seen if
/// it is the file's current content; otherwise the file is only mentioned.
pub(super) async fn attach(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    path: &str,
    content: Option<&str>,
) {
    let Some(path) = daemon.place(cwd, path).await else {
        return;
    };
    let Some(now) = reads::look(daemon, session, &path).await else {
        return;
    };
    let hash = content
        .map(|content| Hash::of(content.as_bytes()))
        .filter(|hash| *hash == now.hash);
    let mention = FileMention {
        hash,
        ..FileMention::new(session.clone(), path)
    };
    let _not_a_file = daemon.ask(mention).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_after_an_at_that_begins_a_word() {
        assert_eq!(
            mentioned("look at @src/a.rs, (@b.md) and @\"my file.txt\" or @c.rs#L1-5."),
            ["src/a.rs", "b.md", "my file.txt", "c.rs#L1-5"]
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

    #[test]
    fn files_that_were_read_for_the_prompt() {
        let prompt = "look\nCalled the Read tool with the following input: {\"filePath\":\"/w/a b\"}\n<file>";
        assert_eq!(attached(prompt), ["/w/a b"]);
        assert_eq!(
            attached("Called the Read tool with the following input: {"),
            Vec::<String>::new()
        );
    }
}
