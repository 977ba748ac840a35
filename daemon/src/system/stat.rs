//! The parts of a stat that `std` does not have for every system.

pub(crate) use std::os::unix::fs::{FileTypeExt, MetadataExt};

use touchmark_proto::FileMode;

/// Returns the number of the device that a file is on, as [`MetadataExt::dev`]
/// does.
#[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)] // an `i32` on macOS
pub(crate) fn device(stat: &rustix::fs::Stat) -> u64 {
    stat.st_dev as u64
}

/// Returns the number of a file's inode.
#[allow(clippy::unnecessary_cast)] // of another width elsewhere
pub(crate) fn inode(stat: &rustix::fs::Stat) -> u64 {
    stat.st_ino as u64
}

/// Returns a file's size in bytes.
#[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
pub(crate) fn size(stat: &rustix::fs::Stat) -> u64 {
    stat.st_size as u64
}

/// Returns a file's kind and permissions.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)] // 16 bits on macOS
pub(crate) fn mode(stat: &rustix::fs::Stat) -> Option<FileMode> {
    FileMode::new(u32::from(stat.st_mode))
}

/// Returns when an open file or a link was modified, in milliseconds since
/// 1970; 0 before 1970. A file may have any time: some file systems store 2^63
/// seconds.
pub(crate) fn modified_ms(found: &std::fs::Metadata) -> u64 {
    let whole = found.mtime().saturating_mul(1_000);
    let ms = whole.saturating_add(found.mtime_nsec() / 1_000_000);
    u64::try_from(ms).unwrap_or(0)
}

/// Returns when a file was modified and when its status was changed (mtime and
/// ctime), in nanoseconds since 1970.
#[allow(clippy::unnecessary_cast, clippy::cast_possible_wrap)]
pub(crate) fn times(stat: &rustix::fs::Stat) -> (i64, i64) {
    let time = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    (
        time(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        time(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    )
}
