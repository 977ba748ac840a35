//! What each session was told in its turn. A file that keeps changing is told
//! once in a turn, and all notices of a turn together are bounded (HOOK-5).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use touchmark_proto::{Change, RelPath, SessionId};

/// The maximum length in bytes of the rows that a session is told in one turn.
const TURN: usize = 2_000;

/// The maximum number of sessions that are remembered.
const SESSIONS: usize = 1_024;

/// What sessions were told in their turns.
#[derive(Debug, Default)]
pub(super) struct Notices(HashMap<SessionId, Turn>);

#[derive(Debug, Default)]
struct Turn {
    told: BTreeSet<RelPath>,
    bytes: usize,
    /// What commands have reported of files that were told before.
    held: BTreeMap<RelPath, Change>,
    /// The paths and the length of a notice that has not been delivered yet.
    sent: (Vec<RelPath>, usize),
}

impl Notices {
    /// Notes that a session's turn begins. Returns what was not told of its last
    /// turn's commands.
    pub(super) fn begin(&mut self, session: &SessionId) -> Vec<Change> {
        let before = self.0.remove(session);
        before.map_or_else(Vec::new, |turn| turn.held.into_values().collect())
    }

    /// Takes what changed during a session's command. Leaves the files that the
    /// session was not told of in this turn.
    pub(super) fn of_command(&mut self, session: &SessionId, changes: &mut Vec<Change>) {
        let is_news = |change: &Change| self.is_news(session, change);
        let (news, held) = std::mem::take(changes).into_iter().partition(is_news);
        *changes = news;
        let turn = self.of(session);
        let told = changes.iter().map(|change| change.path.clone());
        turn.told.extend(told);
        let held: Vec<Change> = held;
        for mut change in held {
            if let Some(before) = turn.held.get(&change.path) {
                change.versions = change.versions.max(before.versions);
                change.lines = None;
            }
            turn.held.insert(change.path.clone(), change);
        }
    }

    fn of(&mut self, session: &SessionId) -> &mut Turn {
        if self.0.len() >= SESSIONS && !self.0.contains_key(session) {
            self.0.clear();
        }
        self.0.entry(session.clone()).or_default()
    }

    /// Returns whether a change is to be told now. A loss always is.
    pub(super) fn is_news(&self, session: &SessionId, change: &Change) -> bool {
        let turn = self.0.get(session);
        change.lost.is_some() || turn.is_none_or(|turn| !turn.told.contains(&change.path))
    }

    /// Returns how many bytes are left in the session's turn.
    pub(super) fn room(&self, session: &SessionId) -> usize {
        let used = self.0.get(session).map_or(0, |turn| turn.bytes);
        TURN.saturating_sub(used)
    }

    /// Notes that a notice of these changes, of this length, was sent.
    pub(super) fn send(&mut self, session: &SessionId, changes: &[Change], bytes: usize) {
        let paths = changes.iter().map(|change| change.path.clone()).collect();
        self.of(session).sent = (paths, bytes);
    }

    /// Notes that the notice that was sent last has arrived.
    pub(super) fn arrive(&mut self, session: &SessionId) {
        if let Some(turn) = self.0.get_mut(session) {
            let (paths, bytes) = std::mem::take(&mut turn.sent);
            turn.told.extend(paths);
            turn.bytes += bytes;
        }
    }

    /// Notes that a session reads or writes a file: its next change is news.
    pub(super) fn uses(&mut self, session: &SessionId, path: &RelPath) {
        if let Some(turn) = self.0.get_mut(session) {
            turn.told.remove(path);
            turn.held.remove(path);
        }
    }
}
