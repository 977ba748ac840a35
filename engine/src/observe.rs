//! From what a read found to versions: the one place where they are made.

use touchmark_proto::events::{EditPhase, Happening};
use touchmark_proto::{
    Author, AuthorKind, Evidence, Hash, HashOrAbsent, Millis, RelPath, SessionId, VersionKind,
};

use crate::attribution::{Decision, Observation, decide, unclaimed};
use crate::engine::{CUT_DELAY, Engine, TOUCH_DELAY, Timer, WRITE_DELAY};
use crate::input::{Content, Found, ReadOutcome};
use crate::live::{Live, Obstacle, Unconfirmed};
use crate::pending::Ask;
use crate::record::{Fact, Held, VersionFact};

impl From<Content> for Held {
    fn from(content: Content) -> Self {
        Self {
            hash: Some(content.hash),
            size: content.size,
            lines: content.lines,
            mtime_ms: content.mtime_ms,
        }
    }
}

/// Keeps what a declared writer may be in the middle of (ATTR-5). A touch of
/// it is no new content.
fn hold_back(live: &mut Live, held: Held) {
    match live.held_back.last_mut() {
        Some(last) if last.hash == held.hash => *last = held,
        _ => live.held_back.push(held),
    }
}

/// What a request speaks of.
pub(crate) enum Scope {
    /// The whole workspace.
    Everything,
    /// These paths.
    Paths(Vec<RelPath>),
    /// What a session holds.
    Session(SessionId),
}

/// What was hinted at since the last read.
#[derive(Clone, Copy)]
struct Hints {
    closes: u32,
    written_closes: u32,
    writing: bool,
    gap: bool,
}

impl Engine {
    /// Takes in what a read of a watched path found.
    pub(crate) fn observe(&mut self, path: &RelPath, outcome: &ReadOutcome) {
        if !self.state.paths.contains_key(path) {
            self.observe_copy(path, outcome);
            return;
        }
        if matches!(outcome.found, Found::Unstable { .. }) {
            self.live.entry(path.clone()).or_default().obstacle = Some(Obstacle::Unstable);
            self.retry(path);
            return;
        }
        let live = self.live.entry(path.clone()).or_default();
        live.retries = 0;
        live.obstacle = Obstacle::of(&outcome.found);
        match &outcome.found {
            Found::File(content) => {
                let hints = self.take_hints(path);
                self.observe_file(path, *content, &outcome.prefixes, hints);
            }
            // A directory in its place: the file is gone.
            Found::Absent | Found::NotAFile { .. } => {
                let hints = self.take_hints(path);
                self.observe_absence(path, hints);
            }
            // What cannot be read is neither a version nor an absence; the
            // next read that succeeds tells what became of it.
            Found::Unreadable { .. } | Found::Outside | Found::Unstable { .. } => {}
        }
    }

    fn take_hints(&mut self, path: &RelPath) -> Hints {
        let live = self.live.entry(path.clone()).or_default();
        Hints {
            closes: std::mem::take(&mut live.closes),
            written_closes: std::mem::take(&mut live.written_closes),
            writing: live.writing,
            gap: std::mem::take(&mut live.gap),
        }
    }

    fn observe_file(
        &mut self,
        path: &RelPath,
        content: Content,
        prefixes: &[(u64, Hash)],
        hints: Hints,
    ) {
        let Some(state) = self.state.paths.get(path) else {
            return;
        };
        let recorded = state.held;
        self.unconfirmed.remove(path);
        let live = self.live.entry(path.clone()).or_default();
        live.absent = false;
        live.tentative = None;
        let moved_in = live
            .stamp
            .is_some_and(|stamp| stamp.inode != content.stamp.inode);
        let untouched = live.stamp == Some(content.stamp);
        live.stamp = Some(content.stamp);
        live.mtime_ms = (content.mtime_ms != recorded.mtime_ms).then_some(content.mtime_ms);
        self.unsettled.remove(path);

        if recorded.hash == Some(content.hash) {
            let live = self.live.entry(path.clone()).or_default();
            live.held_back.clear();
            let changed = hints.written_closes > 0 || (hints.closes > 0 && moved_in);
            if changed {
                self.close_without_change(path, untouched, hints.written_closes);
            }
            return;
        }

        let live = self.live.entry(path.clone()).or_default();
        live.mtime_ms = None;
        let seen = Observation {
            path,
            hash: Some(content.hash),
            now: self.now,
            writing: hints.writing,
            changes: hints.closes + u32::from(hints.writing && hints.closes > 0),
            gap: hints.gap,
            editor_window: self.config.editor_window,
            hold: true,
        };
        let decision = decide(&self.state, seen);
        let held = Held::from(content);
        let Decision::By { evidence, edit, .. } = &decision else {
            let live = self.live.entry(path.clone()).or_default();
            hold_back(live, held);
            return;
        };
        let (evidence, edit) = (*evidence, *edit);
        if evidence != Evidence::Declared && !hints.gap && self.must_confirm(path, content) {
            let live = self.live.entry(path.clone()).or_default();
            hold_back(live, held);
            // The close still ends a one-call mark, once it is believed.
            live.closes += hints.closes;
            live.written_closes += hints.written_closes;
            return;
        }
        if evidence != Evidence::Declared && !hints.gap && hints.closes == 0 {
            let live = self.live.entry(path.clone()).or_default();
            live.tentative = Some((held, prefixes.to_vec()));
            self.unsettle(path, WRITE_DELAY);
            return;
        }
        if evidence == Evidence::Declared
            && let Some((session, begun)) = edit.and_then(|edit| {
                let open = self.state.edits.get(&edit)?;
                Some((open.fact.session.clone(), open.n))
            })
        {
            self.claim_beginnings(&session, path, self.state.n + 1, begun, edit, prefixes);
        }
        self.release_held_back(path, evidence == Evidence::Declared, prefixes);
        if self.state.paths.get(path).map(|state| state.held.hash) == Some(Some(content.hash)) {
            return;
        }
        let version = self.make_version(path, held, None, decision);
        self.note_prefixes(path, version, prefixes);
        self.consume_marks(path, hints.closes, version);
        if evidence == Evidence::Declared
            && let Some(edit) = edit
            && self
                .state
                .edits
                .get(&edit)
                .is_some_and(|edit| edit.fact.one_shot)
        {
            self.end_edit(edit, std::slice::from_ref(path), EditPhase::Committed);
        }
    }

    /// Whether a closed content that is not the declared one has to be looked
    /// at once more: while its declared writer is awaited, only a second read
    /// behind a fence tells that it is not the middle of the next write.
    fn must_confirm(&mut self, path: &RelPath, content: Content) -> bool {
        let awaited = self
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
        if !awaited || confirmed {
            live.unconfirmed = None;
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

    /// A writer closed the file and it holds what is recorded.
    ///
    /// Either this is the close of the write that was read in the middle, and
    /// consumes the one-call mark that spoke for it; or the mark was consumed
    /// by an earlier close, and an unchanged stat says that the content read
    /// then was already the later writer's: between an agent's close and a
    /// user's next write there may be no time to look.
    fn close_without_change(&mut self, path: &RelPath, untouched: bool, written_closes: u32) {
        let newest = self.state.paths.get(path).map_or(0, |state| state.newest);
        let mut left = written_closes.max(1);
        while left > 0 {
            let Some(edit) = self.oldest_mark(path) else {
                break;
            };
            self.consume_mark(path, edit, Some(newest));
            left -= 1;
        }
        let live = self.live.entry(path.clone()).or_default();
        if left > 0 && untouched && live.consumed == Some(newest) {
            live.consumed = None;
            let hash = self.current(path, None).held.hash;
            let decision = unclaimed(&self.state, path, hash, self.now);
            self.amend_by(path, newest, decision, false);
        }
    }

    /// Each closed change ends one one-call mark, the oldest first (ATTR-8).
    fn consume_marks(&mut self, path: &RelPath, closes: u32, version: u64) {
        for _ in 0..closes {
            let Some(edit) = self.oldest_mark(path) else {
                return;
            };
            self.consume_mark(path, edit, Some(version));
        }
    }

    fn oldest_mark(&self, path: &RelPath) -> Option<u64> {
        self.state
            .edits_on(path)
            .find(|(edit, file)| edit.fact.one_shot && file.expect.is_none())
            .map(|(edit, _)| edit.fact.edit)
    }

    fn consume_mark(&mut self, path: &RelPath, edit: u64, version: Option<u64>) {
        let spoke = version.and_then(|n| {
            let state = self.state.paths.get(path)?;
            let kept = state.versions.iter().find(|kept| kept.n == n)?;
            (kept.edit == Some(edit)).then_some((n, kept.hash))
        });
        if let (Some((n, hash)), Some(session)) = (spoke, self.edit_session(edit)) {
            self.record(Fact::Wrote {
                session,
                path: path.clone(),
                hash: hash.into(),
                assumed: true,
            });
            self.live.entry(path.clone()).or_default().consumed = Some(n);
        }
        self.end_edit(edit, std::slice::from_ref(path), EditPhase::Committed);
    }

    fn edit_session(&self, edit: u64) -> Option<SessionId> {
        Some(self.state.edits.get(&edit)?.fact.session.clone())
    }

    /// Remembers which earlier marked versions this one begins with, so that
    /// a commit can tell a partial write from somebody else's (ATTR-4).
    fn note_prefixes(&mut self, path: &RelPath, version: u64, prefixes: &[(u64, Hash)]) {
        let Some(state) = self.state.paths.get(path) else {
            return;
        };
        let partial: Vec<u64> = state
            .versions
            .iter()
            .filter(|kept| {
                kept.n != version
                    && kept.edit.is_some()
                    && (kept.hash.is_none()
                        || kept.fact.held.size == 0
                        || prefixes.iter().any(|(size, hash)| {
                            *size == kept.fact.held.size && Some(*hash) == kept.hash
                        }))
            })
            .map(|kept| kept.n)
            .collect();
        if !partial.is_empty() {
            self.partial.insert((path.clone(), version), partial);
        }
    }

    /// What was recorded as the user's since fact `begun` and is empty, or the
    /// beginning of the declared content that has come now, was its writer's
    /// partial write (ATTR-5): a close heard of in its midst was another's.
    pub(crate) fn claim_beginnings(
        &mut self,
        session: &SessionId,
        path: &RelPath,
        declared: u64,
        begun: u64,
        edit: Option<u64>,
        prefixes: &[(u64, Hash)],
    ) {
        let Some(state) = self.state.paths.get(path) else {
            return;
        };
        let beginnings: Vec<u64> = state
            .versions
            .iter()
            .rev()
            .skip_while(|kept| kept.n >= declared)
            .take_while(|kept| {
                let unclaimed = kept.author == Author::USER && kept.evidence == Evidence::Unmarked;
                let young = kept.time.saturating_add(self.config.late) > self.now;
                let beginning = kept.fact.held.size == 0
                    || prefixes.iter().any(|(size, hash)| {
                        *size == kept.fact.held.size && Some(*hash) == kept.hash
                    });
                kept.n > begun && unclaimed && young && beginning && kept.hash.is_some()
            })
            .map(|kept| kept.n)
            .collect();
        for n in beginnings.into_iter().rev() {
            let author = Author::agent(session.clone());
            self.amend(path, n, author, Evidence::Declared, edit, edit.is_none());
            self.note_lost(session, path, n);
        }
    }

    /// The declared writer is done, or somebody else wrote: what was held
    /// back is the writer's partial write, or versions after all (ATTR-5).
    fn release_held_back(&mut self, path: &RelPath, declared: bool, prefixes: &[(u64, Hash)]) {
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
                let decision = unclaimed(&self.state, path, held.hash, self.now);
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

    fn observe_absence(&mut self, path: &RelPath, hints: Hints) {
        let Some(state) = self.state.paths.get(path) else {
            return;
        };
        let live = self.live.entry(path.clone()).or_default();
        live.mtime_ms = None;
        live.tentative = None;
        if state.held.hash.is_none() {
            live.held_back.clear();
            live.absent = false;
            return;
        }
        let seen = Observation {
            path,
            hash: None,
            now: self.now,
            writing: false,
            changes: 0,
            gap: hints.gap,
            editor_window: self.config.editor_window,
            hold: true,
        };
        match decide(&self.state, seen) {
            Decision::Hold => {
                let live = self.live.entry(path.clone()).or_default();
                if live.held_back.last() != Some(&Held::ABSENT) {
                    live.held_back.push(Held::ABSENT);
                }
            }
            decision @ Decision::By {
                evidence: Evidence::Declared | Evidence::Gap,
                ..
            } => {
                let live = self.live.entry(path.clone()).or_default();
                live.absent = false;
                live.held_back.clear();
                let edit = match &decision {
                    Decision::By { edit, .. } => *edit,
                    Decision::Hold => None,
                };
                self.make_version(path, Held::ABSENT, None, decision);
                if let Some(edit) = edit
                    && self.state.edits.get(&edit).is_some_and(|e| e.fact.one_shot)
                {
                    self.end_edit(edit, std::slice::from_ref(path), EditPhase::Committed);
                }
            }
            Decision::By { .. } => {
                // Most absences are the middle of a save (ATTR-12).
                let live = self.live.entry(path.clone()).or_default();
                // What it held before that is no longer there.
                live.held_back.clear();
                if !live.absent {
                    live.absent = true;
                    self.unsettle(path, self.config.settle);
                }
            }
        }
    }

    /// One name became another (ATTR-12).
    pub(crate) fn renamed(&mut self, from: &RelPath, to: &RelPath) {
        let from = &self.spelling(from.clone());
        let moved: Vec<(RelPath, RelPath)> = self
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
            self.note_for_audits(&old);
            self.note_for_audits(&new);
            let known = self.state.paths.contains_key(&old);
            // A copy that has not settled yet and moves on: what it copies
            // moves on with it.
            let source = self
                .live
                .get(&old)
                .and_then(|live| live.copy_of.clone())
                .or_else(|| known.then(|| old.clone()));
            let (writing, wrote) = self
                .live
                .get(&old)
                .map_or((false, false), |live| (live.writing, live.wrote));
            {
                let live = self.live.entry(old.clone()).or_default();
                live.writing = false;
                live.wrote = false;
            }
            self.order_read(&old, false);
            let watched = self.watched.contains(&new);
            let live = self.live.entry(new.clone()).or_default();
            // Where the new name is watched, the arrival is hinted by itself.
            live.closes += u32::from(!watched);
            live.writing = writing;
            live.wrote = wrote;
            self.episodes += 1;
            live.episode = self.episodes;
            if let Some(source) = source
                && source != new
                && !self.state.paths.contains_key(&new)
            {
                live.copy_of = Some(source);
                self.watch(&new);
            }
            if watched {
                // Its hint counts the arrival and has it read; a read before
                // that would find the change and no close (ATTR-8).
                self.read_in(&new, TOUCH_DELAY);
            } else if self.watched.contains(&new) {
                self.order_read(&new, false);
            } else {
                self.live.remove(&new);
            }
        }
    }

    fn observe_copy(&mut self, path: &RelPath, outcome: &ReadOutcome) {
        let Some(live) = self.live.get_mut(path) else {
            return;
        };
        if live.copy_of.is_none() {
            return;
        }
        match &outcome.found {
            Found::File(content) => {
                live.copy = Some(Held::from(*content));
                live.stamp = Some(content.stamp);
                if !self.unsettled.contains(path) {
                    self.unsettle(path, self.config.settle);
                }
            }
            Found::Unstable { .. } => self.retry(path),
            // It vanished again before anyone had named it.
            _ => {
                live.copy_of = None;
                live.copy = None;
                self.unsettled.remove(path);
                self.unwatch(path);
            }
        }
    }

    /// Waits a little for what may dissolve by itself.
    fn unsettle(&mut self, path: &RelPath, delay: Millis) {
        let due = self.now + delay;
        self.live.entry(path.clone()).or_default().settle_at = due;
        self.unsettled.insert(path.clone());
        self.timers.insert((due, Timer::Settle(path.clone())));
    }

    /// Records the absences, copies and unclosed contents that somebody asks
    /// about as of now, though they may still dissolve; what nobody asks about
    /// has its time.
    pub(crate) fn settle_for(&mut self, scope: &Scope) {
        if self.unsettled.is_empty() {
            return;
        }
        let due: Vec<RelPath> = self
            .unsettled
            .iter()
            .filter(|path| match scope {
                Scope::Everything => true,
                Scope::Paths(paths) => paths.contains(path),
                Scope::Session(session) => {
                    let copied = self.live.get(*path).and_then(|live| live.copy_of.as_ref());
                    self.state
                        .knowledge(session, copied.unwrap_or(path))
                        .is_some()
                }
            })
            .cloned()
            .collect();
        for path in due {
            self.settle(&path);
        }
    }

    /// Records an absence, a copy or an unclosed content that has not
    /// dissolved.
    pub(crate) fn settle(&mut self, path: &RelPath) {
        self.unsettled.remove(path);
        let Some(live) = self.live.get_mut(path) else {
            return;
        };
        if let Some(from) = live.copy_of.clone() {
            if let Some(held) = live.copy.take() {
                live.copy_of = None;
                self.record_copy(&from, path, held);
            }
            return;
        }
        if let Some((held, prefixes)) = live.tentative.take() {
            // An editor's report may have decided it meanwhile.
            if self.state.paths.get(path).map(|state| state.held.hash) == Some(held.hash) {
                return;
            }
            self.settle_content(path, held, &prefixes);
            return;
        }
        if !std::mem::take(&mut live.absent) {
            return;
        }
        if self.is_unnamed_copy(path) {
            // What came of it by a further rename is copied first.
            let onwards: Vec<RelPath> = self
                .unsettled
                .iter()
                .filter(|copy| {
                    self.live
                        .get(*copy)
                        .is_some_and(|live| live.copy_of.as_ref() == Some(path))
                })
                .cloned()
                .collect();
            for copy in onwards {
                self.settle(&copy);
            }
            self.record(Fact::CopyDropped { path: path.clone() });
            self.unwatch(path);
            return;
        }
        let seen = Observation {
            path,
            hash: None,
            now: self.now,
            writing: false,
            changes: 0,
            gap: false,
            editor_window: self.config.editor_window,
            hold: false,
        };
        let decision = decide(&self.state, seen);
        self.make_version(path, Held::ABSENT, None, decision);
    }

    /// Whether a path is held only because a rename copied what was known of
    /// another, and nobody has named it since (ATTR-12).
    fn is_unnamed_copy(&self, path: &RelPath) -> bool {
        let Some(state) = self.state.paths.get(path) else {
            return false;
        };
        !state.holders.is_empty()
            && state.holders.iter().all(|holder| {
                self.state
                    .knowledge(holder, path)
                    .is_some_and(|knowledge| knowledge.copied)
            })
    }

    fn settle_content(&mut self, path: &RelPath, held: Held, prefixes: &[(u64, Hash)]) {
        let writing = self.live.get(path).is_some_and(|live| live.writing);
        let seen = Observation {
            path,
            hash: held.hash,
            now: self.now,
            writing,
            changes: 0,
            gap: false,
            editor_window: self.config.editor_window,
            hold: true,
        };
        let decision = decide(&self.state, seen);
        if decision == Decision::Hold {
            let live = self.live.entry(path.clone()).or_default();
            live.held_back.push(held);
            return;
        }
        self.release_held_back(path, false, prefixes);
        let version = self.make_version(path, held, None, decision);
        self.note_prefixes(path, version, prefixes);
    }

    fn record_copy(&mut self, from: &RelPath, to: &RelPath, held: Held) {
        if !self.state.paths.contains_key(from) {
            self.unwatch(to);
            return;
        }
        self.record(Fact::Copied {
            from: from.clone(),
            to: to.clone(),
        });
        let seen = Observation {
            path: to,
            hash: held.hash,
            now: self.now,
            writing: false,
            changes: 1,
            gap: false,
            editor_window: self.config.editor_window,
            hold: false,
        };
        let decision = decide(&self.state, seen);
        let version = self.make_version(to, held, Some(from), decision);
        let live = self.live.entry(to.clone()).or_default();
        live.closes = 0;
        live.gap = false;
        self.consume_marks(to, 1, version);
    }

    /// Records a version with everything that follows from it: the writer has
    /// seen it, what it overwrote unseen is lost, other copies are stale.
    pub(crate) fn make_version(
        &mut self,
        path: &RelPath,
        held: Held,
        from: Option<&RelPath>,
        decision: Decision,
    ) -> u64 {
        let Decision::By {
            author,
            evidence,
            edit,
            formatted,
            candidates,
        } = decision
        else {
            return self.state.n;
        };
        let before = self.state.paths.get(path).and_then(|state| state.held.hash);
        let kind = match (from, before, held.hash) {
            (Some(_), _, _) => VersionKind::Renamed,
            (None, _, None) => VersionKind::Deleted,
            (None, None, Some(_)) => VersionKind::Created,
            (None, Some(_), Some(_)) => VersionKind::Modified,
        };
        // A renamed file's content is compared with what it held under its
        // old name.
        let before = match from {
            Some(from) => self.state.paths.get(from).and_then(|state| state.held.hash),
            None => before,
        };
        let fresh = self.fresh_holders(path);
        let n = self.record(Fact::Version(VersionFact {
            path: path.clone(),
            kind,
            from: from.cloned(),
            held,
            author: author.clone(),
            evidence,
            amends: None,
            edit,
            unobserved: false,
            late: false,
            formatted,
            candidates,
            before,
        }));
        self.counts.versions += 1;
        self.publish_version(path, n, Some((before, held.hash)));
        let live = self.live.entry(path.clone()).or_default();
        live.version_episode = live.episode;
        live.consumed = None;
        if let (AuthorKind::Agent, Some(session)) = (author.kind, author.session) {
            self.note_lost(&session, path, n);
            if evidence == Evidence::Declared {
                self.record(Fact::Wrote {
                    session,
                    path: path.clone(),
                    hash: HashOrAbsent::from(held.hash),
                    assumed: false,
                });
            }
        }
        self.publish_stale(path, &fresh);
        n
    }

    /// A session's write took the place of a version of somebody else's that
    /// it had not seen (ATTR-10, `clobbered`).
    pub(crate) fn note_lost(&mut self, session: &SessionId, path: &RelPath, by: u64) {
        let Some(state) = self.state.paths.get(path) else {
            return;
        };
        let prior = state
            .versions
            .iter()
            .rev()
            .find(|kept| kept.n < by && !kept.unobserved);
        let Some(prior) = prior else { return };
        let seen = self
            .state
            .knowledge(session, path)
            .is_some_and(|knowledge| knowledge.of(prior.hash).is_some());
        // Where there was no file, nothing was destroyed.
        if prior.author.is(session) || prior.hash.is_none() || seen || prior.lost {
            return;
        }
        let version = prior.n;
        self.record(Fact::Lost {
            session: session.clone(),
            path: path.clone(),
            version,
            by,
        });
    }

    /// Corrects who wrote a version: a fact of its own (ATTR-11).
    pub(crate) fn amend(
        &mut self,
        path: &RelPath,
        version: u64,
        author: Author,
        evidence: Evidence,
        edit: Option<u64>,
        late: bool,
    ) -> Option<u64> {
        let decision = Decision::By {
            author,
            evidence,
            edit,
            formatted: false,
            candidates: Vec::new(),
        };
        self.amend_by(path, version, decision, late)
    }

    /// The same by a decision.
    pub(crate) fn amend_by(
        &mut self,
        path: &RelPath,
        version: u64,
        decision: Decision,
        late: bool,
    ) -> Option<u64> {
        let Decision::By {
            author,
            evidence,
            edit,
            formatted,
            candidates,
        } = decision
        else {
            return None;
        };
        let state = self.state.paths.get(path)?;
        let kept = state.versions.iter().find(|kept| kept.n == version)?;
        let fact = VersionFact {
            author,
            evidence,
            edit,
            late,
            amends: Some(version),
            formatted,
            candidates,
            ..kept.fact.clone()
        };
        // Whoever loses a version it marked now holds a stale copy.
        let loser: Vec<SessionId> = kept.author.session.iter().cloned().collect();
        let n = self.record(Fact::Version(fact));
        self.publish_amendment(path, version, n);
        self.publish_stale(path, &loser);
        Some(n)
    }

    /// Sessions whose copy is fresh at this moment.
    fn fresh_holders(&self, path: &RelPath) -> Vec<SessionId> {
        let Some(state) = self.state.paths.get(path) else {
            return Vec::new();
        };
        state
            .holders
            .iter()
            .filter(|holder| {
                self.state
                    .knowledge(holder, path)
                    .is_some_and(|knowledge| knowledge.is_fresh(state.held.hash))
            })
            .cloned()
            .collect()
    }

    /// Tells subscribers whose copies have just gone out of date.
    fn publish_stale(&mut self, path: &RelPath, were_fresh: &[SessionId]) {
        for session in were_fresh {
            let Some(state) = self.state.paths.get(path) else {
                return;
            };
            let by_itself = state
                .latest()
                .is_some_and(|kept| kept.author.is(session) && kept.evidence == Evidence::Marked);
            let stale = self
                .state
                .knowledge(session, path)
                .is_some_and(|knowledge| !knowledge.is_fresh(state.held.hash));
            if stale && !by_itself {
                let file = self.file_state(session, path, None);
                self.publish(
                    Happening::Stale {
                        session: session.clone(),
                        file,
                    },
                    None,
                );
            }
        }
    }
}
