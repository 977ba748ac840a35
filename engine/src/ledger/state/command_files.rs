//! Untracked files that commands wrote (SCOPE-9). They are not watched. What a
//! person does to one later is found by looks.

use touchmark_proto::RelPath;

use super::State;
use crate::ledger::record::{Held, VersionFact};

/// The number of files that are remembered, and the number of the oldest that
/// are dropped together when there are more.
const REMEMBERED: usize = 2_000;
const DROPPED: usize = 200;

/// An untracked file that a command wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFile {
    /// The number of the newest version.
    pub n: u64,
    /// The file's last recorded content, or that it was removed.
    pub held: Held,
}

impl State {
    /// Returns the files, each with its last recorded content.
    pub(crate) fn command_files(&self) -> Vec<(RelPath, Held)> {
        let files = self.command_files.iter();
        files
            .map(|(path, file)| (path.clone(), file.held))
            .collect()
    }

    /// Remembers a version of an untracked file: one of a command, or one that
    /// was recorded beside such a file, by an undo.
    pub(super) fn command_file(&mut self, n: u64, fact: &VersionFact) {
        let files = &mut self.command_files;
        let moved = fact.from.as_ref().and_then(|from| files.get_mut(from));
        if let Some(moved) = moved {
            moved.held = Held::ABSENT;
        }
        // What git brings is in git's history, and may be thousands of files.
        if fact.by_git {
            files.remove(&fact.path);
            return;
        }
        let held = fact.held;
        // A checkout may remove thousands.
        if held.hash.is_none() && !files.contains_key(&fact.path) {
            return;
        }
        files.insert(fact.path.clone(), CommandFile { n, held });
        if files.len() >= REMEMBERED + DROPPED {
            let mut ages: Vec<u64> = files.values().map(|file| file.n).collect();
            ages.sort_unstable();
            let oldest = ages.get(DROPPED).copied().unwrap_or_default();
            files.retain(|_, file| file.n >= oldest);
        }
    }
}
