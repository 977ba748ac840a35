//! Fences that have not been reached; and, where the backend cannot be asked
//! for one, how they are made: by a rename in a private directory, watched by
//! the same queue as the workspace. When its event arrives, everything earlier
//! has (SYNC-2).

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::system::open::private_directory;

pub(super) struct Fence {
    dir: PathBuf,
    /// The number that the one entry bears as its name.
    current: u64,
    /// Made and not yet seen, in order, with the engine's number; `None`
    /// where the watcher asked for itself.
    waiting: VecDeque<(u64, Option<u64>)>,
}

impl Fence {
    /// `dir` belongs to this daemon alone. Nothing is made yet.
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

    /// Makes the directory and its one entry, if they are not there, and
    /// removes what an earlier daemon left.
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

    /// Whether the entry is where it was put last.
    pub(super) fn is_there(&self) -> bool {
        self.entry(self.current).exists()
    }

    fn entry(&self, number: u64) -> PathBuf {
        self.dir.join(format!("fence-{number}"))
    }

    /// Makes a fence. A rename, since that works where no inode is left for a
    /// creation.
    pub(super) fn make(&mut self, asked: Option<u64>) -> io::Result<()> {
        std::fs::rename(self.entry(self.current), self.entry(self.current + 1))?;
        self.next(asked);
        Ok(())
    }

    /// The number of a fence that the backend makes.
    pub(super) fn next(&mut self, asked: Option<u64>) -> u64 {
        self.current += 1;
        self.waiting.push_back((self.current, asked));
        self.current
    }

    /// The fence that an entry's name stands for.
    pub(super) fn number(path: &Path) -> Option<u64> {
        let name = path.file_name()?.to_str()?.strip_prefix("fence-")?;
        name.parse().ok()
    }

    /// The engine's numbers of every fence that has been reached with this
    /// one, in order.
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

    /// Gives up every fence not yet seen; the engine's numbers, in order.
    pub(super) fn take_waiting(&mut self) -> Vec<u64> {
        self.waiting
            .drain(..)
            .filter_map(|(_, asked)| asked)
            .collect()
    }
}
