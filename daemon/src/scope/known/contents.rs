//! Reads the content of one file or link.

use std::sync::Arc;

use touchmark_engine::text::tokens;
use touchmark_engine::{Found, Held, ReadOrder, SweptFile};
use touchmark_proto::{Hash, RelPath, native};

use super::{Settings, Stat};
use crate::content::{Met, Report, Visit};
use crate::scope::index::milliseconds;

/// A file's content.
pub(super) struct Content {
    pub(super) held: Held,
    pub(super) stat: Stat,
    pub(super) met: Option<Met>,
    /// Whether any process may have the file open for writing.
    pub(super) is_open: bool,
}

impl Content {
    /// Returns whether it is that of before, with the same mode: a content that
    /// was stored before modes were recorded has none.
    pub(super) fn is_still(&self, before: Option<Held>) -> bool {
        before.is_some_and(|it| it.hash == self.held.hash && it.mode == self.held.mode)
    }

    /// Returns the change that has led to it, at this time in nanoseconds since
    /// 1970.
    pub(super) fn change(&self, path: RelPath, before: Option<Held>, at: i64) -> SweptFile {
        SweptFile {
            changed_ms: milliseconds(at),
            inode: Some(self.stat.inode),
            is_open: self.is_open,
            ..SweptFile::new(path, before, self.held)
        }
    }
}

/// Reads a file. Returns `None` if it is no regular file, or is being changed.
pub(super) fn content(visit: &Visit<'_>, path: &RelPath, keep: bool) -> Option<Content> {
    let order = ReadOrder {
        keep,
        ..ReadOrder::of(path.clone())
    };
    let Report { outcome, keep, .. } = visit.read_whole(&order);
    let Found::File(content) = outcome.found else {
        return None;
    };
    // A link that resolves to a file is not that file.
    if outcome.real.is_some() {
        return None;
    }
    let met = match outcome.secret && content.size > 0 {
        true => Some((content.hash, None)),
        false => keep.map(|bytes| (content.hash, Some(bytes))),
    };
    Some(Content {
        is_open: outcome.open_for_writing,
        held: content.into(),
        stat: Stat {
            inode: content.stamp.inode,
            size: content.stamp.size,
            modified: content.stamp.modified,
            changed: content.stamp.changed,
            mode: content.mode,
        },
        met,
    })
}

/// Reads a symlink, whose content is the path that it points to (SCOPE-7).
/// Returns `None` if it is no link, or is being changed.
pub(super) fn link(settings: &Settings, path: &RelPath) -> Option<Content> {
    let place = settings.root.join(native::name(path.as_bytes()));
    let stat = || Some(Stat::of(&rustix::fs::lstat(&place).ok()?));
    let before = stat().filter(Stat::is_link)?;
    let target = std::fs::read_link(&place).ok()?;
    let bytes = native::bytes(&target);
    let stat = stat().filter(|after| *after == before)?;
    let hash = Hash::of(&bytes);
    let secret = settings.reader.is_secret(path) || tokens::any(&bytes);
    Some(Content {
        held: Held {
            hash: Some(hash),
            size: bytes.len() as u64,
            lines: 1,
            mtime_ms: u64::try_from(stat.modified / 1_000_000).unwrap_or(0),
            mode: stat.mode,
            owner: None,
        },
        stat,
        is_open: false,
        met: Some((hash, (!secret).then(|| Arc::from(&*bytes)))),
    })
}
