//! Tells sessions of lines that other worktrees of the repository have changed
//! and not merged (TREE). A look at them is made in a separate task, so no hook
//! waits for it. Its text is part of the answer to a later event.

use std::path::Path;
use std::time::Duration;

use touchmark_proto::commands::CommandRow;
use touchmark_proto::history::FileLog;
use touchmark_proto::{At, ClientPath, RelPath, SessionId, native};

use super::super::daemon_handle::DaemonHandle;
use super::super::happened::{Change, Writing};
use crate::worktrees::{Cause, Edit};

/// The maximum number of a command's versions that are examined.
const WRITTEN: u32 = 256;

/// How long the answer to a prompt waits for the look. If that takes longer, its
/// text is part of the answer to the next event.
const PROMPT: Duration = Duration::from_millis(40);

/// An edit whose result is known before the tool runs.
pub(super) fn edit(
    daemon: &DaemonHandle,
    path: &ClientPath,
    before: Option<&[u8]>,
    after: Option<Vec<u8>>,
) -> Option<Edit> {
    Some(Edit {
        path: path
            .normalise(&native::bytes(&daemon.cx.workspace.root))
            .ok()?,
        before: before?.to_vec(),
        after: after?,
    })
}

/// Begins a look for edits that a tool is about to make.
pub(super) fn before(daemon: &DaemonHandle, session: &SessionId, edits: Vec<Edit>) {
    if !edits.is_empty() {
        look(daemon, session, Cause::Edits(edits));
    }
}

/// Notes which files a tool has written, and begins a look if it was not known
/// before what the tool would write.
pub(super) async fn after(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    files: &[Writing],
) {
    let mut paths = Vec::new();
    let mut is_known = true;
    for Writing { path, change } in files {
        is_known &= matches!(
            change,
            Change::Replace(_) | Change::Patch { from: None, .. }
        );
        paths.extend(daemon.place(cwd, path).await);
    }
    wrote(daemon, session, &paths, !is_known);
}

/// Notes which files a command has written, and begins a look at them.
pub(super) fn command(daemon: &DaemonHandle, session: &SessionId, row: &CommandRow) {
    if !daemon.settings.worktrees || row.versions == 0 {
        return;
    }
    let (daemon, session, row) = (daemon.at_leisure(), session.clone(), row.clone());
    tokio::spawn(async move {
        if !daemon.worktrees.are_there().await {
            return;
        }
        let log = FileLog {
            since: row.begun.to_string().parse::<At>().ok(),
            limit: Some(WRITTEN),
            ..FileLog::default()
        };
        let log = daemon.ask(log).await.ok();
        let versions = log.into_iter().flat_map(|log| log.entries);
        let mut paths: Vec<ClientPath> = Vec::new();
        for entry in versions {
            let path = ClientPath::from(&entry.version.path);
            if entry.version.command.as_ref() == Some(&row.command) && !paths.contains(&path) {
                paths.push(path);
            }
        }
        wrote(&daemon, &session, &paths, true);
    });
}

/// Notes which files a session has written. With `look`, begins a look at them.
fn wrote(daemon: &DaemonHandle, session: &SessionId, paths: &[ClientPath], look: bool) {
    let root = native::bytes(&daemon.cx.workspace.root);
    let paths = paths.iter().filter_map(|path| path.normalise(&root).ok());
    let paths: Vec<RelPath> = paths.collect();
    if !paths.is_empty() {
        self::look(daemon, session, Cause::Wrote { paths, look });
    }
}

/// Looks at the files that a session has written in earlier turns.
pub(super) async fn turn(daemon: &DaemonHandle, session: &SessionId) {
    if let Some(looked) = look(daemon, session, Cause::Turn) {
        let _it_continues = tokio::time::timeout(PROMPT, looked).await;
    }
}

fn look(
    daemon: &DaemonHandle,
    session: &SessionId,
    cause: Cause,
) -> Option<tokio::task::JoinHandle<()>> {
    if !daemon.settings.worktrees {
        return None;
    }
    let (daemon, session) = (daemon.at_leisure(), session.clone());
    Some(tokio::spawn(async move {
        let news = daemon
            .worktrees
            .news(&daemon.cx.inside, &session, cause)
            .await;
        for text in news {
            let text = Some(text);
            daemon.memory.say_later(&daemon.cx.inside, &session, text);
        }
    }))
}
