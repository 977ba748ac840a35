//! What is remembered between the events of one tool call. It is lost when the
//! daemon ends; after that less is claimed, never more. Turns and pending texts
//! are stored as facts as well.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use touchmark_engine::State;
use touchmark_engine::session_memory::Note;
use touchmark_proto::off::Allowed;
use touchmark_proto::{Author, ClientPath, Hash, LineRange, Millis, RelPath, SessionId};

use super::agents::Agents;
use super::allowed::Allowances;
use super::comments::Comments;
use super::edits::Candidate;
use super::happened::{Change, Happened, What};
use super::identity::Calls;
use super::last_events::LastEvents;
use super::named::Named;
use super::notices::Notices;
use super::running::Commands;
use super::scopes::Scopes;
use super::undone::Undone;
use super::{odd, twice};
use crate::inside::Inside;

/// The maximum number of running calls that are remembered. A call that never
/// returns is forgotten after that many others.
const CALLS: usize = 4_096;

/// The maximum number of pending texts that are remembered, over all sessions.
const LATE: usize = 256;

/// The maximum size of file contents that are remembered for running commands,
/// in bytes.
const TEXTS: usize = 16 << 20;

/// The maximum number of reads answered by a message that are remembered.
const REPLACED: usize = 4_096;

/// A file as it was before a tool read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) path: ClientPath,
    pub(super) hash: Hash,
    pub(super) lines: u32,
    pub(super) size: u64,
}

/// A file that a tool is about to write.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Marked {
    pub(super) path: ClientPath,
    /// The file's content when the mark was set; `None` if there was no file or
    /// it is not known.
    pub(super) began: Option<Hash>,
    /// The contents that the file may have once the tool is done.
    pub(super) candidates: Vec<Candidate>,
    /// What the tool was told to do.
    pub(super) change: Arc<Change>,
    /// Whether another call on the file was announced at the same time. Then
    /// the order of the two is not known, nor the content in between.
    pub(super) beside: bool,
}

/// A file as a tool has left it. It is remembered for a short time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) path: ClientPath,
    pub(super) written: Candidate,
}

/// Lines that a denial shows, or a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InDenial {
    pub(super) session: SessionId,
    pub(super) path: ClientPath,
    pub(super) hash: Hash,
    pub(super) lines: Vec<LineRange>,
    /// The change of which a notice shows the lines; `None` in a denial.
    pub(super) noticed: Option<Noticed>,
}

/// A change of which a session was shown the lines in passing, in a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Noticed {
    /// The content that the session had seen before.
    pub(super) before: Hash,
    pub(super) changed_by: Vec<Author>,
    pub(super) since: Millis,
}

/// A file that a command names, as it was before the command ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) before: Before,
    pub(super) text: Arc<str>,
    pub(super) named: Named,
}

/// What is remembered of one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Call {
    pub(super) read: Option<Before>,
    /// When a command was announced.
    pub(super) began: Option<SystemTime>,
    /// The files that a command may print.
    pub(super) noted: Vec<Noted>,
    pub(super) marked: Vec<Marked>,
}

/// What is remembered, for all hooks of a daemon.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    remembered: Mutex<Remembered>,
    agents: Mutex<Agents>,
    last_events: Mutex<LastEvents>,
    heard_of: Mutex<twice::Heard>,
    /// The kinds of events that were not understood and that are already
    /// logged.
    pub(super) odd: odd::Said,
    calls: Mutex<Calls>,
    commands: Mutex<Commands>,
    scopes: Mutex<Scopes>,
    undone: Mutex<Undone>,
    /// The user's comments on changes.
    pub(crate) comments: Comments,
    allowances: Mutex<Allowances>,
    notices: Mutex<Notices>,
    /// The sessions that are between a prompt and the end of its turn.
    turns: Mutex<BTreeSet<SessionId>>,
    /// Locked while stored events are replayed, so that two hooks never replay
    /// the same event.
    pub(super) making_up: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Remembered {
    calls: HashMap<(SessionId, String), Call>,
    order: VecDeque<(SessionId, String)>,
    replaced: VecDeque<(SessionId, ClientPath)>,
    left: VecDeque<(SessionId, Left)>,
    heard: VecDeque<(SessionId, String, String)>,
    late: VecDeque<(SessionId, String)>,
    denials: u64,
    in_denials: VecDeque<(u64, InDenial)>,
    unread: VecDeque<(SessionId, ClientPath)>,
    noticed: VecDeque<(SessionId, RelPath, Noticed)>,
    /// The sessions that were told their label.
    labelled: VecDeque<SessionId>,
    unsaved: VecDeque<(SessionId, ClientPath)>,
    /// The contents of which a session was told that it has not seen all lines.
    unseen: VecDeque<(SessionId, Hash)>,
    /// The size of all noted contents, in bytes.
    texts: usize,
}

impl Memory {
    /// Restores what is stored over restarts; everything else is lost when the
    /// daemon ends.
    pub(crate) fn new(state: &State, comments: Comments) -> Self {
        let memory = Self {
            comments,
            agents: Mutex::new(Agents::below_starter()),
            ..Self::default()
        };
        let mut turns = memory.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = memory.kept();
        for (id, session) in &state.sessions {
            if session.memory.in_turn {
                turns.insert(id.clone());
            }
            let texts = session.memory.to_say.iter();
            kept.late
                .extend(texts.map(|text| (id.clone(), text.clone())));
            memory.undone(|undone| undone.restore(id, &session.memory.undos_to_say));
        }
        drop((turns, kept));
        memory
    }
}

/// Adds something to a bounded list. Returns whether it was not there.
fn is_first<T: PartialEq>(known: &mut VecDeque<T>, new: T) -> bool {
    if known.contains(&new) {
        return false;
    }
    known.push_back(new);
    if known.len() > CALLS {
        known.pop_front();
    }
    true
}

impl Remembered {
    fn take(&mut self, key: &(SessionId, String)) -> Option<Call> {
        let found = self.calls.remove(key);
        self.texts -= found.as_ref().map_or(0, Call::bytes);
        found
    }
}

impl Call {
    fn bytes(&self) -> usize {
        self.noted.iter().map(|noted| noted.text.len()).sum()
    }
}

impl Memory {
    pub(super) fn remember(&self, session: &SessionId, call: &str, what: Call) {
        let mut kept = self.kept();
        let key = (session.clone(), call.to_owned());
        if kept.take(&key).is_none() {
            kept.order.push_back(key.clone());
        }
        kept.texts += what.bytes();
        kept.calls.insert(key, what);
        while kept.order.len() > CALLS || kept.texts > TEXTS {
            let Some(oldest) = kept.order.pop_front() else {
                break;
            };
            kept.take(&oldest);
        }
    }

    pub(super) fn recall(&self, session: &SessionId, call: &str) -> Option<Call> {
        let mut kept = self.kept();
        let key = (session.clone(), call.to_owned());
        let found = kept.take(&key);
        if found.is_some() {
            kept.order.retain(|known| *known != key);
        }
        found
    }

    /// Returns what the session's other running calls do to a file.
    pub(super) fn beside(
        &self,
        session: &SessionId,
        path: &ClientPath,
    ) -> Vec<(String, Arc<Change>)> {
        let kept = self.kept();
        let own = kept.order.iter().filter(|(whose, _)| whose == session);
        own.filter_map(|key| {
            let marked = &kept.calls.get(key)?.marked;
            let marked = marked.iter().find(|marked| marked.path == *path)?;
            Some((key.1.clone(), Arc::clone(&marked.change)))
        })
        .collect()
    }

    /// Returns what sessions were told in their turns.
    pub(super) fn notices(&self) -> MutexGuard<'_, Notices> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that another call on the file was announced, with further contents
    /// that may result.
    pub(super) fn join(
        &self,
        session: &SessionId,
        call: &str,
        path: &ClientPath,
        candidates: &[Candidate],
    ) {
        let mut kept = self.kept();
        let key = (session.clone(), call.to_owned());
        let marked = kept.calls.get_mut(&key).map(|call| &mut call.marked);
        for marked in marked
            .into_iter()
            .flatten()
            .filter(|marked| marked.path == *path)
        {
            marked.beside = true;
            for candidate in candidates {
                if !marked.candidates.contains(candidate) {
                    marked.candidates.push(*candidate);
                }
            }
        }
    }

    /// Remembers how a tool has left a file, until a formatter has had time to
    /// run.
    pub(super) fn leave(&self, session: &SessionId, left: Left) {
        let mut kept = self.kept();
        kept.left
            .retain(|(whose, known)| whose != session || known.path != left.path);
        kept.left.push_back((session.clone(), left));
        if kept.left.len() > CALLS {
            kept.left.pop_front();
        }
    }

    /// Returns and forgets how the session's tools have left files.
    pub(super) fn left(&self, session: &SessionId) -> Vec<Left> {
        let mut kept = self.kept();
        let (own, others) = std::mem::take(&mut kept.left)
            .into_iter()
            .partition(|(whose, _)| whose == session);
        kept.left = others;
        let own: VecDeque<(SessionId, Left)> = own;
        own.into_iter().map(|(_, left)| left).collect()
    }

    /// Returns whether a repeated read may be answered by a message. It may not
    /// twice in a row, since an agent that repeats the read needs the text.
    pub(super) fn may_replace(&self, session: &SessionId, path: &ClientPath) -> bool {
        let mut kept = self.kept();
        let key = (session.clone(), path.clone());
        let before = kept.replaced.len();
        kept.replaced.retain(|known| *known != key);
        if kept.replaced.len() < before {
            return false;
        }
        kept.replaced.push_back(key);
        if kept.replaced.len() > REPLACED {
            kept.replaced.pop_front();
        }
        true
    }

    /// Notes an event that arrived through an agent's hook. Returns whether it
    /// arrived through no other hook before.
    pub(super) fn is_first(&self, happened: &Happened, hook: &'static str) -> bool {
        let heard = self.heard_of.lock();
        let mut heard = heard.unwrap_or_else(PoisonError::into_inner);
        heard.is_first(happened, hook)
    }

    /// Notes that an event of a call has arrived.
    pub(super) fn hear(&self, happened: &Happened) {
        if let Some(key) = key(happened) {
            let mut kept = self.kept();
            kept.heard.push_back(key);
            if kept.heard.len() > CALLS {
                kept.heard.pop_front();
            }
        }
    }

    /// Returns whether an event of a call has arrived, even if its answer was
    /// too late.
    pub(super) fn has_heard(&self, happened: &Happened) -> bool {
        key(happened).is_some_and(|key| self.kept().heard.contains(&key))
    }

    /// Notes that a session's turn begins or has ended.
    pub(super) fn turn(&self, inside: &Inside, session: &SessionId, begins: bool) {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = match begins {
            true => turns.insert(session.clone()),
            false => turns.remove(session),
        };
        if is_news {
            inside.note(session, Note::Turn { begins });
        }
    }

    /// Returns whether a session is in a turn, as far as its hooks report it.
    pub(crate) fn is_in_turn(&self, session: &SessionId) -> bool {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.contains(session)
    }

    /// Adds a text to the answer to a session's next event.
    pub(crate) fn say_later(&self, inside: &Inside, session: &SessionId, text: Option<String>) {
        if let Some(text) = text {
            let noted = text.clone();
            inside.note(session, Note::ToSay { text: noted });
            let mut kept = self.kept();
            kept.late.push_back((session.clone(), text));
            if kept.late.len() > LATE {
                kept.late.pop_front();
            }
        }
    }

    /// Returns a session's pending texts, the oldest first.
    pub(super) fn late(&self, session: &SessionId) -> Vec<String> {
        let kept = self.kept();
        let own = kept.late.iter().filter(|(whose, _)| whose == session);
        own.map(|(_, text)| text.clone()).collect()
    }

    /// Forgets the oldest `count` pending texts, which were delivered.
    pub(super) fn said(&self, inside: &Inside, session: &SessionId, count: usize) {
        let noted = count as u64;
        inside.note(session, Note::Said { count: noted });
        let mut left = count;
        self.kept().late.retain(|(whose, _)| {
            let said = whose == session && left > 0;
            left -= usize::from(said);
            !said
        });
    }

    /// Sets what a session is to be told about an undo or a redo of its
    /// changes; `None` withdraws it.
    pub(crate) fn say_of_undo(
        &self,
        inside: &Inside,
        session: &SessionId,
        undo: u64,
        text: Option<String>,
    ) {
        if self.undone(|undone| undone.set(session, undo, text.as_deref())) {
            inside.note(session, Note::UndoToSay { undo, text });
        }
    }

    /// Accesses what sessions are told about changes of theirs that were taken
    /// away, and that are back.
    pub(crate) fn undone<T>(&self, with: impl FnOnce(&mut Undone) -> T) -> T {
        with(&mut self.undone.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that a session edits a file that it has not read, by naming words
    /// in it. The session does not know the other lines, though what it writes
    /// counts as seen.
    pub(super) fn edits_unread(&self, session: &SessionId, path: &ClientPath) {
        let mut kept = self.kept();
        kept.unread.push_back((session.clone(), path.clone()));
        if kept.unread.len() > CALLS {
            kept.unread.pop_front();
        }
    }

    /// Notes that the session was shown the file.
    pub(super) fn shown(&self, session: &SessionId, path: &ClientPath) {
        let is_it = |(whose, what): &(SessionId, ClientPath)| whose == session && what == path;
        self.kept().unread.retain(|known| !is_it(known));
    }

    /// Returns whether a session has seen nothing of a file except what it
    /// wrote there.
    pub(super) fn is_unread(&self, session: &SessionId, path: &ClientPath) -> bool {
        let kept = self.kept();
        kept.unread
            .iter()
            .any(|(whose, what)| whose == session && what == path)
    }

    /// Notes that a tool is about to write to a file with unsaved changes.
    /// Returns whether its session was not warned of them before.
    pub(super) fn warns_of_unsaved(&self, session: &SessionId, path: &ClientPath) -> bool {
        is_first(&mut self.kept().unsaved, (session.clone(), path.clone()))
    }

    /// Notes that a tool is about to remove lines of a content that its session
    /// has not seen. Returns whether the session was not told before.
    pub(super) fn warns_of_unseen(&self, session: &SessionId, content: Hash) -> bool {
        is_first(&mut self.kept().unseen, (session.clone(), content))
    }

    /// Notes that a file has no unsaved changes any more.
    pub(super) fn saved(&self, session: &SessionId, path: &ClientPath) {
        let is_it = |(whose, what): &(SessionId, ClientPath)| whose == session && what == path;
        self.kept().unsaved.retain(|known| !is_it(known));
    }

    /// Remembers what a denial shows until it is delivered. Returns the
    /// denial's number.
    pub(super) fn deny(&self, shown: InDenial) -> u64 {
        let mut kept = self.kept();
        kept.denials += 1;
        let number = kept.denials;
        kept.in_denials.push_back((number, shown));
        if kept.in_denials.len() > CALLS {
            kept.in_denials.pop_front();
        }
        number
    }

    /// Returns and forgets what a denial has shown, since it was delivered.
    pub(super) fn denied(&self, number: u64) -> Option<InDenial> {
        let mut kept = self.kept();
        let at = kept
            .in_denials
            .iter()
            .position(|(known, _)| *known == number)?;
        kept.in_denials.remove(at).map(|(_, shown)| shown)
    }

    /// Notes that a session was shown a file's changed lines in a notice.
    pub(super) fn notices_lines(&self, session: &SessionId, path: RelPath, noticed: Noticed) {
        let mut kept = self.kept();
        let mut of_file = kept.noticed.iter();
        // What it had seen before the first of several notices counts.
        if !of_file.any(|(whose, what, _)| whose == session && *what == path) {
            kept.noticed.push_back((session.clone(), path, noticed));
        }
        if kept.noticed.len() > CALLS {
            kept.noticed.pop_front();
        }
    }

    /// Returns and forgets of which change a session was shown the lines in a
    /// notice.
    pub(super) fn noticed(&self, session: &SessionId, path: &RelPath) -> Option<Noticed> {
        let mut kept = self.kept();
        let mut all = kept.noticed.iter();
        let at = all.position(|(whose, what, _)| whose == session && what == path)?;
        kept.noticed.remove(at).map(|(.., noticed)| noticed)
    }

    /// Returns whether a session was told its label.
    pub(super) fn knows_label(&self, session: &SessionId) -> bool {
        self.kept().labelled.contains(session)
    }

    /// Notes that a session was told its label.
    pub(super) fn told_label(&self, session: &SessionId) {
        is_first(&mut self.kept().labelled, session.clone());
    }

    /// Accesses the processes of the sessions' agents.
    pub(super) fn allowances<T>(&self, with: impl FnOnce(&mut Allowances) -> T) -> T {
        let mut allowances = self
            .allowances
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        with(&mut allowances)
    }

    /// Returns the writes that the user has allowed and that were not made yet.
    pub(crate) fn allowed(&self, now: Millis) -> Vec<Allowed> {
        self.allowances(|allowances| allowances.valid(now).to_vec())
    }

    pub(super) fn agents<T>(&self, with: impl FnOnce(&mut Agents) -> T) -> T {
        with(&mut self.agents.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn last_events<T>(&self, with: impl FnOnce(&mut LastEvents) -> T) -> T {
        let events = &self.last_events;
        with(&mut events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Accesses the announced calls of touchmark's own tools.
    pub(super) fn calls<T>(&self, with: impl FnOnce(&mut Calls) -> T) -> T {
        with(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Accesses the sub-agents without a separate id.
    pub(super) fn scopes<T>(&self, with: impl FnOnce(&mut Scopes) -> T) -> T {
        with(&mut self.scopes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Accesses the commands that were announced and have not returned.
    pub(super) fn commands<T>(&self, with: impl FnOnce(&mut Commands) -> T) -> T {
        let commands = self.commands.lock();
        with(&mut commands.unwrap_or_else(PoisonError::into_inner))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Remembered> {
        let remembered = self.remembered.lock();
        remembered.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the key of a call's event: its session, its name and the call;
/// `None` for other events.
fn key(happened: &Happened) -> Option<(SessionId, String, String)> {
    let (What::Before { call, .. }
    | What::After { call, .. }
    | What::Failed { call, .. }
    | What::Declined { call }) = &happened.what
    else {
        return None;
    };
    let (session, event) = (happened.session.clone(), happened.event.clone());
    Some((session, event, call.clone()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn calls_are_remembered_once_and_within_bounds() {
        let memory = Memory::default();
        let session = SessionId::new("s").unwrap();
        memory.remember(&session, "first", Call::default());
        assert_eq!(memory.recall(&session, "first"), Some(Call::default()));
        assert_eq!(memory.recall(&session, "first"), None);
        for n in 0..=CALLS {
            memory.remember(&session, &n.to_string(), Call::default());
        }
        assert_eq!(memory.recall(&session, "0"), None);
        assert!(memory.recall(&session, "1").is_some());
        let kept = memory.kept();
        assert_eq!(kept.calls.len(), kept.order.len());
    }

    #[test]
    fn texts_of_files_are_remembered_within_bounds() {
        let memory = Memory::default();
        let session = SessionId::new("s").unwrap();
        let path = ClientPath::from("a");
        let text = "x".repeat(TEXTS / 4);
        let call = || Call {
            noted: vec![Noted {
                before: Before {
                    path: path.clone(),
                    hash: Hash::of(text.as_bytes()),
                    lines: 1,
                    size: text.len() as u64,
                },
                text: text.as_str().into(),
                named: Named {
                    path: "/a".into(),
                    names: Vec::new(),
                },
            }],
            ..Call::default()
        };
        for n in 0..6 {
            memory.remember(&session, &n.to_string(), call());
        }
        assert_eq!(memory.recall(&session, "1"), None, "the oldest are gone");
        assert!(memory.recall(&session, "2").is_some());
        assert_eq!(memory.kept().texts, text.len() * 3);
    }

    #[test]
    fn who_asks_again_gets_the_text() {
        let memory = Memory::default();
        let session = SessionId::new("s").unwrap();
        let path = ClientPath::from("a");
        assert!(memory.may_replace(&session, &path));
        assert!(!memory.may_replace(&session, &path));
        assert!(memory.may_replace(&session, &path));
    }
}
