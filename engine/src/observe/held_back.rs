//! What a declared writer may be in the middle of (ATTR-5), and what it turns
//! out to have been.

use crate::attribution::{Decision, Observation, decide, reported, unclaimed};
use crate::engine::{CUT_DELAY, Engine};
use crate::input::Content;
use crate::live::Unconfirmed;
use crate::requests::queue::Ask;
use touchmark_proto::{Hash, RelPath};

impl Engine {
    /// Whether a closed content that is not the declared one has to be looked
    /// at once more: only a second read behind a fence tells that it is not
    /// the middle of the next write. That is worth it while its declared
    /// writer is awaited, and for a file found empty, as every save in place
    /// leaves it for a moment.
    pub(super) fn must_confirm(&mut self, path: &RelPath, content: Content) -> bool {
        let doubtful = content.size == 0
            || self
                .state
                .edits_on(path)
                .any(|(_, file)| file.expect.is_some() && file.matched.is_none());
        let live = self.live.entry(path.clone()).or_default();
        let looked_at = live
            .unconfirmed
            .filter(|first| first.stamp == content.stamp);
        // A file that is being cut to nothing is seen empty some time before
        // the system says that it was written.
        let confirmed = looked_at.is_some_and(|first| {
            first.fence <= self.fences.done
                && (content.size > 0 || first.since + CUT_DELAY <= self.now)
        });
        if !doubtful {
            live.unconfirmed = None;
        }
        if !doubtful || confirmed {
            // What is confirmed stays known: as long as nobody has closed it,
            // it is read for everybody who asks, and not doubted each time.
            self.unconfirmed.remove(path);
            return false;
        }
        match looked_at {
            None => {
                let fence = self.ask_internally(Ask::Look);
                let live = self.live.entry(path.clone()).or_default();
                live.unconfirmed = Some(Unconfirmed {
                    stamp: content.stamp,
                    fence,
                    since: self.now,
                });
            }
            Some(_) => self.read_in(path, CUT_DELAY),
        }
        self.unconfirmed.insert(path.clone());
        self.dirty.insert(path.clone());
        true
    }

    /// Remembers which earlier marked versions this one begins with, so that
    /// a commit can tell a partial write from somebody else's (ATTR-4).
    pub(super) fn note_prefixes(&mut self, path: &RelPath, version: u64, prefixes: &[(u64, Hash)]) {
        let Some(state) = self.state.paths.get(path) else {
            return;
        };
        let partial: Vec<u64> = state
            .versions
            .iter()
            .filter(|kept| {
                kept.n != version
                    && kept.edit().is_some()
                    && (kept.hash.is_none()
                        || kept.size == 0
                        || prefixes
                            .iter()
                            .any(|(size, hash)| *size == kept.size && Some(*hash) == kept.hash))
            })
            .map(|kept| kept.n)
            .collect();
        if !partial.is_empty() {
            self.partial.insert((path.clone(), version), partial);
        }
    }

    /// The declared writer is done, or somebody else wrote: what was held
    /// back is the writer's partial write, or versions after all (ATTR-5).
    pub(super) fn release_held_back(
        &mut self,
        path: &RelPath,
        declared: bool,
        prefixes: &[(u64, Hash)],
    ) {
        let live = self.live.entry(path.clone()).or_default();
        let held_back = std::mem::take(&mut live.held_back);
        if !declared {
            // Steps on the way to what was just read.
            return;
        }
        for held in held_back {
            let partial = held.hash.is_none()
                || held.size == 0
                || prefixes
                    .iter()
                    .any(|(size, hash)| *size == held.size && Some(*hash) == held.hash);
            if !partial {
                // Not its declared writer's: an editor's, or somebody's.
                let (now, window) = (self.now, self.config.editor_window);
                let decision = reported(&self.state, path, held.hash, now, window)
                    .unwrap_or_else(|| unclaimed(&self.state, path, held.hash, now));
                self.make_version(path, held, None, decision);
            }
        }
    }

    /// The edits that held contents back are gone: what is on disk is decided
    /// without them.
    pub(crate) fn decide_held_back(&mut self, path: &RelPath) {
        let Some(live) = self.live.get_mut(path) else {
            return;
        };
        let Some(held) = live.held_back.last().copied() else {
            return;
        };
        live.unconfirmed = None;
        self.unconfirmed.remove(path);
        // A commit that claimed a write nobody saw has recorded it already.
        let recorded = self.state.paths.get(path).map(|state| state.held.hash);
        if recorded == Some(held.hash) {
            live.held_back.clear();
            return;
        }
        let seen = Observation {
            path,
            hash: held.hash,
            now: self.now,
            writing: live.writing,
            changes: 0,
            gap: false,
            editor_window: self.config.editor_window,
            hold: true,
        };
        let decision = decide(&self.state, seen);
        if decision == Decision::Hold {
            return;
        }
        live.held_back.clear();
        self.make_version(path, held, None, decision);
    }
}
