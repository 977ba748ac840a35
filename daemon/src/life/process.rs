//! The process as a whole.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Leaves the starter's terminal and directory (LIFE-1): a working directory
/// inside the workspace would keep its removal from being seen.
pub fn detach(on_demand: bool) {
    if on_demand {
        // Fails where the starter has made this a session leader already.
        let _is_leader = rustix::process::setsid();
    }
    let _stays = std::env::set_current_dir("/");
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// Allows that many open descriptors, or as many as the system does.
pub fn raise_descriptor_limit(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current else { return };
    let target = limit.maximum.map_or(wanted, |most| most.min(wanted));
    if current < target {
        let raised = Rlimit {
            current: Some(target),
            maximum: limit.maximum,
        };
        if let Err(errno) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!("{current} open files at most: {errno}");
        }
    }
}

/// This process's resident memory in bytes; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok())
        .unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}
