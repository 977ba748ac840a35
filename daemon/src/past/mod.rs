//! Earlier contents of files, who wrote them, and what was made of them again.

mod claim;
pub(crate) mod entry;
pub(crate) mod markers;
