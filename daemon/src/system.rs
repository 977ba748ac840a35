//! What each system does in its own way: one interface each, by Unix or Linux
//! in the file of that name, by the rest in `plain.rs` in the directory beside
//! it. The other modules of that kind stand in the rooms that need them
//! (ARCHITECTURE.md has the list).

#[cfg_attr(not(target_os = "linux"), path = "system/clock/plain.rs")]
pub(crate) mod clock;
#[cfg_attr(not(unix), path = "system/disk/plain.rs")]
pub(crate) mod disk;
#[cfg(unix)]
#[cfg_attr(not(target_os = "linux"), path = "system/look/plain.rs")]
pub(crate) mod look;
#[cfg_attr(not(target_os = "linux"), path = "system/mounted/plain.rs")]
pub(crate) mod mounted;
#[cfg_attr(not(unix), path = "system/open/plain.rs")]
pub(crate) mod open;
#[cfg_attr(not(target_os = "linux"), path = "system/proc/plain.rs")]
pub(crate) mod proc;
#[cfg_attr(not(unix), path = "system/process/plain.rs")]
pub(crate) mod process;
#[cfg_attr(not(unix), path = "system/signals/plain.rs")]
pub(crate) mod signals;
#[cfg_attr(not(unix), path = "system/stat/plain.rs")]
pub(crate) mod stat;
