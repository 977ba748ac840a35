//! What a file contains on disk.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use touchmark_client::hash_of;
use touchmark_client::proto::Hash;

use super::text::normal;

/// The stat of a file. Two that differ prove that the file was written in
/// between; two that are the same prove nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl From<&Metadata> for Stamp {
    fn from(stat: &Metadata) -> Self {
        Self {
            inode: stat.ino(),
            size: stat.size(),
            changed: (stat.mtime(), stat.mtime_nsec()),
        }
    }
}

/// A content on disk.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) hash: Hash,
    pub(super) stamp: Stamp,
    /// The text; `None` if it is not UTF-8.
    pub(super) text: Option<String>,
}

impl Content {
    /// Returns whether an editor that loads the content, or has saved it, shows
    /// this text. Editors differ in how they show the last line's end, and a
    /// carriage return without a line feed: in VS Code it is a line end. `None`
    /// if the content's encoding is not known.
    pub(super) fn is(&self, text: &str) -> Option<bool> {
        let own = bare(self.text.as_deref()?);
        let text = bare(text);
        let is_same = || bytes(own).eq(bytes(text));
        Some(own.len() == text.len() && (own == text || is_same()))
    }
}

/// Returns a text without its last line end.
fn bare(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

/// Returns the bytes of a text, with line feeds for carriage returns.
fn bytes(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().map(|byte| match byte {
        b'\r' => b'\n',
        other => other,
    })
}

/// Returns the stat of a regular file; `None` for anything else.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let stat = path.metadata().ok()?;
    stat.is_file().then(|| Stamp::from(&stat))
}

/// Reads a regular file of at most this size. `None` for anything else, and if
/// it was written meanwhile.
pub(super) fn look(path: &Path, most: u64) -> Option<Content> {
    // Opening a pipe would block.
    stamp(path).filter(|stamp| stamp.size <= most)?;
    let mut file = File::open(path).ok()?;
    let before = Stamp::from(&file.metadata().ok()?);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let after = Stamp::from(&file.metadata().ok()?);
    let is_whole = before == after && bytes.len() as u64 == after.size;
    is_whole.then(|| Content {
        hash: hash_of(&bytes),
        stamp: after,
        text: String::from_utf8(bytes).ok().map(|text| normal(&text)),
    })
}
