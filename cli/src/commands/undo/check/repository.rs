//! The repository of a copy of a work tree. It has the branches, the index and
//! the configuration of the real one, and borrows its objects. So git works in
//! the copy, and writes nothing into the real repository.

use std::fs;
use std::io;
use std::path::Path;

use touchmark_client::proto::native;

use crate::daemon::WorkTree;

/// The files and directories that belong to one work tree.
const OWN: [&str; 6] = [
    "HEAD",
    "index",
    "MERGE_HEAD",
    "ORIG_HEAD",
    "refs",
    "reftable",
];

/// Those that all work trees share.
const SHARED: [&str; 6] = [
    "config",
    "packed-refs",
    "refs",
    "reftable",
    "info",
    "shallow",
];

/// Makes the repository of a copy: the directory `to`, which is not there yet,
/// in the directory `top`.
///
/// # Errors
/// The system's error, also if a path cannot be written into git's files.
pub(super) fn make(tree: &WorkTree, top: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to.join("objects/info"))?;
    for name in SHARED {
        copy(&tree.common.join(name), &to.join(name))?;
    }
    for name in OWN {
        copy(&tree.own.join(name), &to.join(name))?;
    }
    fs::create_dir_all(to.join("refs"))?;
    let objects = native::bytes(&tree.common.join("objects")).into_owned();
    fs::write(to.join("objects/info/alternates"), {
        let mut line = quoted(&objects)?;
        line.push(b'\n');
        line
    })?;
    // The last value of a setting counts. A configuration may name the real
    // work tree.
    let config = to.join("config");
    let mut text = fs::read(&config).unwrap_or_default();
    text.extend(b"\n[core]\n\tbare = false\n\tfsmonitor = false\n\tworktree = ");
    text.extend(quoted(&native::bytes(top))?);
    text.push(b'\n');
    fs::write(config, text)
}

/// Copies a file or a directory, over what is there. Does nothing if there is
/// none, and skips links.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(found) = from.symlink_metadata() else {
        return Ok(());
    };
    if found.is_file() {
        fs::copy(from, to)?;
    } else if found.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name))?;
        }
    }
    Ok(())
}

/// Returns a path between quotation marks, as git's files have it.
fn quoted(path: &[u8]) -> io::Result<Vec<u8>> {
    if path.iter().any(|byte| matches!(byte, 0..32 | 127)) {
        return Err(io::Error::other("the path has control characters"));
    }
    let mut text = vec![b'"'];
    for byte in path {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text.push(b'"');
    Ok(text)
}
