//! Guarded writes: compare-and-swap on a file's content (GUARD-1 to GUARD-3).
//!
//! - [`place`]: the directory and name to write to; [`temporary`]: the new file
//!   next to the old one.
//! - [`exchange`]: the two exchange names, and the replaced file is checked.
//! - [`checked`]: writing in place, where names cannot be exchanged.
//! - [`remove`]: removing a file.
//! - [`standing`]: symlinks and permissions.
//! - [`lease`]: which other process has the file open.
//! - [`intent`]: what the next start completes or reverts.
//! - [`recovery`], [`moved`]: storing contents that would be lost; [`kept`]:
//!   the requests about them.
//! - [`stored`]: writing earlier contents, once the present one is stored.

mod checked;
mod content;
mod exchange;
#[cfg(any(test, fuzzing))]
#[path = "../../../fuzz/guard.rs"]
pub(crate) mod fuzzed;
mod intent;
mod kept;
mod moved;
mod names;
mod other_names;
mod place;
mod recovery;
mod remove;
mod settings;
mod standing;
mod stored;
mod temporary;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::cell::Cell;
use std::fs::{File, Metadata};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustix::fs::OFlags;
use rustix::io::Errno;
use touchmark_engine::patterns::Patterns;
use touchmark_engine::{WriteOrder, WriteOutcome};
use touchmark_proto::writes::{Guard as Way, RecoveryItem};
use touchmark_proto::{Author, Error, ErrorCode, ErrorData, Hash, RelPath};

use self::exchange::Old;
use self::intent::{Intent, Intents, Phase};
use self::moved::{Moved, Net};
use self::other_names::is_protected_by_another;
use self::place::{Follow, Place, is_missing, refused};
use self::recovery::Recovery;
use self::temporary::{Like, Temporary};
use crate::content::Reader;
use crate::failpoint;
use crate::time::Timeline;

pub use self::names::is_temporary;
pub use self::recovery::kept;
pub use self::settings::{Keep, KeptBytes, Settings};
pub use self::stored::{
    Name, NotStored, Present, RIGHTS, Replacer, SPECIAL, Storage, Stored, Written, over_budget,
};
pub use crate::system::process::Umask;

const CHANGED: &str = "another process has changed the file";
const BUSY: &str = "another program has the file open for writing";
const SECRET: &str = "the session has not seen all of it, and its content may not be kept";

/// Writes files of one workspace, one at a time. Usable from several threads.
#[derive(Debug)]
pub struct Guard {
    root: PathBuf,
    reader: Reader,
    recovery: Recovery,
    intents: Intents,
    net: Net,
    durable: bool,
    protected: Patterns,
    contents_total: u64,
    time: Timeline,
    /// Held during a write.
    gate: Mutex<()>,
    /// Bytes that a second look has stored and that were not reported yet.
    late: Mutex<Vec<KeptBytes>>,
}

/// One write.
struct Job<'o> {
    order: &'o WriteOrder,
    durable: bool,
    /// The copy of the base that stays after the write.
    copy: Option<RecoveryItem>,
    /// Whether the base's bytes were overwritten, so that the copy stays
    /// whatever the outcome is.
    overwritten: Cell<bool>,
}

/// What became of a file that lost its name.
struct Left {
    /// The path of its copy, or its own new path.
    file: String,
    /// The hash of what is stored; `None` if the file itself was renamed.
    hash: Option<Hash>,
}

impl Job<'_> {
    fn paths<'a>(&'a self, place: &'a Place) -> (&'a RelPath, &'a RelPath) {
        (&self.order.path, &place.real)
    }
}

/// Why nothing was written.
enum Stop {
    /// The file has this content instead of the base; `None` if it has none.
    Changed(Option<Hash>),
    /// Another process has it open.
    Busy,
    /// Its content may neither be stored nor be overwritten unseen (GUARD-3).
    Secret,
    /// The file system cannot exchange names.
    NoExchange,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// For errors of the state directory or of an open file.
impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        let cause = error.to_string();
        Self::Failed(
            Error::new(
                ErrorCode::Storage,
                format!("nothing was written, since it could not be made safe: {cause}"),
            )
            .with(ErrorData {
                cause: Some(cause),
                ..ErrorData::default()
            }),
        )
    }
}

impl From<Stop> for WriteOutcome {
    fn from(stop: Stop) -> Self {
        let conflict = |found, cause: &str| Self::Conflict {
            found,
            cause: cause.into(),
            recovered: Vec::new(),
        };
        match stop {
            Stop::Changed(found) => conflict(found, CHANGED),
            Stop::Busy => conflict(None, BUSY),
            Stop::Secret => conflict(None, SECRET),
            Stop::NoExchange => conflict(None, "names cannot be exchanged here"),
            Stop::Failed(error) => Self::Failed(error),
        }
    }
}

impl Guard {
    /// Opens the state of guarded writes, and completes or reverts what an
    /// earlier daemon did not complete.
    ///
    /// # Errors
    /// If the state directory cannot be used.
    pub fn open(settings: Settings, reader: Reader, time: Timeline) -> Result<Self, crate::Error> {
        let Settings {
            root,
            state,
            keep,
            durable,
            writable,
            protected,
            contents_total,
        } = settings;
        let guard = Self {
            net: Net::new(&root),
            root,
            reader,
            recovery: Recovery::open(recovery::directory(&state), keep)?,
            intents: Intents::open(state.join("intents"), durable)?,
            durable,
            protected,
            contents_total,
            time,
            gate: Mutex::new(()),
            late: Mutex::default(),
        };
        if writable {
            guard.recovery.prune_old(&guard.time);
            guard.resume();
        }
        Ok(guard)
    }

    /// Replaces a file's base by a new content. A new file or directory gets
    /// the permissions that this mask leaves. Blocks on the disk.
    pub fn write(&self, order: &WriteOrder, umask: Umask) -> WriteOutcome {
        self.write_with(order, Like::New(umask), umask, Follow::Any)
    }

    /// Replaces a file's base by a new content, through the symlinks that may
    /// be followed. A new file gets the permissions and the owner of `new`, a new
    /// directory those that the mask leaves.
    fn write_with(
        &self,
        order: &WriteOrder,
        new: Like<'_>,
        umask: Umask,
        follow: Follow<'_>,
    ) -> WriteOutcome {
        let _one = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let mut result = self.attempt(order, new, umask, follow);
        if let Err(Stop::Failed(error)) = &result
            && error.code == ErrorCode::Storage
            && self.net.give_up(|moved| self.changed(moved))
        {
            // The files that were released may have used the missing space.
            result = self.attempt(order, new, umask, follow);
        }
        result.unwrap_or_else(WriteOutcome::from)
    }

    fn attempt(
        &self,
        order: &WriteOrder,
        new: Like<'_>,
        umask: Umask,
        follow: Follow<'_>,
    ) -> Result<WriteOutcome, Stop> {
        let umask_above = order.create_directories.then_some(umask);
        let place = self.find(&order.path, umask_above, follow)?;
        let mut job = Job {
            order,
            durable: self.durable,
            copy: None,
            overwritten: Cell::new(false),
        };
        if order.base.is_none() {
            return self.create(&job, &place, new);
        }
        place.check_writable(&order.path)?;
        if order.keep_base && self.is_secret(job.paths(&place)) {
            return Err(Stop::Secret);
        }
        let old = Old::open(&job, &place)?;
        if old.links > 1 {
            self.check_other_names(&order.path, &old.file.metadata()?)?;
        }
        if order.keep_base {
            let copy = self.keep_copy(&job, &place, &old.file)?;
            if Some(copy.hash) != order.base {
                self.drop_copy(Some(&copy));
                return Err(Stop::Changed(Some(copy.hash)));
            }
            job.copy = Some(copy);
        }
        let mut result = self.replace(&job, &place, old);
        match (&mut result, job.overwritten.get()) {
            (Ok(WriteOutcome::Done { recovered, .. }), _)
            | (Ok(WriteOutcome::Conflict { recovered, .. }), true) => {
                recovered.extend(job.copy.map(|copy| copy.file));
            }
            // The copy is in the recovery directory, which alone has the bytes.
            (_, true) => {}
            (_, false) => self.drop_copy(job.copy.as_ref()),
        }
        result
    }

    fn replace(&self, job: &Job<'_>, place: &Place, old: Old) -> Result<WriteOutcome, Stop> {
        if old.links > 1 {
            return self.checked(job, place, old);
        }
        let name = temporary::new_name();
        let mut intent = self.intents.record(job.intent(place, &name))?;
        step("guard: an intent is recorded");
        let metadata = old.file.metadata()?;
        let like = Like::Old(&old.file, &metadata);
        let temporary = match Temporary::write(place, &name, &job.order.bytes, like, job.durable) {
            Ok(temporary) => temporary,
            Err(errno) => {
                intent.end();
                return match errno {
                    // The directory is not writable; the file may be.
                    Errno::ACCESS | Errno::PERM | Errno::ROFS => self.checked(job, place, old),
                    errno => Err(refused(&job.order.path, errno).into()),
                };
            }
        };
        let result = self.exchange(job, place, old, &mut intent, temporary);
        intent.end();
        match result {
            Err(Stop::NoExchange) => self.checked(job, place, Old::open(job, place)?),
            result => result,
        }
    }

    /// Creates a file at a name that does not exist.
    fn create(&self, job: &Job<'_>, place: &Place, like: Like<'_>) -> Result<WriteOutcome, Stop> {
        if place.stat(&place.name).is_ok() {
            return Err(Stop::Changed(found(place)));
        }
        let failed = |errno| Stop::from(refused(&job.order.path, errno));
        let name = temporary::new_name();
        let mut intent = self.intents.record(job.intent(place, &name))?;
        step("guard: an intent to create is recorded");
        let created = Temporary::write(place, &name, &job.order.bytes, like, job.durable)
            .map_err(failed)
            .and_then(|temporary| {
                intent.advance(Phase::Creating)?;
                step("guard: about to take a new name");
                match place.rename(temporary.name(), &place.name) {
                    Ok(()) => {
                        temporary.into_name();
                        Ok(())
                    }
                    Err(errno) if is_missing(errno) => {
                        // A hard link works as well; the temporary name is then
                        // removed.
                        place.link(temporary.name(), &place.name).map_err(failed)
                    }
                    Err(Errno::EXIST) => Err(Stop::Changed(found(place))),
                    Err(errno) => Err(failed(errno)),
                }
            });
        step("guard: a new name is taken");
        if created.is_ok() && job.durable {
            if job.order.create_directories {
                place.sync_all();
            } else {
                place.sync();
            }
        }
        intent.end();
        created?;
        Ok(WriteOutcome::Done {
            guard: Way::Noreplace,
            lease: false,
            recovered: Vec::new(),
        })
    }

    /// Completes or reverts what an earlier daemon did not complete.
    fn resume(&self) {
        for recorded in self.intents.left() {
            let intent = &recorded.intent;
            let kept = match Place::at(&self.root, &intent.real) {
                // The directory was removed, and the temporary file with it.
                Err(_) => Vec::new(),
                Ok(place) => match intent.phase {
                    Phase::Preparing | Phase::Creating => {
                        place.unlink(intent.temporary.as_bytes());
                        Vec::new()
                    }
                    Phase::Exchanging => self.resume_exchange(intent, &place),
                    Phase::Writing => self.resume_writing(intent, &place),
                    Phase::Removing => self.resume_removing(intent, &place),
                },
            };
            failpoint::pass("guard: a write cut short is settled");
            tracing::info!(
                path = %intent.path,
                "a write of {} was cut short, and is settled",
                intent.path
            );
            let path = intent.path.clone();
            self.late(kept.into_iter().map(|file| (path.clone(), file)));
            recorded.end();
        }
    }

    /// Returns where a file is or will be. Fails if its name is protected or
    /// resolves to a protected one (SEC-10), or if a symlink on the path is not
    /// to be followed.
    fn find(
        &self,
        path: &RelPath,
        create_directories: Option<Umask>,
        follow: Follow<'_>,
    ) -> Result<Place, Error> {
        let may_be = |name: &RelPath| match self.protected.has(name) {
            false => follow.check(path, name),
            true => Err(Error::path(ErrorCode::Protected, path, "it is protected")),
        };
        may_be(path)?;
        Place::find(&self.root, path, create_directories, may_be)
    }

    /// Refuses a file that is protected by another of its names (SEC-10).
    fn check_other_names(&self, path: &RelPath, file: &Metadata) -> Result<(), Error> {
        match is_protected_by_another(&self.root, file, |name| self.protected.has(name)) {
            false => Ok(()),
            true => Err(Error::path(
                ErrorCode::Protected,
                path,
                "another name of the same file is protected",
            )),
        }
    }

    fn is_secret(&self, (path, real): (&RelPath, &RelPath)) -> bool {
        self.reader.is_secret(path) || self.reader.is_secret(real)
    }

    fn keep_copy(
        &self,
        job: &Job<'_>,
        place: &Place,
        file: &File,
    ) -> std::io::Result<RecoveryItem> {
        let author = job.order.base_author.clone();
        self.recovery
            .keep(job.paths(place), file, author, &self.time)
    }

    /// Stores what stands at a name. The outer error is that of the file, the
    /// inner one that of the copy.
    fn keep_at(
        &self,
        name: &Name,
        author: Option<Author>,
    ) -> Result<std::io::Result<RecoveryItem>, Error> {
        let place = self.find(&name.path, None, Follow::To(name.real.as_ref()))?;
        let file = place.open(&place.name, OFlags::RDONLY);
        let file = file.map_err(|errno| refused(&name.path, errno))?;
        let paths = (&name.path, &place.real);
        Ok(self.recovery.keep(paths, &file, author, &self.time))
    }

    fn drop_copy(&self, copy: Option<&RecoveryItem>) {
        if let Some(copy) = copy
            && let Err(error) = self.recovery.delete(&copy.id)
        {
            tracing::warn!("{}: {error}", copy.file);
        }
    }

    /// Stores the file at the name `aside` and removes that name. A content
    /// that must not be stored (SEC-3), or cannot be, stays in its directory,
    /// under a name that says so.
    fn keep_or_leave(
        &self,
        paths: (&RelPath, &RelPath),
        place: &Place,
        aside: &[u8],
        file: Option<&File>,
    ) -> Left {
        if let Some(file) = file
            && !self.is_secret(paths)
        {
            match self.recovery.keep(paths, file, None, &self.time) {
                Ok(item) => {
                    failpoint::pass("guard: what came out is kept");
                    place.unlink(aside);
                    return Left {
                        file: item.file,
                        hash: Some(item.hash),
                    };
                }
                Err(error) => {
                    tracing::error!(path = %paths.0, "{}: not kept: {error}", paths.0);
                }
            }
        }
        let name = left_name(place, &self.time);
        let path = match place.rename(aside, &name) {
            Ok(()) => place.path_of(&name),
            Err(errno) => {
                tracing::error!("{}: {errno}", place.path_of(aside).display());
                place.path_of(aside)
            }
        };
        Left {
            file: path.to_string_lossy().into_owned(),
            hash: None,
        }
    }

    fn hold(&self, file: File, paths: (&RelPath, &RelPath), hash: Hash) {
        self.net
            .hold(file, paths, hash, |moved| self.changed(moved));
    }

    /// Stores the bytes of a file without a name that was written to.
    fn changed(&self, moved: &Moved) {
        let paths = (&moved.path, &moved.real);
        if !self.is_secret(paths) {
            match self.recovery.keep(paths, &moved.file, None, &self.time) {
                Ok(item) => return self.late([(moved.path.clone(), item.file)]),
                Err(error) => {
                    tracing::error!(path = %moved.path, "{}: not kept: {error}", moved.path);
                }
            }
        }
        // Left in the user's own directory, since the bytes must not be stored
        // (SEC-3), or could not be.
        let left = Place::at(&self.root, &moved.real).map(|place| {
            let name = left_name(&place, &self.time);
            let bytes = content::bytes(&moved.file).unwrap_or_default();
            let mut file = place.create(&name, 0o600)?;
            std::io::Write::write_all(&mut file, &bytes)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            Ok::<_, Errno>(place.path_of(&name).to_string_lossy().into_owned())
        });
        match left {
            Ok(Ok(file)) => self.late([(moved.path.clone(), file)]),
            Ok(Err(errno)) | Err(errno) => {
                tracing::error!(path = %moved.path, "{}: lost: {errno}", moved.path);
            }
        }
    }

    fn late(&self, kept: impl IntoIterator<Item = KeptBytes>) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, file) in kept {
            tracing::warn!(%path, "bytes of {path} are kept in {file}");
            late.push((path, file));
        }
    }

    /// Looks again at the files of one path that lost their name.
    pub fn look_at_moved(&self, path: &RelPath) {
        self.net.look_at(path, |moved| self.changed(moved));
    }

    /// Looks again at all files that lost their name, and releases those that
    /// no process writes to any more.
    pub fn look_at_all_moved(&self) {
        self.net.look_at_all(|moved| self.changed(moved));
    }

    /// Does the same for those files that have to be looked at now.
    pub fn look_at_due_moved(&self) {
        self.net.look_at_due(|moved| self.changed(moved));
    }

    /// Returns when held files have to be looked at again; `None` if none is
    /// held.
    pub fn next_look(&self) -> Option<Instant> {
        self.net.next()
    }

    /// Returns whether a look at held files is due now. The caller then has to
    /// make it.
    pub fn look_is_due(&self, now: Instant) -> bool {
        self.net.is_due(now)
    }

    /// Removes and returns what second looks have stored since the last call.
    pub fn take_late(&self) -> Vec<KeptBytes> {
        std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Job<'_> {
    fn intent(&self, place: &Place, temporary: &str) -> Intent {
        Intent {
            phase: Phase::Preparing,
            path: self.order.path.clone(),
            real: place.real.clone(),
            temporary: temporary.into(),
            base: self.order.base,
            new: self.order.hash,
            copy: self.copy.as_ref().map(|copy| copy.id.clone()),
            keep: self.order.keep_base,
            bytes: None,
        }
    }
}

/// Returns the hash of the file at a place; `None` if there is no readable
/// file.
fn found(place: &Place) -> Option<Hash> {
    let file = place.open(&place.name, OFlags::RDONLY).ok()?;
    let (hash, _) = content::hash(&file).ok().flatten()?;
    Some(hash)
}

/// Returns the name for bytes that are left in the user's directory.
fn left_name(place: &Place, time: &Timeline) -> Vec<u8> {
    let mut name = place.name.clone();
    name.truncate(200);
    name.extend_from_slice(format!(".recovered-{}", time.now()).as_bytes());
    name
}

/// A failpoint between two steps of a write.
fn step(name: &str) {
    #[cfg(all(test, target_os = "linux"))]
    tests::at_step();
    failpoint::pass(name);
}
