//! Identities, and the paths of directories below the roots.

use std::collections::HashMap;
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Statx, StatxFlags, StatxTimestamp, open, openat, readlinkat, statx,
};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::marks::{Before, Identity, ProcessId};
use crate::mounts;

/// How long a directory's path is remembered. Another process may rename it.
const REMEMBERED: Duration = Duration::from_millis(50);

/// How long no path is remembered after the tree may have renamed a directory.
const SUSPENDED: Duration = Duration::from_millis(200);

const O_DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Returns what `statx` says, with birth time and mount.
pub(crate) fn look(directory: BorrowedFd<'_>, name: &[u8], flags: AtFlags) -> Result<Statx, Errno> {
    let wanted = StatxFlags::TYPE
        | StatxFlags::MODE
        | StatxFlags::INO
        | StatxFlags::NLINK
        | StatxFlags::SIZE
        | StatxFlags::MTIME
        | StatxFlags::CTIME
        | StatxFlags::BTIME
        | StatxFlags::MNT_ID;
    statx(directory, name, flags | AtFlags::NO_AUTOMOUNT, wanted)
}

/// Returns the device that a file or directory is on, as in [`Identity`].
///
/// # Errors
/// The system's.
pub fn device(path: &Path) -> std::io::Result<u64> {
    let stat = look(CWD, path.as_os_str().as_bytes(), AtFlags::empty())?;
    Ok(identity(&stat).device)
}

/// Returns what `statx` says about an open file.
pub(crate) fn look_at(file: BorrowedFd<'_>) -> Result<Statx, Errno> {
    look(file, b"", AtFlags::EMPTY_PATH)
}

/// Returns the identity in a result of `statx`.
pub(crate) fn identity(stat: &Statx) -> Identity {
    let has_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    let born = nanoseconds(stat.stx_btime);
    Identity {
        device: u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor),
        inode: stat.stx_ino,
        born: if has_birth { born } else { 0 },
        mode: stat.stx_mode,
    }
}

/// Returns the content of a regular file, of which nothing is stored.
pub(crate) fn before(stat: &Statx) -> Option<Before> {
    (kind(stat.stx_mode) == libc::S_IFREG).then(|| Before {
        size: stat.stx_size,
        changed: nanoseconds(stat.stx_ctime),
        modified: nanoseconds(stat.stx_mtime),
        stored: None,
    })
}

fn nanoseconds(time: StatxTimestamp) -> u64 {
    time.tv_sec.max(0) as u64 * 1_000_000_000 + u64::from(time.tv_nsec)
}

/// Returns whether a file has other names: hard links.
pub(crate) fn has_other_names(stat: &Statx) -> bool {
    stat.stx_nlink > 1 && kind(stat.stx_mode) == libc::S_IFREG
}

/// Returns the type in a mode.
pub(crate) fn kind(mode: u16) -> u32 {
    u32::from(mode) & libc::S_IFMT
}

/// Returns a clock's time, in nanoseconds.
pub(crate) fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A directory's identity and the mount that it is seen through.
pub(crate) type Key = (Identity, u64);

pub(crate) fn key(stat: &Statx) -> Key {
    (identity(stat), stat.stx_mnt_id)
}

impl Where {
    /// Returns whether it may be below a root, and the path; empty if unknown.
    pub(crate) fn parts(self) -> (bool, Vec<u8>) {
        match self {
            Self::Inside(path) => (true, path),
            Self::Outside(path) => (false, path),
            Self::Unknown => (true, Vec::new()),
        }
    }
}

/// A process, the descriptor that a path begins at, and the text before its last
/// name.
pub(crate) type Way = (ProcessId, i32, Vec<u8>);

/// Where a directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Where {
    /// Below a root, or a root itself: its path.
    Inside(Vec<u8>),
    /// Elsewhere: its path.
    Outside(Vec<u8>),
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
    /// Where ways led that have no magic link, and when that was seen.
    ways: HashMap<Way, (Key, Instant)>,
    moves: u64,
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
            ways: HashMap::new(),
            moves: 0,
            suspended: None,
            descriptors: None,
        }
    }

    /// Forgets all paths.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.ways.clear();
        self.descriptors = None;
    }

    /// Remembers no path for a while if the tree has renamed or removed another
    /// directory, or is about to. `moves` is how many.
    pub(crate) fn note_moves(&mut self, moves: u64) {
        if self.moves != moves {
            self.moves = moves;
            self.known.clear();
            self.ways.clear();
            self.suspended = Some(Instant::now());
        }
    }

    /// Returns where this way led a moment ago.
    pub(crate) fn led(&self, way: &Way) -> Option<Key> {
        let (key, seen) = self.ways.get(way)?;
        (seen.elapsed() < REMEMBERED).then_some(*key)
    }

    /// Remembers where a way leads that has no magic link.
    pub(crate) fn leads(&mut self, way: Way, stat: &Statx) {
        let is_suspended = { self.suspended }.is_some_and(|at| at.elapsed() < SUSPENDED);
        if is_suspended || self.proc_device == Some(identity(stat).device) {
            return;
        }
        if self.ways.len() >= 1024 {
            self.ways.clear();
        }
        self.ways.insert(way, (key(stat), Instant::now()));
    }

    /// Returns whether a path is a root or below one.
    pub(crate) fn is_inside(&self, path: &[u8]) -> bool {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Returns where a directory is if that was found a moment ago.
    pub(crate) fn known(&self, key: &Key) -> Option<Where> {
        let (place, seen) = self.known.get(key)?;
        (seen.elapsed() < REMEMBERED).then(|| place.clone())
    }

    /// Returns where a directory is. `caller` is the directory
    /// of a process whose mounts may be others than this one's.
    pub(crate) fn find(
        &mut self,
        directory: BorrowedFd<'_>,
        stat: &Statx,
        caller: Option<BorrowedFd<'_>>,
    ) -> Where {
        let key = key(stat);
        if let Some(place) = self.known(&key) {
            return place;
        }
        let now = Instant::now();
        let place = self.locate(directory, stat, caller);
        if self.known.len() >= 1024 {
            self.known.clear();
        }
        let is_suspended = { self.suspended }.is_some_and(|at| now.duration_since(at) < SUSPENDED);
        if !is_suspended {
            self.known.insert(key, (place.clone(), now));
        }
        place
    }

    fn locate(
        &mut self,
        directory: BorrowedFd<'_>,
        stat: &Statx,
        caller: Option<BorrowedFd<'_>>,
    ) -> Where {
        let Ok(path) = self.path(directory) else {
            return Where::Unknown;
        };
        let decide = |path: Vec<u8>| match self.is_inside(&path) {
            true => Where::Inside(path),
            false => Where::Outside(path),
        };
        if path.ends_with(b" (deleted)") && is_gone(directory, &path) {
            return Where::Outside(path);
        }
        let Some(caller) = caller else {
            return decide(path);
        };
        // The same path may be another directory here.
        let same = |path: &[u8]| {
            let here = look(CWD, path, AtFlags::empty());
            here.is_ok_and(|here| identity(&here) == identity(stat))
        };
        if same(&path) {
            return decide(path);
        }
        let read = |directory, name| {
            let file = openat(
                directory,
                name,
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            );
            let mut text = Vec::new();
            let _part = file.map(|file| std::fs::File::from(file).read_to_end(&mut text));
            text
        };
        let (theirs, own) = (read(caller, "mountinfo"), read(CWD, "/proc/self/mountinfo"));
        let path = Path::new(std::ffi::OsStr::from_bytes(&path));
        let paths = mounts::translate(&theirs, &own, stat.stx_mnt_id, path);
        let paths = paths.iter().map(|path| mounts::bytes(path).to_vec());
        // One directory may have several paths; one below a root counts.
        let mut paths: Vec<_> = paths.filter(|path| same(path)).collect();
        paths.sort_by_key(|path| !self.is_inside(path));
        paths.into_iter().next().map_or(Where::Unknown, decide)
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
