//! Closes file descriptors that the daemon has inherited.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The first descriptor after the standard streams.
const FIRST_OTHER: i32 = 3;

/// Closes all inherited descriptors except the standard streams, by executing
/// the program again in the same process. An agent's harness may leak a pipe
/// into the commands that it runs, and wait until the pipe is closed. It would
/// wait until the daemon exits (LIFE-1).
pub(super) fn close() {
    close_fds::set_fds_cloexec(FIRST_OTHER, &[]);
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    // `exec` returns only on failure. A daemon with an additional pipe is
    // better than none.
    let _failed = Command::new(program)
        .args(std::env::args_os().skip(1))
        .arg("--closed")
        .exec();
}
