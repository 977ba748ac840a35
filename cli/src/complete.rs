//! Shell completions for versions, sessions and undos. They are requested from
//! a running daemon. Without one there are none.

use std::ffi::OsStr;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use touchmark_client::blocking::Client;
use touchmark_client::proto::SessionId;
use touchmark_client::proto::checkpoints::{CheckpointList, CheckpointRow};
use touchmark_client::proto::history::FileLog;
use touchmark_client::proto::sessions::{SessionList, SessionRow};
use touchmark_client::proto::undo::UndoList;

use crate::context::Global;
use crate::context::{Connection, Context};
use crate::output::Outcome;
use crate::text::{author, called, escaped, zone};
use crate::versions::{verb, when};

/// The maximum number of versions, sessions and checkpoints that are offered.
/// The newest are offered.
const OFFERED: usize = 20;

/// Completes `PATH`, and after an `@` the versions of that file.
pub(crate) fn file_and_version(current: &OsStr) -> Vec<CompletionCandidate> {
    let files = || PathCompleter::any().complete(current);
    let Some((file, begun)) = current.to_str().and_then(|text| text.rsplit_once('@')) else {
        return files();
    };
    let offered = of_file(file).into_iter();
    let all = offered.chain(moments(begun));
    let versions: Vec<_> = all
        .filter(|offered| {
            let value = offered.get_value().to_str();
            value.is_some_and(|value| value.starts_with(begun))
        })
        .map(|offered| offered.add_prefix(format!("{file}@")))
        .collect();
    match versions.is_empty() {
        true => files(),
        false => versions,
    }
}

/// Completes a version without a file: checkpoints, what sessions saw, `now`.
pub(crate) fn version(current: &OsStr) -> Vec<CompletionCandidate> {
    moments(&current.to_string_lossy())
}

/// Completes `me`, `command`, or a session.
pub(crate) fn by(current: &OsStr) -> Vec<CompletionCandidate> {
    let words = ["me", "command"].map(CompletionCandidate::new);
    let mut all = begin(words, &current.to_string_lossy());
    all.extend(session(current));
    all
}

/// Completes a session.
pub(crate) fn session(current: &OsStr) -> Vec<CompletionCandidate> {
    let sessions = connected(|connection| sessions(&connection.client));
    let names = sessions
        .iter()
        .map(|row| CompletionCandidate::new(name(row)));
    begin(names, &current.to_string_lossy())
}

/// Completes a session or `PATH@V`.
pub(crate) fn session_or_version(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = session(current);
    all.extend(file_and_version(current));
    all
}

/// Completes an undo that can be reversed, the newest first.
pub(crate) fn undo(current: &OsStr) -> Vec<CompletionCandidate> {
    let undos = connected(|connection| Ok(connection.client.call(UndoList {})?.undos));
    let offered = undos
        .into_iter()
        .filter(|undo| undo.redo_of.is_none())
        .map(|undo| {
            let help = format!("{} {}", when(undo.time, &zone()), escaped(&undo.what, 60));
            CompletionCandidate::new(undo.undo).help(Some(help.into()))
        });
    begin(offered.take(OFFERED), &current.to_string_lossy())
}

/// Completes a checkpoint of any session, the newest first.
pub(crate) fn checkpoint(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut all: Vec<CheckpointRow> = connected(|connection| {
        let client = &connection.client;
        let sessions = sessions(client)?.into_iter();
        let all = sessions.map(|row| newest_checkpoints(client, row.session));
        Ok(all.flatten().collect())
    });
    all.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.clock.n));
    let offered = all.into_iter().take(OFFERED).map(|checkpoint| {
        let text = checkpoint.text.unwrap_or_default();
        let help = format!("{} {}", when(checkpoint.time, &zone()), escaped(&text, 60));
        CompletionCandidate::new(checkpoint.checkpoint).help(Some(help.into()))
    });
    begin(offered, &current.to_string_lossy())
}

fn moments(begun: &str) -> Vec<CompletionCandidate> {
    let mut all = vec![CompletionCandidate::new("now")];
    all.extend(connected(|connection| {
        let mut all = Vec::new();
        for row in sessions(&connection.client)? {
            let name = name(&row);
            all.push(CompletionCandidate::new(format!("seen:{name}")));
            let checkpoints = newest_checkpoints(&connection.client, row.session);
            all.extend(checkpoints.iter().rev().take(OFFERED).map(|checkpoint| {
                let value = format!("{name}/{}", checkpoint.checkpoint);
                let help = when(checkpoint.time, &zone());
                CompletionCandidate::new(value).help(Some(help.into()))
            }));
        }
        Ok(all)
    }));
    begin(all, begun)
}

/// Returns the newest checkpoints of a session, oldest first.
fn newest_checkpoints(client: &Client, session: SessionId) -> Vec<CheckpointRow> {
    let found = client.call(CheckpointList::new(session));
    found.map(|rows| rows.checkpoints).unwrap_or_default()
}

fn begin(
    all: impl IntoIterator<Item = CompletionCandidate>,
    begun: &str,
) -> Vec<CompletionCandidate> {
    let begins = |offered: &CompletionCandidate| {
        let value = offered.get_value().to_str();
        value.is_some_and(|value| value.starts_with(begun))
    };
    all.into_iter().filter(begins).collect()
}

/// Returns the newest versions of a file.
fn of_file(file: &str) -> Vec<CompletionCandidate> {
    connected(|connection| {
        let log = connection.client.call(FileLog {
            paths: Some(vec![connection.path(file.as_ref())?]),
            limit: u32::try_from(OFFERED).ok(),
            ..FileLog::default()
        })?;
        let zone = zone();
        let offered = log.entries.iter().map(|entry| {
            let version = &entry.version;
            let (time, by) = (when(version.time, &zone), author(&version.author));
            let help = format!("{time} {by} {}", verb(version.kind));
            CompletionCandidate::new(version.clock.n.to_string()).help(Some(help.into()))
        });
        Ok(offered.collect())
    })
}

/// Returns the sessions that were active last.
fn sessions(client: &Client) -> Outcome<Vec<SessionRow>> {
    let mut sessions = client.call(SessionList::new())?.sessions;
    sessions.sort_by_key(|row| std::cmp::Reverse(row.last_active));
    sessions.truncate(OFFERED);
    Ok(sessions)
}

fn name(row: &SessionRow) -> String {
    called(&row.session, row.label.as_deref())
}

/// Returns what is found with a running daemon. Completion starts none; without
/// one, and after an error, nothing is offered.
fn connected<T>(find: impl FnOnce(&Connection<'_>) -> Outcome<Vec<T>>) -> Vec<T> {
    let found = Context::new(Global::default()).and_then(|context| find(&context.open_running()?));
    found.unwrap_or_default()
}
