//! What a stat tells beyond what `std` has for every system.

pub(crate) use std::os::unix::fs::{FileTypeExt, MetadataExt};
