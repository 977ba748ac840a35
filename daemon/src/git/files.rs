//! Reads the small files of a repository that contain a path, a name or a
//! setting. They may have been part of a clone, so they are untrusted input.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::system::open::{check_owner, patient};
use crate::tools::GIT;

/// The most bytes read from a file that contains a path or a branch's name.
const MOST_LINE: u64 = 4 << 10;

/// Returns the name of the branch in the line of a `HEAD` file; `None` if it
/// has a commit.
pub(crate) fn branch(head: &str) -> Option<String> {
    let name = head.strip_prefix("ref: ")?;
    Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned())
}

/// Returns the git directory of the work tree with that top directory: what its
/// `.git` is or names.
pub(crate) fn own_directory(top: &Path) -> Option<PathBuf> {
    let git = top.join(GIT);
    Some(match git.symlink_metadata().ok()?.is_file() {
        true => top.join(line(&git)?.strip_prefix("gitdir: ")?),
        false => git,
    })
}

/// Returns the directory that a git directory shares with those of other work
/// trees; the git directory itself if it names none.
pub(crate) fn common_directory(own: &Path) -> PathBuf {
    line(&own.join("commondir")).map_or_else(|| own.to_owned(), |common| own.join(common))
}

/// Returns both directories of the work tree with that top directory. `None`
/// if its git directory belongs to another user.
pub(crate) fn directories(top: &Path) -> Option<(PathBuf, PathBuf)> {
    let own = own_directory(top)?;
    check_owner(&own.metadata().ok()?).ok()?;
    let common = common_directory(&own);
    Some((own, common))
}

/// Returns the first line of a small file.
pub(crate) fn line(path: &Path) -> Option<String> {
    let bytes = read(path, MOST_LINE).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.lines().next()?.to_owned())
}

/// Reads at most `most` bytes of a regular file that is not a link.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = patient()
        .custom_flags(flags.bits().cast_signed())
        .read(true)
        .open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > most {
        return Err(io::Error::other("no file, or too large"));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
