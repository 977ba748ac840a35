//! Identities, and the paths of directories below the roots.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags, open, openat, readlinkat, statx};
use rustix::io::Errno;

use crate::marks::Identity;

/// How long a directory's path is remembered. Somebody may rename it.
const REMEMBERED: Duration = Duration::from_millis(50);

/// How long no path is remembered after the tree may have renamed a directory.
const SUSPENDED: Duration = Duration::from_secs(1);

const O_DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Returns what `statx` says, with birth time and mount.
pub(crate) fn look(
    directory: BorrowedFd<'_>,
    name: &[u8],
    flags: AtFlags,
) -> Result<Statx, Errno> {
    let wanted = StatxFlags::TYPE
        | StatxFlags::MODE
        | StatxFlags::INO
        | StatxFlags::BTIME
        | StatxFlags::MNT_ID;
    statx(directory, name, flags | AtFlags::NO_AUTOMOUNT, wanted)
}

/// Returns what `statx` says about an open file.
pub(crate) fn look_at(file: BorrowedFd<'_>) -> Result<Statx, Errno> {
    look(file, b"", AtFlags::EMPTY_PATH)
}

/// Returns the identity in a result of `statx`.
pub(crate) fn identity(stat: &Statx) -> Identity {
    let has_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    let born = stat.stx_btime.tv_sec.max(0) as u64 * 1_000_000_000;
    let born = born + u64::from(stat.stx_btime.tv_nsec);
    Identity {
        device: u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor),
        inode: stat.stx_ino,
        born: if has_birth { born } else { 0 },
        mode: stat.stx_mode,
    }
}

/// Returns the type in a mode.
pub(crate) fn kind(mode: u16) -> u32 {
    u32::from(mode) & libc::S_IFMT
}

/// A directory's identity and the mount that it is seen through.
type Key = (u64, u64, u64);

pub(crate) fn key(stat: &Statx) -> Key {
    let identity = identity(stat);
    (identity.device, identity.inode, stat.stx_mnt_id)
}

/// Where a directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Where {
    /// Below a root, or a root itself: its path.
    Inside(Vec<u8>),
    /// Elsewhere.
    Outside,
    /// In a mount that this process does not see. It may be below a root.
    Unknown,
}

/// The roots, and the paths of directories that were seen last.
#[derive(Debug)]
pub(crate) struct Places {
    roots: Vec<PathBuf>,
    /// The supervisor's own root directory.
    pub(crate) own_root: Option<Key>,
    /// The device of `/proc`.
    pub(crate) proc_device: Option<u64>,
    known: HashMap<Key, (Where, Instant)>,
    suspended: Option<Instant>,
    descriptors: Option<OwnedFd>,
}

impl Places {
    pub(crate) fn new(roots: Vec<PathBuf>) -> Self {
        let flags = AtFlags::empty();
        Self {
            roots,
            own_root: look(CWD, b"/", flags).ok().map(|stat| key(&stat)),
            proc_device: { look(CWD, b"/proc", flags).ok() }.map(|stat| identity(&stat).device),
            known: HashMap::new(),
            suspended: None,
            descriptors: None,
        }
    }

    /// Forgets all paths.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.descriptors = None;
    }

    /// Remembers no path for a while: a directory is about to be renamed.
    pub(crate) fn suspend(&mut self) {
        self.known.clear();
        self.suspended = Some(Instant::now());
    }

    /// Returns whether a path is a root or below one.
    pub(crate) fn is_inside(&self, path: &[u8]) -> bool {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Returns where a directory is. `may_differ` says that the caller's view
    /// of the file system may be another one than this process's.
    pub(crate) fn find(
        &mut self,
        directory: BorrowedFd<'_>,
        stat: &Statx,
        may_differ: bool,
    ) -> Where {
        let now = Instant::now();
        let key = key(stat);
        if let Some((place, seen)) = self.known.get(&key) {
            if now.duration_since(*seen) < REMEMBERED {
                return place.clone();
            }
        }
        let place = self.locate(directory, stat, may_differ);
        if self.known.len() >= 1024 {
            self.known.clear();
        }
        let is_suspended = { self.suspended }.is_some_and(|at| now.duration_since(at) < SUSPENDED);
        if !is_suspended {
            self.known.insert(key, (place.clone(), now));
        }
        place
    }

    fn locate(&mut self, directory: BorrowedFd<'_>, stat: &Statx, may_differ: bool) -> Where {
        let Ok(path) = self.path(directory) else {
            return Where::Unknown;
        };
        let decide = |path: Vec<u8>| match self.is_inside(&path) {
            true => Where::Inside(path),
            false => Where::Outside,
        };
        if path.ends_with(b" (deleted)") && is_gone(directory, &path) {
            return Where::Outside;
        }
        if !may_differ {
            return decide(path);
        }
        // The same path may be another directory here.
        let same = |path: &[u8]| {
            let here = look(CWD, path, AtFlags::empty());
            here.is_ok_and(|here| identity(&here) == identity(stat))
        };
        if same(&path) {
            return decide(path);
        }
        match self.climb(directory, &path) {
            Some(path) if same(&path) => Where::Inside(path),
            _ => Where::Unknown,
        }
    }

    /// Returns the path of an open file or directory, as the kernel tells it.
    pub(crate) fn path(&mut self, file: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
        if self.descriptors.is_none() {
            self.descriptors = Some(open("/proc/self/fd", O_DIRECTORY, Mode::empty())?);
        }
        let Some(descriptors) = self.descriptors.as_ref() else {
            return Err(Errno::BADF);
        };
        let name = file.as_raw_fd().to_string();
        let path = readlinkat(descriptors, name, Vec::new())?;
        Ok(path.into_bytes())
    }

    /// Looks for a root among the directories above, by identity; the names
    /// below it are those at the end of the path.
    fn climb(&self, directory: BorrowedFd<'_>, path: &[u8]) -> Option<Vec<u8>> {
        let roots = self.roots.iter().filter_map(|root| {
            let stat = look(CWD, root.as_os_str().as_bytes(), AtFlags::empty()).ok()?;
            Some((root, identity(&stat)))
        });
        let roots: Vec<_> = roots.collect();
        let names: Vec<&[u8]> = { path.split(|byte| *byte == b'/') }
            .filter(|name| !name.is_empty())
            .collect();
        let mut above = openat(directory, ".", O_DIRECTORY, Mode::empty()).ok()?;
        for steps in 0..=names.len() {
            let here = identity(&look_at(above.as_fd()).ok()?);
            if let Some((root, _)) = roots.iter().find(|(_, root)| *root == here) {
                let mut path: PathBuf = root.to_path_buf();
                for name in &names[names.len() - steps..] {
                    path.push(std::ffi::OsStr::from_bytes(name));
                }
                return Some(path.into_os_string().into_vec());
            }
            above = openat(&above, "..", O_DIRECTORY, Mode::empty()).ok()?;
        }
        None
    }
}

/// Returns whether a directory was removed; another one may have such a name.
fn is_gone(directory: BorrowedFd<'_>, path: &[u8]) -> bool {
    let here = look(CWD, path, AtFlags::empty());
    let own = look_at(directory);
    match (here, own) {
        (Ok(here), Ok(own)) => identity(&here) != identity(&own),
        _ => true,
    }
}
