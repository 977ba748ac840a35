//! What each system does in its own way: by Unix in the file of that name, by
//! the rest in `plain.rs` in the directory beside it.

#[cfg_attr(not(unix), path = "system/files/plain.rs")]
pub(crate) mod files;
#[cfg_attr(not(unix), path = "system/signals/plain.rs")]
pub(crate) mod signals;
#[cfg_attr(not(unix), path = "system/terminal/plain.rs")]
pub(crate) mod terminal;
