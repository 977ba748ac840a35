//! Symlinks and permissions, which an undo restores (SCOPE-7). No link is
//! followed, and none is created at a name that exists.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;
use touchmark_engine::WriteOutcome;
use touchmark_proto::writes::Guard as Way;
use touchmark_proto::{Error, ErrorCode, FileMode, Hash, RelPath};

use super::intent::Intent;
use super::place::{Follow, PLAIN, Place, refused};
use super::{Guard, Stop, found, step, temporary};
use crate::system::process::Umask;
use crate::system::stat;

/// The greatest depth of nested empty directories that are removed.
const DEEPEST: usize = 64;

const DONE: WriteOutcome = WriteOutcome::Done {
    guard: Way::Noreplace,
    lease: false,
    recovered: Vec::new(),
};

impl Guard {
    /// Returns the hash of the content at a name, and its mode. The content of
    /// a link is the path that it points to.
    pub(super) fn stands(&self, path: &RelPath) -> (Option<Hash>, Option<FileMode>) {
        let Ok(place) = Place::at(&self.root, path) else {
            return (None, None);
        };
        let mode = place
            .stat(&place.name)
            .ok()
            .and_then(|found| stat::mode(&found));
        let hash = match mode {
            Some(mode) if mode.is_link() => place.link_to(&place.name).as_deref().map(Hash::of),
            _ => found(&place),
        };
        (hash, mode)
    }

    /// Returns where the symlink at a name points to.
    pub(super) fn link(&self, path: &RelPath) -> Result<Vec<u8>, Error> {
        let place = self.itself(path)?;
        let to = place.link_to(&place.name);
        to.ok_or_else(|| refused(path, Errno::NOENT))
    }

    /// Removes a symlink that points to `base`.
    pub(super) fn remove_link(&self, path: &RelPath, base: Hash) -> WriteOutcome {
        let _one = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.unlink(path, base).unwrap_or_else(WriteOutcome::from)
    }

    fn unlink(&self, path: &RelPath, base: Hash) -> Result<WriteOutcome, Stop> {
        let place = self.itself(path)?;
        let aside = temporary::new_name();
        let intent = Intent::removal(path, &place, base, &aside);
        let intent = self.intents.record(intent)?;
        step("guard: about to remove a link");
        let aside = aside.as_bytes();
        let moved = place.rename(&place.name, aside);
        step("guard: a link's name is taken away");
        let to = moved.and_then(|()| place.link_to(aside).ok_or(Errno::INVAL));
        let result = match to {
            Ok(to) if Hash::of(&to) == base => {
                place.unlink(aside);
                Ok(DONE)
            }
            Err(Errno::NOENT) => Err(Stop::Changed(None)),
            _ => {
                // The link is another one, so it gets its name back.
                self.resume_removing(&intent.intent, &place);
                Err(Stop::Changed(found(&place)))
            }
        };
        if self.durable {
            place.sync();
        }
        intent.end();
        result
    }

    /// Creates a symlink at a name that does not exist.
    pub(super) fn make_link(&self, path: &RelPath, to: &[u8], umask: Umask) -> WriteOutcome {
        let _one = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || -> Result<WriteOutcome, Stop> {
            // Missing directories are created.
            let place = self.find(path, Some(umask), Follow::To(None))?;
            step("guard: about to make a link");
            match place.make_link(to) {
                Ok(()) => {}
                Err(Errno::EXIST) => return Err(Stop::Changed(found(&place))),
                Err(errno) => return Err(refused(path, errno).into()),
            }
            step("guard: a link is made");
            if self.durable {
                place.sync_all();
            }
            Ok(DONE)
        };
        made().unwrap_or_else(WriteOutcome::from)
    }

    /// Gives a file the permissions `mode`, if it has the permissions `was`.
    pub(super) fn permit(
        &self,
        path: &RelPath,
        was: FileMode,
        mode: FileMode,
        follow: Follow<'_>,
    ) -> WriteOutcome {
        let _one = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let permitted = || -> Result<WriteOutcome, Stop> {
            let place = self.find(path, None, follow)?;
            let failed = |errno| Stop::from(refused(path, errno));
            let file = place.open(&place.name, OFlags::RDONLY).map_err(failed)?;
            let now = rustix::fs::fstat(&file).map_err(failed)?;
            if stat::mode(&now).map(FileMode::permissions) != Some(was.permissions()) {
                return Err(Stop::Changed(found(&place)));
            }
            step("guard: about to permit");
            let bits = Mode::from_raw_mode((mode.permissions() & PLAIN) as RawMode);
            rustix::fs::fchmod(&file, bits).map_err(failed)?;
            step("guard: permitted");
            Ok(DONE)
        };
        permitted().unwrap_or_else(WriteOutcome::from)
    }

    /// Removes an empty directory, and empty ones in it, at a name where a file
    /// has to be written.
    pub(super) fn make_room(&self, path: &RelPath) {
        let _one = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(place) = self.itself(path) {
            let emptied = place.remove_empty(&place.name, DEEPEST);
            if let Err(errno @ (Errno::NOTEMPTY | Errno::ACCESS)) = emptied {
                tracing::debug!(%path, "{path} stays a directory: {errno}");
            }
        }
    }

    /// Returns the place of a name, without following a link there.
    fn itself(&self, path: &RelPath) -> Result<Place, Error> {
        if self.protected.has(path) {
            return Err(Error::path(ErrorCode::Protected, path, "it is protected"));
        }
        Place::at(&self.root, path).map_err(|errno| refused(path, errno))
    }
}

impl Place {
    /// Returns the path that a symlink here points to; `None` if there is none.
    fn link_to(&self, name: &[u8]) -> Option<Vec<u8>> {
        let to = rustix::fs::readlinkat(&self.directory, name, Vec::new());
        Some(to.ok()?.into_bytes())
    }

    fn make_link(&self, to: &[u8]) -> Result<(), Errno> {
        rustix::fs::symlinkat(to, &self.directory, self.name.as_slice())
    }

    /// Removes a directory that contains only directories. Removes nothing if
    /// it contains anything else.
    fn remove_empty(&self, name: &[u8], deepest: usize) -> Result<(), Errno> {
        empty(&self.directory, name, deepest)?;
        remove(&self.directory, name)
    }
}

/// Fails unless there are only directories below a directory.
fn empty(above: impl AsFd, name: &[u8], deepest: usize) -> Result<(), Errno> {
    for (below, handle) in directories(above, name, deepest)? {
        empty(&handle, &below, deepest - 1)?;
    }
    Ok(())
}

fn remove(above: &impl AsFd, name: &[u8]) -> Result<(), Errno> {
    for (below, handle) in directories(above, name, DEEPEST)? {
        remove(&handle, &below)?;
    }
    rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR)
}

/// A directory's name, and a handle of the directory that contains it.
type Below = (Vec<u8>, Arc<OwnedFd>);

/// Returns the directories in a directory, each with a handle of the directory
/// that contains it.
fn directories(above: impl AsFd, name: &[u8], deepest: usize) -> Result<Vec<Below>, Errno> {
    if deepest == 0 {
        return Err(Errno::NOTEMPTY);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(above, name, flags, Mode::empty())?;
    let handle = Arc::new(handle);
    let mut all = Vec::new();
    for entry in Dir::read_from(&*handle)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if entry.file_type() != FileType::Directory {
            return Err(Errno::NOTEMPTY);
        }
        all.push((name.to_vec(), Arc::clone(&handle)));
    }
    Ok(all)
}
