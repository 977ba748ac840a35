//! What `std` has for every system, by Unix's names: times, no inodes.

use std::fs::{FileType, Metadata};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// As [`std::os::unix::fs::MetadataExt`], as far as it can be.
pub(crate) trait MetadataExt {
    /// Whether it is a directory: all file systems are one here.
    fn dev(&self) -> u64;
    /// When it was made. Of two files made in the same tick it does not tell
    /// which is which.
    fn ino(&self) -> u64;
    /// Not told. A file is taken to have one name, so that what is written by
    /// another is found when it is read.
    fn nlink(&self) -> u64;
    fn mtime(&self) -> i64;
    fn mtime_nsec(&self) -> i64;
    /// The same: there is no other.
    fn ctime(&self) -> i64;
    fn ctime_nsec(&self) -> i64;
}

/// As [`std::os::unix::fs::FileTypeExt`]: neither has a name among files.
pub(crate) trait FileTypeExt {
    fn is_fifo(&self) -> bool;
    fn is_socket(&self) -> bool;
}

impl MetadataExt for Metadata {
    fn dev(&self) -> u64 {
        u64::from(self.is_dir())
    }

    fn ino(&self) -> u64 {
        let (seconds, rest) = time(self.created());
        let nanoseconds = seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        nanoseconds.unsigned_abs()
    }

    fn nlink(&self) -> u64 {
        1
    }

    fn mtime(&self) -> i64 {
        time(self.modified()).0
    }

    fn mtime_nsec(&self) -> i64 {
        time(self.modified()).1
    }

    fn ctime(&self) -> i64 {
        self.mtime()
    }

    fn ctime_nsec(&self) -> i64 {
        self.mtime_nsec()
    }
}

impl FileTypeExt for FileType {
    fn is_fifo(&self) -> bool {
        false
    }

    fn is_socket(&self) -> bool {
        false
    }
}

/// Seconds since 1970, and nanoseconds; 0 where the system does not say.
fn time(time: io::Result<SystemTime>) -> (i64, i64) {
    match time.map(|time| time.duration_since(UNIX_EPOCH)) {
        Ok(Ok(since)) => (
            i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            i64::from(since.subsec_nanos()),
        ),
        _ => (0, 0),
    }
}
