//! What witnessed commands destroy in ignored files (SCOPE-10). These have no
//! versions: most of them are what programs make again. A file that only its own
//! name makes ignored may be a user's, so its content is kept for recovery.

use std::collections::BTreeMap;

use touchmark_engine::{PriorFile, ReadOrder};
use touchmark_proto::{RelPath, native};

use super::priors::{Told, stat};
use super::{Stat, Workspace};

/// The most files of one look whose contents are kept. A command that destroys
/// more is probably a build, or cleans up after one.
const MOST: usize = 64;

/// The most files that are remembered as left by commands. If there are more, all
/// are forgotten.
const REMEMBERED: usize = 10_000;

/// The ignored files that witnessed commands wrote, each with the time of its last
/// change in nanoseconds since 1970. If a later command destroys such a content,
/// no user loses work.
#[derive(Default)]
pub(super) struct Left(BTreeMap<RelPath, i64>);

impl Left {
    fn has(&self, path: &RelPath, file: PriorFile) -> bool {
        self.0.get(path) == Some(&file.changed)
    }

    fn put(&mut self, path: RelPath, now: Option<Stat>) {
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        match now {
            Some(now) => self.0.insert(path, now.changed),
            None => self.0.remove(&path),
        };
    }
}

impl Workspace<'_> {
    /// Keeps the texts that ignored files had when they were marked, and do not
    /// have any more.
    pub(super) fn keep_destroyed(&mut self) {
        let Some(guard) = &self.settings.guard else {
            return;
        };
        let mut kept = 0;
        let mut left = Vec::new();
        for (path, file) in self.priors.all() {
            if !self.is_ignored_alone(path) {
                continue;
            }
            let place = self.settings.root.join(native::name(path.as_bytes()));
            let now = rustix::fs::lstat(&place).ok().map(|now| Stat::of(&now));
            left.push((path.clone(), now));
            let Some(file) = file.filter(|file| now != Some(stat(*file))) else {
                continue;
            };
            if kept == MOST || self.left_by_commands.has(path, file) {
                continue;
            }
            if let Told::Bytes(bytes, _) = self.priors.tell(path)
                && is_text(&bytes)
                && !self.still_begins_with(path, &bytes)
            {
                guard.keep_ignored(path, &bytes);
                kept += 1;
            }
        }
        for (path, now) in left {
            self.left_by_commands.put(path, now);
        }
    }

    /// Returns whether a file has a text, also if more was appended to it.
    fn still_begins_with(&self, path: &RelPath, text: &[u8]) -> bool {
        let order = ReadOrder {
            bytes: true,
            ..ReadOrder::of(path.clone())
        };
        let now = self.settings.reader.read(&order).outcome.bytes;
        now.is_some_and(|now| now.starts_with(text))
    }

    /// Returns whether a file is ignored by its own name, in directories that are
    /// not.
    fn is_ignored_alone(&self, path: &RelPath) -> bool {
        let Some((directory, parts)) = self.nearest(path) else {
            return false;
        };
        let ignores = |part: &RelPath| self.rules.ignore(&directory.rules, part, part != path);
        self.looked_at(path).is_none()
            && ignores(path)
            && !parts
                .iter()
                .any(|part| self.rules.exclude(part) || part != path && ignores(part))
    }
}

/// Returns whether bytes are a text.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.is_empty() && !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}
