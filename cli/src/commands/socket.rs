//! `touchmark socket`: prints where the daemon listens, for scripts.

use serde_json::json;

use crate::context::Context;
use crate::output::{self, Outcome};

pub(crate) fn run(context: &Context) -> Outcome {
    let workspace = context.workspace()?;
    let socket = workspace.socket();
    if context.global.json {
        return context.json(&json!({
            "socket": socket.to_string_lossy(),
            "workspace": workspace.root.to_string_lossy(),
            "running": workspace.is_running(),
        }));
    }
    // Printed verbatim, since scripts use it.
    output::line(&socket.to_string_lossy())
}
