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
}

impl Mounts {
    pub(super) fn new(root: &Path) -> Self {
        let mut mounts = Self {
            root: root.to_path_buf(),
            table: File::open(TABLE).ok(),
            places: Vec::new(),
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
        if changes == 0 {
            return None;
        }
        let now = self.read();
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

    fn read(&self) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> = table()
            .unwrap_or_default()
            .into_iter()
            .map(|mount| mount.place)
            .filter(|place| *place != self.root && place.starts_with(&self.root))
            .collect();
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

/// One line of the table.
struct Mount {
    device: (u32, u32),
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
    let place = unescaped(fields.nth(1)?);
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
    Some(Mount {
        device: (major.parse().ok()?, minor.parse().ok()?),
        place: PathBuf::from(std::ffi::OsString::from_vec(place)),
        kind: rest.next()?.to_vec(),
        options: rest.nth(1).map(unescaped).unwrap_or_default(),
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
    fn the_systems_own_table_is_understood() {
        let mounts = table().unwrap();
        assert!(mounts.iter().any(|mount| mount.place == Path::new("/")));
        assert!(mounts.iter().all(|mount| !mount.kind.is_empty()));
    }
}
