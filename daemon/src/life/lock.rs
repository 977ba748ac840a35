//! Ensures that one store has one daemon (SEC-1, LIFE-1). The lock is next to
//! the store, so that it is the same one for every runtime directory.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use touchmark_proto::{Holder, Places};

use crate::Error;
use crate::system::lease::Presence;
use crate::system::stat::MetadataExt as _;
use crate::system::{open, process};
use crate::watch::shows_a_part;

/// The maximum number of bytes that are read of a lock file; a valid one is
/// shorter.
const LONGEST: u64 = 16 << 10;

/// The number of times that a lock without a live holder's name is read again:
/// a holder writes its name within microseconds of taking the lock.
const LOOKS: u32 = 20;

/// The interval between two such reads.
const AGAIN: Duration = Duration::from_millis(5);

/// Returns the holder that a lock file names. Anything may be at its name: a
/// FIFO, for one, is not opened.
pub(crate) fn named_in(lock: &Path) -> Option<Holder> {
    Holder::parse(&open::read_regular(lock, LONGEST).ok()?)
}

/// The lock of a workspace, held until it is dropped. Only its holder may
/// change the socket, the state and the log. The file is removed with the lock.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
    /// Whether the file names the holder; false if the file could not be
    /// written.
    told: bool,
    /// The mark on the workspace; `None` without a workspace, where the file system
    /// has no locks, and if the user may unmount it.
    presence: Option<Presence>,
}

impl Lock {
    /// Takes the lock of a workspace. If the state directory has no lock and
    /// cannot be written, the lock in the runtime directory replaces it;
    /// nothing is stored then either (LOSS-3).
    ///
    /// # Errors
    /// [`Error::AlreadyRunning`] with the holder's process id and address.
    pub fn of(places: &Places, workspace: &Path) -> Result<Self, Error> {
        let holder = Holder {
            pid: std::process::id(),
            socket: Some(places.socket.clone()),
            workspace: workspace.to_owned(),
        };
        if let Some(directory) = places.lock.parent() {
            // If this fails there is no lock, which is handled below.
            let _exists = open::private_directory().recursive(true).create(directory);
        }
        let mut lock = match Self::take(&places.lock, &holder) {
            Err(Error::Io { cause, .. }) => {
                tracing::warn!("{}: {cause}", places.lock.display());
                Self::take(&places.spare_lock, &holder)
            }
            taken => taken,
        }?;
        if stays_mounted(workspace, &places.state) {
            lock.presence = Presence::on(workspace).ok();
        }
        Ok(lock)
    }

    /// Returns whether a daemon with another store watches the workspace, too.
    pub(crate) fn has_company(&self, workspace: &Path) -> bool {
        match &self.presence {
            Some(presence) => presence.is_shared(),
            None => Presence::is_at(workspace),
        }
    }

    /// Takes a lock and writes its holder's name into it.
    ///
    /// # Errors
    /// [`Error::AlreadyRunning`]; [`Error::Untrusted`] for another user's file;
    /// [`Error::Io`] if there is none and none can be created.
    pub fn take(path: &Path, holder: &Holder) -> Result<Self, Error> {
        let failed = |action| Error::io(action, path);
        let mut looks = 0..LOOKS;
        loop {
            let mut file = open_or_make(path).map_err(failed("open the lock"))?;
            let metadata = file.metadata().map_err(failed("look at the lock"))?;
            open::check_owner(&metadata).map_err(|reason| Error::Untrusted {
                path: path.to_owned(),
                reason,
            })?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let other = read(&mut file);
                    // A process id of a daemon that was killed identifies no
                    // holder.
                    let old = !other
                        .as_ref()
                        .is_some_and(|other| process::lives(other.pid));
                    if old && looks.next().is_some() {
                        thread::sleep(AGAIN);
                        continue;
                    }
                    let named = other.as_ref().and_then(|other| other.socket.clone());
                    return Err(Error::AlreadyRunning {
                        socket: named.or(holder.socket.clone()).unwrap_or_default(),
                        pid: other.map_or(0, |other| other.pid),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(failed("lock")(error)),
            }
            // The last holder may have removed the file after it was opened and
            // before it was locked. Then the lock is on a file without a name.
            if !same_file(&file, path) {
                continue;
            }
            let told = write(&mut file, &holder.text());
            if let Err(error) = &told {
                tracing::warn!("{}: it cannot say who holds it: {error}", path.display());
            }
            return Ok(Self {
                path: path.to_owned(),
                file,
                told: told.is_ok(),
                presence: None,
            });
        }
    }

    /// Takes the proper lock, if it could not be taken or written before.
    ///
    /// # Errors
    /// [`Error::AlreadyRunning`] if another daemon has taken it since.
    pub fn renewed(self, places: &Places, workspace: &Path) -> Result<Self, Error> {
        if self.told && self.path == places.lock {
            return Ok(self);
        }
        if self.path == places.lock {
            drop(self);
            return Self::of(places, workspace);
        }
        match Self::of(places, workspace) {
            Ok(lock) => Ok(lock),
            // The holder is this lock itself, since there is still no other.
            Err(Error::AlreadyRunning { pid, .. })
                if pid == std::process::id() || (pid == 0 && !self.told) =>
            {
                Ok(self)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether the lock's name still refers to the lock. If not,
    /// another daemon may start for the same workspace.
    pub fn is_in_place(&self) -> bool {
        same_file(&self.file, &self.path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file is removed while it is locked, so that no other daemon's new
        // lock is removed.
        if self.is_in_place() {
            let _gone_already = fs::remove_file(&self.path);
        }
    }
}

/// Returns whether a directory's file system is not one that the user may want to
/// unmount: it is the system's, or that of the state directory, or the directory
/// lies in a mount of a part of a file system, as in a container.
fn stays_mounted(directory: &Path, state: &Path) -> bool {
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    let own = device(directory);
    own.is_some() && (own == device(state) || own == device(Path::new("/")))
        || shows_a_part(directory)
}

/// Opens or creates a lock file. A file that cannot be written can still be
/// locked.
fn open_or_make(path: &Path) -> io::Result<File> {
    let made = open::private_itself()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path);
    match made {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            let opened = open::private_itself().read(true).open(path);
            opened.map_err(|_| error)
        }
        made => made,
    }
}

/// Returns the holder that a lock file names.
fn read(file: &mut File) -> Option<Holder> {
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    Holder::parse(&text)
}

fn write(file: &mut File, text: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text)
}

fn same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use touchmark_proto::BaseDirectories;

    use super::*;

    fn holder(socket: &str) -> Holder {
        Holder {
            pid: std::process::id(),
            socket: Some(socket.into()),
            workspace: "/w".into(),
        }
    }

    #[test]
    fn the_second_starter_is_told_of_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.lock");
        let first = Lock::take(&path, &holder("/run/first")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), holder("/run/first").text());

        let error = Lock::take(&path, &holder("/cache/second")).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        let text = error.to_string();
        assert!(text.contains("/run/first"), "{text}");
        assert!(
            text.contains(&format!("pid {}", std::process::id())),
            "{text}"
        );

        drop(first);
        assert!(!path.exists());
        Lock::take(&path, &holder("/s")).unwrap();
    }

    #[test]
    fn a_lock_left_by_a_dead_daemon_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.lock");
        fs::write(&path, "999999999\n/s\n/a/very/long/path/of/another\n").unwrap();
        let lock = Lock::take(&path, &holder("/s")).unwrap();
        assert!(lock.is_in_place());
        assert_eq!(fs::read(&path).unwrap(), holder("/s").text());
    }

    #[test]
    fn somebody_elses_lock_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.lock");
        let lock = Lock::take(&path, &holder("/s")).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "new").unwrap();
        assert!(!lock.is_in_place());
        drop(lock);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn where_no_lock_can_be_made_beside_the_store_the_spare_one_serves_meanwhile() {
        let home = tempfile::tempdir().unwrap();
        let base = BaseDirectories {
            runtime: Some(home.path().join("run")),
            state: home.path().join("state"),
            config: home.path().join("config"),
            cache: home.path().join("cache"),
        };
        let workspace = Path::new("/w");
        let places = Places::new(&base, workspace, None);
        crate::life::private_directory(&places.runtime).unwrap();
        // Not even root can create a directory there.
        fs::write(&base.state, "").unwrap();
        let lock = Lock::of(&places, workspace).unwrap();
        assert!(places.spare_lock.exists() && lock.is_in_place());
        let lock = lock.renewed(&places, workspace).unwrap();
        assert!(places.spare_lock.exists() && lock.is_in_place());

        fs::remove_file(&base.state).unwrap();
        let lock = lock.renewed(&places, workspace).unwrap();
        assert!(lock.is_in_place() && places.lock.exists());
        assert!(!places.spare_lock.exists());
        let error = Lock::of(&places, workspace).unwrap_err();
        assert_eq!(error.exit_code(), 1);
    }
}
