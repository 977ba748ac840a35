//! For tests: a program that one of them starts has every file open that
//! another has just open for writing, until it runs. A lease on such a file is
//! refused, as it should be.

use std::io;
use std::process::{Child, Command};
use std::sync::{PoisonError, RwLock};

static STARTING: RwLock<()> = RwLock::new(());

/// Starts a program while nobody has a file open in [`unshared`].
pub(crate) fn start(command: &mut Command) -> io::Result<Child> {
    let _alone = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// Opens, writes and closes files that no program is to inherit.
pub(crate) fn unshared<T>(work: impl FnOnce() -> T) -> T {
    let _nobody_starts = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    work()
}
