//! The number of inotify instances that a user may have. Each daemon needs one,
//! and the usual limit is 128.

use std::fs;

const LIMIT: &str = "/proc/sys/fs/inotify/max_user_instances";

/// What other programs of this user may need.
const OTHERS: usize = 100;

/// A raised limit. It is lowered again when this is dropped.
pub struct Instances {
    raised: Option<(String, String)>,
}

impl Instances {
    /// Returns a limit with which that many daemons can watch, or `None` if
    /// this user may not raise it.
    pub fn for_daemons(daemons: usize) -> Option<Self> {
        let before = fs::read_to_string(LIMIT).ok()?.trim().to_owned();
        let wanted = daemons + OTHERS;
        if before.parse().is_ok_and(|limit: usize| limit >= wanted) {
            return Some(Self { raised: None });
        }
        let wanted = wanted.to_string();
        fs::write(LIMIT, &wanted).ok()?;
        Some(Self {
            raised: Some((before, wanted)),
        })
    }
}

impl Drop for Instances {
    fn drop(&mut self) {
        if let Some((before, own)) = &self.raised {
            // Unless another program has raised it further.
            if fs::read_to_string(LIMIT).is_ok_and(|now| now.trim() == own) {
                let _ = fs::write(LIMIT, before);
            }
        }
    }
}
