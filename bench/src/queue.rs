//! A separate inotify queue. It shows the least cost of watching, and which
//! files are created in a directory.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::{Context as _, Result};
use rustix::fs::inotify;
use rustix::io::Errno;

#[derive(Debug)]
pub(crate) struct Queue(OwnedFd);

impl Queue {
    /// Returns a queue of the writes in some directories.
    pub(crate) fn of_writes<'a>(directories: impl IntoIterator<Item = &'a Path>) -> Result<Self> {
        let flags = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CLOSE_WRITE;
        Self::new(directories, flags)
    }

    /// Returns a queue of the files created in some directories.
    pub(crate) fn of_new_names<'a>(
        directories: impl IntoIterator<Item = &'a Path>,
    ) -> Result<Self> {
        let flags = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
        Self::new(directories, flags)
    }

    fn new<'a>(
        directories: impl IntoIterator<Item = &'a Path>,
        flags: inotify::WatchFlags,
    ) -> Result<Self> {
        let queue = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)
            .context("no inotify instance")?;
        for directory in directories {
            inotify::add_watch(&queue, directory, flags).context("no inotify watch")?;
        }
        Ok(Self(queue))
    }

    /// Drains the queue and returns the number of events.
    pub(crate) fn drain(&self) -> Result<usize> {
        let mut bytes = [MaybeUninit::uninit(); 1 << 16];
        let mut reader = inotify::Reader::new(&self.0, &mut bytes);
        let mut events = 0;
        loop {
            match reader.next() {
                Ok(_) => events += 1,
                Err(Errno::AGAIN) => return Ok(events),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("the inotify queue cannot be read"),
            }
        }
    }
}
