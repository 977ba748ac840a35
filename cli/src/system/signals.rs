//! Being told to end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// SIGTERM or SIGINT. Needs a runtime.
///
/// # Errors
/// The system's words.
pub(crate) fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}
