//! Stats relative to open directories, one after another.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Stat};
use touchmark_engine::Stamp;
use touchmark_proto::RelPath;

use super::nanoseconds;
use crate::content::beneath;
use crate::content::vouch::Vouching;
use crate::system::mounted::Mounted;
use crate::system::stat::device;

/// Stats files below a root. The directory of the last file stays open, since
/// the next files are usually in it as well.
pub(super) struct Directories<'a> {
    root: &'a Path,
    vouching: &'a Vouching,
    last: Option<(Vec<u8>, Option<Directory>)>,
}

/// An open directory and the file system that it is on.
struct Directory {
    handle: OwnedFd,
    device: u64,
    mounted: Mounted,
}

impl<'a> Directories<'a> {
    pub(super) fn of(root: &'a Path, vouching: &'a Vouching) -> Self {
        Self {
            root,
            vouching,
            last: None,
        }
    }

    fn open(&self, name: &[u8]) -> Option<Directory> {
        let handle = beneath::directory(self.root, name)?;
        let device = device(&rustix::fs::fstat(&handle).ok()?);
        let mounted = self.vouching.mounted(&handle, device);
        mounted.vouches.then_some(Directory {
            handle,
            device,
            mounted,
        })
    }

    pub(super) fn holds(&mut self, path: &RelPath, stamp: &Stamp) -> bool {
        let name = path.file_name();
        let bytes = path.as_bytes();
        let above = bytes
            .get(..bytes.len().saturating_sub(name.len() + 1))
            .unwrap_or_default();
        if self.last.as_ref().is_none_or(|(last, _)| last != above) {
            self.last = Some((above.to_vec(), self.open(above)));
        }
        let Some((_, Some(directory))) = &self.last else {
            return false;
        };
        rustix::fs::statat(&directory.handle, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                // Another name could resolve to it, which would have to be
                // watched.
                && stat.st_nlink == 1
                // A file system mounted at this name has another device.
                && device(&stat) == directory.device
                && of_stat(&stat, directory.mounted.id) == *stamp
        })
    }
}

fn of_stat(stat: &Stat, mount: u64) -> Stamp {
    Stamp {
        inode: stat.st_ino,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64),
        changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64),
        device: device(stat),
        mount,
    }
}
