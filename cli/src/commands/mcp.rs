//! `touchmark mcp`: an MCP server on standard input and output.

use std::path::PathBuf;

use clap::Args;
use touchmark_client::Workspace;
use touchmark_client::proto::SessionId;

use crate::context::{Context, inherited, session};
use crate::mcp;
use crate::output::Outcome;

/// Serve the Model Context Protocol on standard input and output, for one
/// client. Exits at the end of the input.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The client's session [default: TOUCHMARK_SESSION, else a new session]
    #[arg(long, value_name = "S", value_parser = session)]
    session: Option<SessionId>,
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let named = match options.session {
        Some(session) => Some(session),
        None => inherited()?,
    };
    let elsewhere = started_in().filter(|_| context.global.workspace.is_none());
    let workspace = match elsewhere {
        Some(directory) => Workspace::find(&directory, &context.environment)?,
        None => context.workspace()?,
    };
    let start = (!context.global.no_start).then(|| context.start());
    mcp::serve(workspace, start, named)
}

/// Returns the client's working directory if it differs from the server's. An
/// Agent Plugin's server is started in the plug-in's directory, and `PWD` still
/// has the client's.
fn started_in() -> Option<PathBuf> {
    let plugin = PathBuf::from(std::env::var_os("PLUGIN_ROOT")?);
    let plugin = plugin.canonicalize().ok()?;
    let client = PathBuf::from(std::env::var_os("PWD")?)
        .canonicalize()
        .ok()?;
    let here = std::env::current_dir().ok()?.canonicalize().ok()?;
    (here.starts_with(&plugin) && !client.starts_with(&plugin)).then_some(client)
}
