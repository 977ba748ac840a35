//! Where the only signal is the key that interrupts.

use std::io;

/// The key that interrupts. Needs a runtime.
///
/// # Errors
/// None here.
pub(crate) fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
