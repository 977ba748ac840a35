//! The exchange: old and new file swap their names atomically, and what came
//! out is looked at before it is given up (GUARD-1).

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::OFlags;
use rustix::io::Errno;
use touchmark_engine::WriteOutcome;
use touchmark_proto::Hash;
use touchmark_proto::writes::Guard as Way;

use super::content::{self, Stamp};
use super::intent::{Intent, Phase, Recorded};
use super::lease::Lease;
use super::leased::{Kind, Refused};
use super::place::{Identity, Place, is_missing, refused};
use super::temporary::Temporary;
use super::{Guard, Job, Stop, step};

/// Up to this size what came out is hashed under the lease: that takes less
/// than a lease may be held (GUARD-2).
const UNDER_LEASE: u64 = 256 << 10;

/// Exchanges with a writer who writes all the time, before what came out last
/// is kept instead.
const MOST_EXCHANGES: usize = 64;

/// The old file, open for reading.
pub(super) struct Old {
    pub(super) file: File,
    pub(super) identity: Identity,
    pub(super) stamp: Stamp,
    pub(super) links: u64,
    pub(super) size: u64,
}

/// What is by a name.
struct Came {
    identity: Identity,
    /// A regular file that can be read.
    file: Option<File>,
    /// What it holds, if that can be said.
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

    /// Whether this is what was put in: by content, for inodes are exchanged
    /// and contents are what counts.
    fn is(&self, other: &Self) -> bool {
        match (self.hash, other.hash) {
            (Some(hash), Some(other)) => hash == other,
            (None, None) => self.file.is_none() && self.identity == other.identity,
            _ => false,
        }
    }
}

impl Guard {
    /// Puts the new content in the place of an old file that holds the base.
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
        // Under the lease nobody can begin to write to it; until then
        // somebody may have.
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
            Err(errno) if is_missing(errno) => return Err(Stop::NoExchange),
            Err(errno) => return Err(refused(&job.order.path, errno).into()),
        }
        // From here on the temporary name holds somebody's bytes.
        let aside = temporary.into_name();
        step("guard: exchanged");
        let came_out = place.stat(&aside).map(|stat| Identity::from(&stat));
        let same = came_out == Ok(old.identity);
        let small = old.size <= UNDER_LEASE;
        let leased = lease.is_some();
        let undisturbed = same
            && lease.as_ref().is_none_or(Lease::is_whole)
            && (!small || holds(&old.file, base));
        if !undisturbed {
            // Whoever waits for the old file is let in when it has its name
            // again; else they would write into a file that nobody finds.
            let (out, lease) = match (same, lease) {
                (true, Some(lease)) => (old.came(base), Some(lease)),
                (_, lease) => {
                    drop(lease);
                    (Came::look(place, &aside), None)
                }
            };
            return Ok(self.put_back(job, place, &aside, out, lease));
        }
        drop(lease);
        if !small && !holds(&old.file, base) {
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

    /// Something else than the base came out of the exchange, and is by the
    /// name `aside`: gives it its name back. Exchanges until what comes out is
    /// what the last step put in, for a newer save may arrive meanwhile; the
    /// newest stays. Every other content is kept.
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
            // Somebody took it by its temporary name; it is theirs.
            return conflict(super::found(place), recovered);
        };
        // What the last step put under the name; at first that is ours.
        let mut under: Option<Came> = None;
        for _ in 0..MOST_EXCHANGES {
            if let Err(errno) = place.exchange(aside) {
                // Its owner took the name away since.
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
        self.give_up(job, place, aside, out, &mut recovered);
        conflict(super::found(place), recovered)
    }

    /// Takes the last name of what came out, after its bytes are kept if
    /// nobody has seen them.
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
        if known {
            place.unlink(aside);
        } else {
            recovered.extend(self.keep_or_leave(
                job.paths(place),
                place,
                aside,
                came.file.as_ref(),
            ));
        }
        if let Some(file) = came.file {
            // One that is being written is looked at again in any case.
            let hash = came.hash.unwrap_or(Hash([0; 32]));
            self.hold(file, job.paths(place), hash);
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
    /// As what came out of an exchange, known without a look.
    fn came(&self, base: Option<Hash>) -> Result<Came, Errno> {
        let file = self.file.try_clone().ok();
        Ok(Came {
            identity: self.identity,
            file,
            hash: base,
        })
    }

    /// Opens the file that is to be replaced and sees whether it is the base.
    pub(super) fn open(job: &Job<'_>, place: &Place) -> Result<Self, Stop> {
        let file = match place.open(&place.name, OFlags::RDONLY) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Err(Stop::Changed(None)),
            // Somebody holds a lease of their own.
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

fn holds(file: &File, base: Option<Hash>) -> bool {
    matches!(content::hash(file), Ok(Some((hash, _))) if Some(hash) == base)
}

fn conflict(found: Option<Hash>, recovered: Vec<String>) -> WriteOutcome {
    WriteOutcome::Conflict {
        found,
        cause: super::CHANGED.into(),
        recovered,
    }
}
