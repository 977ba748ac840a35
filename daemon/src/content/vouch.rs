//! When a stat is enough to prove that a content is unchanged since it was read
//! (FILE-5).

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use touchmark_engine::Stamp;

use crate::system::mounted::{Handle, Mounted, dirty_time, mounted, mounted_home};
use crate::system::stat::MetadataExt as _;

/// How old a stat's times must be at least for it to prove a content, whatever
/// the system reports.
const LEAST: Duration = Duration::from_secs(60);

/// Returns how old a stat's times must be for it to prove that a content is
/// unchanged, or `None` if no stat ever proves it.
fn horizon() -> Option<Duration> {
    // For tests that cannot wait a minute.
    #[cfg(any(debug_assertions, feature = "crash-points"))]
    if let Ok(told) = std::env::var("TOUCHMARK_TEST_HORIZON_MS") {
        return told.parse().ok().map(Duration::from_millis);
    }
    dirty_time().map(|time| time.max(LEAST))
}

/// The file systems that files are read from.
#[derive(Clone, Debug)]
pub(super) struct Vouching {
    /// The workspace's device, and whether a stat on it can prove a content.
    home: Option<(u64, Mounted)>,
    /// How old a stat's times must be for it to prove a content; `None` if no
    /// stat ever does.
    horizon: Option<Duration>,
}

impl Vouching {
    pub(super) fn new(root: &Path) -> Self {
        let home = File::open(root).and_then(|root| {
            let device = root.metadata()?.dev();
            Ok((device, mounted_home(&root)))
        });
        Self {
            home: home.ok(),
            horizon: horizon(),
        }
    }

    /// Returns the mount that an open file or directory of this device is on.
    pub(super) fn mounted(&self, file: impl Handle, device: u64) -> Mounted {
        match self.home {
            // The device number is in use, so no other file system can have it.
            Some((home, home_mount)) if home == device => home_mount,
            _ => mounted(file),
        }
    }

    /// Returns whether the times of a stat were old enough at `moment`. A store
    /// through a memory map changes them at its first write to a page, and not
    /// again until the page was written back.
    pub(super) fn is_settled(&self, stamp: &Stamp, moment: SystemTime) -> bool {
        let since = moment.duration_since(UNIX_EPOCH).ok();
        let (Some(horizon), Some(since)) = (self.horizon, since) else {
            return false;
        };
        let (Ok(horizon), Ok(moment)) = (
            i64::try_from(horizon.as_nanos()),
            i64::try_from(since.as_nanos()),
        ) else {
            return false;
        };
        stamp
            .modified
            .max(stamp.changed)
            .saturating_add(horizon)
            .lt(&moment)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::content::compare::stamp;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn a_stat_of_the_last_minute_does_not_vouch() {
        let vouching = Vouching {
            home: None,
            horizon: Some(LEAST),
        };
        let moment = SystemTime::now();
        let since = moment.duration_since(UNIX_EPOCH).unwrap();
        let now = i64::try_from(since.as_nanos()).unwrap();
        let settled = |modified, changed| {
            let stamp = Stamp {
                modified,
                changed,
                ..Stamp::default()
            };
            vouching.is_settled(&stamp, moment)
        };
        assert!(settled(1, now - 61 * SECOND));
        assert!(settled(now - 61 * SECOND, 1));
        assert!(!settled(1, now - 59 * SECOND));
        assert!(!settled(now - 59 * SECOND, 1));
        // The file's time is in the future.
        assert!(!settled(1, now + SECOND));
        let never = Vouching {
            horizon: None,
            ..vouching
        };
        assert!(!never.is_settled(&Stamp::default(), moment));
    }

    #[test]
    fn the_workspaces_own_file_system_is_known_by_its_device() {
        let world = tempfile::tempdir_in("/var/tmp").unwrap();
        let vouching = Vouching::new(world.path());
        std::fs::write(world.path().join("a"), "a").unwrap();
        let file = File::open(world.path().join("a")).unwrap();
        let device = stamp(&file.metadata().unwrap()).device;
        assert_eq!(vouching.mounted(&file, device).id, 0);
        // The kernel's own file system for /proc has only one mount, which is
        // no image.
        let other = File::open("/proc/self/mountinfo").unwrap();
        let device = stamp(&other.metadata().unwrap()).device;
        let first = vouching.mounted(&other, device);
        assert_eq!(first, vouching.mounted(&other, device));
        assert_eq!(first.vouches, first.id != 0);
    }

    #[test]
    fn a_file_in_memory_is_never_vouched_for() {
        let world = tempfile::tempdir_in("/dev/shm").unwrap();
        let (device, home) = Vouching::new(world.path()).home.unwrap();
        assert!(!home.vouches, "{device}");
    }
}
