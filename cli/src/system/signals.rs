//! Signals that end the program.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Returns a future that completes at SIGTERM or SIGINT. Needs a tokio runtime.
///
/// # Errors
/// The system's error.
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
