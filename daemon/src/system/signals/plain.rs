//! Where the only signal is the key that interrupts.

use std::io;

/// The key that interrupts. Needs a runtime.
///
/// # Errors
/// None; others have some.
pub(crate) fn shutdown(_terminal: bool) -> io::Result<impl Future<Output = ()> + use<>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

/// There is none: the configuration is read again by `reload`.
#[derive(Debug)]
pub(crate) struct Hangup;

/// Never comes.
///
/// # Errors
/// None; others have some.
pub(crate) fn hangup() -> io::Result<Hangup> {
    Ok(Hangup)
}

impl Hangup {
    pub(crate) async fn recv(&mut self) -> Option<()> {
        std::future::pending().await
    }
}
