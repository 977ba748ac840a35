//! Files with several names. Each is watched separately, since it can be
//! written by a name in a directory that is not watched (SYNC-4).

use std::collections::HashMap;
use std::path::Path;

use touchmark_proto::RelPath;

use super::backend::{Backend, Refused};
use crate::links::absolute;
use crate::system::stat::MetadataExt as _;

/// The watched names of files with several links.
///
/// The names of one file share the system's one watch, which reports only one
/// of them. So an event of one name is reported for all. If an inode number has
/// become another file's, the only result is an unnecessary look (ATTR-15).
#[derive(Default)]
pub(super) struct HardLinks {
    names: HashMap<RelPath, (u64, u64)>,
    files: HashMap<(u64, u64), Vec<RelPath>>,
    failed: HashMap<RelPath, String>,
    /// Names that [`take_renewed`](Self::take_renewed) returns next.
    renewed: Vec<RelPath>,
}

impl HardLinks {
    /// Watches the file now at `path`, unless that same file is watched
    /// already. Returns whether the watch is new.
    pub(super) fn watch(&mut self, path: &RelPath, root: &Path, backend: &mut dyn Backend) -> bool {
        let place = absolute(root, path);
        let Ok(metadata) = place.symlink_metadata() else {
            return false;
        };
        let identity = (metadata.dev(), metadata.ino());
        if !metadata.is_file() || self.names.get(path) == Some(&identity) {
            return false;
        }
        self.forget(path, root, backend);
        match backend.watch(&[place]).into_iter().next() {
            Some(Ok(())) => {
                self.failed.remove(path);
                self.names.insert(path.clone(), identity);
                self.files.entry(identity).or_default().push(path.clone());
                true
            }
            Some(Err(Refused::Because(cause))) => {
                self.failed.insert(path.clone(), cause);
                false
            }
            Some(Err(Refused::Absent)) | None => false,
        }
    }

    /// Returns whether the file named `path` is watched separately.
    pub(super) fn has(&self, path: &RelPath) -> bool {
        self.names.contains_key(path)
    }

    /// Returns every watched name of the file named `path`, including `path`.
    pub(super) fn names_of(&self, path: &RelPath) -> &[RelPath] {
        self.names
            .get(path)
            .and_then(|identity| self.files.get(identity))
            .map_or(&[], Vec::as_slice)
    }

    /// Ends the watch of the file that was named `path`.
    pub(super) fn drop_at(&mut self, path: &RelPath, root: &Path, backend: &mut dyn Backend) {
        self.failed.remove(path);
        if self.names.contains_key(path) {
            self.forget(path, root, backend);
        }
    }

    fn forget(&mut self, path: &RelPath, root: &Path, backend: &mut dyn Backend) {
        let Some(identity) = self.names.remove(path) else {
            return;
        };
        backend.unwatch(&[absolute(root, path)]);
        let Some(names) = self.files.get_mut(&identity) else {
            return;
        };
        names.retain(|name| name != path);
        if names.is_empty() {
            self.files.remove(&identity);
        } else if !backend.counts_names() {
            // The one watch that the names shared may have ended with this name
            // (FILE-3).
            let places: Vec<_> = names.iter().map(|name| absolute(root, name)).collect();
            let _gone_by_now = backend.watch(&places[..1]);
            self.renewed.extend(names.iter().cloned());
        }
    }

    /// Removes and returns the names whose watch was renewed since the last
    /// call, so that events may have been missed.
    pub(super) fn take_renewed(&mut self) -> Vec<RelPath> {
        std::mem::take(&mut self.renewed)
    }

    /// Removes all watches from the record, since the backend was replaced.
    /// Returns their names.
    pub(super) fn clear(&mut self) -> Vec<RelPath> {
        let mut names: Vec<_> = self.names.drain().map(|(name, _)| name).collect();
        names.extend(self.failed.drain().map(|(name, _)| name));
        self.files.clear();
        names
    }

    /// Returns the names that could not be watched.
    pub(super) fn failed_names(&self) -> Vec<RelPath> {
        self.failed.keys().cloned().collect()
    }

    pub(super) fn has_failed(&self, path: &RelPath) -> bool {
        self.failed.contains_key(path)
    }

    pub(super) fn failed(&self) -> impl Iterator<Item = (&RelPath, &str)> {
        self.failed
            .iter()
            .map(|(path, cause)| (path, cause.as_str()))
    }
}
