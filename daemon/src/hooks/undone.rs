//! What sessions are told about changes of theirs that were taken away, and
//! that are back (UNDO-5).

use std::collections::{BTreeMap, VecDeque};

use touchmark_proto::{Hash, LineRange, RelPath, SessionId};

/// The maximum number of notices about undos, over all sessions.
const NOTICES: usize = 256;

/// The maximum number of edits that were taken back, over all sessions.
const EDITS: usize = 4_096;

/// What a session is still to be told about an undo or a redo.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Notice {
    /// The text. It is empty if later undos and redos have taken back all of
    /// it.
    text: String,
    /// Whether an answer contained the text. The acknowledgement may follow.
    is_sent: bool,
}

/// An edit of a session that another author took back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TakenBack {
    pub(super) session: SessionId,
    pub(super) path: RelPath,
    /// The content that the session last saw or wrote.
    pub(super) seen: Hash,
    /// The lines that were taken back, in that content.
    pub(super) lines: Vec<LineRange>,
    /// Whether the session has received the notice.
    pub(super) is_told: bool,
}

/// The notices about undos, which are stored as facts as well, and the edits
/// that were taken back, which are lost when the daemon ends.
#[derive(Debug, Default)]
pub(crate) struct Undone {
    /// By the number of the undo or redo.
    notices: BTreeMap<(SessionId, u64), Notice>,
    edits: VecDeque<TakenBack>,
    /// The contents that undos and redos left, of which a session is told by
    /// their notices.
    left: VecDeque<(SessionId, RelPath, Option<Hash>)>,
}

impl Undone {
    /// Adds what was stored for a session.
    pub(super) fn restore(&mut self, session: &SessionId, texts: &BTreeMap<u64, String>) {
        for (undo, text) in texts {
            self.set(session, *undo, Some(text));
        }
    }

    /// Sets what a session is to be told about an undo or a redo; `None`
    /// withdraws it. Returns whether that is another text than before.
    pub(super) fn set(&mut self, session: &SessionId, undo: u64, text: Option<&str>) -> bool {
        let key = (session.clone(), undo);
        let before = self.notices.get(&key).map(|notice| notice.text.as_str());
        if before == text {
            return false;
        }
        match text {
            Some(text) => {
                let notice = Notice {
                    text: text.to_owned(),
                    is_sent: false,
                };
                self.notices.insert(key, notice);
                while self.notices.len() > NOTICES {
                    self.notices.pop_first();
                }
            }
            None => drop(self.notices.remove(&key)),
        }
        true
    }

    /// Returns the numbers of the undos and redos that no answer to the session
    /// has reported yet, the oldest first.
    pub(crate) fn unsaid(&self, session: &SessionId) -> Vec<u64> {
        let own = (session.clone(), 0)..=(session.clone(), u64::MAX);
        let unsaid = self.notices.range(own);
        let unsaid = unsaid.filter(|(_, notice)| !notice.is_sent);
        unsaid.map(|((_, undo), _)| *undo).collect()
    }

    /// Returns what an answer to a session has to say about undos, the oldest
    /// first, each with the undo's number.
    pub(super) fn send(&mut self, session: &SessionId) -> Vec<(u64, String)> {
        let own = (session.clone(), 0)..=(session.clone(), u64::MAX);
        let notices = self.notices.range_mut(own);
        notices
            .map(|((_, undo), notice)| {
                notice.is_sent = true;
                (*undo, notice.text.clone())
            })
            .collect()
    }

    /// Notes the content that an undo or a redo of a session's changes left.
    pub(crate) fn leave(&mut self, session: &SessionId, path: &RelPath, content: Option<Hash>) {
        self.left
            .push_back((session.clone(), path.clone(), content));
        if self.left.len() > EDITS {
            self.left.pop_front();
        }
    }

    /// Returns the contents that undos and redos of a session's changes left.
    pub(super) fn left(&self, session: &SessionId) -> BTreeMap<RelPath, Vec<Option<Hash>>> {
        let mut left: BTreeMap<RelPath, Vec<Option<Hash>>> = BTreeMap::new();
        let own = self.left.iter().filter(|(whose, ..)| whose == session);
        for (_, path, content) in own {
            left.entry(path.clone()).or_default().push(*content);
        }
        left
    }

    /// Notes that a session's edit was taken back, and that an answer says so.
    pub(super) fn take_back(&mut self, taken: TakenBack) {
        self.give_back(&taken.session, &taken.path);
        self.edits.push_back(taken);
        if self.edits.len() > EDITS {
            self.edits.pop_front();
        }
    }

    /// Notes that the session has received which of its edits were taken back.
    pub(super) fn told(&mut self, session: &SessionId) {
        let own = self.edits.iter_mut();
        own.filter(|taken| taken.session == *session)
            .for_each(|taken| taken.is_told = true);
    }

    /// Returns the edits that were taken back from a session.
    pub(super) fn taken_back(&self, session: &SessionId) -> Vec<TakenBack> {
        let own = self.edits.iter();
        own.filter(|taken| taken.session == *session)
            .cloned()
            .collect()
    }

    /// Forgets that an edit in a file was taken back from a session.
    pub(crate) fn give_back(&mut self, session: &SessionId, path: &RelPath) {
        let is_it = |taken: &TakenBack| taken.session == *session && taken.path == *path;
        self.edits.retain(|taken| !is_it(taken));
    }
}
