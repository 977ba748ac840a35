//! Names that become other names (ATTR-12).

use crate::engine::Engine;
use crate::input::{Found, ReadOutcome};
use crate::ledger::record::{Fact, Held};
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
            let hinted = live.is_some_and(|live| live.closes > 0 || live.wrote || live.writing);
            let state = self.state.paths.get(&file);
            let there = state.is_some_and(|state| state.held.hash.is_some() || hinted);
            let known = used && there;
            // A copy that has not settled yet and moves on: what it copies
            // moves on with it.
            let source = self
                .tracker
                .live(&old)
                .and_then(|live| live.copy_of.clone())
                .or_else(|| known.then(|| file.clone()));
            let (writing, wrote) = self
                .tracker
                .live(&file)
                .map_or((false, false), |live| (live.writing, live.wrote));
            {
                let live = self.tracker.live_mut(&file);
                live.writing = false;
                live.wrote = false;
            }
            self.order_read(&old, false);
            let watched = self.tracker.watched.contains(&new);
            let episode = self.tracker.next_episode();
            let live = self.tracker.live_mut(&new);
            // Where the new name is watched, the arrival is hinted by itself.
            live.closes += u32::from(!watched);
            live.writing = writing;
            live.wrote = wrote;
            live.episode = episode;
            let there = self.state.paths.get(&new).map(|state| state.held.hash);
            if let Some(source) = source.filter(|source| *source != new) {
                match there {
                    None => {
                        live.copy_of = Some(source);
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
                self.tracker.live.remove(&new);
            }
        }
    }

    pub(super) fn observe_copy(&mut self, path: &RelPath, outcome: &ReadOutcome) {
        let Some(live) = self.tracker.live_if_any(path) else {
            return;
        };
        if live.copy_of.is_none() {
            return;
        }
        match &outcome.found {
            Found::File(content) => {
                live.copy = Some(Held::from(*content));
                live.stamp = Some(content.stamp);
                if !self.tracker.unsettled.contains(path) {
                    self.unsettle(path, self.config.settle);
                }
            }
            Found::Unstable { .. } => self.retry(path),
            // It vanished again before anyone had named it.
            _ => {
                live.copy_of = None;
                live.copy = None;
                self.tracker.unsettled.remove(path);
                self.unwatch(path);
            }
        }
    }
}
