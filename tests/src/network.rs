//! A network that only one test sees, with only loopback in it.

use std::panic::resume_unwind;
use std::process::Command;

use rustix::thread::UnshareFlags;

use crate::parts::not_tested;

/// Runs a test on a thread whose network has only loopback, also for processes
/// that it starts. Where that is not possible (it takes root), prints a message
/// and runs the test with the machine's network.
pub fn loopback_alone<T: Send>(what: &str, test: impl FnOnce() -> T + Send) -> T {
    let run = || {
        if let Err(why) = unshare() {
            not_tested(&format!("{what} without a network: {why}"));
        }
        test()
    };
    // On a separate thread, since a namespace cannot be left again.
    let joined = std::thread::scope(|scope| scope.spawn(run).join());
    joined.unwrap_or_else(|panic| resume_unwind(panic))
}

#[expect(
    deprecated,
    reason = "deprecated for what it does with the flag FILES, which is not given"
)]
fn unshare() -> Result<(), String> {
    rustix::thread::unshare(UnshareFlags::NEWNET).map_err(|error| error.to_string())?;
    let up = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status();
    match up.is_ok_and(|status| status.success()) {
        true => Ok(()),
        false => Err("`ip link set lo up` fails".into()),
    }
}
