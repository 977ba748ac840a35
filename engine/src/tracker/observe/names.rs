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
        let from = &self.spelling(from.clone());
        let moved: Vec<(RelPath, RelPath)> = self
            .tracker
            .watched
            .range(from.clone()..)
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
            let new = self.spelling(new);
            if old == new {
                continue;
            }
            // Another link of the file stays where it is (FILE-2).
            self.part_name(&old);
            let file = self.file_of(&old);
            self.note_for_audits(&old);
            self.note_for_audits(&new);
            // A name that nobody has used has nothing to give: what it was may
            // have been found after it was renamed.
            let used = file == old || self.state.names.is_other(&old);
            // What was gone already has not moved.
            let live = self.tracker.live(&old);
            let hinted = live.is_some_and(|live| live.hints.any());
            let state = self.state.paths.get(&file);
            let there = state.is_some_and(|state| state.held.hash.is_some() || hinted);
            let known = used && there;
            // A copy that has not settled yet and moves on: what it copies
            // moves on with it.
            let source = self.tracker.passing(&old).copy_of().cloned();
            let source = source.or_else(|| known.then(|| file.clone()));
            let writer = self.tracker.live_mut(&file).hints.leave();
            self.order_read(&old, false);
            let watched = self.tracker.watched.contains(&new);
            let episode = self.tracker.next_episode();
            let live = self.tracker.live_mut(&new);
            // Where the new name is watched, the arrival is hinted by itself.
            live.hints.arrive(writer, !watched);
            live.save.episode = episode;
            let there = self.state.paths.get(&new).map(|state| state.held.hash);
            if let Some(source) = source.filter(|source| *source != new) {
                match there {
                    None => {
                        let copy = Passing::Copy {
                            of: source,
                            found: None,
                        };
                        self.tracker.enter(&new, copy);
                        self.watch(&new);
                    }
                    // Others have spoken of the name while nothing was there.
                    Some(None) if self.state.paths.contains_key(&source) => {
                        let to = new.clone();
                        self.record(Fact::Copied { from: source, to });
                    }
                    Some(_) => {}
                }
            }
            if watched {
                // Its hint counts the arrival and has it read; a read before
                // that would find the change and no close (ATTR-8).
                self.read_in(&new, TOUCH_DELAY);
            } else if self.tracker.watched.contains(&new) {
                self.order_read(&new, false);
            } else {
                self.tracker.forget_live(&new);
            }
        }
    }

    pub(super) fn observe_copy(&mut self, path: &RelPath, outcome: &ReadOutcome) {
        let Passing::Copy { of, found } = self.tracker.passing(path) else {
            return;
        };
        match &outcome.found {
            Found::File(content) => {
                let wait = match found {
                    Some((_, wait)) => *wait,
                    None => Wait::until(self.now + self.config.settle),
                };
                let copy = Passing::Copy {
                    of: of.clone(),
                    found: Some((Held::from(*content), wait)),
                };
                self.enter(path, copy);
                self.tracker.live_mut(path).seen.stamp = Some(content.stamp);
            }
            Found::Unstable { .. } => self.retry(path),
            // It vanished again before anyone had named it.
            _ => {
                self.tracker.settled(path);
                self.unwatch(path);
            }
        }
    }
}
