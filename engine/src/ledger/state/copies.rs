//! What sessions track and have seen.

use super::{KeptVersion, LostVersion, PathState, State};
use crate::ledger::knowledge::{Knowledge, PastRecord};
use crate::ledger::record::Held;
use crate::ranges::RangeSet;
use touchmark_proto::files::Source;
use touchmark_proto::{Hash, HashOrAbsent, LineRange, Millis, RelPath, SessionId};

impl State {
    /// Records that a session tracks a path from now on. Returns the path in
    /// the allocation that the whole state shares, since every request brings
    /// its own copy.
    fn hold(&mut self, session: &SessionId, path: &RelPath) -> RelPath {
        let holder = self.sessions.get_key_value(session);
        let holder = holder.map_or(session, |(shared, _)| shared).clone();
        let name = self.paths.get_key_value(path);
        let name = name.map_or(path, |(shared, _)| shared).clone();
        if let Some(state) = self.paths.get_mut(path) {
            state.holders.insert(holder);
        }
        name
    }

    pub(super) fn tracked(
        &mut self,
        n: u64,
        time: Millis,
        session: &SessionId,
        path: &RelPath,
        source: Source,
        step: Option<u64>,
    ) {
        let Some(state) = self.paths.get(path) else {
            return;
        };
        let held = state.held;
        let name = self.hold(session, path);
        let record = PastRecord {
            source,
            step,
            time,
            lines: held.lines,
            hash: held.hash,
        };
        let session = self.session_mut(session, time);
        let known = Knowledge::new(n, held.hash, record.clone());
        let again = |known: &mut Knowledge| {
            if source == Source::ReadMissed {
                return known.miss(n, held.hash, record);
            }
            known.copied = false;
            let later = step.is_some() && known.record.step != step;
            if known.record.source != source || later {
                known.supersede(record);
            }
        };
        if session.files.change(path, again).is_none() {
            session.files.insert(name, known);
        }
    }

    pub(super) fn copied(&mut self, n: u64, from: &RelPath, to: &RelPath) {
        let Some(source) = self.paths.get(from) else {
            return;
        };
        let holders = source.holders.clone();
        let held = source.held;
        let changes: Vec<KeptVersion> = source
            .versions
            .iter()
            .map(|kept| (**kept).clone())
            .collect();
        if !self.paths.contains_key(to) {
            // The version that follows this fact records the content of the new
            // name.
            let state = Box::new(PathState::new(n, Held::ABSENT));
            self.paths.insert(to.clone(), state);
        }
        for holder in holders {
            let Some(session) = self.sessions.get_mut(&holder) else {
                continue;
            };
            let Some(knowledge) = session.files.get(from) else {
                continue;
            };
            if session.files.contains_key(to) {
                continue;
            }
            let mut copy = knowledge.into_owned();
            copy.copied = true;
            copy.baseline = if copy.any() { copy.baseline } else { held.hash };
            // Changes of the new name from before the rename are no changes of
            // the copy. Changes that others made to the old name since the
            // session's copy are.
            if copy.any() && !copy.is_fresh(held.hash) {
                let others = changes.iter();
                let others = others.filter(|kept| kept.n > copy.at && !kept.is_edit_of(&holder));
                let mut brought = copy.brought.take().unwrap_or_default();
                brought.extend(others.cloned());
                copy.brought = (!brought.is_empty()).then_some(brought);
            }
            copy.at = n;
            session.files.insert(to.clone(), copy);
            if let Some(path) = self.paths.get_mut(to) {
                path.holders.insert(holder);
            }
        }
    }

    /// Adds what one session has seen of files to another session. If both
    /// track a file, the lines shown last count.
    pub(super) fn inherited(&mut self, session: &SessionId, from: &SessionId) {
        let Some(source) = self.sessions.get(from).filter(|_| session != from) else {
            return;
        };
        let files: Vec<(RelPath, Knowledge)> = source
            .files
            .iter()
            .map(|(path, known)| (path.clone(), known.into_owned()))
            .collect();
        let lost = source.lost.clone();
        for (path, theirs) in files {
            let Some(held) = self.paths.get(&path).map(|state| state.held.hash) else {
                continue;
            };
            let holds = self.knowledge(session, &path).is_some();
            let used = self.names.used(from, &path).map(<[RelPath]>::to_vec);
            for name in used.into_iter().flatten() {
                self.names.use_name(session, &name, &path, holds);
            }
            let name = self.hold(session, &path);
            let Some(owner) = self.sessions.get_mut(session) else {
                return;
            };
            let known = match owner.files.remove(&path) {
                Some(own) => Knowledge::shown_to_both(own, theirs, held),
                None => theirs,
            };
            owner.files.insert(name, known);
            let newest = self.knowledge(session, &path);
            let newest = newest.zip(self.paths.get(&path));
            let owed = newest
                .is_some_and(|(known, state)| state.newest_to_report(session, &known) > known.told);
            if let (Some(owner), true) = (self.sessions.get_mut(session), owed) {
                owner.pending.insert(path.clone());
            }
            self.settle_pending(session, &path);
        }
        if let Some(owner) = self.sessions.get_mut(session) {
            let known = |entry: &LostVersion| owner.lost.iter().any(|own| own.n == entry.n);
            let lost: Vec<LostVersion> = lost.into_iter().filter(|entry| !known(entry)).collect();
            owner.lost.extend(lost);
        }
    }

    pub(super) fn read(
        &mut self,
        n: u64,
        session: &SessionId,
        path: &RelPath,
        record: PastRecord,
        range: Option<LineRange>,
    ) {
        let Some(state) = self.paths.get(path) else {
            return;
        };
        let held = state.held.hash;
        // If the content is not the file's current one, its last line is not
        // known. So only lines within the range count as shown.
        let ranges = match record.hash.is_none_or(|hash| held == Some(hash)) {
            true => RangeSet::of_read(range, record.lines),
            false => RangeSet::exactly(range),
        };
        // The copy includes changes up to now if its content is the file's
        // current one, else up to the newest version with that content.
        let (at, foreign) = match record.hash {
            None => (n, false),
            Some(hash) if held == Some(hash) => (n, false),
            Some(hash) => match state.versions.iter().rev().find(|v| v.hash == Some(hash)) {
                Some(version) => (version.n, false),
                None if state
                    .versions
                    .first()
                    .is_some_and(|v| v.before == Some(hash)) =>
                {
                    (state.baseline, false)
                }
                None => (n, true),
            },
        };
        let time = record.time;
        let name = self.hold(session, path);
        let owner = self.session_mut(session, time);
        owner.reads += 1;
        let known = owner.files.remove(path);
        let again = known.is_some();
        let mut knowledge = known.unwrap_or_else(|| Knowledge::new(n, held, record.clone()));
        knowledge.copied = false;
        knowledge.at = at;
        knowledge.brought = None;
        knowledge.foreign = foreign;
        match record.hash {
            Some(hash) => knowledge.shown(hash, &ranges),
            None => knowledge.shown_unsure(&ranges),
        }
        // A mention is not a read, so it is not counted.
        if record.source != Source::FileMentioned {
            knowledge.read_count += 1;
        }
        knowledge.read_at = Some(time);
        // A copy that is out of date from the beginning is reported at the next
        // take.
        let behind = record.hash.is_none() || held != record.hash;
        knowledge.behind = if behind { n } else { 0 };
        if behind {
            knowledge.told = knowledge.told.min(n.saturating_sub(1));
        }
        if again {
            knowledge.supersede(record);
        }
        owner.files.insert(name, knowledge);
        if behind {
            owner.pending.insert(path.clone());
        }
        self.settle_pending(session, path);
    }

    pub(super) fn wrote(
        &mut self,
        n: u64,
        time: Millis,
        session: &SessionId,
        path: &RelPath,
        hash: HashOrAbsent,
        assumed: bool,
    ) {
        let Some(state) = self.paths.get(path) else {
            return;
        };
        let at = state
            .versions
            .iter()
            .rev()
            .find(|version| version.hash == hash.hash())
            .map_or(n, |version| version.n);
        let (lines, held) = (state.held.lines, state.held.hash);
        let owner = self.session_mut(session, time);
        owner.files.change(path, |knowledge| {
            knowledge.copied = false;
            // A write that is confirmed only now may be older than what the
            // session has seen since. A content counts as seen since only if
            // its lines were shown, not if they were only carried over from an
            // older content (SEEN-8).
            let unseen = knowledge.seen.iter().all(|seen| seen.moved);
            let later = at >= knowledge.at || held == hash.hash();
            if later || unseen && !knowledge.uncertain && knowledge.unsure.is_empty() {
                knowledge.wrote(hash.hash(), assumed);
                knowledge.at = at;
                knowledge.brought = None;
                knowledge.foreign = false;
                knowledge.behind = 0;
            }
            knowledge.edit_at = Some(time);
            let step = knowledge.record.step;
            knowledge.supersede(PastRecord {
                source: Source::AgentEdited,
                step,
                time,
                lines,
                hash: hash.hash(),
            });
        });
        self.settle_pending(session, path);
    }

    pub(super) fn carried(
        &mut self,
        n: u64,
        session: &SessionId,
        path: &RelPath,
        texts: (Hash, Hash),
        (kept, changed): (&RangeSet, &RangeSet),
    ) {
        let Some(owner) = self.sessions.get_mut(session) else {
            return;
        };
        owner.files.change(path, |knowledge| {
            knowledge.carry(texts.0, texts.1, kept, changed);
            if knowledge.is_fresh(Some(texts.1)) {
                // The versions so far are no changes for this session.
                knowledge.at = n;
            }
        });
        self.settle_pending(session, path);
    }

    /// Removes a path from the session's pending ones once no list would
    /// include it: its changes were reported, or the session has seen the
    /// current content.
    pub(super) fn settle_pending(&mut self, session: &SessionId, path: &RelPath) {
        let Some(owner) = self.sessions.get_mut(session) else {
            return;
        };
        let settled = match (owner.files.get(path), self.paths.get(path)) {
            (Some(knowledge), Some(state)) => {
                knowledge.is_fresh(state.held.hash)
                    || knowledge.told >= state.newest_to_report(session, &knowledge)
            }
            _ => true,
        };
        if settled {
            owner.pending.remove(path);
        }
    }

    /// Records that a session no longer tracks a path. If no other session
    /// tracks it, the path is no longer tracked at all.
    pub(super) fn release(&mut self, session: &SessionId, path: &RelPath) {
        if let Some(state) = self.paths.get_mut(path) {
            state.holders.remove(session);
            if state.holders.is_empty() {
                self.paths.remove(path);
                self.names.forget(path);
            }
        }
        self.names.release(session, path);
    }

    pub(super) fn forget(&mut self, session: &SessionId) {
        if let Some(gone) = self.sessions.remove(session) {
            for path in gone.files.keys() {
                self.release(session, path);
            }
        }
        self.ended.retain(|ended| ended.session != *session);
        self.past_commands.retain(|past| past.session != *session);
    }
}
