//! Opens the page in the user's browser.

use std::process::Stdio;
use std::thread;

/// Starts the browser. Returns `false` if there is no program for that.
pub(crate) fn open(address: &str) -> bool {
    open::commands(address).into_iter().any(|mut command| {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else {
            return false;
        };
        // It may be the browser itself, which runs for hours.
        thread::spawn(move || child.wait());
        true
    })
}
