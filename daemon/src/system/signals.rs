//! Being told to end, and being told to look again.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM, SIGINT or SIGQUIT; on a terminal SIGHUP as well, which says that
/// the terminal is closed. Needs a runtime.
///
/// # Errors
/// The system's words.
pub(crate) fn shutdown(terminal: bool) -> io::Result<impl Future<Output = ()> + use<>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = quit.recv() => {}
            _ = hangup.recv(), if terminal => {}
        }
    })
}

/// SIGHUP: the configuration is to be read again.
///
/// # Errors
/// The system's words.
pub(crate) fn hangup() -> io::Result<Signal> {
    signal(SignalKind::hangup())
}
