//! The durable state: the result of folding all facts from the first.
//!
//! Only [`State::apply`] changes it. So a restart that folds the stored facts
//! rebuilds exactly the same state.

mod apply;
mod command_files;
mod commands;
mod copies;
mod edits;
mod names;
mod settle;
pub(crate) mod version;
mod versions;

pub use command_files::CommandFile;
pub use version::KeptVersion;
pub use version::Replaced;
pub(crate) use version::VersionDetails;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use touchmark_proto::daemon::Program;
use touchmark_proto::{Clock, Hash, HashOrAbsent, Millis, RelPath, SessionId};

use crate::by_name::ByName;
use crate::globs::Cover;
use crate::ledger::holdings::Holdings;
use crate::ledger::knowledge::Knowledge;
use crate::ledger::names::Names;
use crate::ledger::record::{CommandFact, EditFact, Held};
use crate::ledger::session_memory::SessionMemory;
use crate::ledger::wire_names::edit_name;
use crate::small_set::{Seldom, SmallSet};
use crate::text::shown::show;
use crate::witnesses::Witnesses;

/// The number of ended edits that are remembered, so that a late commit can
/// still name them (ATTR-14).
const ENDED_KEPT: usize = 256;

/// The durable state of one workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The number of the epoch, which is a part of every clock.
    pub epoch: u64,
    /// The epoch began because an earlier state was lost (DUR-2).
    pub after_loss: bool,
    /// The number of the newest fact.
    pub n: u64,
    /// When the newest fact was recorded.
    pub time: Millis,
    /// Every tracked path.
    pub paths: ByName<Box<PathState>>,
    /// Every session that was opened and not forgotten.
    pub sessions: BTreeMap<SessionId, Session>,
    /// Every open edit, by its number.
    pub edits: BTreeMap<u64, Edit>,
    /// Edits that ended recently, the newest last.
    pub ended: VecDeque<EndedEdit>,
    /// Editors' reports that have not yet explained a version.
    pub reports: Vec<SaveReport>,
    /// The number of edits begun so far.
    pub edits_begun: u64,
    /// The number of versions recorded so far.
    pub versions_recorded: u64,
    /// Every open command window, by its number. The number grows with each
    /// window that opens.
    pub commands: BTreeMap<u64, Command>,
    /// The number of command windows opened so far.
    pub commands_begun: u64,
    /// The number of checkpoints created so far.
    pub checkpoints_created: u64,
    /// The number of tool calls recorded so far.
    pub calls_recorded: u64,
    /// For each word of a label, the last number given out (SES-2). No number
    /// is given out twice.
    pub labels: BTreeMap<String, u64>,
    /// Files that have several names (FILE-1).
    pub names: Names,
    /// The newest commands, the newest last. At most 1,000.
    pub past_commands: VecDeque<PastCommand>,
    /// Untracked files that commands wrote (SCOPE-9).
    pub command_files: BTreeMap<RelPath, CommandFile>,
}

/// What is recorded of a tracked path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathState {
    /// The content on record.
    pub held: Held,
    /// The number of the fact where the path's log begins.
    pub baseline: u64,
    /// The path's versions, the newest last. A corrected author is changed in
    /// place. The versions are in boxes of one size, so that memory which one
    /// frees fits the next.
    pub versions: Vec<Box<KeptVersion>>,
    /// The number of the newest version's fact; the baseline's if there is no
    /// version.
    pub newest: u64,
    /// Corrections that took a version away from a session: the session, and
    /// the number of the correcting fact.
    pub taken: Seldom<(SessionId, u64)>,
    /// The sessions that track the path.
    pub holders: SmallSet<SessionId>,
}

/// What is recorded of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The agent's program; `None` if no client named it.
    pub agent: Option<Program>,
    /// The session that started this one; `None` if no client named one.
    pub parent: Option<SessionId>,
    /// The agent's process; `None` if no client named it.
    pub pid: Option<u32>,
    /// When the session was first opened.
    pub opened_at: Millis,
    /// When a fact last named the session.
    pub last_active: Millis,
    /// Whether the session is open.
    pub open: bool,
    /// The number of reads recorded.
    pub reads: u64,
    /// The number of edits begun.
    pub edits: u64,
    /// What the session has seen of each file that it tracks.
    pub files: Holdings,
    /// Tracked paths with changes that were not reported to the session yet. So
    /// a take costs time for what changed, not for everything tracked (MOD-3).
    pub pending: BTreeSet<RelPath>,
    /// Versions that the session overwrote unseen and that were not reported to
    /// it yet.
    pub lost: Vec<LostVersion>,
    /// The session has received the report that the state was lost.
    pub reset_told: bool,
    /// What the session remembers besides files.
    pub memory: SessionMemory,
    /// The session's label (SES-2). `None` for a session that was opened by a
    /// version without labels and has recorded nothing since.
    pub label: Option<String>,
}

/// A version that a session overwrote without having seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostVersion {
    /// The number of the fact that recorded the loss.
    pub n: u64,
    /// The path of the lost version.
    pub path: RelPath,
    /// The version that is lost.
    pub version: KeptVersion,
    /// The number of the version that replaced the lost one.
    pub by: u64,
}

/// An open edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The edit as it was begun.
    pub fact: EditFact,
    /// The number of the fact that began the edit.
    pub n: u64,
    /// The paths that are still open, in the order in which the request named
    /// them.
    pub files: Vec<EditFile>,
}

/// One open path of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditFile {
    /// The path of the file.
    pub path: RelPath,
    /// The content that the edit declares the path will have; `None` if it
    /// declares nothing.
    pub expect: Option<HashOrAbsent>,
    /// The content when the edit began; `None` for no file.
    pub began: Option<Hash>,
    /// The version that matched `expect`; an `expect` matches only once
    /// (ATTR-1).
    pub matched: Option<u64>,
    /// The name by which the edit was begun, if it differs from `path`
    /// (FILE-2).
    pub name: Option<RelPath>,
    /// A name that was one of this file when the edit began, and has parted from
    /// it since: what was written by `path` may be found there alone (FILE-2).
    pub parted: Option<RelPath>,
}

impl EditFile {
    /// Returns whether a content at `path` may be the one that is declared.
    pub fn may_have_written(&self, path: &RelPath) -> bool {
        self.path == *path || self.parted.as_ref() == Some(path)
    }
}

/// An open command window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The window as it was opened.
    pub fact: CommandFact,
    /// The number of the fact that opened the window.
    pub n: u64,
    /// The paths that the window covers.
    pub cover: Cover,
}

/// A command whose window is open or has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastCommand {
    /// The command's number.
    pub command: u64,
    /// The session that ran the command.
    pub session: SessionId,
    /// The command line, for people to read.
    pub label: Option<String>,
    /// The number of the fact that opened the window, and its time.
    pub begun: (u64, Millis),
    /// The number of the fact that ended the window, and its time; `None` while
    /// it is open.
    pub ended: Option<(u64, Millis)>,
    /// The exit code; `None` if no client named it.
    pub exit: Option<i32>,
    /// The branch that was checked out when the command began; `None` if there
    /// was none.
    pub branch_before: Option<String>,
    /// The branch that was checked out when the command ended; `None` if there
    /// was none.
    pub branch_after: Option<String>,
    /// The number of versions recorded in the window.
    pub versions: u64,
}

/// An edit that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedEdit {
    /// The edit's number.
    pub edit: u64,
    /// The session of the edit.
    pub session: SessionId,
    /// The agent's name for the tool call; `None` if it was not named.
    pub call: Option<String>,
}

/// An editor's report of a save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveReport {
    /// The file that was saved.
    pub path: RelPath,
    /// The content that the editor wrote.
    pub hash: Hash,
    /// When the editor saved.
    pub time: Millis,
    /// A formatter changed the content during the save.
    pub formatted: bool,
}

impl State {
    /// Returns the name that a file was moved to which does not exist any more;
    /// `None` if it was deleted.
    pub fn moved_to(&self, path: &RelPath) -> Option<&RelPath> {
        let moved = self.paths.iter().find(|(_, other)| {
            let newest = other.versions.last();
            newest.is_some_and(|kept| kept.from() == Some(path) && kept.hash.is_some())
        });
        moved.map(|(to, _)| to)
    }

    /// Returns what happened to a file that does not exist any more: that it was
    /// deleted, or moved, and its new name, quoted.
    pub(crate) fn where_it_went(&self, path: &RelPath) -> String {
        match self.moved_to(path) {
            Some(to) => format!("was moved to {}", show(to)),
            None => "was deleted".to_owned(),
        }
    }

    /// Returns an empty state.
    pub fn new(epoch: u64, after_loss: bool) -> Self {
        Self {
            epoch,
            after_loss,
            ..Self::default()
        }
    }

    /// Makes all holders of a session's name share one allocation. After
    /// decoding, each occurrence has its own copy.
    pub(crate) fn share_sessions(&mut self) {
        for (_, path) in self.paths.iter_mut() {
            let holders = std::mem::take(&mut path.holders).into_iter();
            path.holders = holders
                .map(|holder| match self.sessions.get_key_value(&holder) {
                    Some((shared, _)) => shared.clone(),
                    None => holder,
                })
                .collect();
        }
    }

    /// Returns the number of the fact after which the log is needed in full:
    /// that of the oldest checkpoint, or of the newest fact if there is no
    /// checkpoint (CHK-1).
    pub fn oldest_needed(&self) -> u64 {
        let checkpoints = self
            .sessions
            .values()
            .flat_map(|session| session.memory.checkpoints.values());
        checkpoints
            .map(|checkpoint| checkpoint.n)
            .min()
            .unwrap_or(self.n)
    }

    /// Returns the clock of fact `n`.
    pub fn clock(&self, n: u64) -> Clock {
        Clock {
            epoch: self.epoch,
            n,
        }
    }

    /// Returns what a session has seen of a file, or `None` if it does not
    /// track the file.
    pub fn knowledge(&self, session: &SessionId, path: &RelPath) -> Option<Cow<'_, Knowledge>> {
        self.sessions.get(session)?.files.get(path)
    }

    /// Returns what a session remembers besides files, or `None` if the session
    /// is not known.
    pub(crate) fn memory(&self, session: &SessionId) -> Option<&SessionMemory> {
        Some(&self.sessions.get(session)?.memory)
    }

    /// Returns the open edits that include a path, oldest first.
    pub fn edits_on<'a>(
        &'a self,
        path: &'a RelPath,
    ) -> impl Iterator<Item = (&'a Edit, &'a EditFile)> + 'a {
        self.edits.values().flat_map(move |edit| {
            edit.files
                .iter()
                .filter(move |file| file.path == *path)
                .map(move |file| (edit, file))
        })
    }

    /// Returns the open command windows that cover a path, the one opened last
    /// first.
    pub fn windows_on<'a>(&'a self, path: &'a RelPath) -> impl Iterator<Item = &'a Command> + 'a {
        let open = self.commands.values().rev();
        open.filter(move |command| self.covers(command, path))
    }

    /// Returns the open command windows that cover a path and whose commands may
    /// have written it (ATTR-3), the one opened last first.
    pub(crate) fn writing_windows<'a>(
        &'a self,
        witnesses: &'a Witnesses,
        path: &'a RelPath,
    ) -> impl Iterator<Item = &'a Command> + 'a {
        self.windows_on(path)
            .filter(move |window| self.may_have_written(witnesses, window, path))
    }

    /// Returns whether a window's command may have written a path (ATTR-3).
    pub(crate) fn may_have_written(
        &self,
        witnesses: &Witnesses,
        window: &Command,
        path: &RelPath,
    ) -> bool {
        let names = self.names.others_of(path).chain([path]);
        !witnesses.rules_out(window.fact.command, names)
    }

    /// Returns whether a command window covers a path under one of its names.
    pub fn covers(&self, command: &Command, path: &RelPath) -> bool {
        let mut names = self.names.others_of(path).chain([path]);
        names.any(|name| command.cover.covers(name))
    }

    /// Returns whether a window that covers untracked files is open (SCOPE-1).
    pub fn covers_untracked(&self) -> bool {
        let mut open = self.commands.values();
        open.any(|window| window.fact.workspace)
    }

    fn session_mut(&mut self, session: &SessionId, time: Millis) -> &mut Session {
        self.sessions
            .entry(session.clone())
            .or_insert_with(|| Session {
                agent: None,
                parent: None,
                pid: None,
                opened_at: time,
                last_active: time,
                open: true,
                reads: 0,
                edits: 0,
                files: Holdings::default(),
                pending: BTreeSet::new(),
                lost: Vec::new(),
                reset_told: false,
                memory: SessionMemory::default(),
                label: None,
            })
    }
}

impl PathState {
    /// Returns a path whose log begins at fact `n` with this content.
    fn new(n: u64, held: Held) -> Self {
        Self {
            held,
            baseline: n,
            versions: Vec::new(),
            newest: n,
            taken: Seldom::default(),
            holders: SmallSet::default(),
        }
    }

    /// Returns the number of the newest fact about this path that is a change
    /// for a session: the newest version, or a later correction that took a
    /// version away from the session (MOD-1).
    pub fn newest_for(&self, session: &SessionId) -> u64 {
        let taken = self
            .taken
            .iter()
            .filter(|(whose, _)| whose == session)
            .map(|(_, n)| *n)
            .max();
        self.newest.max(taken.unwrap_or(0))
    }

    /// Returns the number of the newest fact about this path that has to be
    /// reported to a session with this knowledge of it.
    pub(crate) fn newest_to_report(&self, session: &SessionId, known: &Knowledge) -> u64 {
        self.newest_for(session).max(known.behind)
    }

    /// Returns the names of a session's edits that were undone when the file's
    /// content became `now` again, oldest first (SEEN-7). These are the
    /// session's edits since the file last had this content, up to its newest,
    /// if the session still has lines of that one on record.
    pub fn reverted(
        &self,
        session: &SessionId,
        known: &Knowledge,
        now: Option<Hash>,
    ) -> Vec<String> {
        let own = |kept: &KeptVersion| kept.is_edit_of(session);
        let newest = self.versions.iter().rposition(|kept| own(kept));
        let Some(newest) = newest else {
            return Vec::new();
        };
        let until_then = self.versions.get(..=newest).unwrap_or_default();
        let last = until_then.last();
        // Nothing is reported if no line of the session's newest version is on
        // record any more, and none of unknown content either (SEEN-8).
        let left = |kept: &KeptVersion| known.of(kept.hash).is_some() || !known.unsure.is_empty();
        if last.is_none_or(|kept| kept.hash == now || !left(kept)) {
            return Vec::new();
        }
        // The content before a version that was marked late is not known.
        let from_now = |kept: &KeptVersion| {
            kept.before == now
                && (now.is_some() || kept.kind == touchmark_proto::VersionKind::Created)
        };
        let Some(first) = until_then.iter().rposition(|kept| from_now(kept)) else {
            return Vec::new();
        };
        let mut edits: Vec<String> = until_then
            .iter()
            .skip(first)
            .filter(|kept| own(kept))
            .filter_map(|kept| kept.edit().map(edit_name))
            .collect();
        edits.dedup();
        edits
    }

    /// Returns the newest version, or `None` if none was recorded since the
    /// baseline.
    pub fn latest(&self) -> Option<&KeptVersion> {
        self.versions.last().map(Box::as_ref)
    }
}
