//! The mounts in the workspace and above it. Mounting and unmounting change the
//! content under tracked names without any event on them (LOSS-2). The system's
//! table of mounts shows them.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};

use super::silent::remote;

const TABLE: &str = "/proc/self/mountinfo";

/// The places in a workspace where a file system is mounted.
#[derive(Debug)]
pub(super) struct Mounts {
    root: PathBuf,
    /// `None` if the system has no such table. Then only changes with events
    /// are noticed.
    table: Option<File>,
    places: Vec<PathBuf>,
    /// The mount that contains the workspace, followed by the mounts at
    /// `places`. Empty if no file can be reached through two of them.
    again: Vec<Mount>,
    /// The places of remote file systems, which may not respond, and why
    /// changes there make no events.
    remote: Vec<(PathBuf, &'static str)>,
}

impl Mounts {
    pub(super) fn new(root: &Path) -> Self {
        let mut mounts = Self {
            root: root.to_path_buf(),
            table: File::open(TABLE).ok(),
            places: Vec::new(),
            again: Vec::new(),
            remote: Vec::new(),
        };
        // The table was opened before it is read, so a change in between is
        // noticed.
        mounts.places = mounts.read();
        mounts
    }

    /// Returns the places below the root where a file system may have been
    /// mounted or unmounted since the last call; `None` if nothing changed. An
    /// identical table proves nothing: a new mount often gets the numbers of
    /// the old one.
    pub(super) fn changed(&mut self) -> Option<Vec<PathBuf>> {
        let table = self.table.as_ref()?;
        let mut polled = [PollFd::new(table, PollFlags::PRI)];
        let at_once = Timespec::default();
        let changes = poll(&mut polled, Some(&at_once)).ok()?;
        if changes == 0 && self.again.is_empty() {
            return None;
        }
        // The source of a bind mount may have been renamed, which is not
        // reported as a change of the table.
        let before = std::mem::take(&mut self.again);
        let now = self.read();
        if changes == 0 && before == self.again {
            return None;
        }
        let mut places = std::mem::replace(&mut self.places, now);
        places.extend(self.places.iter().cloned());
        // A place below another is covered by that one.
        places.sort();
        places.dedup_by(|later, earlier| later.starts_with(earlier));
        Some(places)
    }

    /// Returns whether a file system is mounted at exactly this path.
    pub(super) fn is_place(&self, path: &Path) -> bool {
        self.places.iter().any(|place| place == path)
    }

    /// Returns the place of the mount that contains a path below the root, or
    /// `None` if it is the root's own mount.
    pub(super) fn of(&self, path: &Path) -> Option<&Path> {
        let over = self.places.iter().filter(|place| path.starts_with(place));
        over.max_by_key(|place| place.as_os_str().len())
            .map(PathBuf::as_path)
    }

    /// Returns the path's other name in the workspace, by which it is tracked,
    /// if one directory or file is mounted in two places (FILE-1).
    pub(super) fn source(&self, path: &Path) -> Option<PathBuf> {
        let (mount, rest) = shown(&self.again, path)?;
        let lies = mount.root.join(rest);
        let known = self.again.iter().find_map(|other| {
            let name = other.name_of(mount.device, &lies)?;
            let inside = name.starts_with(&self.root) && name != self.root;
            let (seen, _) = shown(&self.again, &name).filter(|_| inside)?;
            (seen.id == other.id).then_some(name)
        })?;
        (known != path).then_some(known)
    }

    /// Returns the places below the root that the loop must not touch, since
    /// calls there may block, and why changes there make no events.
    pub(super) fn remote(&self) -> &[(PathBuf, &'static str)] {
        &self.remote
    }

    fn read(&mut self) -> Vec<PathBuf> {
        let mut below = table().unwrap_or_default();
        self.again = again(&self.root, &below);
        below.retain(|mount| mount.place != self.root && mount.place.starts_with(&self.root));
        let remote = below.iter().filter_map(|mount| {
            let cause = remote(&mount.kind)?;
            Some((mount.place.clone(), cause))
        });
        self.remote = remote.collect();
        let mut places: Vec<PathBuf> = below.into_iter().map(|mount| mount.place).collect();
        places.sort();
        places.dedup();
        places
    }
}

/// Wakes a task when a file system is mounted or unmounted. It opens the table
/// separately from [`Mounts`], since each open file receives a change once.
#[derive(Debug)]
pub struct MountBell(Option<AsyncFd<File>>);

impl MountBell {
    /// Opens the table. Needs a tokio runtime. Never wakes if the system has no
    /// table of mounts.
    pub fn open() -> Self {
        // Deprecated for values that do not own their descriptor; this one
        // does.
        #[allow(deprecated)]
        let open = || AsyncFd::with_interest(File::open(TABLE)?, Interest::PRIORITY);
        Self(
            open()
                .inspect_err(|error| tracing::warn!("mounts are not watched: {error}"))
                .ok(),
        )
    }

    /// Waits for the next change. Dropping the future loses no change.
    pub async fn rung(&self) {
        if let Some(table) = &self.0
            && let Ok(mut ready) = table.ready(Interest::PRIORITY).await
        {
            return ready.clear_ready_matching(Ready::ALL);
        }
        std::future::pending().await
    }
}

/// Returns the mount that contains `root` and those below it, if a file in one
/// of them can be reached through another as well; else nothing.
fn again(root: &Path, table: &[Mount]) -> Vec<Mount> {
    let mounts = inside(root, table);
    let overlap = mounts.iter().enumerate().any(|(n, one)| {
        let mut others = mounts[..n].iter();
        others.any(|other| {
            let nested = one.root.starts_with(&other.root) || other.root.starts_with(&one.root);
            one.device == other.device && nested
        })
    });
    match overlap {
        true => mounts.into_iter().cloned().collect(),
        false => Vec::new(),
    }
}

/// Returns the mount that contains `root`, followed by those below it.
fn inside<'a>(root: &Path, table: &'a [Mount]) -> Vec<&'a Mount> {
    let above = table.iter().filter(|mount| root.starts_with(&mount.place));
    // Of several mounts at one place, the last is visible.
    let Some(own) = above.max_by_key(|mount| mount.place.as_os_str().len()) else {
        return Vec::new();
    };
    let is_below = |mount: &&Mount| mount.place != *root && mount.place.starts_with(root);
    let below = table.iter().filter(is_below);
    std::iter::once(own).chain(below).collect()
}

/// Returns whether a file below `root` can be reached by a path outside it, or
/// by two paths in it, since its directory is mounted twice. `true` if the
/// table cannot be read.
pub fn has_other_paths(root: &Path) -> bool {
    table().map_or(true, |table| is_elsewhere(root, &table))
}

fn is_elsewhere(root: &Path, table: &[Mount]) -> bool {
    let mounts = inside(root, table);
    let Some((own, below)) = mounts.split_first() else {
        return true;
    };
    let Ok(rest) = root.strip_prefix(&own.place) else {
        return true;
    };
    let lies = own.root.join(rest);
    let parts = below.iter().map(|mount| (*mount, mount.root.as_path()));
    let parts: Vec<_> = std::iter::once((*own, lies.as_path()))
        .chain(parts)
        .collect();
    parts.iter().any(|(mount, lies)| {
        let mut others = table.iter().filter(|other| other.id != mount.id);
        others.any(|other| {
            let is_same = other.device == mount.device;
            is_same && (other.root.starts_with(lies) || lies.starts_with(&other.root))
        })
    })
}

/// Returns the mount through which a path is reached, and the rest of the path
/// below it. `mounts` begins with the mount that contains all others.
fn shown<'a>(mounts: &'a [Mount], path: &'a Path) -> Option<(&'a Mount, &'a Path)> {
    let mut mount = mounts.first()?;
    // A mount on top of another has that one as its parent.
    for _ in mounts {
        let upon = mounts
            .iter()
            .filter(|on| on.parent == mount.id && on.id != mount.id && path.starts_with(&on.place));
        match upon.min_by_key(|on| on.place.as_os_str().len()) {
            Some(on) => mount = on,
            None => break,
        }
    }
    Some((mount, path.strip_prefix(&mount.place).ok()?))
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    /// The id of the mount that it is mounted in or on.
    parent: u64,
    device: (u32, u32),
    /// The directory of the file system that is mounted.
    root: PathBuf,
    place: PathBuf,
    kind: Vec<u8>,
    options: Vec<u8>,
}

impl Mount {
    /// Returns the path by which this mount shows the place `lies` of a file
    /// system, or `None` if it does not.
    fn name_of(&self, device: (u32, u32), lies: &Path) -> Option<PathBuf> {
        let rest = lies.strip_prefix(&self.root).ok()?;
        let at_place = rest.as_os_str().is_empty();
        (self.device == device).then(|| match at_place {
            true => self.place.clone(),
            false => self.place.join(rest),
        })
    }
}

fn table() -> io::Result<Vec<Mount>> {
    let mut bytes = Vec::new();
    File::open(TABLE)?.read_to_end(&mut bytes)?;
    Ok(bytes
        .split(|byte| *byte == b'\n')
        .filter_map(mount)
        .collect())
}

/// Parses `36 35 98:0 /root /place opts tags.. - kind source options`: proc(5).
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let text = |field| std::str::from_utf8(field).ok();
    let id = text(fields.next()?)?.parse().ok()?;
    let parent = text(fields.next()?)?.parse().ok()?;
    let device = text(fields.next()?)?;
    let (major, minor) = device.split_once(':')?;
    let path = |field| PathBuf::from(std::ffi::OsString::from_vec(unescaped(field)));
    let field = fields.next()?;
    let root = match field.strip_suffix(b"//deleted") {
        None => path(field),
        // A removed directory is in no other one.
        Some(gone) => path(gone.strip_prefix(b"/").unwrap_or(gone)),
    };
    let place = path(fields.next()?);
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
    Some(Mount {
        id,
        parent,
        device: (major.parse().ok()?, minor.parse().ok()?),
        root,
        place,
        kind: rest.next()?.to_vec(),
        options: rest.nth(1).map(unescaped).unwrap_or_default(),
    })
}

/// Decodes blanks and backslashes, which the table has as octal escapes.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, behind)) = rest.split_first() {
        let octal = (*first == b'\\')
            .then(|| behind.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = &behind[if octal.is_some() { 3 } else { 0 }..];
    }
    bytes
}

/// Returns whether the mount that contains a directory shows only a part of its
/// file system, as those of containers do.
pub fn shows_a_part(directory: &Path) -> bool {
    let table = table().unwrap_or_default();
    let own = inside(directory, &table).first().copied();
    own.is_some_and(|mount| mount.root != Path::new("/"))
}

/// Returns whether the layers of the overlay mounted as `device` can be reached
/// from here, so that a process may write to them directly. In a container they
/// usually cannot. The kernel's documentation calls such writes undefined.
pub(super) fn overlay_is_open(device: u64) -> bool {
    let device = (rustix::fs::major(device), rustix::fs::minor(device));
    let table = table().unwrap_or_default();
    let mut overlays = table
        .iter()
        .filter(|mount| mount.kind == b"overlay" && mount.device == device)
        .peekable();
    // An overlay that is not in the table may be open.
    overlays.peek().is_none()
        || overlays.any(|mount| {
            layers(&mount.options)
                .iter()
                .any(|layer| may_be_there(layer))
        })
}

fn may_be_there(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Returns the directories that an overlay's options name.
fn layers(options: &[u8]) -> Vec<PathBuf> {
    options
        .split(|byte| *byte == b',')
        .filter_map(|option| {
            let at = option.iter().position(|byte| *byte == b'=')?;
            let (name, value) = (&option[..at], &option[at + 1..]);
            [&b"lowerdir"[..], b"lowerdir+", b"datadir+", b"upperdir"]
                .contains(&name)
                .then_some(value)
        })
        .flat_map(|value| value.split(|byte| *byte == b':'))
        .filter(|path| !path.is_empty())
        .map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path)))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_line_of_the_table() {
        let line = b"2310 58 0:58 / /a\\040b/m rw,relatime shared:1 - overlay over\\134lay \
                     rw,lowerdir=/l\\0401:/l2,upperdir=/u,workdir=/w";
        let mount = mount(line).unwrap();
        assert_eq!(mount.device, (0, 58));
        assert_eq!(mount.place, Path::new("/a b/m"));
        assert_eq!(mount.kind, b"overlay");
        let expected = ["/l 1", "/l2", "/u"].map(PathBuf::from);
        assert_eq!(layers(&mount.options), expected);
        assert!(super::mount(b"").is_none());
        assert!(super::mount(b"1 2 3:4 / /place rw -").is_none());
    }

    #[test]
    fn what_is_mounted_once_more_is_known_by_where_it_lies() {
        let table = |lines: &[&str]| -> Vec<Mount> {
            let lines = lines
                .iter()
                .map(|line| format!("{line} rw - ext4 /dev/a rw"));
            lines.filter_map(|line| mount(line.as_bytes())).collect()
        };
        let source = |lines: &[&str], path: &str| {
            let home = ["1 0 8:2 / /", "2 1 8:1 /users /home"];
            let root = PathBuf::from("/home/w");
            let mounts = Mounts {
                again: again(&root, &table(&[&home, lines].concat())),
                root,
                table: None,
                places: Vec::new(),
                remote: Vec::new(),
            };
            let found = mounts.source(&mounts.root.join(path))?;
            let found = found.strip_prefix(&mounts.root).unwrap();
            Some(found.to_str().unwrap().to_owned())
        };
        let some = |name: &str| Some(name.to_owned());
        let bind = "3 2 8:1 /users/w/lib /home/w/src";
        assert_eq!(source(&[bind], "src/f"), some("lib/f"));
        assert_eq!(source(&[bind], "src"), some("lib"));
        assert_eq!(source(&[bind], "lib/f"), None);
        assert_eq!(source(&[bind], "srcs"), None);
        // Mounts of another file system, of a directory outside the workspace,
        // and of a removed one.
        for line in [
            "3 2 8:2 /users/w/lib /home/w/src",
            "3 2 8:1 /users/other /home/w/src",
            "3 2 8:1 /users/w/lib//deleted /home/w/src",
        ] {
            assert_eq!(source(&[line], "src/f"), None, "{line}");
        }
        // A bound file; a bound directory that is bound once more.
        let file = "3 2 8:1 /users/w/a /home/w/b";
        assert_eq!(source(&[file], "b"), some("a"));
        let below = "4 2 8:1 /users/w/lib/x /home/w/y";
        assert_eq!(source(&[bind, below], "y/f"), some("lib/x/f"));
        // Another file system in two places.
        let two = ["3 2 0:9 / /home/w/m", "4 2 0:9 /x /home/w/v"];
        assert_eq!(source(&two, "v/f"), some("m/x/f"));
        assert_eq!(source(&two, "m/x/f"), None);
        // A mount on top of the bound directory, or in it.
        assert_eq!(source(&[bind, "4 2 0:9 / /home/w/lib"], "src/f"), None);
        assert_eq!(source(&[bind, "4 3 0:9 / /home/w/src"], "src/f"), None);
        let deeper = [bind, "4 2 0:9 / /home/w/lib/x"];
        assert_eq!(source(&deeper, "src/x/f"), None);
        assert_eq!(source(&deeper, "src/f"), some("lib/f"));
        let hidden = [two[0], two[1], "5 3 0:10 / /home/w/m"];
        assert_eq!(source(&hidden, "v/f"), None);
    }

    #[test]
    fn the_systems_own_table_is_understood() {
        let mounts = table().unwrap();
        assert!(mounts.iter().any(|mount| mount.place == Path::new("/")));
        assert!(mounts.iter().all(|mount| !mount.kind.is_empty()));
    }
}
