//! All daemons of one user on this machine, and what they share (FLEET-2):
//! watches, memory, and the system's inotify instances.
//!
//! Each daemon writes its numbers into a file next to its lock
//! ([`numbers`]). A daemon that starts or grows reads the files of all others
//! ([`share`]). If all of them together use too much, it asks those that were
//! not used for longest to end ([`ask`]). Each of these decides for itself.

mod ask;
pub(crate) mod numbers;
mod share;

pub(crate) use numbers::{Numbers, NumbersFile};
pub(crate) use share::{Limits, Own, share, uptime};

use std::path::Path;

use touchmark_proto::BaseDirectories;

use crate::config::Config;
use crate::system::open::trust;

/// Returns what all daemons of the user may use together, as the user's
/// configuration says: watched directories, and bytes of private memory. `None`
/// for no limit.
pub fn fleet_limits(base: &BaseDirectories) -> (Option<u64>, Option<u64>) {
    // The keys are the user's, so no repository's file is read.
    let trust = trust(&base.trusted_file());
    let configured = Config::load(&base.config_file(), Path::new(""), &trust, false);
    let config = configured.unwrap_or_default().config;
    let limits = Limits {
        watches: config.fleet_watches,
        memory: config.fleet_memory,
    };
    let most = limits.most();
    (most.watches, most.memory)
}
