//! Failpoints: the moments between effects at which a `kill -9` makes a
//! difference.
//!
//! A test that ends the daemon at the n-th of them, for every n, has ended it
//! everywhere (`tests/tests/crash.rs`). The variables below are read by debug
//! builds and by those with the feature `crash-points`; in any other build a
//! failpoint is nothing.
//!
//! - `TOUCHMARK_CRASH_AT=N`: at the n-th failpoint, counted from 1 over all
//!   threads, the process ends as by `kill -9`.
//! - `TOUCHMARK_CRASH_OF=PREFIX`: only those count whose names begin so.
//! - `TOUCHMARK_FAILPOINTS=FILE`: every failpoint that is passed is appended to
//!   the file, a name a line; its length is how many there are.

/// Between two effects on the world outside of the process. `name` says what
/// has been done, or what is about to be.
#[cfg(any(debug_assertions, feature = "crash-points"))]
pub(crate) fn pass(name: &str) {
    crash_points::pass(name);
}

/// Nothing, in this build.
#[cfg(not(any(debug_assertions, feature = "crash-points")))]
#[inline(always)]
pub(crate) fn pass(_name: &str) {}

#[cfg(any(debug_assertions, feature = "crash-points"))]
mod crash_points {
    use std::fs::{File, OpenOptions};
    use std::io::Write as _;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Failpoints left until the end.
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
            // One write for a line: several threads append.
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
