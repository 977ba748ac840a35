//! Copies of files that share their blocks, on other systems: none.

use std::fs::File;

/// Returns false: nothing is shared.
pub(super) fn share(_from: &File, _to: &File) -> bool {
    false
}
