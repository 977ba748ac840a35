//! What is mounted in the workspace and above it. A mount, and the end of
//! one, puts other content under tracked names without any event on them
//! (LOSS-2); the system's table of mounts tells.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};

const TABLE: &str = "/proc/self/mountinfo";

/// The places in a workspace where something is mounted.
#[derive(Debug)]
pub(super) struct Mounts {
    root: PathBuf,
    /// `None` where the system has no such table: then only what makes an
    /// event is noticed.
    table: Option<File>,
    places: Vec<PathBuf>,
    /// What is mounted there, and the mount that the workspace is in, the first
    /// of them; empty if nothing can be reached by two of them.
    again: Vec<Mount>,
    /// Those of them whose file system is somewhere else and may not answer,
    /// and why changes there make no events.
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
        // Opened first and read afterwards: a change in between is noticed.
        mounts.places = mounts.read();
        mounts
    }

    /// The places below the root where something may have been mounted or
    /// unmounted since the last call. An identical table proves nothing: what
    /// is mounted anew often gets the old one's numbers.
    pub(super) fn changed(&mut self) -> Option<Vec<PathBuf>> {
        let table = self.table.as_ref()?;
        let mut polled = [PollFd::new(table, PollFlags::PRI)];
        let at_once = Timespec::default();
        let changes = poll(&mut polled, Some(&at_once)).ok()?;
        if changes == 0 && self.again.is_empty() {
            return None;
        }
        // What is mounted once more may have been renamed where it lies, and
        // that is no change of the table.
        let before = std::mem::take(&mut self.again);
        let now = self.read();
        if changes == 0 && before == self.again {
            return None;
        }
        let mut places = std::mem::replace(&mut self.places, now);
        places.extend(self.places.iter().cloned());
        // What lies in another place goes with it.
        places.sort();
        places.dedup_by(|later, earlier| later.starts_with(earlier));
        Some(places)
    }

    /// Whether something is mounted at this very place.
    pub(super) fn is_place(&self, path: &Path) -> bool {
        self.places.iter().any(|place| place == path)
    }

    /// Where that is mounted which a path below the root is on; `None` for what
    /// the root is on.
    pub(super) fn of(&self, path: &Path) -> Option<&Path> {
        let over = self.places.iter().filter(|place| path.starts_with(place));
        over.max_by_key(|place| place.as_os_str().len())
            .map(PathBuf::as_path)
    }

    /// The name in the workspace that a path has as well, and is known by,
    /// where one directory or file is mounted in two places (FILE-1).
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

    /// The places below the root that must not be touched by who must not
    /// wait, and why changes there make no events.
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

/// Wakes whoever waits when anything is mounted or unmounted. Another
/// description of the table than the one above: each is told once.
#[derive(Debug)]
pub struct MountBell(Option<AsyncFd<File>>);

impl MountBell {
    /// Needs a runtime. Silent where the system has no table of mounts.
    pub fn open() -> Self {
        // Deprecated for what is no owned descriptor; this is one.
        #[allow(deprecated)]
        let open = || AsyncFd::with_interest(File::open(TABLE)?, Interest::PRIORITY);
        Self(
            open()
                .inspect_err(|error| tracing::warn!("mounts are not watched: {error}"))
                .ok(),
        )
    }

    /// Waits for the next change. Nothing is lost by giving it up.
    pub async fn rung(&self) {
        if let Some(table) = &self.0
            && let Ok(mut ready) = table.ready(Interest::PRIORITY).await
        {
            return ready.clear_ready_matching(Ready::ALL);
        }
        std::future::pending().await
    }
}

/// The mount that `root` is in and those below it, if what is below one of them
/// can be reached by another as well.
fn again(root: &Path, table: &[Mount]) -> Vec<Mount> {
    let above = table.iter().filter(|mount| root.starts_with(&mount.place));
    // Of several at one place, the last is seen.
    let Some(own) = above.max_by_key(|mount| mount.place.as_os_str().len()) else {
        return Vec::new();
    };
    let inside = |mount: &&Mount| mount.place != *root && mount.place.starts_with(root);
    let mut mounts = vec![own.clone()];
    mounts.extend(table.iter().filter(inside).cloned());
    let overlap = mounts.iter().enumerate().any(|(n, one)| {
        let mut others = mounts[..n].iter();
        others.any(|other| {
            let nested = one.root.starts_with(&other.root) || other.root.starts_with(&one.root);
            one.device == other.device && nested
        })
    });
    if overlap { mounts } else { Vec::new() }
}

/// The mount that shows what is at a path, and the rest of the path below it;
/// the first is the one that all others stand in.
fn shown<'a>(mounts: &'a [Mount], path: &'a Path) -> Option<(&'a Mount, &'a Path)> {
    let mut mount = mounts.first()?;
    // One on top of another has that one as its parent.
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
    /// The one that it stands in, or on.
    parent: u64,
    device: (u32, u32),
    /// What of the file system is mounted.
    root: PathBuf,
    place: PathBuf,
    kind: Vec<u8>,
    options: Vec<u8>,
}

impl Mount {
    /// Where it shows what lies there on a file system, if it does.
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

/// `36 35 98:0 /root /place opts tags.. - kind source options`: proc(5).
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
        // It lies nowhere any more: below no other.
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

/// Why changes on a file system of this kind may make no events, if it is one
/// whose every call waits for somebody else: another machine, another program.
fn remote(kind: &[u8]) -> Option<&'static str> {
    Some(match kind {
        b"nfs" | b"nfs4" => "NFS: changes made elsewhere make no events",
        b"cifs" | b"smb3" | b"smbfs" => "SMB file system: changes made elsewhere make no events",
        b"9p" => "9p file system: changes made elsewhere make no events",
        b"ceph" => "Ceph: changes made elsewhere make no events",
        b"afs" => "AFS: changes made elsewhere make no events",
        b"lustre" => "Lustre: changes made elsewhere make no events",
        b"autofs" => "automounted place: it is looked at only when asked about",
        kind if kind.starts_with(b"fuse") || kind == b"virtiofs" => {
            "FUSE file system: changes made behind it make no events"
        }
        _ => return None,
    })
}

/// Blanks and backslashes are spelled in octal.
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

/// Whether the layers of the overlay that is mounted as `device` can be
/// reached from here, so that somebody may write behind the mount. In a
/// container they mostly cannot; the kernel's documentation calls such
/// writes undefined.
pub(super) fn overlay_is_open(device: u64) -> bool {
    let device = (rustix::fs::major(device), rustix::fs::minor(device));
    let table = table().unwrap_or_default();
    let mut overlays = table
        .iter()
        .filter(|mount| mount.kind == b"overlay" && mount.device == device)
        .peekable();
    // One that the table does not know may be open.
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

/// The directories named by an overlay's options.
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
        // Of another file system, from outside, of what is gone.
        for line in [
            "3 2 8:2 /users/w/lib /home/w/src",
            "3 2 8:1 /users/other /home/w/src",
            "3 2 8:1 /users/w/lib//deleted /home/w/src",
        ] {
            assert_eq!(source(&[line], "src/f"), None, "{line}");
        }
        // A file; what was bound is bound once more.
        let file = "3 2 8:1 /users/w/a /home/w/b";
        assert_eq!(source(&[file], "b"), some("a"));
        let below = "4 2 8:1 /users/w/lib/x /home/w/y";
        assert_eq!(source(&[bind, below], "y/f"), some("lib/x/f"));
        // Another file system in two places.
        let two = ["3 2 0:9 / /home/w/m", "4 2 0:9 /x /home/w/v"];
        assert_eq!(source(&two, "v/f"), some("m/x/f"));
        assert_eq!(source(&two, "m/x/f"), None);
        // Something stands on what was bound, or in it.
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
