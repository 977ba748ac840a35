//! The listening socket. It is bound under the workspace's lock and removed at
//! the end.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use interprocess::os::unix::uds_local_socket::tokio::Listener as UdsListener;

use super::Stream;
use crate::Error;

#[cfg_attr(not(target_os = "linux"), path = "listener/local/unix.rs")]
mod local;

pub use local::MAX_PATH;

/// A socket on which the service manager listens.
pub type Passed = std::os::unix::net::UnixListener;

/// A listening socket with mode 0600. When it is dropped it removes its name,
/// if the name still refers to it and the socket was not passed.
#[derive(Debug)]
pub struct Listener {
    inner: UdsListener,
    path: PathBuf,
    /// The device and inode, which distinguish this socket from another one of
    /// that name; `None` if it had lost its name already.
    identity: Option<(u64, u64)>,
    /// Whether the service manager passed the socket. It listens too, and keeps
    /// the socket when the daemon ends.
    passed: bool,
}

impl Listener {
    /// Binds the socket. A socket that a killed daemon left under the name is
    /// removed, so the caller must hold the workspace's
    /// [`Lock`](crate::life::Lock).
    ///
    /// # Errors
    /// If the path is too long, names something that is no socket, or names a
    /// socket on which a process listens; or if the system refuses.
    pub fn bind(path: &Path) -> Result<Self, Error> {
        if path.as_os_str().len() > MAX_PATH {
            return Err(Error::SocketPath {
                path: path.to_owned(),
                limit: MAX_PATH,
            });
        }
        remove_stale(path)?;
        let inner = local::listen(path).map_err(Error::io("listen", path))?;
        let identity = identity(path).map_err(Error::io("find the socket just bound", path))?;
        Ok(Self {
            inner,
            path: path.to_owned(),
            identity: Some(identity),
            passed: false,
        })
    }

    /// Uses a socket on which the service manager listens. Its name stays the
    /// manager's.
    ///
    /// # Errors
    /// [`Error::PassedSocket`] if it is bound to another path.
    pub fn adopt(passed: Passed, path: &Path) -> Result<Self, Error> {
        let address = passed
            .local_addr()
            .map_err(Error::io("look at the passed socket", path))?;
        let bound = address.as_pathname().unwrap_or(Path::new(""));
        let same = || matches!((identity(bound), identity(path)), (Ok(a), Ok(b)) if a == b);
        if bound != path && !same() {
            return Err(Error::PassedSocket {
                passed: bound.to_owned(),
                wanted: path.to_owned(),
            });
        }
        let inner =
            UdsListener::try_from(OwnedFd::from(passed)).map_err(Error::io("listen", path))?;
        Ok(Self {
            inner,
            path: path.to_owned(),
            identity: identity(path).ok(),
            passed: true,
        })
    }

    /// Returns the path to which the socket is bound.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the service manager passed the socket, and so starts the
    /// daemon again when a client connects.
    pub fn is_passed(&self) -> bool {
        self.passed
    }

    /// Returns whether its name still refers to it (LIFE-2).
    pub fn is_in_place(&self) -> bool {
        identity(&self.path).is_ok_and(|there| Some(there) == self.identity)
    }

    /// Returns whether another process listens under its name: the service
    /// manager may have begun to.
    pub fn is_taken_over(&self) -> bool {
        !self.is_in_place() && local::is_listened_on(&self.path)
    }

    /// Returns the connections that are already waiting, which would end with
    /// the socket.
    pub fn waiting(&self) -> Vec<Stream> {
        let next = || Stream::from_std(local::accept_waiting(&self.inner)?);
        std::iter::from_fn(|| next().ok()).collect()
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// The system's error, for example if too many descriptors are open.
    pub async fn accept(&self) -> io::Result<Stream> {
        let (stream, _unnamed) = self.inner.inner().accept().await?;
        Ok(stream)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if !self.passed && self.is_in_place() {
            let _gone_already = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn remove_stale(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("look at the socket", path)(error)),
        // A process without the lock can be the service manager, for a daemon
        // that it is about to start.
        Ok(found) if found.file_type().is_socket() && local::is_listened_on(path) => {
            Err(Error::SocketTaken {
                socket: path.to_owned(),
            })
        }
        Ok(found) if found.file_type().is_socket() => {
            fs::remove_file(path).map_err(Error::io("remove the stale socket", path))
        }
        Ok(_) => Err(Error::Untrusted {
            path: path.to_owned(),
            reason: "in the socket's place, and no socket".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn bound_for_the_owner_alone_and_removed_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.sock");
        let listener = Listener::bind(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert!(listener.is_in_place());
        drop(listener);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_stale_socket_gives_way_and_a_file_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(Listener::bind(&path).unwrap());
        fs::write(&path, "mine").unwrap();
        assert!(matches!(
            Listener::bind(&path),
            Err(Error::Untrusted { .. })
        ));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[tokio::test]
    async fn anothers_socket_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.sock");
        let listener = Listener::bind(&path).unwrap();
        // The socket is renamed and not removed: an inode that is still in use
        // is not given to the next file.
        fs::rename(&path, directory.path().join("moved")).unwrap();
        assert!(!listener.is_in_place());
        let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(!listener.is_in_place());
        drop(listener);
        assert!(path.exists());
    }

    #[tokio::test]
    async fn those_who_wait_are_not_lost() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.sock");
        let listener = Listener::bind(&path).unwrap();
        assert!(listener.waiting().is_empty());
        let _clients = [(); 3].map(|()| std::os::unix::net::UnixStream::connect(&path).unwrap());
        assert_eq!(listener.waiting().len(), 3);
        assert!(listener.waiting().is_empty());
    }

    #[tokio::test]
    async fn a_passed_socket_is_served_and_keeps_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.sock");
        let passed = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let listener = Listener::adopt(passed.try_clone().unwrap(), &path).unwrap();
        assert!(listener.is_in_place());
        let _client = std::os::unix::net::UnixStream::connect(&path).unwrap();
        listener.accept().await.unwrap();
        drop(listener);
        assert!(path.exists());
        let elsewhere = directory.path().join("other.sock");
        let error = Listener::adopt(passed, &elsewhere).unwrap_err();
        assert!(matches!(error, Error::PassedSocket { .. }), "{error}");
        // The same file by another name is the same socket.
        fs::hard_link(&path, &elsewhere).unwrap();
        let passed = std::os::unix::net::UnixListener::bind(directory.path().join("x")).unwrap();
        assert!(Listener::adopt(passed, &elsewhere).is_err());
    }

    #[tokio::test]
    async fn a_name_taken_over_is_told_from_one_that_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.sock");
        let listener = Listener::bind(&path).unwrap();
        assert!(!listener.is_taken_over());
        fs::rename(&path, directory.path().join("moved")).unwrap();
        assert!(!listener.is_taken_over(), "gone");
        let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(listener.is_taken_over());
        let error = Listener::bind(&path).unwrap_err();
        assert!(matches!(error, Error::SocketTaken { .. }), "{error}");
        assert_eq!(error.exit_code(), 1);
        drop(other);
        assert!(!listener.is_taken_over(), "nobody listens");
        drop(listener);
        assert!(path.exists(), "it is not this one's to remove");
    }

    #[tokio::test]
    async fn a_long_path_is_refused_with_the_limit() {
        let path = Path::new("/").join("x".repeat(MAX_PATH));
        let error = Listener::bind(&path).unwrap_err();
        assert!(error.to_string().ends_with("at most 107 bytes"), "{error}");
    }
}
