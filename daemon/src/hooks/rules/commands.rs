//! The windows of an agent's shell commands.

use std::path::Path;
use std::time::Duration;

use touchmark_engine::text::tokens;
use touchmark_proto::commands::{CommandBegin, CommandEnd, CommandScope};
use touchmark_proto::{Request, SessionId};

use super::super::daemon_handle::DaemonHandle;
use super::super::{links, notice, running, whose, wiped};
use super::{Outcome, Told, cut, described, prints, worktrees};
use crate::witness;

/// The maximum length of the command that is a window's label, in bytes.
const LABEL: usize = 200;

/// Opens a window for a command, and reads the files that it may print.
pub(super) async fn begin(
    daemon: &DaemonHandle,
    session: &SessionId,
    cwd: Option<&Path>,
    call: &str,
    command: &str,
) -> Outcome {
    let places = &daemon.cx.workspace.places;
    let begin = CommandBegin {
        below: { daemon.cx.process }.and_then(|process| witness::above(process, places)),
        ..CommandBegin::new(session.clone())
    };
    let begin = begin
        .label(cut(&tokens::masked(command), LABEL))
        .call_id(call)
        .scope(CommandScope::Workspace);
    let label = begin.label.clone();
    let Ok(begun) = daemon.ask(begin).await else {
        return Outcome::default();
    };
    running::await_begin(daemon, session, call, command, &begun.command, label);
    prints::before(daemon, session, cwd, call, command).await;
    Outcome {
        undo: vec![Request::CommandEnd(
            CommandEnd::new().session(session.clone()).call_id(call),
        )],
        ..Outcome::default()
    }
}

/// Ends a window. Tells what was changed in it, which is reported nowhere else
/// (MOD-1), and what it took away of the work of others.
pub(super) async fn end(
    daemon: &DaemonHandle,
    session: &SessionId,
    call: &str,
    patience: Duration,
    told: &mut Told,
) {
    running::came_back(daemon, session, call).await;
    let end = CommandEnd::new().session(session.clone()).call_id(call);
    let Ok(mut ended) = daemon.ask(end).await else {
        return;
    };
    if let Some(row) = &ended.command {
        told.for_user = wiped::told(daemon, session, row, patience).await;
        told.texts.extend(told.for_user.clone());
        told.texts.extend(links::by_command(daemon, row).await);
        worktrees::command(daemon, session, row);
    }
    for change in &mut ended.changes {
        notice::by_this_command(change, session);
    }
    let details = described::of(daemon, session, &ended.changes).await;
    whose::name_for(&mut ended.changes, session, &details);
    let count = ended.changes.len();
    daemon
        .memory
        .notices()
        .of_command(session, &mut ended.changes);
    let ran = ended.command.as_ref().and_then(|row| {
        whose::git_command(
            row.label.as_deref()?,
            row.branch_before.as_deref(),
            row.branch_after.as_deref(),
        )
    });
    let git = ran.as_deref().map(|ran| (ran, count));
    let more = ended.more == Some(true);
    told.texts
        .extend(notice::by_command(&ended.changes, &details, more, git));
}
