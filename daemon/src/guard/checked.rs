//! Writing in place after a check: for files with several names, and where
//! names cannot be exchanged (GUARD-2). A copy of the old content is stored
//! until the write is done.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use rustix::fs::OFlags;
use rustix::io::Errno;
use touchmark_engine::WriteOutcome;
use touchmark_proto::writes::Guard as Way;

use super::content;
use super::exchange::Old;
use super::intent::{Intent, Phase};
use super::place::{Place, refused};
use super::{Guard, Job, Stop, step};
use crate::system::lease::Lease;
use crate::system::leased::{Kind, Refused};

/// The largest size, in bytes, of the old and the new content for a write under
/// a lease. Such a write fits into the time that a lease may be held.
const UNDER_LEASE: u64 = 256 << 10;

impl Guard {
    /// Overwrites an old file that has the base content.
    pub(super) fn checked(
        &self,
        job: &Job<'_>,
        place: &Place,
        old: Old,
    ) -> Result<WriteOutcome, Stop> {
        let order = job.order;
        let failed = |errno| Stop::from(refused(&order.path, errno));
        // A read lease is refused while the file is open for writing; a write
        // lease would be refused for readers as well.
        match Lease::take(&old.file, Kind::Read) {
            Err(Refused::Busy) => return Err(Stop::Busy),
            Ok(_) | Err(Refused::Unavailable) => {}
        }
        let identity = old.identity;
        let before = content::bytes(&old.file)?;
        let size = old.size;
        // A copy that has to stay exists already. A secret is copied into
        // memory only (SEC-3).
        let made = if job.copy.is_none() && !self.is_secret(job.paths(place)) {
            Some(self.keep_copy(job, place, &old.file)?)
        } else {
            None
        };
        let copy = job.copy.as_ref().or(made.as_ref());
        drop(old);
        let undone = |stop: Stop| {
            self.drop_copy(made.as_ref());
            Err(stop)
        };
        let file = match place.open(&place.name, OFlags::RDWR) {
            Ok(file) => file,
            Err(Errno::NOENT) => return undone(Stop::Changed(None)),
            Err(Errno::AGAIN) => return undone(Stop::Busy),
            Err(errno) => return undone(failed(errno)),
        };
        if super::place::identity(&file.metadata()?) != identity {
            return undone(Stop::Changed(super::found(place)));
        }
        let intent = self.intents.record(Intent {
            phase: Phase::Writing,
            path: order.path.clone(),
            real: place.real.clone(),
            temporary: String::new(),
            base: order.base,
            new: order.hash,
            copy: copy.map(|item| item.id.clone()),
            keep: order.keep_base,
        });
        let intent = match intent {
            Ok(intent) => intent,
            Err(error) => return undone(error.into()),
        };
        let small = size + order.bytes.len() as u64 <= UNDER_LEASE;
        let lease = if small {
            Lease::take(&file, Kind::Write).ok()
        } else {
            None
        };
        step("guard: about to write in place");
        match content::hash(&file) {
            Ok(Some((hash, _))) if Some(hash) == order.base => {}
            seen => {
                drop(lease);
                intent.end();
                let found = seen.ok().flatten().map(|(hash, _)| hash);
                return undone(Stop::Changed(found));
            }
        }
        let written = write_over(&file, &order.bytes);
        let leased = lease.is_some();
        drop(lease);
        if let Err(errno) = written {
            // There is space for the old content, since the file had it before.
            if let Err(error) = write_over(&file, &before) {
                tracing::error!(path = %place.real, "{}: not restored: {error}", place.real);
                intent.end();
                return Err(failed(errno));
            }
            intent.end();
            return undone(failed(errno));
        }
        step("guard: written in place");
        if job.durable {
            file.sync_all()?;
        }
        let after = content::hash(&file)?.map(|(hash, _)| hash);
        if after != Some(order.hash) {
            // Another process wrote at the same time; the copy stays.
            intent.end();
            return Ok(WriteOutcome::Conflict {
                found: after,
                cause: super::CHANGED.into(),
                recovered: made.into_iter().map(|item| item.file).collect(),
            });
        }
        self.drop_copy(made.as_ref());
        step("guard: the copy is dropped");
        intent.end();
        Ok(WriteOutcome::Done {
            guard: Way::Checked,
            lease: leased,
            recovered: Vec::new(),
        })
    }

    /// Reverts a write in place that an earlier daemon did not complete, if no
    /// other process has written since.
    pub(super) fn resume_writing(&self, intent: &Intent, place: &Place) -> Vec<String> {
        let Some(copy) = intent.copy.as_deref().and_then(|id| self.recovery.get(id)) else {
            return Vec::new();
        };
        let drop_it = || {
            if !intent.keep {
                self.drop_copy(Some(&copy));
            }
        };
        let read = || -> Option<(File, Vec<u8>, Vec<u8>)> {
            let file = place.open(&place.name, OFlags::RDWR).ok()?;
            let now = content::bytes(&file).ok()?;
            let before = std::fs::read(&copy.file).ok()?;
            Some((file, now, before))
        };
        let Some((file, now, before)) = read() else {
            return vec![copy.file];
        };
        let hash = touchmark_proto::Hash::of(&now);
        if hash == intent.new || Some(hash) == intent.base {
            drop_it();
            return Vec::new();
        }
        // The write began at the start of the file, so the old content still
        // follows a torn write. If another process has written since, hardly
        // any of it is left.
        let tail = now
            .iter()
            .rev()
            .zip(before.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        let torn = now.len() == before.len() && tail > 0;
        if torn && write_over(&file, &before).is_ok() {
            drop_it();
            return Vec::new();
        }
        vec![copy.file]
    }
}

/// Writes from the start and then truncates, so that a reader never finds an
/// empty file.
fn write_over(file: &File, bytes: &[u8]) -> Result<(), Errno> {
    let io = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    file.write_all_at(bytes, 0).map_err(io)?;
    step("guard: written, about to cut");
    file.set_len(bytes.len() as u64).map_err(io)
}
