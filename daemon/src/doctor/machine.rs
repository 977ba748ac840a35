//! The limits of the machine, and how much of them is in use.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::geteuid;

use super::{Finding, unknown};

/// The length of an instance's queue in a usual kernel, in events.
const USUAL_QUEUE: u64 = 16_384;

/// The number of instances that must be left for other programs.
const SPARE_INSTANCES: u64 = 2;

/// Compares this user's watches with the limit. Files in a directory without a
/// watch are read at query time (LOSS-2).
pub(super) fn watches() -> Finding {
    const CHECK: &str = "watches";
    let Some(most) = limit("max_user_watches") else {
        return unknown(CHECK);
    };
    let (_, used) = in_use();
    let says = format!("{used} of {most} in use by this user");
    if used.saturating_mul(10) >= most.saturating_mul(9) {
        return Finding::wrong(
            CHECK,
            says,
            format!(
                "raise fs.inotify.max_user_watches: `sudo sysctl fs.inotify.max_user_watches={}`",
                most.saturating_mul(4)
            ),
        );
    }
    Finding::good(CHECK, says)
}

/// Compares this user's instances with the limit. Each daemon needs one.
pub(super) fn instances() -> Finding {
    const CHECK: &str = "watch instances";
    let Some(most) = limit("max_user_instances") else {
        return unknown(CHECK);
    };
    let (used, _) = in_use();
    let says = format!("{used} of {most} in use by this user");
    if used.saturating_add(SPARE_INSTANCES) > most {
        return Finding::wrong(
            CHECK,
            says,
            format!(
                "end programs that watch files, or `sudo sysctl fs.inotify.max_user_instances={}`",
                most.max(64).saturating_mul(4)
            ),
        );
    }
    Finding::good(CHECK, says)
}

/// Checks the queue's length. If events do not fit, everything is read instead.
pub(super) fn queue() -> Finding {
    const CHECK: &str = "event queue";
    let Some(length) = limit("max_queued_events") else {
        return unknown(CHECK);
    };
    let says = format!("{length} events");
    if length < USUAL_QUEUE {
        return Finding::note(
            CHECK,
            says,
            format!(
                "it is short: storms of changes cost a comparison of everything; `sudo sysctl \
                 fs.inotify.max_queued_events={USUAL_QUEUE}`"
            ),
        );
    }
    Finding::good(CHECK, says)
}

fn limit(name: &str) -> Option<u64> {
    fs::read_to_string(Path::new("/proc/sys/fs/inotify").join(name))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Returns the instances and watches that this user's processes use, as far as
/// these can be examined.
fn in_use() -> (u64, u64) {
    let me = geteuid().as_raw();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mine = processes.filter(|process| {
        process
            .file_name()
            .as_encoded_bytes()
            .first()
            .is_some_and(u8::is_ascii_digit)
            && process
                .metadata()
                .is_ok_and(|metadata| metadata.uid() == me)
    });
    let (mut instances, mut watches) = (0, 0);
    for process in mine {
        let descriptors = fs::read_dir(process.path().join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        for descriptor in descriptors {
            let leads_to = fs::read_link(descriptor.path()).unwrap_or_default();
            if leads_to.as_os_str() != "anon_inode:inotify" {
                continue;
            }
            instances += 1;
            let info = process.path().join("fdinfo").join(descriptor.file_name());
            let info = fs::read_to_string(info).unwrap_or_default();
            watches += info
                .lines()
                .filter(|line| line.starts_with("inotify wd:"))
                .count() as u64;
        }
    }
    (instances, watches)
}
