//! Closes file descriptors that the daemon has inherited.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The first descriptor after the standard streams.
const FIRST_OTHER: i32 = 3;

/// Closes all inherited descriptors except the standard streams, by executing
/// the program again in the same process. An agent's harness may leak a pipe
/// into the commands that it runs, and wait until the pipe is closed. It would
/// wait until the daemon exits (LIFE-1).
///
/// Most clients leak none. Executing takes about three milliseconds, so it is
/// left out then.
pub(super) fn close() {
    if !has_others() {
        return;
    }
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

/// Returns whether a descriptor is open besides the standard streams. True if
/// that cannot be found out.
fn has_others() -> bool {
    // The system lists each descriptor of this process, and the one by which
    // the list is read, as a number.
    let Ok(entries) = std::fs::read_dir("/dev/fd") else {
        return true;
    };
    let open = entries.map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<i32>().ok()
    });
    // The descriptor of the list is the lowest that is free. If another one is
    // open, there are two.
    open.filter(|number| number.is_none_or(|number| number >= FIRST_OTHER))
        .count()
        > 1
}
