//! `touchmark mcp`: an MCP server on standard input and output.

use clap::Args;
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
    let workspace = context.workspace()?;
    let start = (!context.global.no_start).then(|| context.start());
    mcp::serve(workspace, start, named)
}
