//! Failpoints: the moments between effects at which a `kill -9` makes a
//! difference.
//!
//! A test that ends the daemon at the n-th failpoint, for every n, has ended it
//! at all of them (`tests/tests/crash_points.rs`). Debug builds and builds with
//! the feature `crash-points` read the variables below; in all others a
//! failpoint does nothing.
//!
//! - `TOUCHMARK_CRASH_AT=N`: the process ends as by `kill -9` at the n-th
//!   failpoint, counted from 1 over all threads.
//! - `TOUCHMARK_CRASH_OF=PREFIX`: only failpoints whose names begin with this
//!   prefix are counted.
//! - `TOUCHMARK_FAILPOINTS=FILE`: the name of every failpoint that is passed is
//!   appended to this file, one a line. The number of lines is the number of
//!   failpoints.

/// Marks a point between two effects on the world outside of the process.
/// `name` says what was done, or is about to be done.
#[cfg(any(debug_assertions, feature = "crash-points"))]
pub(crate) fn pass(name: &str) {
    crash_points::pass(name);
}

/// Does nothing in this build.
#[cfg(not(any(debug_assertions, feature = "crash-points")))]
#[inline(always)]
pub(crate) fn pass(_name: &str) {}

#[cfg(any(debug_assertions, feature = "crash-points"))]
mod crash_points {
    use std::fs::{File, OpenOptions};
    use std::io::Write as _;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The number of failpoints until the process ends; `None` if it does not
    /// end.
    static LEFT: LazyLock<Option<AtomicU64>> = LazyLock::new(|| {
        let text = std::env::var("TOUCHMARK_CRASH_AT").ok()?;
        Some(AtomicU64::new(text.parse().ok()?))
    });

    static PREFIX: LazyLock<String> =
        LazyLock::new(|| std::env::var("TOUCHMARK_CRASH_OF").unwrap_or_default());

    static NAMES: LazyLock<Option<File>> = LazyLock::new(|| {
        let file = std::env::var_os("TOUCHMARK_FAILPOINTS").filter(|name| !name.is_empty())?;
        OpenOptions::new().create(true).append(true).open(file).ok()
    });

    pub(super) fn pass(name: &str) {
        if let Some(mut names) = NAMES.as_ref() {
            // One write for each line, since several threads append.
            let _only_for_the_report = names.write_all(format!("{name}\n").as_bytes());
        }
        if let Some(left) = &*LEFT
            && name.starts_with(&**PREFIX)
            && left.fetch_sub(1, Ordering::Relaxed) == 1
        {
            crate::system::process::die();
        }
    }
}
