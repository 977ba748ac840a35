//! What a stat tells beyond what `std` has for every system.

pub(crate) use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// The number of the device that a file is on, as
/// [`MetadataExt::dev`] gives it.
#[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)] // an `i32` on macOS
pub(crate) fn device(stat: &rustix::fs::Stat) -> u64 {
    stat.st_dev as u64
}
