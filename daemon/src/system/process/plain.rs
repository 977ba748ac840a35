//! Where there are no sessions, masks and limits of Unix's kind.

/// There is no terminal to leave; the directory could not be removed while a
/// process is in it.
pub(crate) fn detach(_on_demand: bool) {
    if let Ok(directory) = std::env::current_dir()
        && let Some(top) = directory.ancestors().last()
    {
        let _stays = std::env::set_current_dir(top);
    }
}

/// No limit is known.
pub(crate) fn most_descriptors() -> Option<u64> {
    None
}

/// Nothing is to be raised.
pub(crate) fn raise_descriptor_limit(_wanted: u64) {}

/// Ends without tidying up.
#[cfg(any(debug_assertions, feature = "crash-points"))]
pub(crate) fn die() -> ! {
    std::process::abort()
}
