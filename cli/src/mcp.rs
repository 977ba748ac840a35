//! The MCP server: a client of the daemon that implements the Model Context
//! Protocol on standard input and output, in both versions.
//!
//! - `server`: the requests of the protocol, and their handlers.
//! - `tools`: the tools, one function each; `arguments` their input, with the
//!   schemas; `answers` and `written` their output.
//! - `changes`: the resource, and the notifications that it changed.
//! - `link`: the session, on a connection that is restored when it breaks.
//! - `transport`: which answers were delivered, and messages that arrive too
//!   early.

mod answers;
mod arguments;
mod changes;
mod link;
mod server;
mod tools;
mod transport;
mod written;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use touchmark_client::proto::SessionId;
use touchmark_client::{Start, Workspace};

use crate::output::{Failure, Outcome};
use crate::system::signals;
use link::Link;
use server::Server;
use transport::Stdio;

/// Serves one client until its input ends or a signal arrives. Without `start`
/// no daemon is started. Without a named session a new one is opened, and
/// closed at the end.
pub(crate) fn serve(
    workspace: Workspace,
    start: Option<Start>,
    named: Option<SessionId>,
) -> Outcome {
    let own = named.is_none();
    let session = match named {
        Some(session) => session,
        None => own_session()?,
    };
    // Created only here, so that other commands do not pay for it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime")?;
    let link = Arc::new(Link::new(workspace, start, session, own));
    let served = runtime.block_on(until_the_end(&link));
    runtime.block_on(link.close());
    // A thread may still be waiting for input.
    runtime.shutdown_background();
    served
}

/// Returns a new name for this process's session. Each client has a separate
/// server process, so the name is stable for the client.
fn own_session() -> Outcome<SessionId> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let name = format!("mcp-{:x}-{}", now.as_millis(), std::process::id());
    SessionId::new(&name).map_err(|error| Failure::Other(error.into()))
}

async fn until_the_end(link: &Arc<Link>) -> Outcome {
    let told_to_end = signals::told_to_end().context("signals")?;
    let (input, output) = stdio_pipes();
    let server = Server::new(Arc::clone(link));
    let stdio = Stdio::new(AsyncRwTransport::new_server(input, output), server.wires());
    let serving = async {
        match server.serve(stdio).await {
            Ok(running) => running
                .waiting()
                .await
                .map(drop)
                .context("serving")
                .map_err(Failure::from),
            // The client disconnected before it introduced itself.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(Failure::Other(error.into())),
        }
    };
    tokio::select! {
        served = serving => served,
        () = told_to_end => Ok(()),
    }
}
