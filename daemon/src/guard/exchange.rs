//! The exchange: the old and the new file exchange names atomically, and the
//! file that was replaced is checked before it is removed (GUARD-1).

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::OFlags;
use rustix::io::Errno;
use touchmark_engine::WriteOutcome;
use touchmark_proto::Hash;
use touchmark_proto::writes::Guard as Way;

use super::content::{self, Stamp};
use super::intent::{Intent, Phase, Recorded};
use super::place::{Identity, Place, is_missing, refused};
use super::temporary::Temporary;
use super::{Guard, Job, Stop, step};
use crate::system::lease::Lease;
use crate::system::leased::{Kind, Refused};

/// The largest size, in bytes, of a replaced file that is hashed under the
/// lease. That takes less time than a lease may be held (GUARD-2).
pub(super) const UNDER_LEASE: u64 = 256 << 10;

/// The most exchanges in a row, if another process saves all the time. After
/// that, the file that was replaced last is stored instead.
const MOST_EXCHANGES: usize = 64;

/// The old file, open for reading.
pub(super) struct Old {
    pub(super) file: File,
    pub(super) identity: Identity,
    pub(super) stamp: Stamp,
    pub(super) links: u64,
    pub(super) size: u64,
}

/// The file at a name.
struct Came {
    identity: Identity,
    /// The open file, if it is a regular file that can be read.
    file: Option<File>,
    /// The hash of its content, if it could be read.
    hash: Option<Hash>,
}

impl Came {
    fn look(place: &Place, name: &[u8]) -> Result<Self, Errno> {
        let stat = place.stat(name)?;
        let file = place.open(name, OFlags::RDONLY).ok();
        let hash = file
            .as_ref()
            .and_then(|file| content::hash(file).ok().flatten());
        Ok(Self {
            identity: Identity::from(&stat),
            file,
            hash: hash.map(|(hash, _)| hash),
        })
    }

    /// Returns whether the two are the same file, judged by content, since an
    /// exchange changes which inode has which name.
    fn is(&self, other: &Self) -> bool {
        match (self.hash, other.hash) {
            (Some(hash), Some(other)) => hash == other,
            (None, None) => self.file.is_none() && self.identity == other.identity,
            _ => false,
        }
    }
}

impl Guard {
    /// Replaces an old file, which has the base content, by the new content.
    pub(super) fn exchange(
        &self,
        job: &Job<'_>,
        place: &Place,
        old: Old,
        intent: &mut Recorded<'_>,
        temporary: Temporary<'_>,
    ) -> Result<WriteOutcome, Stop> {
        let base = job.order.base;
        intent.advance(Phase::Exchanging)?;
        step("guard: about to exchange");
        let lease = match Lease::take(&old.file, Kind::Read) {
            Ok(lease) => Some(lease),
            Err(Refused::Busy) => return Err(Stop::Busy),
            Err(Refused::Unavailable) => None,
        };
        // Under the lease no process can begin to write to the file; before it,
        // one may have.
        let same = content::stamp(&old.file)? == old.stamp
            && place
                .stat(&place.name)
                .is_ok_and(|stat| Identity::from(&stat) == old.identity);
        if !same {
            return Err(Stop::Changed(super::found(place)));
        }
        step("guard: looked, about to exchange");
        match place.exchange(temporary.name()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(Stop::Changed(None)),
            // A file that is a mount point has a fixed name.
            Err(errno) if is_missing(errno) || errno == Errno::BUSY => {
                return Err(Stop::NoExchange);
            }
            Err(errno) => return Err(refused(&job.order.path, errno).into()),
        }
        // From here on the temporary name may be that of another process's
        // content.
        let aside = temporary.into_name();
        step("guard: exchanged");
        let came_out = place.stat(&aside).map(|stat| Identity::from(&stat));
        let same = came_out == Ok(old.identity);
        let small = old.size <= UNDER_LEASE;
        let leased = lease.is_some();
        // The stamp above does not show a save of the same size within the
        // same tick of the clock, so a small file is read again.
        let seen = match small {
            true => content_of(&old.file),
            false => base,
        };
        let undisturbed = same && seen == base && lease.as_ref().is_none_or(Lease::is_whole);
        if !undisturbed {
            // A process that waits to open the old file continues only when the
            // file has its name again. Else it would write into a file without
            // a name.
            let (out, lease) = match (same, lease) {
                (true, Some(lease)) => (old.came(seen), Some(lease)),
                (_, lease) => {
                    drop(lease);
                    (Came::look(place, &aside), None)
                }
            };
            return Ok(self.put_back(job, place, &aside, out, lease));
        }
        drop(lease);
        if !small && content_of(&old.file) != base {
            return Ok(self.put_back(job, place, &aside, Came::look(place, &aside), None));
        }
        step("guard: about to drop the old");
        place.unlink(&aside);
        step("guard: the old is dropped");
        if job.durable {
            place.sync();
        }
        if let Some(base) = base {
            self.hold(old.file, job.paths(place), base);
        }
        Ok(WriteOutcome::Done {
            guard: Way::Exchange,
            lease: leased,
            recovered: Vec::new(),
        })
    }

    /// Handles that the exchange replaced another file than the base, which now
    /// has the name `aside`: gives it its name back. This exchange is repeated
    /// until the file that it replaces is the one that the last exchange put
    /// there, since a newer save may arrive meanwhile. The newest content
    /// stays, and every other content is stored.
    fn put_back(
        &self,
        job: &Job<'_>,
        place: &Place,
        aside: &[u8],
        out: Result<Came, Errno>,
        mut lease: Option<Lease<'_>>,
    ) -> WriteOutcome {
        let mut recovered = Vec::new();
        let Ok(mut out) = out else {
            // Another process took it by its temporary name and now has it.
            return conflict(super::found(place), recovered);
        };
        // The file that the last exchange put at the name; `None` for the new
        // content.
        let mut under: Option<Came> = None;
        for _ in 0..MOST_EXCHANGES {
            if let Err(errno) = place.exchange(aside) {
                // Another process has removed the name since.
                tracing::debug!(path = %place.real, "{}: exchanging back: {errno}", place.real);
                break;
            }
            drop(lease.take());
            step("guard: exchanged back");
            let Ok(came) = Came::look(place, aside) else {
                return conflict(out.hash, recovered);
            };
            let expected = match &under {
                None => came.hash == Some(job.order.hash),
                Some(under) => came.is(under),
            };
            if expected {
                self.give_up(job, place, aside, came, &mut recovered);
                return conflict(out.hash, recovered);
            }
            under = Some(out);
            out = came;
        }
        drop(lease);
        // It may have been written to since the last look.
        let out = Came::look(place, aside).unwrap_or(out);
        self.give_up(job, place, aside, out, &mut recovered);
        conflict(super::found(place), recovered)
    }

    /// Removes the last name of the replaced file. Its bytes are stored first,
    /// unless they are the new content, or the base and need not be kept.
    fn give_up(
        &self,
        job: &Job<'_>,
        place: &Place,
        aside: &[u8],
        came: Came,
        recovered: &mut Vec<String>,
    ) {
        let known = came.hash.is_some_and(|hash| {
            hash == job.order.hash || (Some(hash) == job.order.base && !job.order.keep_base)
        });
        let mut hash = came.hash;
        if known {
            place.unlink(aside);
        } else {
            let kept = self.keep_or_leave(job.paths(place), place, aside, came.file.as_ref());
            // What is stored may be newer than what was looked at.
            hash = kept.hash.or(hash);
            recovered.push(kept.file);
        }
        if let Some(file) = came.file {
            // A file that is being written is looked at again in any case.
            self.hold(file, job.paths(place), hash.unwrap_or(Hash([0; 32])));
        }
    }

    /// Completes or reverts an exchange that an earlier daemon began.
    pub(super) fn resume_exchange(&self, intent: &Intent, place: &Place) -> Vec<String> {
        let aside = intent.temporary.as_bytes();
        let Ok(came) = Came::look(place, aside) else {
            return Vec::new();
        };
        let order = intent.order();
        let job = Job {
            order: &order,
            durable: true,
            copy: None,
            overwritten: Cell::new(false),
        };
        let done_or_not_begun = came.hash == Some(intent.new) || came.hash == intent.base;
        let name_is_ours = super::found(place) == Some(intent.new);
        if done_or_not_begun || !name_is_ours {
            let mut recovered = Vec::new();
            self.give_up(&job, place, aside, came, &mut recovered);
            return recovered;
        }
        match self.put_back(&job, place, aside, Ok(came), None) {
            WriteOutcome::Conflict { recovered, .. } => recovered,
            _ => Vec::new(),
        }
    }
}

impl Old {
    /// Returns this file, which was seen to have this content, as the replaced
    /// one.
    fn came(&self, seen: Option<Hash>) -> Result<Came, Errno> {
        let file = self.file.try_clone().ok();
        Ok(Came {
            identity: self.identity,
            file,
            hash: seen,
        })
    }

    /// Opens the file that is to be replaced, and checks that it has the base
    /// content.
    pub(super) fn open(job: &Job<'_>, place: &Place) -> Result<Self, Stop> {
        let file = match place.open(&place.name, OFlags::RDONLY) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Err(Stop::Changed(None)),
            // Another process has a lease on it.
            Err(Errno::AGAIN) => return Err(Stop::Busy),
            Err(errno) => return Err(refused(&job.order.path, errno).into()),
        };
        let metadata = file.metadata()?;
        let Some((hash, stamp)) = content::hash(&file)? else {
            return Err(Stop::Busy);
        };
        if Some(hash) != job.order.base {
            return Err(Stop::Changed(Some(hash)));
        }
        Ok(Self {
            identity: super::place::identity(&metadata),
            stamp,
            links: metadata.nlink(),
            size: metadata.len(),
            file,
        })
    }
}

/// Returns the hash of a file's content; `None` if it cannot be read, or is being
/// written.
pub(super) fn content_of(file: &File) -> Option<Hash> {
    let (hash, _) = content::hash(file).ok().flatten()?;
    Some(hash)
}

fn conflict(found: Option<Hash>, recovered: Vec<String>) -> WriteOutcome {
    WriteOutcome::Conflict {
        found,
        cause: super::CHANGED.into(),
        recovered,
    }
}
