//! What a daemon inherits from its starter's starter.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The first descriptor after the standard streams.
const FIRST_OTHER: i32 = 3;

/// Closes what was inherited beyond the standard streams, and comes back as
/// the same process. An agent's harness may leak a pipe into the commands it
/// runs and wait for its end: it would wait for this daemon's (LIFE-1).
pub(super) fn close() {
    close_fds::set_fds_cloexec(FIRST_OTHER, &[]);
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    // Comes back only if it failed; a daemon with a pipe too many is better
    // than none.
    let _failed = Command::new(program)
        .args(std::env::args_os().skip(1))
        .arg("--closed")
        .exec();
}
