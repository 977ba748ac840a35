//! `touchmark mcp`: an MCP server on standard input and output.

use std::path::PathBuf;

use clap::Args;
use touchmark_client::Workspace;
use touchmark_client::proto::SessionId;

use crate::context::{Context, inherited, session};
use crate::mcp;
use crate::output::Outcome;

/// An MCP server on standard input and output, for one client. It ends with
/// its input.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The session the client works for [default: TOUCHMARK_SESSION, else one of its own]
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

/// Where the client was started, if that is not where the server is: one of an
/// Agent Plugin is started in the plug-in's own directory, and `PWD` still says
/// where its client works.
fn started_in() -> Option<PathBuf> {
    let plugin = PathBuf::from(std::env::var_os("PLUGIN_ROOT")?);
    let plugin = plugin.canonicalize().ok()?;
    let client = PathBuf::from(std::env::var_os("PWD")?)
        .canonicalize()
        .ok()?;
    let here = std::env::current_dir().ok()?.canonicalize().ok()?;
    (here.starts_with(&plugin) && !client.starts_with(&plugin)).then_some(client)
}
