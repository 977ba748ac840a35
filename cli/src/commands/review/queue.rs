//! The changes in the queue, and the entries in which they are shown.

use std::collections::{BTreeSet, HashMap};

use touchmark_client::proto::review::{ReviewFile, ReviewHunk, ReviewHunks, ReviewNamed};
use touchmark_client::proto::{Author, RelPath};

use crate::likely;

/// The least number of files that one command has changed, from which on its
/// changes are one entry.
const MANY: usize = 8;

/// A change in the queue.
#[derive(Clone, Copy)]
pub(super) struct QueuedChange<'a> {
    pub(super) id: &'a str,
    pub(super) path: &'a RelPath,
    pub(super) authors: &'a [Author],
    /// The command that made it; `None` if none did.
    pub(super) command: Option<&'a str>,
    /// Whether the user has viewed it.
    pub(super) is_viewed: bool,
    pub(super) of: ChangeKind<'a>,
}

/// What a change in the queue changed.
#[derive(Clone, Copy)]
pub(super) enum ChangeKind<'a> {
    /// Lines of a file.
    Lines(&'a ReviewHunk),
    /// A mode or a symlink.
    File(&'a ReviewFile),
}

impl<'a> From<&'a ReviewHunk> for QueuedChange<'a> {
    fn from(hunk: &'a ReviewHunk) -> Self {
        Self {
            id: &hunk.id,
            path: &hunk.path,
            authors: &hunk.authors,
            command: hunk.command.as_deref(),
            is_viewed: hunk.viewed == Some(true),
            of: ChangeKind::Lines(hunk),
        }
    }
}

impl<'a> From<&'a ReviewFile> for QueuedChange<'a> {
    fn from(file: &'a ReviewFile) -> Self {
        Self {
            id: &file.id,
            path: &file.path,
            authors: &file.authors,
            command: file.command.as_deref(),
            is_viewed: file.viewed == Some(true),
            of: ChangeKind::File(file),
        }
    }
}

impl QueuedChange<'_> {
    pub(super) fn named(&self) -> ReviewNamed {
        ReviewNamed::new(self.path, self.id)
    }

    /// Returns whether text of it may be the user's (UNDO-7).
    pub(super) fn is_doubtful(&self) -> bool {
        matches!(self.of, ChangeKind::Lines(hunk) if likely::is_doubtful(hunk))
    }
}

/// What one answer of the user is about: a single change, or all changes of a
/// command that changed many files.
pub(super) struct QueueEntry<'a> {
    pub(super) changes: Vec<QueuedChange<'a>>,
    /// The command; `None` for a single change.
    pub(super) command: Option<&'a str>,
}

impl QueueEntry<'_> {
    /// Returns the name by which the entry is remembered while the queue is
    /// gone through.
    pub(super) fn id(&self) -> &str {
        match (self.command, self.changes.first()) {
            (Some(command), _) => command,
            (None, Some(change)) => change.id,
            (None, None) => "",
        }
    }

    /// Returns whether some of it may be the user's (UNDO-7).
    pub(super) fn is_likely(&self) -> bool {
        self.lines().any(|hunk| hunk.likely == Some(true))
    }

    /// Returns the changes that have lines.
    pub(super) fn lines(&self) -> impl Iterator<Item = &ReviewHunk> {
        self.changes.iter().filter_map(|change| match change.of {
            ChangeKind::Lines(hunk) => Some(hunk),
            ChangeKind::File(_) => None,
        })
    }

    pub(super) fn named(&self) -> Vec<ReviewNamed> {
        self.changes.iter().map(QueuedChange::named).collect()
    }
}

/// Puts the changes of each command that changed many files into one entry,
/// unless `single` says otherwise.
pub(super) fn entries<'a>(
    all: &[QueuedChange<'a>],
    single: impl Fn(&str) -> bool,
) -> Vec<QueueEntry<'a>> {
    let mut files: HashMap<&str, BTreeSet<&RelPath>> = HashMap::new();
    for change in all {
        if let Some(command) = change.command {
            files.entry(command).or_default().insert(change.path);
        }
    }
    let mut entries: Vec<QueueEntry<'a>> = Vec::new();
    for change in all {
        let command = change.command.filter(|command| {
            let many = files.get(command).is_some_and(|files| files.len() >= MANY);
            many && !single(command)
        });
        let known = entries.iter_mut().find(|entry| entry.command == command);
        match known.filter(|_| command.is_some()) {
            Some(entry) => entry.changes.push(*change),
            None => entries.push(QueueEntry {
                changes: vec![*change],
                command,
            }),
        }
    }
    entries
}

/// Returns all changes of a queue.
pub(super) fn changes(queue: &ReviewHunks) -> Vec<QueuedChange<'_>> {
    let lines = queue.hunks.iter().map(QueuedChange::from);
    let files = queue.files.iter().flatten().map(QueuedChange::from);
    lines.chain(files).collect()
}
