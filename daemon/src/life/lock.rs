//! One daemon per workspace (SEC-1, LIFE-1).

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use touchmark_proto::native;

use crate::Error;
use crate::system::open;
use crate::system::stat::MetadataExt as _;

/// The lock of a workspace, held until dropped. Whoever holds it may touch
/// the socket, the state and the log. The file goes with the lock.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Takes the lock and writes the pid and the workspace's path into it.
    ///
    /// # Errors
    /// [`Error::AlreadyRunning`] with the holder's pid; `socket` is named
    /// there as the holder's address.
    pub fn take(path: &Path, socket: &Path, workspace: &Path) -> Result<Self, Error> {
        let failed = |action| Error::io(action, path);
        loop {
            let mut file = open::private_itself()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(path)
                .map_err(failed("open the lock"))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::AlreadyRunning {
                        socket: socket.to_owned(),
                        pid: holder(&mut file),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(failed("lock")(error)),
            }
            // The last holder may have removed the file between our opening
            // and locking it; then the lock is of a file that nobody sees.
            if !same_file(&file, path) {
                continue;
            }
            let mut text = format!("{}\n", std::process::id()).into_bytes();
            text.extend_from_slice(&native::bytes(workspace));
            text.push(b'\n');
            file.set_len(0)
                .and_then(|()| file.seek(SeekFrom::Start(0)))
                .and_then(|_| file.write_all(&text))
                .map_err(failed("write the lock"))?;
            return Ok(Self {
                path: path.to_owned(),
                file,
            });
        }
    }

    /// Whether the lock's name still leads to the lock. If not, another
    /// daemon may start beside this one.
    pub fn is_in_place(&self) -> bool {
        same_file(&self.file, &self.path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while still locked, so that nobody's new lock is hit.
        if self.is_in_place() {
            let _gone_already = fs::remove_file(&self.path);
        }
    }
}

fn same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// The pid in a lock file that somebody else holds.
fn holder(file: &mut File) -> u32 {
    let mut text = String::new();
    let _unreadable = file.take(16).read_to_string(&mut text);
    text.lines()
        .next()
        .and_then(|pid| pid.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_second_starter_is_told_of_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.lock");
        let socket = directory.path().join("k.sock");
        let first = Lock::take(&path, &socket, Path::new("/w")).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{}\n/w\n", std::process::id()));

        let error = Lock::take(&path, &socket, Path::new("/w")).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        let text = error.to_string();
        assert!(text.contains(socket.to_str().unwrap()), "{text}");
        assert!(
            text.contains(&format!("pid {}", std::process::id())),
            "{text}"
        );

        drop(first);
        assert!(!path.exists());
        Lock::take(&path, &socket, Path::new("/w")).unwrap();
    }

    #[test]
    fn a_lock_left_by_a_dead_daemon_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.lock");
        fs::write(&path, "999999999\n/a/very/long/path/of/another/workspace\n").unwrap();
        let lock = Lock::take(&path, Path::new("/s"), Path::new("/w")).unwrap();
        assert!(lock.is_in_place());
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            format!("{}\n/w\n", std::process::id())
        );
    }

    #[test]
    fn somebody_elses_lock_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.lock");
        let lock = Lock::take(&path, Path::new("/s"), Path::new("/w")).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "new").unwrap();
        assert!(!lock.is_in_place());
        drop(lock);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }
}
