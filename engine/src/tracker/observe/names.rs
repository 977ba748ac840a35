//! Names that become other names (ATTR-12).

use crate::engine::Engine;
use crate::input::{Found, ReadOutcome};
use crate::ledger::record::{Fact, Held};
use crate::tracker::passing::{Passing, Wait};
use crate::tracker::reading::TOUCH_DELAY;
use touchmark_proto::RelPath;

impl Engine {
    /// One name became another (ATTR-12).
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
            // Another link of the file stays where it is (FILE-2).
            self.part_name(&old);
            // Where it led says nothing of what comes there next.
            self.tracker.no_way(&old);
            let file = self.view().file_of(&old);
            self.note_for_audits(&old);
            self.note_for_audits(&new);
            // A name that nobody has used has nothing to give: what it was may
            // have been found after it was renamed.
            let used = file == old || self.state.names.is_other(&old);
            // What was gone already has not moved.
            let live = self.tracker.live(&old);
            let hinted = live.is_some_and(|live| live.hints.any());
            let state = self.state.paths.get(&file);
            let there = state.is_some_and(|state| state.held.hash.is_some());
            let copy = self.tracker.passing(&old).copy_of().is_some();
            let gone = live.is_some_and(|live| live.hints.is_gone());
            let known = used && state.is_some() && (there || hinted || copy) && !gone;
            // A copy that has not settled yet and moves on: what it copies
            // moves on with it.
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
                self.tracker.live_mut(&old).hints.take_away(ticket);
            }
            let watched = self.tracker.files.is_watched(&new);
            let episode = self.tracker.next_episode();
            let live = self.tracker.live_mut(&new);
            // Where the new name is watched, the arrival is hinted by itself.
            live.hints.arrive(writer, !watched);
            live.save.episode = episode;
            // A name by which nobody has used its file is a name of its own
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
                    // Others have spoken of the name while nothing was there.
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
                // Its hint counts the arrival and has it read; a read before
                // that would find the change and no close (ATTR-8).
                self.turn().read_in(&new, TOUCH_DELAY);
            } else if self.tracker.files.is_watched(&new) {
                self.turn().order_read(&new, false);
            } else {
                self.tracker.forget_live(&new);
            }
        }
    }

    /// What was told as a rename is half of an exchange: many save by one, with
    /// a temporary file, and it copies nothing (ATTR-12).
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
                    // What is copied already is no step of a save any more.
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
            // It vanished again before anyone had named it.
            _ => {
                self.tracker.settled(path);
                if self.view().is_unnamed_copy(path) {
                    self.record(Fact::CopyDropped { path: path.clone() });
                }
                self.unwatch(path);
            }
        }
    }

    /// What comes before a fact by which sessions would know something else of
    /// a name: if that was renamed and the copy is not recorded yet, they knew
    /// until now what has moved on, and not from now on. To record every copy
    /// at once would cost two facts for each save of an editor that renames
    /// the old file away and removes it.
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
            // Its own write is what a session knows next.
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
