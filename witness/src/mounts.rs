//! Finds a directory of another mount namespace in this one: by the place in
//! its file system, which both namespaces' lists of mounts tell.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// One line of `/proc/PID/mountinfo`.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    /// `MAJOR:MINOR`.
    device: Vec<u8>,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    /// Where it is mounted.
    point: PathBuf,
}

/// Returns the paths here of a directory that has this path in a mount of
/// another namespace. `theirs` and `own` are the contents of `mountinfo`.
pub(crate) fn translate(theirs: &[u8], own: &[u8], mount: u64, path: &Path) -> Vec<PathBuf> {
    let Some(theirs) = mounts(theirs).find(|one| one.id == mount) else {
        return Vec::new();
    };
    let Ok(below) = path.strip_prefix(&theirs.point) else {
        return Vec::new();
    };
    let place = theirs.root.join(below);
    let own = mounts(own).filter(|one| one.device == theirs.device);
    let paths = own.filter_map(|one| {
        let below = place.strip_prefix(&one.root).ok()?;
        // To join nothing would append a slash.
        Some(match below.as_os_str().is_empty() {
            true => one.point,
            false => one.point.join(below),
        })
    });
    paths.collect()
}

fn mounts(text: &[u8]) -> impl Iterator<Item = Mount> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let device = fields.nth(1)?.to_vec();
        let (root, point) = (unescape(fields.next()?), unescape(fields.next()?));
        Some(Mount {
            id,
            device,
            root,
            point,
        })
    })
}

/// Spaces and the like are written as a backslash and three octal digits.
fn unescape(text: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.first_chunk::<3>().filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = &after[3..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(plain))
}

/// Returns a path's bytes.
pub(crate) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bind_mount_is_found_in_its_file_system() {
        let own = b"20 1 8:1 / / rw - ext4 a rw\n\
            21 20 8:1 /data /srv\\040x rw - ext4 a rw\n\
            22 20 0:5 / /proc rw - proc p rw\n";
        let theirs = b"90 80 8:1 / / rw - ext4 a rw\n\
            91 90 8:1 /data/files /mnt rw - ext4 a rw\n\
            92 90 0:9 / /tmp rw - tmpfs t rw\n";
        let find = |mount, path: &str| translate(theirs, own, mount, Path::new(path));
        let paths = ["/data/files/a", "/srv x/files/a"].map(PathBuf::from);
        assert_eq!(find(91, "/mnt/a"), paths);
        let paths = ["/data/files", "/srv x/files"].map(PathBuf::from);
        assert_eq!(find(91, "/mnt"), paths);
        assert_eq!(find(90, "/a"), [PathBuf::from("/a")]);
        assert!(find(92, "/tmp/a").is_empty());
        assert!(find(7, "/tmp/a").is_empty());
        assert!(find(91, "/other").is_empty());
    }
}
