//! What the watcher covers: the places without events, and those whose reads may
//! hang.

use std::fs::Metadata;
use std::io;
use std::path::PathBuf;

use touchmark_proto::RelPath;
use touchmark_proto::daemon::Degraded;

use super::Watcher;
use crate::links::absolute;

impl Watcher {
    /// Returns how many directories are watched, including the root and
    /// excluding the fence's directory.
    pub fn watched(&self) -> usize {
        self.directories.watched()
    }

    /// Returns the backend's name, for `status`.
    pub fn backend(&self) -> &'static str {
        self.directories.backend.name()
    }

    /// Returns the places whose changes are not all reported, with the causes
    /// (LOSS-2).
    pub fn degraded(&self) -> Vec<Degraded> {
        let mut list = self.directories.degraded();
        if let Some(cause) = &self.fence_broken {
            list.push(Degraded {
                path: None,
                cause: format!("no fence: {cause}"),
            });
        }
        list.extend(self.hard_links.failed().map(|(path, cause)| Degraded {
            path: Some(path.clone()),
            cause: cause.to_owned(),
        }));
        list
    }

    /// Returns whether changes of `path` may come without an event, so that it
    /// must be read for each query (LOSS-2).
    pub fn blind(&self, path: &RelPath) -> bool {
        if self.slow_place(path).is_some() {
            return true;
        }
        let entries = self.cover.entries_of(path);
        self.directories.blind(path).is_some()
            || entries.iter().any(|entry| {
                self.directories.blind(entry).is_some() || self.hard_links.has_failed(entry)
            })
    }

    /// Returns the place because of which reading `path` may hang: a remote
    /// file system that contains it, also through a link. It is the workspace
    /// itself if that is on a remote file system.
    pub fn slow_place(&self, path: &RelPath) -> Option<PathBuf> {
        if self.directories.root_is_silent() {
            return Some(self.root.clone());
        }
        let remote = |entry| Some(self.directories.remote(entry)?.0.clone());
        remote(path).or_else(|| self.cover.entries_of(path).iter().find_map(remote))
    }

    /// Returns the mount point of the file system that contains `path`, without
    /// resolving links. A slow read of `path` suggests that other files of that
    /// mount are slow too.
    pub fn mount_of(&self, path: &RelPath) -> PathBuf {
        let mount = self.mounts.of(&absolute(&self.root, path));
        mount.unwrap_or(&self.root).to_path_buf()
    }

    /// Returns the stat of a name without following it, or `WouldBlock` if the
    /// call may hang.
    pub(super) fn look(&self, path: &RelPath) -> io::Result<Metadata> {
        match self.directories.remote(path) {
            Some(_) => Err(io::ErrorKind::WouldBlock.into()),
            None => absolute(&self.root, path).symlink_metadata(),
        }
    }

    /// Returns whether a name exists. It is treated as existing if the check
    /// may hang.
    pub(super) fn is_there(&self, path: &RelPath) -> bool {
        match self.look(path) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}
