//! Signals to exit, and to reload.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for SIGTERM, SIGINT or SIGQUIT; with a terminal also for SIGHUP, which
/// reports that the terminal was closed. Needs a runtime.
///
/// # Errors
/// The system's error.
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

/// Lets a write beyond the limit of a file's size (`ulimit -f`) fail with an
/// error. Without this, SIGXFSZ would end the process.
///
/// # Errors
/// The system's error.
pub(crate) fn survive_file_size() -> io::Result<()> {
    let number = rustix::process::Signal::XFSZ.as_raw();
    // The handler remains after the stream was dropped.
    signal(SignalKind::from_raw(number)).map(drop)
}

/// Returns the stream of SIGHUP, which requests to reload the configuration.
///
/// # Errors
/// The system's error.
pub(crate) fn hangup() -> io::Result<Signal> {
    signal(SignalKind::hangup())
}
