//! Facts. Folding them from the start gives the engine's state
//! (`State::apply`); the store keeps them.

use touchmark_proto::daemon::Program;
use touchmark_proto::events::EditPhase;
use touchmark_proto::files::{Source, Verdict};
use touchmark_proto::{
    Author, Evidence, Hash, HashOrAbsent, LineRange, Millis, RelPath, SessionId, VersionKind,
};

use crate::globs::Globs;
use crate::ledger::session_memory::Note;
use crate::ranges::RangeSet;

/// One fact, with its place in the order of all facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number; the `n` of a clock.
    pub n: u64,
    /// When it was recorded.
    pub time: Millis,
    /// What is so.
    pub fact: Fact,
}

impl Record {
    /// Whether it says that a session was forgotten.
    pub fn forgets(&self) -> bool {
        matches!(self.fact, Fact::SessionForgotten { .. })
    }
}

/// What can be so. How it is stored stands in `ledger/stored`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A session was opened or came back.
    SessionOpened {
        /// Which.
        session: SessionId,
        /// The agent's program, where it was said.
        agent: Option<Program>,
        /// The session that started it, where it was said.
        parent: Option<SessionId>,
        /// The agent's process, where it was said.
        pid: Option<u32>,
    },
    /// A session was closed.
    SessionClosed {
        /// Which.
        session: SessionId,
    },
    /// What a session knew was removed.
    SessionForgotten {
        /// Which.
        session: SessionId,
    },
    /// A path came under watch with this content: where its log begins.
    Baseline {
        /// Which path.
        path: RelPath,
        /// What it held.
        held: Held,
        /// Nobody tracks it: a command is about to have changed it (SCOPE-2).
        untracked: bool,
    },
    /// A new version, or the correction of one.
    Version(VersionFact),
    /// A session holds a path from now on, with this content as the baseline
    /// of what it will be told.
    Tracked {
        /// Who.
        session: SessionId,
        /// What.
        path: RelPath,
        /// Why.
        source: Source,
        /// The agent's step.
        step: Option<u64>,
    },
    /// A session no longer holds a path.
    Untracked {
        /// Who.
        session: SessionId,
        /// What.
        path: RelPath,
    },
    /// A rename copied what sessions know of one name to another (ATTR-12).
    Copied {
        /// The old name.
        from: RelPath,
        /// The new name.
        to: RelPath,
    },
    /// A copied name vanished before anyone had named it (ATTR-12).
    CopyDropped {
        /// Which.
        path: RelPath,
    },
    /// Contents entered a session's context.
    Read {
        /// Whose.
        session: SessionId,
        /// Which file.
        path: RelPath,
        /// The content of the whole file; `None` where it changed between
        /// the request and the read, so that the copy is stale at once.
        hash: Option<Hash>,
        /// Its lines.
        lines: u32,
        /// The lines read; `None` for the whole file.
        range: Option<LineRange>,
        /// What the read was.
        verdict: Verdict,
        /// How it came.
        source: Source,
        /// The agent's step.
        step: Option<u64>,
    },
    /// Lines that a session believes of an older content stand in a newer one
    /// unchanged (SEEN-8).
    Carried {
        /// Whose.
        session: SessionId,
        /// Which file.
        path: RelPath,
        /// The older content.
        from: Hash,
        /// The newer.
        to: Hash,
        /// Where the lines stand in the newer.
        kept: RangeSet,
        /// Lines of the newer in the place of others that it believed.
        changed: RangeSet,
    },
    /// What another session knew is in a session's context as well: both are
    /// one agent's (HOOK-9).
    Inherited {
        /// Who knows it now.
        session: SessionId,
        /// Whose it was.
        from: SessionId,
    },
    /// A session wrote, and so has seen what it wrote (SEEN-1).
    Wrote {
        /// Who.
        session: SessionId,
        /// Which file.
        path: RelPath,
        /// What.
        hash: HashOrAbsent,
        /// The session did not name the hash: it is what the daemon found.
        assumed: bool,
    },
    /// The session forgets what it read (SEEN-1); of all files if no path.
    Invalidated {
        /// Who.
        session: SessionId,
        /// Which file.
        path: Option<RelPath>,
    },
    /// The session's context was compacted.
    Compacted {
        /// Whose.
        session: SessionId,
        /// Files still in it.
        keep: Vec<RelPath>,
    },
    /// Parts of the session's context were cut.
    Truncated {
        /// Whose.
        session: SessionId,
        /// What; the whole file where there is no range.
        items: Vec<(RelPath, Option<LineRange>)>,
    },
    /// An edit began.
    EditBegun(EditFact),
    /// Some paths of an edit ended; the edit itself, when none is left.
    EditEnded {
        /// Which edit.
        edit: u64,
        /// Whose.
        session: SessionId,
        /// Which of its paths.
        paths: Vec<RelPath>,
        /// How.
        phase: EditPhase,
    },
    /// Changes were delivered to a session.
    Delivered {
        /// To whom.
        session: SessionId,
        /// Each path with the newest fact told.
        paths: Vec<(RelPath, u64)>,
        /// Each lost version told.
        lost: Vec<u64>,
    },
    /// The session has been told that the state was lost.
    ResetTold {
        /// Who.
        session: SessionId,
    },
    /// A session's write destroyed a version it had not seen (ATTR-10).
    Lost {
        /// Who overwrote.
        session: SessionId,
        /// Where.
        path: RelPath,
        /// The version that is lost.
        version: u64,
        /// The version that took its place.
        by: u64,
    },
    /// An editor reported a save (ATTR-2).
    Saved {
        /// Which file.
        path: RelPath,
        /// What it wrote.
        hash: Hash,
        /// When.
        time: Millis,
        /// A formatter changed it on the way.
        formatted: bool,
    },
    /// A command window opened (ATTR-6).
    CommandBegun(CommandFact),
    /// A command window ended.
    CommandEnded {
        /// Which.
        command: u64,
        /// Whose.
        session: SessionId,
        /// What the command exited with, if that was said.
        exit: Option<i32>,
        /// The branch that was checked out then, if there was one.
        branch: Option<String>,
    },
    /// A session remembers something beside files.
    Noted {
        /// Which session.
        session: SessionId,
        /// What.
        note: Note,
    },
    /// A session got its short name (SES-2).
    Labelled {
        /// Which session.
        session: SessionId,
        /// A word and a number: `claude-1`.
        label: String,
    },
    /// A session uses a file by a name, one of several that lead to it
    /// (FILE-1).
    NameUsed {
        /// Who.
        session: SessionId,
        /// The name.
        name: RelPath,
        /// The name by which the file is known.
        file: RelPath,
    },
    /// Two tracked names were found to lead to the same file: they have one
    /// history from now on (FILE-1).
    NamesJoined {
        /// The one that is no file by itself any more.
        name: RelPath,
        /// The name by which the file is known.
        file: RelPath,
    },
    /// Names of a file lead to another by now: each side goes on by itself
    /// (FILE-2).
    NamesParted {
        /// The name by which the file is known.
        file: RelPath,
        /// The others, the first of which is a file's own from now on.
        leaving: Vec<RelPath>,
    },
}

/// What a path held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The content; `None` where there is no file.
    pub hash: Option<Hash>,
    /// In bytes.
    pub size: u64,
    /// Lines.
    pub lines: u32,
    /// The file's own modification time.
    pub mtime_ms: Millis,
}

impl Held {
    /// No file.
    pub const ABSENT: Self = Self {
        hash: None,
        size: 0,
        lines: 0,
        mtime_ms: 0,
    };
}

/// One version as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionFact {
    /// Which path.
    pub path: RelPath,
    /// What happened.
    pub kind: VersionKind,
    /// The name it had before.
    pub from: Option<RelPath>,
    /// What it holds.
    pub held: Held,
    /// Who.
    pub author: Author,
    /// On what grounds.
    pub evidence: Evidence,
    /// The version it corrects.
    pub amends: Option<u64>,
    /// The edit it is attributed to, or may be: provisional while that is open
    /// and the evidence is `marked` or `unmarked`.
    pub edit: Option<u64>,
    /// Declared, never read from disk.
    pub unobserved: bool,
    /// Declared after it was written.
    pub late: bool,
    /// A formatter wrote it.
    pub formatted: bool,
    /// Sessions whose windows or marks covered it.
    pub candidates: Vec<SessionId>,
    /// The content before, for line counts; `None` for no file.
    pub before: Option<Hash>,
    /// The command in whose window it was written (ATTR-6).
    pub command: Option<u64>,
}

impl VersionFact {
    /// A first word about a version, by somebody of whom no more is known;
    /// there was no file before.
    pub fn new(
        path: RelPath,
        kind: VersionKind,
        held: Held,
        author: Author,
        evidence: Evidence,
    ) -> Self {
        Self {
            path,
            kind,
            from: None,
            held,
            author,
            evidence,
            amends: None,
            edit: None,
            unobserved: false,
            late: false,
            formatted: false,
            candidates: Vec::new(),
            before: None,
            command: None,
        }
    }
}

/// An edit as it was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditFact {
    /// Its number; `e<number>` on the wire.
    pub edit: u64,
    /// Whose.
    pub session: SessionId,
    /// The agent's own name of the tool call.
    pub call: Option<String>,
    /// What, in the order named.
    pub files: Vec<EditFileFact>,
    /// When it lapses.
    pub deadline: Millis,
    /// The classic flag: ended by the first closed change (ATTR-8).
    pub one_shot: bool,
    /// The connection it ends with; has no meaning after a restart.
    pub bound: Option<u64>,
    /// The tool's name.
    pub tool: Option<String>,
    /// The agent's step.
    pub step: Option<u64>,
}

/// A command window as it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFact {
    /// Its number; `c<number>` on the wire.
    pub command: u64,
    /// Whose.
    pub session: SessionId,
    /// The agent's own name of the tool call.
    pub call: Option<String>,
    /// What is run, for people.
    pub label: Option<String>,
    /// Which paths it speaks for.
    pub globs: Globs,
    /// When it ends by itself.
    pub deadline: Millis,
    /// The connection it ends with; has no meaning after a restart.
    pub bound: Option<u64>,
    /// The process it ends with.
    pub pid: Option<u32>,
    /// A formatter runs in it (ATTR-17).
    pub formatter: bool,
    /// It speaks for files that nobody tracks, too (SCOPE-1).
    pub workspace: bool,
    /// The branch that was checked out when it began, if there was one.
    pub branch: Option<String>,
}

/// One file of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditFileFact {
    /// Which path.
    pub path: RelPath,
    /// What it will hold.
    pub expect: Option<HashOrAbsent>,
    /// What it held when the edit began; an `expect` never matches that.
    pub began: Option<Hash>,
    /// The content the edit was computed from.
    pub base: Option<Hash>,
}

impl Fact {
    /// The session that acted, if one did.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::SessionOpened { session, .. }
            | Self::SessionClosed { session }
            | Self::Tracked { session, .. }
            | Self::Untracked { session, .. }
            | Self::Read { session, .. }
            | Self::Wrote { session, .. }
            | Self::Carried { session, .. }
            | Self::Inherited { session, .. }
            | Self::Invalidated { session, .. }
            | Self::Compacted { session, .. }
            | Self::Truncated { session, .. }
            | Self::Delivered { session, .. }
            | Self::ResetTold { session }
            | Self::Labelled { session, .. }
            | Self::NameUsed { session, .. }
            | Self::Noted { session, .. } => Some(session),
            Self::EditBegun(edit) => Some(&edit.session),
            Self::CommandBegun(command) => Some(&command.session),
            Self::SessionForgotten { .. }
            | Self::Baseline { .. }
            | Self::Version(_)
            | Self::Copied { .. }
            | Self::CopyDropped { .. }
            | Self::EditEnded { .. }
            | Self::Lost { .. }
            | Self::Saved { .. }
            | Self::CommandEnded { .. }
            | Self::NamesJoined { .. }
            | Self::NamesParted { .. } => None,
        }
    }

    /// The path of a baseline or a version, by which the log is looked up.
    pub fn version_path(&self) -> Option<&RelPath> {
        match self {
            Self::Baseline { path, .. } => Some(path),
            Self::Version(version) => Some(&version.path),
            _ => None,
        }
    }
}
