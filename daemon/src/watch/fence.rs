//! Pending fences. Where the backend cannot make one itself, a fence is a
//! rename in a private directory, which the same queue reports as the
//! workspace. When its event arrives, everything earlier has arrived (SYNC-2).

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::system::open::private_directory;

pub(super) struct Fence {
    dir: PathBuf,
    /// The number in the name of the directory's one entry.
    current: u64,
    /// Fences that were made and not reached, in order, with the engine's
    /// number; `None` for the watcher's own.
    waiting: VecDeque<(u64, Option<u64>)>,
}

impl Fence {
    /// Creates the record of fences. `dir` belongs to this daemon alone; it is
    /// not created yet.
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_path_buf(),
            current: 0,
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates the directory and its one entry, if they do not exist, and
    /// removes the files of an earlier daemon.
    pub(super) fn prepare(&self) -> io::Result<()> {
        match private_directory().create(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        for entry in self.dir.read_dir()? {
            let path = entry?.path();
            if Self::number(&path).is_some_and(|number| number != self.current) {
                let _ = std::fs::remove_file(path);
            }
        }
        File::create(self.entry(self.current)).map(drop)
    }

    /// Returns whether the directory's entry has the name that it was given
    /// last.
    pub(super) fn is_there(&self) -> bool {
        self.entry(self.current).exists()
    }

    fn entry(&self, number: u64) -> PathBuf {
        self.dir.join(format!("fence-{number}"))
    }

    /// Makes a fence. It is a rename, since that works where no inode is left
    /// for a new file.
    pub(super) fn make(&mut self, asked: Option<u64>) -> io::Result<()> {
        std::fs::rename(self.entry(self.current), self.entry(self.current + 1))?;
        self.next(asked);
        Ok(())
    }

    /// Adds a pending fence, which the backend makes. Returns its number.
    pub(super) fn next(&mut self, asked: Option<u64>) -> u64 {
        self.current += 1;
        self.waiting.push_back((self.current, asked));
        self.current
    }

    /// Returns whether a fence was made and not reached.
    pub(super) fn is_pending(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the number of the fence in an entry's name.
    pub(super) fn number(path: &Path) -> Option<u64> {
        let name = path.file_name()?.to_str()?.strip_prefix("fence-")?;
        name.parse().ok()
    }

    /// Removes every fence up to this one. Returns the engine's numbers of
    /// them, in order.
    pub(super) fn reached(&mut self, number: u64) -> Vec<u64> {
        let count = self
            .waiting
            .iter()
            .take_while(|(made, _)| *made <= number)
            .count();
        self.waiting
            .drain(..count)
            .filter_map(|(_, asked)| asked)
            .collect()
    }

    /// Removes every pending fence. Returns the engine's numbers of them, in
    /// order.
    pub(super) fn take_waiting(&mut self) -> Vec<u64> {
        self.waiting
            .drain(..)
            .filter_map(|(_, asked)| asked)
            .collect()
    }
}
