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
    /// Of them, those where something else in the workspace is mounted once
    /// more, with where that is.
    again: Vec<(PathBuf, PathBuf)>,
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
        let again = self.again.clone();
        let now = self.read();
        if changes == 0 && again == self.again {
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

    /// Where in the workspace a path leads that passes something mounted
    /// there once more (FILE-1).
    pub(super) fn source(&self, path: &Path) -> Option<PathBuf> {
        let mut found: Option<PathBuf> = None;
        for _ in 0..self.again.len() {
            let now = found.as_deref().unwrap_or(path);
            let next = self.again.iter().rev().find_map(|(place, source)| {
                let rest = now.strip_prefix(place).ok()?;
                let at_place = rest.as_os_str().is_empty();
                Some(if at_place {
                    source.clone()
                } else {
                    source.join(rest)
                })
            });
            match next {
                Some(next) => found = Some(next),
                None => break,
            }
        }
        found
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

/// The places below `root` where another directory, or file, from below it is
/// mounted, each with where that lies.
fn again(root: &Path, table: &[Mount]) -> Vec<(PathBuf, PathBuf)> {
    let above = table.iter().filter(|mount| root.starts_with(&mount.place));
    // Of several at one place, the last is seen.
    let Some(own) = above.max_by_key(|mount| mount.place.as_os_str().len()) else {
        return Vec::new();
    };
    let inside = |mount: &&Mount| mount.place != *root && mount.place.starts_with(root);
    table
        .iter()
        .filter(inside)
        .filter(|mount| mount.device == own.device)
        .filter_map(|mount| {
            let source = own.place.join(mount.root.strip_prefix(&own.root).ok()?);
            let below = source != *root && source.starts_with(root);
            (below && source != mount.place).then(|| (mount.place.clone(), source))
        })
        .collect()
}

/// One line of the table.
struct Mount {
    device: (u32, u32),
    /// What of the file system is mounted.
    root: PathBuf,
    place: PathBuf,
    kind: Vec<u8>,
    options: Vec<u8>,
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
    let device = std::str::from_utf8(fields.nth(2)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let path = |field| PathBuf::from(std::ffi::OsString::from_vec(unescaped(field)));
    let root = path(fields.next()?);
    let place = path(fields.next()?);
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
    Some(Mount {
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
        let found = |lines: &[&str]| again(Path::new("/home/w"), &table(lines));
        let pair = |place: &str, source: &str| (PathBuf::from(place), PathBuf::from(source));
        let home = "2 1 8:1 /users /home";
        assert_eq!(
            found(&["1 0 8:2 / /", home, "3 2 8:1 /users/w/lib /home/w/src"]),
            [pair("/home/w/src", "/home/w/lib")]
        );
        // Of another file system, from outside, the workspace itself.
        let others = [
            "3 2 8:2 /users/w/lib /home/w/a",
            "4 2 8:1 /users/other /home/w/b",
            "5 2 8:1 /users/w /home/w/c",
        ];
        assert_eq!(found(&[&["1 0 8:2 / /", home], &others[..]].concat()), []);
        let mounts = Mounts {
            root: PathBuf::from("/w"),
            table: None,
            places: Vec::new(),
            again: vec![pair("/w/b", "/w/a"), pair("/w/d/c", "/w/b/c")],
            remote: Vec::new(),
        };
        let source = |path: &str| mounts.source(Path::new(path));
        assert_eq!(source("/w/a/f"), None);
        assert_eq!(source("/w/bb"), None);
        assert_eq!(source("/w/b/f"), Some(PathBuf::from("/w/a/f")));
        assert_eq!(source("/w/d/c/f"), Some(PathBuf::from("/w/a/c/f")));
        assert_eq!(source("/w/b"), Some(PathBuf::from("/w/a")));
    }

    #[test]
    fn the_systems_own_table_is_understood() {
        let mounts = table().unwrap();
        assert!(mounts.iter().any(|mount| mount.place == Path::new("/")));
        assert!(mounts.iter().all(|mount| !mount.kind.is_empty()));
    }
}
