//! Earlier contents of files, and what was made of them again.

pub(crate) mod entry;
pub(crate) mod markers;
