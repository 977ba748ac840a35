//! Starting a daemon where none runs, for tokio.

use super::Client;
use crate::error::{Error, Result};
use crate::find::Workspace;
use crate::{Hello, Start, start};

/// Connects to the workspace's daemon, and starts one if none runs. As
/// [`crate::connect_or_start`], which waits on a thread of its own meanwhile.
///
/// # Errors
/// As [`crate::connect_or_start`].
pub async fn connect_or_start(
    workspace: &Workspace,
    hello: &Hello,
    start: &Start,
) -> Result<Client> {
    if let Ok(client) = Client::connect(&workspace.socket(), hello).await {
        return Ok(client);
    }
    let (place, greeting, way) = (workspace.clone(), hello.clone(), start.clone());
    let started = tokio::task::spawn_blocking(move || {
        start::connect_or_start(&place, &greeting, &way).map(drop)
    });
    started.await.map_err(|error| Error::Start {
        reason: error.to_string(),
    })??;
    Client::connect(&workspace.socket(), hello).await
}
