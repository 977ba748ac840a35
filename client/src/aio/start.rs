//! Starts a daemon if none runs, for tokio.

use super::Client;
use crate::error::{Error, Result};
use crate::find::Workspace;
use crate::{Hello, Start, start};

/// Connects to the workspace's daemon, if one runs.
///
/// # Errors
/// The same as [`Workspace::connect`].
pub async fn connect(workspace: &Workspace, hello: &Hello) -> Result<Client> {
    let client = Client::connect(&workspace.socket(), hello).await?;
    workspace.check_served(client.server().as_ref())?;
    Ok(client)
}

/// Connects to the workspace's daemon. Starts one if none runs, on a separate
/// thread, by [`crate::connect_or_start`].
///
/// # Errors
/// The same as [`crate::connect_or_start`].
pub async fn connect_or_start(
    workspace: &Workspace,
    hello: &Hello,
    start: &Start,
) -> Result<Client> {
    match connect(workspace, hello).await {
        Err(error) if error.code() == "place" => return Err(error),
        Err(_) => {}
        connected => return connected,
    }
    let (place, greeting, way) = (workspace.clone(), hello.clone(), start.clone());
    let started = tokio::task::spawn_blocking(move || {
        start::connect_or_start(&place, &greeting, &way).map(drop)
    });
    started.await.map_err(|error| Error::Start {
        reason: error.to_string(),
    })??;
    connect(workspace, hello).await
}
