//! Removing a file with a certain content, and no other (GUARD-7). Its name is
//! removed first, and the file that had it is checked before it is dropped.

use std::cell::Cell;
use std::sync::PoisonError;

use rustix::fs::OFlags;
use rustix::io::Errno;

use touchmark_engine::{WriteOrder, WriteOutcome};
use touchmark_proto::writes::Guard as Way;
use touchmark_proto::{Hash, RelPath};

use super::exchange::{Old, UNDER_LEASE, content_of};
use super::intent::{Intent, Phase};
use super::place::{Follow, Identity, Place, refused};
use super::{Guard, Job, Stop, found, step, temporary};
use crate::system::lease::Lease;
use crate::system::leased::{Kind, Refused};

impl Guard {
    /// Removes a file with the content `base`. A file that another process
    /// saves there meanwhile stays, or is restored. Blocks on the disk.
    pub(super) fn remove(&self, path: &RelPath, base: Hash) -> WriteOutcome {
        let _one = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.take_away(path, base)
            .unwrap_or_else(WriteOutcome::from)
    }

    fn take_away(&self, path: &RelPath, base: Hash) -> Result<WriteOutcome, Stop> {
        let place = self.find(path, None, Follow::To(None))?;
        place.check_writable(path)?;
        let order = WriteOrder {
            base: Some(base),
            hash: base,
            ..Intent::removal(path, &place, base, "").order()
        };
        let job = Job {
            order: &order,
            durable: self.durable,
            copy: None,
            overwritten: Cell::new(false),
        };
        let old = Old::open(&job, &place)?;
        if old.links > 1 {
            self.check_other_names(path, &old.file.metadata()?)?;
        }
        let aside = temporary::new_name();
        let intent = self
            .intents
            .record(Intent::removal(path, &place, base, &aside))?;
        step("guard: about to remove");
        let mut lease = match Lease::take(&old.file, Kind::Read) {
            Ok(lease) => Some(lease),
            Err(Refused::Busy) => {
                intent.end();
                return Err(Stop::Busy);
            }
            Err(Refused::Unavailable) => None,
        };
        step("guard: about to take the name away");
        if let Err(errno) = place.rename(&place.name, aside.as_bytes()) {
            intent.end();
            return Err(match errno {
                Errno::NOENT => Stop::Changed(None),
                errno => refused(path, errno).into(),
            });
        }
        step("guard: the name is taken away");
        let aside = aside.as_bytes();
        let small = old.size <= UNDER_LEASE;
        let has_base = || content_of(&old.file) == Some(base);
        let came_out = place.stat(aside).map(|stat| Identity::from(&stat));
        let mut undisturbed = came_out == Ok(old.identity)
            && (!small || has_base())
            && lease.as_ref().is_none_or(Lease::is_whole);
        if undisturbed && !small {
            drop(lease.take());
            undisturbed = has_base();
        }
        if !undisturbed {
            let recovered = self.give_back(path, &place, aside, lease);
            intent.end();
            return Ok(WriteOutcome::Conflict {
                found: found(&place),
                cause: super::CHANGED.into(),
                recovered,
            });
        }
        drop(lease);
        place.unlink(aside);
        if self.durable {
            place.sync();
        }
        self.hold(old.file, job.paths(&place), base);
        intent.end();
        Ok(WriteOutcome::Done {
            guard: Way::Exchange,
            lease: false,
            recovered: Vec::new(),
        })
    }

    /// Gives a file its name back, or stores its content if the name is another
    /// file's now. The lease is released only then: a process that waits to open
    /// the file would else write into a file without a name.
    fn give_back(
        &self,
        path: &RelPath,
        place: &Place,
        aside: &[u8],
        lease: Option<Lease<'_>>,
    ) -> Vec<String> {
        let given = place.rename(aside, &place.name);
        drop(lease);
        match given {
            Ok(()) | Err(Errno::NOENT) => Vec::new(),
            Err(_) => {
                let paths = (path, &place.real);
                let file = place.open(aside, OFlags::RDONLY).ok();
                let kept = self.keep_or_leave(paths, place, aside, file.as_ref());
                if let Some(file) = file {
                    // A process may have had it open already.
                    self.hold(file, paths, kept.hash.unwrap_or(Hash([0; 32])));
                }
                vec![kept.file]
            }
        }
    }

    /// Reverts a removal that an earlier daemon did not complete and so did not
    /// report.
    pub(super) fn resume_removing(&self, intent: &Intent, place: &Place) -> Vec<String> {
        self.give_back(&intent.path, place, intent.temporary.as_bytes(), None)
    }
}

impl Intent {
    pub(super) fn removal(path: &RelPath, place: &Place, base: Hash, aside: &str) -> Self {
        Self {
            phase: Phase::Removing,
            path: path.clone(),
            real: place.real.clone(),
            temporary: aside.into(),
            base: Some(base),
            new: base,
            copy: None,
            keep: false,
            bytes: None,
        }
    }
}
