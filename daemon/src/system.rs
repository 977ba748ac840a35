//! Interfaces that each operating system implements differently. Linux's
//! implementation is in the file of the module's name, that of other Unix
//! systems in the directory of that name. Other modules of this kind are in the
//! directories that use them (ARCHITECTURE.md says how).

#[cfg_attr(not(target_os = "linux"), path = "system/clock/unix.rs")]
pub(crate) mod clock;
pub(crate) mod disk;
#[cfg_attr(not(target_os = "linux"), path = "system/inherited/unsupported.rs")]
pub(crate) mod inherited;
#[cfg_attr(not(target_os = "linux"), path = "system/lease/unsupported.rs")]
pub(crate) mod lease;
pub(crate) mod leased;
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
