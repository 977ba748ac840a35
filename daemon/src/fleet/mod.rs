//! All daemons of one user on this machine, and the system's inotify instances,
//! which they share (FLEET-2).
//!
//! Each daemon writes its numbers into a file next to its lock
//! ([`numbers`]). A daemon that gets no inotify instance reads the files of all
//! others ([`share`]), and asks those that were not used for longest to end
//! ([`ask`]). Each of these decides for itself.

mod ask;
pub(crate) mod numbers;
mod share;

pub(crate) use numbers::{Numbers, NumbersFile};
pub(crate) use share::{Own, share, uptime};
