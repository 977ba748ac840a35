//! Writing in place after a check: for files with several names, and where
//! names cannot be exchanged (GUARD-2). A copy of the old content is stored
//! until the write is done.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustix::fs::OFlags;
use rustix::io::Errno;
use touchmark_engine::WriteOutcome;
use touchmark_proto::Hash;
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
        if let Some(made) = &made
            && Some(made.hash) != order.base
        {
            return undone(Stop::Changed(Some(made.hash)));
        }
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
            // A secret has no copy, and is not stored here either (SEC-3).
            bytes: copy.map(|_| BASE64.encode(&order.bytes)),
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
        job.overwritten.set(true);
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
            job.overwritten.set(false);
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
        let bytes = intent.bytes.as_deref();
        let bytes = bytes.and_then(|bytes| BASE64.decode(bytes).ok());
        let read = || -> Option<(File, Vec<u8>)> {
            let file = place.open(&place.name, OFlags::RDWR).ok()?;
            Some((file, std::fs::read(&copy.file).ok()?))
        };
        let Some((file, before)) = read() else {
            return vec![copy.file];
        };
        let size = before.len() + bytes.as_ref().map_or(0, Vec::len);
        let lease = match size as u64 <= UNDER_LEASE {
            true => Lease::take(&file, Kind::Write).ok(),
            false => None,
        };
        let Ok(now) = content::bytes(&file) else {
            return vec![copy.file];
        };
        let hash = Hash::of(&now);
        let mut kept = Vec::new();
        if hash != intent.new && Some(hash) != intent.base {
            let new = bytes.as_deref();
            if !new.is_some_and(|new| is_cut_short(&now, &before, new)) {
                let may_be_torn = new.is_some_and(|new| {
                    is_half_restored(&now, &before, new) || is_mixed(&now, &before, new)
                });
                let paths = (&intent.path, &intent.real);
                if self.is_secret(paths) || !may_be_torn {
                    // Another process has written since.
                    return vec![copy.file];
                }
                match self.recovery.keep(paths, &file, None, &self.time) {
                    Ok(item) => kept.push(item.file),
                    Err(_) => return vec![copy.file],
                }
            }
            if write_over(&file, &before).is_err() {
                kept.push(copy.file);
                return kept;
            }
        }
        drop(lease);
        if !intent.keep {
            self.drop_copy(Some(&copy));
        }
        kept
    }
}

/// Returns whether a content is what a kill in the middle of [`write_over`]
/// leaves: the beginning of the new content, and then the old one. A save often
/// has the size and the last bytes of the old content, so all of it is compared.
fn is_cut_short(now: &[u8], before: &[u8], new: &[u8]) -> bool {
    // Where the contents have the same bytes, the beginning may seem longer.
    let written = same(now, new, 0);
    from(before, written) == from(now, written)
}

/// Returns whether a content may be what a kill leaves in the middle of restoring
/// the old content over one that [`is_cut_short`]. So may a save that takes a part
/// of the new content back.
fn is_half_restored(now: &[u8], before: &[u8], new: &[u8]) -> bool {
    let restored = same(now, before, 0);
    let written = same(now, new, restored);
    from(before, written) == from(now, written)
}

/// Returns where two contents begin to differ, at or after `at`.
fn same(one: &[u8], other: &[u8], at: usize) -> usize {
    let pairs = from(one, at).iter().zip(from(other, at));
    at + pairs.take_while(|(a, b)| a == b).count()
}

fn from(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

/// Returns whether a content may be what a loss of power leaves of both: each
/// sector has the old or the new bytes. A save may be such a content, too.
fn is_mixed(now: &[u8], before: &[u8], new: &[u8]) -> bool {
    const SECTOR: usize = 512;
    let mut over = new.to_vec();
    over.extend(before.get(new.len()..).unwrap_or_default());
    let has_size = [before.len(), over.len(), new.len()].contains(&now.len());
    let mut sectors = now.chunks(SECTOR).enumerate();
    has_size
        && sectors.all(|(at, sector)| {
            let range = at * SECTOR..at * SECTOR + sector.len();
            before.get(range.clone()) == Some(sector) || over.get(range) == Some(sector)
        })
}

/// Writes from the start and then truncates, so that a reader never finds an
/// empty file.
fn write_over(file: &File, bytes: &[u8]) -> Result<(), Errno> {
    let io = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    file.write_all_at(bytes, 0).map_err(io)?;
    step("guard: written, about to cut");
    file.set_len(bytes.len() as u64).map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_save_is_no_torn_write() {
        let (before, new) = (b"one two three\n", b"uno two\n");
        let cut = |now: &[u8]| is_cut_short(now, before, new);
        assert!(cut(b"uno two three\n"));
        assert!(cut(b"uno two\nthree\n"));
        assert!(!cut(b"six two three\n"));
        assert!(!cut(b"uno two three"));
        // The next start was killed, too.
        let half = |now: &[u8]| is_half_restored(now, before, new);
        assert!(half(b"one two\nthree\n") && !cut(b"one two\nthree\n"));
        assert!(!half(b"six two\nthree\n") && !half(b"one two\ntree\n"));
        // A longer content that was written beyond the end of the old one.
        assert!(is_cut_short(b"new lo", b"old\n", b"new longer\n"));
        assert!(!is_cut_short(b"new xy", b"old\n", b"new longer\n"));
    }

    #[test]
    fn after_a_loss_of_power_each_sector_is_old_or_new() {
        let (old, new) = (vec![b'o'; 2000], vec![b'n'; 1500]);
        let mut mixed = old.clone();
        mixed[512..1024].fill(b'n');
        assert!(!is_cut_short(&mixed, &old, &new));
        assert!(is_mixed(&mixed, &old, &new));
        mixed[600] = b'x';
        assert!(!is_mixed(&mixed, &old, &new));
        mixed.truncate(1999);
        assert!(!is_mixed(&mixed, &old, &new));
    }
}
