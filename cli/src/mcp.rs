//! The MCP server: a daemon's client that speaks the Model Context Protocol
//! on standard input and output, in both of its eras.
//!
//! - `server`: what the protocol asks of a server, and where it leads.
//! - `tools`: the tools, one function each; `arguments` what goes in and
//!   `answers` what comes out, with their schemas.
//! - `changes`: the resource, and who is told that it changed.
//! - `link`: the session, on a connection that is made anew when it breaks.
//! - `transport`: what was delivered, and what came too early.

mod answers;
mod arguments;
mod changes;
mod link;
mod server;
mod tools;
mod transport;

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

/// Serves one client until its input ends or a signal comes. Without `start`
/// no daemon is started; without a named session there is one of this
/// process's own, closed at the end.
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
    // Built here and nowhere earlier: no other command pays for it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime")?;
    let link = Arc::new(Link::new(workspace, start, session, own));
    let served = runtime.block_on(until_the_end(&link));
    runtime.block_on(link.close());
    // A thread may still wait for input that nobody sends.
    runtime.shutdown_background();
    served
}

/// A name for the session of this process: both eras start one server for
/// one client, so that what is stable for the process is so for the client.
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
            // A client that went away before it had said who it is.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(Failure::Other(error.into())),
        }
    };
    tokio::select! {
        served = serving => served,
        () = told_to_end => Ok(()),
    }
}
