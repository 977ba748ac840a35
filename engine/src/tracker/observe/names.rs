//! Renames (ATTR-12).

use crate::disk::{Found, ReadOutcome};
use crate::engine::Engine;
use crate::ledger::record::{Fact, Held};
use crate::tracker::passing::{Passing, Wait};
use crate::tracker::reading::TOUCH_DELAY;
use touchmark_proto::RelPath;

impl Engine {
    /// Handles a rename of a name, and of all watched names below it (ATTR-12).
    pub(crate) fn renamed(&mut self, from: &RelPath, to: &RelPath) {
        let from = &self.view().spelling(from.clone());
        let moved: Vec<(RelPath, RelPath)> = self
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
            let new = self.view().spelling(new);
            if old == new {
                continue;
            }
            // Another link of the file keeps its name (FILE-2).
            self.part_name(&old);
            // Where the old name resolved to says nothing about what appears
            // there next.
            self.tracker.no_way(&old);
            let file = self.view().file_of(&old);
            self.note_for_audits(&old);
            self.note_for_audits(&new);
            // A name that no session has used has nothing to copy: the content
            // may have been found after the rename.
            let used = file == old || self.state.names.is_other(&old);
            // A file that was removed before has not moved.
            let live = self.tracker.live(&old);
            let hinted = live.is_some_and(|live| live.hints.any());
            let state = self.state.paths.get(&file);
            let there = state.is_some_and(|state| state.held.hash.is_some());
            let copy = self.tracker.passing(&old).copy_of().is_some();
            let gone = live.is_some_and(|live| live.hints.is_gone());
            let known = used && state.is_some() && (there || hinted || copy) && !gone;
            // A copy that has not settled is renamed again: its source stays
            // the same.
            let moves_on = match self.tracker.passing(&old) {
                Passing::Copy {
                    of, copied: false, ..
                } if !gone => Some(of.clone()),
                _ => None,
            };
            let source = moves_on.or_else(|| known.then(|| file.clone()));
            let writer = self.tracker.live_mut(&file).hints.leave();
            let ticket = self.turn().order_read(&old, false);
            if file == old {
                self.tracker.live_mut(&old).hints.take_away(ticket, true);
            }
            let watched = self.tracker.files.is_watched(&new);
            let episode = self.tracker.next_episode();
            let live = self.tracker.live_mut(&new);
            // If the new name is watched, the arrival causes its own hint.
            live.hints.arrive(writer, !watched);
            live.save.episode = episode;
            // A name by which no session has used its file is a separate name
            // until the copy is recorded.
            self.tracker.no_alias(&new);
            let target = self.state.names.file_of(&new).clone();
            let there = self.state.paths.get(&target).map(|state| state.held.hash);
            if let Some(source) = source.filter(|source| *source != target) {
                match there {
                    None => {
                        let copy = Passing::Copy {
                            of: source,
                            copied: false,
                            found: None,
                        };
                        self.tracker.enter(&new, copy);
                        self.turn().watch(&new);
                    }
                    // Sessions have used the new name while there was no file.
                    Some(None) if self.state.paths.contains_key(&source) => {
                        self.record(Fact::Copied {
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
                self.turn().read_in(&new, TOUCH_DELAY);
            } else if self.tracker.files.is_watched(&new) {
                self.turn().order_read(&new, false);
            } else {
                self.tracker.forget_live(&new);
            }
        }
    }

    /// Undoes what a reported rename began, because it was half of an exchange.
    /// Many programs save by an exchange with a temporary file, so it copies
    /// nothing (ATTR-12).
    pub(crate) fn exchanged(&mut self, from: &RelPath, to: &RelPath) {
        let (from, to) = (
            self.view().spelling(from.clone()),
            self.view().spelling(to.clone()),
        );
        for copy in self.tracker.uncopied.clone() {
            let came = copy == to || copy.rebase(&to, &from).is_some();
            if came {
                self.tracker.settled(&copy);
                self.unwatch(&copy);
            }
        }
    }

    pub(super) fn observe_copy(&mut self, path: &RelPath, outcome: &ReadOutcome) {
        let Passing::Copy { of, copied, found } = self.tracker.passing(path) else {
            return;
        };
        match &outcome.found {
            Found::File(content) => {
                let wait = match found {
                    Some((_, wait)) => *wait,
                    // If the copy is recorded already, the rename is no step of
                    // a save any more.
                    None if *copied => Wait::until(self.now),
                    None => Wait::until(self.now + self.config.settle),
                };
                let copy = Passing::Copy {
                    of: of.clone(),
                    copied: *copied,
                    found: Some((Held::from(*content), wait)),
                };
                self.turn().enter(path, copy);
                self.tracker.live_mut(path).seen.stamp = Some(content.stamp);
            }
            Found::Unstable { .. } => self.turn().retry(path),
            // The file was removed again before any session used the name.
            _ => {
                self.tracker.settled(path);
                if self.view().is_unnamed_copy(path) {
                    self.record(Fact::CopyDropped { path: path.clone() });
                }
                self.unwatch(path);
            }
        }
    }

    /// Returns the facts that have to be recorded before a fact that changes
    /// what sessions have seen of a renamed name. If the copy is not recorded
    /// yet, it has to be now, since it copies what they had seen before that
    /// fact. Recording every copy immediately would cost two facts for each
    /// save of an editor that renames the old file away and removes it.
    pub(crate) fn copied_before(&mut self, fact: &Fact) -> Vec<Fact> {
        if self.tracker.uncopied.is_empty() {
            return Vec::new();
        }
        let changed = match fact {
            Fact::Tracked { path, .. }
            | Fact::Read { path, .. }
            | Fact::Wrote { path, .. }
            | Fact::CopyDropped { path }
            | Fact::NamesParted { file: path, .. } => [Some(path), None],
            // A session's own write changes what the session has seen.
            Fact::Version(version) if version.author.session.is_some() => {
                [Some(&version.path), None]
            }
            Fact::NamesJoined { name, file } => [Some(name), Some(file)],
            _ => return Vec::new(),
        };
        let mut copies = Vec::new();
        for to in self.tracker.uncopied.clone() {
            let Passing::Copy { of, found, .. } = self.tracker.passing(&to) else {
                continue;
            };
            if !changed.contains(&Some(of)) {
                continue;
            }
            let (from, found) = (of.clone(), *found);
            copies.push(Fact::Copied {
                from: from.clone(),
                to: to.clone(),
            });
            let copied = Passing::Copy {
                of: from,
                copied: true,
                found: found.map(|(held, _)| (held, Wait::until(self.now))),
            };
            self.turn().enter(&to, copied);
        }
        copies
    }
}
