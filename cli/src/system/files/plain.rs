//! As far as `std` goes.

use std::fs::{DirBuilder, Metadata, Permissions};
use std::io;
use std::path::Path;

/// As private as the one above.
pub(crate) fn private_directory() -> DirBuilder {
    DirBuilder::new()
}

/// Whether two looks saw the same file, told by when it was made.
pub(crate) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    matches!((one.created(), other.created()), (Ok(one), Ok(other)) if one == other)
}

/// It has the directory's.
///
/// # Errors
/// None here.
pub(crate) fn keep_owner(_file: &Path, _before: &Metadata) -> io::Result<()> {
    Ok(())
}

/// It has them already.
pub(crate) fn usual_permissions() -> Option<Permissions> {
    None
}
