//! Shell completions for versions, sessions and undos. They are requested from
//! a running daemon. Without one there are none.

use std::ffi::OsStr;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use touchmark_client::blocking::Client;
use touchmark_client::proto::checkpoints::CheckpointList;
use touchmark_client::proto::history::FileLog;
use touchmark_client::proto::sessions::{SessionList, SessionRow};
use touchmark_client::proto::undo::UndoList;

use crate::context::Context;
use crate::context::Global;
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
    let offered = of_file(file).unwrap_or_default().into_iter();
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
    let sessions = connected().and_then(|(_, client)| sessions(&client));
    let sessions = sessions.unwrap_or_default();
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
    let undos = connected().and_then(|(_, client)| Ok(client.call(UndoList {})?.undos));
    let undos = undos.unwrap_or_default().into_iter();
    let offered = undos.filter(|undo| undo.redo_of.is_none()).map(|undo| {
        let help = format!("{} {}", when(undo.time, &zone()), escaped(&undo.what, 60));
        CompletionCandidate::new(undo.undo).help(Some(help.into()))
    });
    begin(offered.take(OFFERED), &current.to_string_lossy())
}

/// Completes a checkpoint of any session, the newest first.
pub(crate) fn checkpoint(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = Vec::new();
    if let Ok((_, client)) = connected() {
        for row in sessions(&client).unwrap_or_default() {
            let ask = CheckpointList {
                session: row.session.clone(),
                limit: None,
                cursor: None,
            };
            let found = client.call(ask).map(|rows| rows.checkpoints);
            all.extend(found.unwrap_or_default());
        }
    }
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
    if let Ok((_, client)) = connected() {
        for row in sessions(&client).unwrap_or_default() {
            let (session, name) = (row.session.clone(), name(&row));
            all.push(CompletionCandidate::new(format!("seen:{name}")));
            let ask = CheckpointList {
                session,
                limit: None,
                cursor: None,
            };
            let checkpoints = client.call(ask).map(|rows| rows.checkpoints);
            for checkpoint in checkpoints.unwrap_or_default().iter().rev().take(OFFERED) {
                let value = format!("{name}/{}", checkpoint.checkpoint);
                let help = when(checkpoint.time, &zone());
                all.push(CompletionCandidate::new(value).help(Some(help.into())));
            }
        }
    }
    begin(all, begun)
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
fn of_file(file: &str) -> Outcome<Vec<CompletionCandidate>> {
    let (context, client) = connected()?;
    let workspace = context.workspace()?;
    let log = client.call(FileLog {
        paths: Some(vec![context.path(&workspace, file.as_ref())?]),
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
}

/// Returns the sessions that were active last.
fn sessions(client: &Client) -> Outcome<Vec<SessionRow>> {
    let answer = client.call(SessionList {
        limit: None,
        cursor: None,
    })?;
    let mut sessions = answer.sessions;
    sessions.sort_by_key(|row| std::cmp::Reverse(row.last_active));
    sessions.truncate(OFFERED);
    Ok(sessions)
}

fn name(row: &SessionRow) -> String {
    called(&row.session, row.label.as_deref())
}

/// Connects to a running daemon. Completion does not start one.
fn connected() -> Outcome<(Context, Client)> {
    let context = Context::new(Global::default())?;
    let client = context.connect_running(&context.workspace()?)?;
    Ok((context, client))
}
