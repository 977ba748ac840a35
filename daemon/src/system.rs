//! What each system does in its own way: one interface each, by Linux in the
//! file of that name, by other Unix systems in the directory beside it. The
//! other modules of that kind stand in the rooms that need them
//! (ARCHITECTURE.md has the list).

#[cfg_attr(not(target_os = "linux"), path = "system/clock/unix.rs")]
pub(crate) mod clock;
pub(crate) mod disk;
#[cfg_attr(not(target_os = "linux"), path = "system/look/unix.rs")]
pub(crate) mod look;
#[cfg_attr(not(target_os = "linux"), path = "system/mounted/fallback.rs")]
pub(crate) mod mounted;
pub(crate) mod open;
#[cfg_attr(not(target_os = "linux"), path = "system/proc/unsupported.rs")]
pub(crate) mod proc;
pub(crate) mod process;
pub(crate) mod signals;
pub(crate) mod stat;
