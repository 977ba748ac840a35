//! Renames (ATTR-12).

use crate::disk::{Found, ReadOutcome};
use crate::ledger::record::{Fact, Held};
use crate::parts::Core;
use crate::tracker::passing::{Passing, Wait};
use crate::tracker::reading::TOUCH_DELAY;
use touchmark_proto::RelPath;

impl Core {
    /// Handles a rename of a name, and of all watched names below it (ATTR-12).
    pub(crate) fn renamed(&mut self, from: &RelPath, to: &RelPath) {
        let from = &self.base.view().spelling(from.clone());
        let moved: Vec<(RelPath, RelPath)> = self
            .base
            .tracker
            .files
            .watched_from(Some(from))
            .take_while(|path| path.as_bytes().starts_with(from.as_bytes()))
            .filter_map(|path| {
                if path == from {
                    Some((path.clone(), to.clone()))
                } else {
                    Some((path.clone(), path.rebase(from, to)?))
                }
            })
            .collect();
        for (old, new) in moved {
            let new = self.base.view().spelling(new);
            if old == new {
                continue;
            }
            // Another link of the file keeps its name (FILE-2).
            self.part_name(&old);
            // Where the old name resolved to says nothing about what appears
            // there next.
            self.base.tracker.no_way(&old);
            let file = self.base.view().file_of(&old);
            self.note_for_audits(&old);
            self.note_for_audits(&new);
            // A name that no session has used has nothing to copy: the content
            // may have been found after the rename.
            let used = file == old || self.base.state.names.is_other(&old);
            // A file that was removed before has not moved.
            let live = self.base.tracker.live(&old);
            let hinted = live.is_some_and(|live| live.hints.any());
            let state = self.base.state.paths.get(&file);
            let there = state.is_some_and(|state| state.held.hash.is_some());
            let copy = self.base.tracker.passing(&old).copy_of().is_some();
            let gone = live.is_some_and(|live| live.hints.is_gone());
            let known = used && state.is_some() && (there || hinted || copy) && !gone;
            // A copy that has not settled is renamed again: its source stays
            // the same.
            let moves_on = match self.base.tracker.passing(&old) {
                Passing::Copy {
                    of, copied: false, ..
                } if !gone => Some(of.clone()),
                _ => None,
            };
            let source = moves_on.or_else(|| known.then(|| file.clone()));
            let writer = self.base.tracker.live_mut(&file).hints.leave();
            let ticket = self.base.turn().order_read(&old, false);
            if file == old {
                self.base
                    .tracker
                    .live_mut(&old)
                    .hints
                    .take_away(ticket, true);
            }
            let watched = self.base.tracker.files.is_watched(&new);
            let episode = self.base.tracker.next_episode();
            let live = self.base.tracker.live_mut(&new);
            // If the new name is watched, the arrival causes its own hint.
            live.hints.arrive(writer, !watched);
            live.save.episode = episode;
            // A name by which no session has used its file is a separate name
            // until the copy is recorded.
            self.base.tracker.no_alias(&new);
            let target = self.base.state.names.file_of(&new).clone();
            let there = self
                .base
                .state
                .paths
                .get(&target)
                .map(|state| state.held.hash);
            if let Some(source) = source.filter(|source| *source != target) {
                match there {
                    None => {
                        let copy = Passing::Copy {
                            of: source,
                            copied: false,
                            found: None,
                        };
                        self.base.tracker.enter(&new, copy);
                        self.base.turn().watch(&new);
                    }
                    // Sessions have used the new name while there was no file.
                    Some(None) if self.base.state.paths.contains_key(&source) => {
                        self.base.record(Fact::Copied {
                            from: source,
                            to: target,
                        });
                    }
                    Some(_) => {}
                }
            }
            if watched {
                // The name's own hint counts the arrival and orders the read. A
                // read before that would find the change and no close (ATTR-8).
                self.base.turn().read_in(&new, TOUCH_DELAY);
            } else if self.base.tracker.files.is_watched(&new) {
                self.base.turn().order_read(&new, false);
            } else {
                self.base.tracker.forget_live(&new);
            }
        }
    }

    /// Undoes what a reported rename began, because it was half of an exchange.
    /// Many programs save by an exchange with a temporary file, so it copies
    /// nothing (ATTR-12).
    pub(crate) fn exchanged(&mut self, from: &RelPath, to: &RelPath) {
        let (from, to) = (
            self.base.view().spelling(from.clone()),
            self.base.view().spelling(to.clone()),
        );
        let copies = self.base.tracker.uncopied.values().flatten();
        let came = copies.filter(|copy| **copy == to || copy.rebase(&to, &from).is_some());
        for copy in came.cloned().collect::<Vec<_>>() {
            self.base.tracker.settled(&copy);
            self.unwatch(&copy);
        }
    }

    pub(super) fn observe_copy(&mut self, path: &RelPath, outcome: &ReadOutcome) {
        let Passing::Copy { of, copied, found } = self.base.tracker.passing(path) else {
            return;
        };
        match &outcome.found {
            Found::File(content) => {
                let wait = match found {
                    Some((_, wait)) => *wait,
                    // If the copy is recorded already, the rename is no step of
                    // a save any more.
                    None if *copied => Wait::until(self.base.now),
                    None => Wait::until(self.base.now + self.base.config.settle),
                };
                let copy = Passing::Copy {
                    of: of.clone(),
                    copied: *copied,
                    found: Some((Held::from(*content), wait)),
                };
                self.base.turn().enter(path, copy);
                self.base.tracker.live_mut(path).seen.stamp = Some(content.stamp);
            }
            Found::Unstable { .. } => self.base.turn().retry(path),
            // The file was removed again before any session used the name.
            _ => {
                self.base.tracker.settled(path);
                if self.base.view().is_unnamed_copy(path) {
                    self.base.record(Fact::CopyDropped { path: path.clone() });
                }
                self.unwatch(path);
            }
        }
    }
}
