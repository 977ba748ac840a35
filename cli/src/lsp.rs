//! The language server: a client of the daemon that implements the Language
//! Server Protocol on standard input and output, without any language. An
//! editor without a plug-in reports by it what its user does.
//!
//! - `server`: the messages of the protocol, and what each does.
//! - `messages`: their parameters; `editor` what an editor can do, `options` what
//!   its user can set.
//! - `document`: one open file; `text` its positions, `unsaved` its unsaved
//!   lines, `disk` what the file contains on disk.
//! - `workspaces`: which daemon a file belongs to; `link` the connection to one.
//! - `authors`: who wrote a line; `review` keeping and undoing; `diagnostics`
//!   what is stale or waits for review; `words` how these are called.
//! - `transport`: messages as bytes.

mod authors;
mod diagnostics;
mod disk;
mod document;
mod editor;
mod link;
mod messages;
mod options;
mod review;
mod server;
mod text;
mod transport;
mod unsaved;
mod words;
mod workspaces;

use anyhow::Context as _;
use tokio::sync::mpsc;
use touchmark_client::{Environment, Start, Workspace};

use crate::output::{Failure, Outcome};
use crate::system::signals;
use server::Server;
use transport::Writer;
use workspaces::Workspaces;

/// Serves one editor until it says `exit`, its output ends, or a signal arrives.
/// With `only`, files of other workspaces are ignored. Without `start` no daemon
/// is started, whatever the editor's settings say.
///
/// # Errors
/// The editor has said `exit` without `shutdown` before.
pub(crate) fn serve(
    environment: Environment,
    only: Option<Workspace>,
    start: Option<Start>,
) -> Outcome {
    // Created only here, so that other commands do not pay for it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime")?;
    let (writer, out) = Writer::start();
    let served = runtime.block_on(async {
        let told_to_end = signals::told_to_end().context("signals")?;
        let (news, inputs) = mpsc::unbounded_channel();
        transport::read(news.clone());
        let workspaces = Workspaces::new(environment, only, start, news.clone());
        let mut server = Server::new(out, workspaces, news);
        let is_orderly = server.run(inputs, told_to_end).await;
        server.flush().await;
        Ok::<_, Failure>(is_orderly)
    });
    // A thread may still be waiting for input.
    runtime.shutdown_background();
    writer.finish();
    match served? {
        true => Ok(()),
        false => Err(Failure::No(
            "the editor did not shut the server down".into(),
        )),
    }
}
