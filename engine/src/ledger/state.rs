//! The durable state: what folding the facts from the start gives.
//!
//! [`State::apply`] is the only place that changes it, so a restart from the
//! kept facts rebuilds exactly what was there.

mod apply;
mod commands;
mod copies;
mod edits;
mod names;
mod settle;
mod version;
mod versions;

pub use commands::PastCommand;
pub(crate) use version::KeptAside;
pub use version::KeptVersion;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use touchmark_proto::daemon::Program;
use touchmark_proto::{Clock, Hash, HashOrAbsent, Millis, RelPath, SessionId};

use crate::by_name::ByName;
use crate::globs::Cover;
use crate::ledger::holdings::Holdings;
use crate::ledger::knowledge::Knowledge;
use crate::ledger::names::Names;
use crate::ledger::recall::edit_name;
use crate::ledger::record::{CommandFact, EditFact, Held};
use crate::ledger::session_memory::SessionMemory;
use crate::small_set::{Seldom, SmallSet};
use crate::view::is_own;

/// Ended edits whose late commits are still understood (ATTR-14).
const ENDED_KEPT: usize = 256;

/// The durable state of one workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Which life of the state this is.
    pub epoch: u64,
    /// This life began because an earlier state was lost (DUR-2).
    pub after_loss: bool,
    /// The newest fact.
    pub n: u64,
    /// When it was recorded.
    pub time: Millis,
    /// Every tracked path.
    pub paths: ByName<Box<PathState>>,
    /// Every session known.
    pub sessions: BTreeMap<SessionId, Session>,
    /// Every open edit, by its number.
    pub edits: BTreeMap<u64, Edit>,
    /// Edits that ended lately, the newest last.
    pub ended: VecDeque<EndedEdit>,
    /// Editors' reports that have not spoken for a version yet.
    pub reports: Vec<SaveReport>,
    /// Edits begun so far.
    pub edits_begun: u64,
    /// Versions recorded so far.
    pub versions_recorded: u64,
    /// Every open command window, by its number: the last one opened last.
    pub commands: BTreeMap<u64, Command>,
    /// Command windows opened so far.
    pub commands_begun: u64,
    /// Checkpoints created so far.
    pub checkpoints_created: u64,
    /// Tool calls recorded so far.
    pub calls_recorded: u64,
    /// The last number given out with each word of a label (SES-2): one that
    /// was given is never given again.
    pub labels: BTreeMap<String, u64>,
    /// Files that have several names (FILE-1).
    pub names: Names,
    /// The newest commands, the newest last.
    pub past_commands: VecDeque<PastCommand>,
}

/// A tracked path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathState {
    /// What it holds, as far as it is recorded.
    pub held: Held,
    /// The fact where its log begins.
    pub baseline: u64,
    /// Its versions, the newest last, corrected attributions in place. In boxes
    /// of one size, so that what one leaves free is the next one's.
    pub versions: Vec<Box<KeptVersion>>,
    /// The newest version's fact; the baseline's where there is none.
    pub newest: u64,
    /// Corrections that took a version away from a session: whose, which fact.
    pub taken: Seldom<(SessionId, u64)>,
    /// Sessions that hold it.
    pub holders: SmallSet<SessionId>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The agent's program.
    pub agent: Option<Program>,
    /// The session that started it.
    pub parent: Option<SessionId>,
    /// The agent's process.
    pub pid: Option<u32>,
    /// When it was first opened.
    pub opened_at: Millis,
    /// When a fact last named it.
    pub last_active: Millis,
    /// Whether it is open.
    pub open: bool,
    /// Reads recorded.
    pub reads: u64,
    /// Edits begun.
    pub edits: u64,
    /// What it knows of each file it holds.
    pub files: Holdings,
    /// Paths with facts not yet told, so that a take costs what changed and
    /// not what is tracked (MOD-3).
    pub pending: BTreeSet<RelPath>,
    /// Versions it overwrote unseen and has not been told of.
    pub lost: Vec<LostVersion>,
    /// It has been told that the state was lost.
    pub reset_told: bool,
    /// What it remembers beside files.
    pub memory: SessionMemory,
    /// Its short name (SES-2); `None` for one that was opened before there
    /// were any and has recorded nothing since.
    pub label: Option<String>,
}

/// A version that a session overwrote unseen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostVersion {
    /// The fact that says so.
    pub n: u64,
    /// Where.
    pub path: RelPath,
    /// The version that is lost.
    pub version: KeptVersion,
    /// The version that took its place.
    pub by: u64,
}

/// An open edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// As it was begun.
    pub fact: EditFact,
    /// The fact that began it.
    pub n: u64,
    /// The paths still open, in the order named.
    pub files: Vec<EditFile>,
}

/// One open path of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditFile {
    /// Which path.
    pub path: RelPath,
    /// What it will hold.
    pub expect: Option<HashOrAbsent>,
    /// What it held when the edit began.
    pub began: Option<Hash>,
    /// The version that the `expect` has matched: it matches once (ATTR-1).
    pub matched: Option<u64>,
    /// The name that it was begun by, if that is another (FILE-2).
    pub name: Option<RelPath>,
}

/// An open command window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// As it was opened.
    pub fact: CommandFact,
    /// The fact that opened it.
    pub n: u64,
    /// Which paths it speaks for.
    pub cover: Cover,
}

/// An edit that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedEdit {
    /// Its number.
    pub edit: u64,
    /// Whose it was.
    pub session: SessionId,
    /// The agent's own name of the tool call.
    pub call: Option<String>,
}

/// An editor's report of a save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveReport {
    /// Which file.
    pub path: RelPath,
    /// What was written.
    pub hash: Hash,
    /// When.
    pub time: Millis,
    /// A formatter changed it on the way.
    pub formatted: bool,
}

impl State {
    /// A state that knows nothing.
    pub fn new(epoch: u64, after_loss: bool) -> Self {
        Self {
            epoch,
            after_loss,
            ..Self::default()
        }
    }

    /// Has every session's name stored once: what was read back has each as
    /// often as it was written.
    pub(crate) fn share_sessions(&mut self) {
        for (_, path) in self.paths.iter_mut() {
            path.holders.replace_all(|holder| {
                let known = self.sessions.get_key_value(holder);
                known.map(|(shared, _)| shared.clone())
            });
        }
    }

    /// The fact since which the log is needed whole: of the oldest checkpoint,
    /// else the newest of all (CHK-1).
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

    /// The clock of a fact.
    pub fn clock(&self, n: u64) -> Clock {
        Clock {
            epoch: self.epoch,
            n,
        }
    }

    /// What a session knows of a file.
    pub fn knowledge(&self, session: &SessionId, path: &RelPath) -> Option<Cow<'_, Knowledge>> {
        self.sessions.get(session)?.files.get(path)
    }

    /// Open edits with that path open, the oldest first.
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

    /// Open command windows that cover a path, the one opened last first.
    pub fn windows_on<'a>(&'a self, path: &'a RelPath) -> impl Iterator<Item = &'a Command> + 'a {
        self.commands.values().rev().filter(move |command| {
            let mut names = self.names.others_of(path).chain([path]);
            names.any(|name| command.cover.covers(name))
        })
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
    /// A path whose log begins with fact `n`, and what it held then.
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

    /// The newest fact about this path that counts for a session: its newest
    /// version, or a later correction that took a version away from it
    /// (MOD-1).
    pub fn newest_for(&self, session: &SessionId) -> u64 {
        let taken = self
            .taken
            .iter()
            .filter(|(whose, _)| whose == session)
            .map(|(_, n)| *n)
            .max();
        self.newest.max(taken.unwrap_or(0))
    }

    /// Edits of a session's that a return to `now` took back, the oldest first
    /// (SEEN-7): those since the content was this one, up to the newest, of
    /// which the session still believes something.
    pub fn reverted(
        &self,
        session: &SessionId,
        known: &Knowledge,
        now: Option<Hash>,
    ) -> Vec<String> {
        let own = |kept: &KeptVersion| is_own(kept, session);
        let newest = self.versions.iter().rposition(|kept| own(kept));
        let Some(newest) = newest else {
            return Vec::new();
        };
        let until_then = self.versions.get(..=newest).unwrap_or_default();
        let last = until_then.last();
        // Nothing is left to it of what it wrote, nor is any of that to be
        // shown to it (SEEN-8).
        let left = |kept: &KeptVersion| known.of(kept.hash).is_some() || !known.unsure.is_empty();
        if last.is_none_or(|kept| kept.hash == now || !left(kept)) {
            return Vec::new();
        }
        // What a version that was marked late took the place of is not known.
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

    /// The newest version, if any was recorded since the baseline.
    pub fn latest(&self) -> Option<&KeptVersion> {
        self.versions.last().map(Box::as_ref)
    }
}
