//! `touchmark start` and `touchmark restart`.

use serde_json::json;
use touchmark_client::Workspace;
use touchmark_client::blocking::Client;
use touchmark_client::proto::daemon::Status;

use crate::context::Context;
use crate::daemon;
use crate::output::{Failure, Outcome};
use crate::text::directory;

pub(crate) fn run(context: &Context) -> Outcome {
    let workspace = context.workspace()?;
    let ran = workspace.is_running();
    start(context, &workspace, ran)
}

pub(crate) fn restart(context: &Context) -> Outcome {
    let workspace = context.workspace()?;
    daemon::end(&workspace)?;
    start(context, &workspace, false)
}

fn start(context: &Context, workspace: &Workspace, ran: bool) -> Outcome {
    if context.global.no_start && !ran {
        return Err(Failure::Usage(
            "`start` and --no-start exclude each other".into(),
        ));
    }
    let client: Client = context.connect(workspace)?;
    let status = client.call(Status {})?;
    let facts = json!({
        "pid": status.pid,
        "workspace": status.workspace,
        "socket": workspace.socket().to_string_lossy(),
        "started": !ran,
    });
    let did = if ran { "runs already" } else { "started" };
    let name = directory(&workspace.root);
    context.tell(&facts, &format!("{did}: daemon {} for {name}", status.pid))
}
