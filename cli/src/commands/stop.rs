//! `touchmark stop`: ends the daemon, or all of them.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use touchmark_client::proto::daemon::Shutdown;
use touchmark_client::{Workspace, start};

use crate::context::{Context, directory, hello};
use crate::output::Outcome;

/// How long a daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends the daemon.
#[derive(Debug, Args)]
pub(crate) struct Options {}

pub(crate) fn run(context: &Context) -> Outcome {
    let workspace = context.workspace()?;
    let ran = end(&workspace)?;
    if context.global.json {
        return context.json(&json!({ "stopped": ran }));
    }
    let name = directory(&workspace.root);
    context.say(&if ran {
        format!("ended: the daemon for {name}")
    } else {
        format!("no daemon runs for {name}")
    })
}

/// Asks the workspace's daemon to end and waits until it has; `false` if none
/// ran.
pub(crate) fn end(workspace: &Workspace) -> Outcome<bool> {
    if workspace.is_asleep() {
        return Ok(false);
    }
    // Without `initialize`, so that a daemon of any protocol can be ended.
    let client = match workspace.connect_silent(&hello()) {
        Ok(client) => client,
        Err(error) if error.is_disconnected() => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    match client.call(Shutdown {}) {
        // The daemon may be gone before its answer is sent.
        Err(error) if !error.is_disconnected() => return Err(error.into()),
        _ => {}
    }
    drop(client);
    start::wait_until_ended(workspace, PATIENCE)?;
    Ok(true)
}
