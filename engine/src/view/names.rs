//! From names to files and back (FILE-1, SEEN-6).

use std::collections::BTreeMap;

use touchmark_proto::{ClientPath, Error, RelPath};

use super::View;
use crate::disk::Hint;
use crate::tracker::resolve::{fold, within};

impl View<'_> {
    /// Resolves a client's name to its file, and returns the name by which the
    /// file is known (FILE-1).
    pub(crate) fn resolve(&self, path: &ClientPath) -> Result<RelPath, Error> {
        Ok(self.file_of(&self.resolve_name(path)?))
    }

    /// Resolves a client's name by text (docs/protocol.md). If names that
    /// differ only in case are one file, returns the spelling that was used
    /// first (SEEN-6).
    pub(crate) fn resolve_name(&self, path: &ClientPath) -> Result<RelPath, Error> {
        Ok(self.spelling(within(path, &self.config.root)?))
    }

    /// Returns the spelling by which a path is known.
    pub(crate) fn spelling(&self, path: RelPath) -> RelPath {
        if !self.config.case_insensitive {
            return path;
        }
        self.tracker
            .spellings
            .get(&fold(&path))
            .cloned()
            .unwrap_or(path)
    }

    /// Returns the file that a name resolves to, by the name by which it is
    /// known.
    pub(crate) fn file_of(&self, name: &RelPath) -> RelPath {
        let name = self.tracker.ways.aliases.get(name).unwrap_or(name);
        self.state.names.file_of(name).clone()
    }

    /// Returns whether any file has several names.
    pub(crate) fn has_several_names(&self) -> bool {
        !self.state.names.is_empty() || !self.tracker.ways.aliases.is_empty()
    }

    /// Returns the names of a file, its own name first.
    pub(crate) fn names_of(&self, file: &RelPath) -> Vec<RelPath> {
        let mut names = vec![file.clone()];
        names.extend(self.state.names.others_of(file).cloned());
        let aliases = self.tracker.ways.aliases.iter();
        names.extend(
            aliases
                .filter(|(_, of)| *of == file)
                .map(|(name, _)| name.clone()),
        );
        names
    }

    /// Returns what to hint for one event that concerns several names. The
    /// event counts once for each file. A file's other names are looked at as
    /// well if the event may have changed what they resolve to: two names of
    /// one file may be different files after it (FILE-4).
    pub(crate) fn names_hinted(&self, names: Vec<RelPath>, hint: Hint) -> Vec<(RelPath, Hint)> {
        if self.tracker.ways.is_empty() && self.state.names.is_empty() {
            return names.into_iter().map(|name| (name, hint)).collect();
        }
        let mut by_file: BTreeMap<RelPath, Vec<RelPath>> = BTreeMap::new();
        for name in names {
            let file = self.file_of(&name);
            let own = name == file;
            let all = by_file.entry(file).or_default();
            all.insert(if own { 0 } else { all.len() }, name);
        }
        let others = match hint {
            Hint::Written | Hint::WrittenAndClosed => None,
            Hint::Appeared | Hint::Closed | Hint::Removed | Hint::Touched => Some(Hint::Touched),
        };
        let hints = by_file.into_values().flat_map(|names| {
            let hints = std::iter::once(Some(hint)).chain(std::iter::repeat(others));
            names.into_iter().zip(hints)
        });
        hints
            .filter_map(|(name, hint)| Some((name, hint?)))
            .collect()
    }
}
