//! A lock between starting programs and writing files.
//!
//! A program that is being started has inherited every file that another thread
//! has open at that moment, until `exec` closes them. The watcher sees such a
//! file closed only then, so a save would not look like a user's save. A lease
//! on the file is refused as well, correctly.

use std::io;
use std::process::{Child, Command};
use std::sync::{PoisonError, RwLock};

static STARTING: RwLock<()> = RwLock::new(());

/// Starts a program while no thread has a file open in [`unshared`].
///
/// # Errors
/// The system's error.
pub fn start(command: &mut Command) -> io::Result<Child> {
    let _alone = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// Opens, writes and closes files that no started program may inherit.
pub fn unshared<T>(work: impl FnOnce() -> T) -> T {
    let _nobody_starts = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    work()
}
