//! Facts. Folding all facts in order gives the engine's state (`State::apply`).
//! The store keeps them.

use touchmark_proto::daemon::Program;
use touchmark_proto::events::EditPhase;
use touchmark_proto::files::{Source, Verdict};
use touchmark_proto::{
    Evidence, Hash, HashOrAbsent, LineRange, Millis, RelPath, SessionId, VersionKind,
};

use crate::ledger::session_memory::Note;
use crate::ranges::RangeSet;

pub use crate::ledger::fact_parts::{
    Carriage, CommandFact, EditFact, EditFileFact, Held, VersionFact,
};
pub use crate::ledger::refusals::{Passing, Refusal};

/// One fact, with its place in the order of all facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The number of the fact; the `n` of a clock.
    pub n: u64,
    /// When the fact was recorded, in milliseconds since 1970.
    pub time: Millis,
    /// The fact itself.
    pub fact: Fact,
}

impl Record {
    /// Returns whether this record says that a session was forgotten.
    pub fn forgets(&self) -> bool {
        matches!(self.fact, Fact::SessionForgotten { .. })
    }
}

/// A fact of any kind. How facts are stored is in `ledger/stored`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A session was opened, or opened again.
    SessionOpened {
        /// The session that was opened.
        session: SessionId,
        /// The agent's program; `None` if the client did not name it.
        agent: Option<Program>,
        /// The session that started this one; `None` if the client did not name
        /// one.
        parent: Option<SessionId>,
        /// The agent's process; `None` if the client did not name it.
        pid: Option<u32>,
    },
    /// A session was closed.
    SessionClosed {
        /// The session that was closed.
        session: SessionId,
    },
    /// Everything recorded for a session was removed.
    SessionForgotten {
        /// The session that was forgotten.
        session: SessionId,
    },
    /// A path is recorded for the first time, with this content. Its log begins
    /// here.
    Baseline {
        /// The path that is recorded for the first time.
        path: RelPath,
        /// The content of the path at that time.
        held: Held,
        /// The path is not tracked: it is recorded because a command changes it
        /// (SCOPE-2).
        untracked: bool,
        /// The name behind the symlinks on the path; `None` if there were none.
        real: Option<RelPath>,
    },
    /// A new version, or the correction of one.
    Version(VersionFact),
    /// A session tracks a path from now on. Changes are reported to the session
    /// relative to this baseline.
    Tracked {
        /// The session that tracks the path.
        session: SessionId,
        /// The path that is tracked.
        path: RelPath,
        /// Why the path is tracked.
        source: Source,
        /// The agent's step; `None` if it named none.
        step: Option<u64>,
    },
    /// A session no longer tracks a path.
    Untracked {
        /// The session that tracked the path.
        session: SessionId,
        /// The path that is no longer tracked.
        path: RelPath,
    },
    /// After a rename, what sessions had seen of the old name was copied to the
    /// new name (ATTR-12).
    Copied {
        /// The name before the rename.
        from: RelPath,
        /// The name after the rename.
        to: RelPath,
    },
    /// A name with a copy was removed before any session used it, so the copy
    /// was dropped (ATTR-12).
    CopyDropped {
        /// The new name of the copy.
        path: RelPath,
    },
    /// Contents entered a session's context.
    Read {
        /// The session that read.
        session: SessionId,
        /// The file that was read.
        path: RelPath,
        /// The hash of the whole file. `None` if the file changed between the
        /// request and the daemon's read, so that the copy is stale
        /// immediately.
        hash: Option<Hash>,
        /// The number of lines of the whole file.
        lines: u32,
        /// The lines read; `None` for the whole file.
        range: Option<LineRange>,
        /// Whether it was a first read, a repeat or another kind of read.
        verdict: Verdict,
        /// How the session read the file.
        source: Source,
        /// The agent's step; `None` if it named none.
        step: Option<u64>,
    },
    /// Lines that a session has on record of an older content are unchanged in
    /// a newer one (SEEN-8).
    Carried {
        /// The session that has the lines on record.
        session: SessionId,
        /// The file of the two contents.
        path: RelPath,
        /// The content that the lines were shown of.
        from: Hash,
        /// The content that has the lines unchanged.
        to: Hash,
        /// The places of the unchanged lines in the newer content.
        kept: RangeSet,
        /// Lines of the newer content that replaced lines which the session has
        /// on record.
        changed: RangeSet,
    },
    /// What one session has seen is in the context of another as well, since
    /// both are one agent's (HOOK-9).
    Inherited {
        /// The session that gets the knowledge.
        session: SessionId,
        /// The session whose knowledge it was.
        from: SessionId,
    },
    /// A session wrote a content, and so has seen it (SEEN-1).
    Wrote {
        /// The session that wrote.
        session: SessionId,
        /// The file that was written.
        path: RelPath,
        /// The content written.
        hash: HashOrAbsent,
        /// The session did not name the hash: the daemon found this content.
        assumed: bool,
    },
    /// What a session has read is forgotten (SEEN-1).
    Invalidated {
        /// The session that forgets.
        session: SessionId,
        /// The file; `None` for all files.
        path: Option<RelPath>,
    },
    /// The session's context was compacted.
    Compacted {
        /// The session whose context was compacted.
        session: SessionId,
        /// The files that are still in the context.
        keep: Vec<RelPath>,
    },
    /// Parts of the session's context were cut.
    Truncated {
        /// The session whose context was cut.
        session: SessionId,
        /// The parts that were cut: a file and a range of lines; the whole file
        /// if the range is `None`.
        items: Vec<(RelPath, Option<LineRange>)>,
    },
    /// An edit began.
    EditBegun(EditFact),
    /// Some paths of an edit ended. When none is left, the edit itself has
    /// ended.
    EditEnded {
        /// The edit's number.
        edit: u64,
        /// The session that began the edit.
        session: SessionId,
        /// The paths that ended.
        paths: Vec<RelPath>,
        /// Whether the paths were committed, aborted, or reached their
        /// deadline.
        phase: EditPhase,
    },
    /// Changes were reported to a session.
    Delivered {
        /// The session that received the changes.
        session: SessionId,
        /// Each path, with the number of the newest fact that was reported.
        paths: Vec<(RelPath, u64)>,
        /// The lost versions that were reported.
        lost: Vec<u64>,
    },
    /// A session received the report that the state was lost.
    ResetTold {
        /// The session that received the report.
        session: SessionId,
    },
    /// A session's write replaced a version that it had not seen. Whether lines
    /// of it are lost is found out for each answer (ATTR-10).
    Lost {
        /// The session that overwrote.
        session: SessionId,
        /// The path that was overwritten.
        path: RelPath,
        /// The version that is lost.
        version: u64,
        /// The version that replaced the lost one.
        by: u64,
        /// The contents that the session had seen by then, with the lines of
        /// each.
        seen: Vec<(Hash, RangeSet)>,
        /// The lines of the version that a command took away, if the shell found
        /// that out and has told the session; else `None`.
        lines: Option<RangeSet>,
    },
    /// An editor reported a save (ATTR-2).
    Saved {
        /// The file that was saved.
        path: RelPath,
        /// The content that the editor wrote.
        hash: Hash,
        /// When the editor saved.
        time: Millis,
        /// A formatter changed the content during the save.
        formatted: bool,
    },
    /// A command window opened (ATTR-6).
    CommandBegun(CommandFact),
    /// A command window ended.
    CommandEnded {
        /// The command's number.
        command: u64,
        /// The session that ran the command.
        session: SessionId,
        /// The command's exit code; `None` if the client did not name it.
        exit: Option<i32>,
        /// The branch that was checked out at the end; `None` if there was
        /// none.
        branch: Option<String>,
    },
    /// A session's memory besides files changed.
    Noted {
        /// The session whose memory changed.
        session: SessionId,
        /// The change of the session's memory.
        note: Note,
    },
    /// A session got its short name (SES-2).
    Labelled {
        /// The session that got the label.
        session: SessionId,
        /// The label: a word and a number, such as `claude-1`.
        label: String,
    },
    /// A session used a file by a name that is one of several of the file
    /// (FILE-1).
    NameUsed {
        /// The session that used the name.
        session: SessionId,
        /// The name that the session used.
        name: RelPath,
        /// The name by which the file is known.
        file: RelPath,
    },
    /// Two tracked names were found to be one file. They have one history from
    /// now on (FILE-1).
    NamesJoined {
        /// The name that no longer stands for a separate file.
        name: RelPath,
        /// The name by which the file is known.
        file: RelPath,
    },
    /// Some names of a file now lead to another file. Each side continues with
    /// its own history (FILE-2).
    NamesParted {
        /// The name by which the file is known.
        file: RelPath,
        /// The names that leave. The first of them is the name by which the new
        /// file is known.
        leaving: Vec<RelPath>,
    },
    /// An edit or a write of a session was refused (GUARD-1, GUARD-4).
    Refused {
        /// The session that was refused.
        session: SessionId,
        /// The file that the refusal is about, the first if there are several;
        /// `None` if the error named none.
        path: Option<RelPath>,
        /// Why it was refused.
        cause: Refusal,
    },
    /// A hook let a session's tool write although the session had not seen all
    /// changes. Unless `cause` is [`Passing::Late`], a
    /// [`Refused`](Self::Refused) of the same call precedes it, of the same file
    /// and for the same reason, and there is one fact for each of these.
    Passed {
        /// The session whose tool wrote.
        session: SessionId,
        /// The file that it wrote, the one of the refusal if there are several.
        path: RelPath,
        /// Why it was let through.
        cause: Passing,
    },
    /// An undo or a redo was carried out (UNDO-1): one fact for each session
    /// with changes in it.
    Undone {
        /// The session whose changes were undone or written again; `None` for
        /// changes of no session.
        session: Option<SessionId>,
        /// The undo's number; `u<number>` on the wire. Of a redo, the number
        /// of the undo that it reverts.
        undo: u64,
        /// Whether it was a redo.
        redo: bool,
        /// The number of files with changes of the session that were written,
        /// removed or renamed.
        files: u32,
        /// The number of places in these files that changed. A place with
        /// changes of several sessions counts for each.
        hunks: u32,
        /// The number of places in these files that kept their lines, since
        /// another author has changed them later.
        conflicts: u32,
    },
    /// An earlier content was written back at a user's request (HIST-4,
    /// GUARD-1).
    BroughtBack {
        /// The session that had written the content; `None` if it was not a
        /// session's, or that is not known.
        session: Option<SessionId>,
        /// The file that has the content again.
        path: RelPath,
        /// The version that had the content; `None` if it came from the
        /// recovery directory, or was never recorded.
        version: Option<u64>,
    },
    /// A fact of a kind that earlier versions recorded. It has no effect, and
    /// its fields are not read. Its number stays taken, so the log has no gap.
    Retired,
    /// The user said who wrote some lines of a version (ATTR-18).
    Claimed {
        /// The version's path.
        path: RelPath,
        /// The version that first contained the lines.
        version: u64,
        /// The lines: the index of each among those that the version added, and
        /// the first eight bytes of its hash. A line whose hash is another by
        /// now is not meant.
        lines: Vec<(u32, u64)>,
        /// The session that wrote them; `None` for the user.
        session: Option<SessionId>,
    },
    /// The user kept changes in a review (REV-1): one fact for each session
    /// with changes in it.
    Kept {
        /// The session whose changes were kept; `None` for changes of no
        /// session.
        session: Option<SessionId>,
        /// The number of files with changes of the session that were kept.
        files: u32,
        /// The number of changes that were kept. One of several sessions counts
        /// for each.
        changes: u32,
    },
    /// Git had a version's content before the file had it (HIST-8). There is at
    /// most one for each version.
    GitBrought {
        /// The version.
        version: u64,
        /// The version's path.
        path: RelPath,
        /// What git did.
        how: Carriage,
    },
    /// A name stands for another file than before (HIST-9). Decided once, from
    /// contents that may be forgotten later.
    Lineage {
        /// The name.
        path: RelPath,
        /// The number of the version from which on it does; `None`: from this
        /// fact on, since the name has no version.
        version: Option<u64>,
        /// The earlier name of the file; `None` for a new file.
        from: Option<RelPath>,
        /// The number of the version from which on the earlier name does not
        /// stand for the file any more. 0 without an earlier name.
        until: u64,
    },
}

impl Fact {
    /// Returns the session that acted, or `None` if no session did.
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
            | Self::Refused { session, .. }
            | Self::Passed { session, .. }
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
            | Self::NamesParted { .. }
            | Self::Undone { .. }
            | Self::BroughtBack { .. }
            | Self::Retired
            | Self::Kept { .. }
            | Self::Claimed { .. }
            | Self::GitBrought { .. }
            | Self::Lineage { .. } => None,
        }
    }

    /// Returns whether the shell may record the fact by
    /// [`Input::Outcome`](crate::Input::Outcome): a result that the engine
    /// takes no part in. A removal counts if the name is not tracked, and so
    /// does what an undo brings there.
    pub fn is_outcome(&self) -> bool {
        match self {
            Self::Version(version) => {
                version.evidence == Evidence::Claimed
                    || matches!(version.kind, VersionKind::Created | VersionKind::Deleted)
            }
            _ => matches!(
                self,
                Self::Refused { .. }
                    | Self::Lost { lines: Some(_), .. }
                    | Self::Passed { .. }
                    | Self::Undone { .. }
                    | Self::BroughtBack { .. }
                    | Self::Kept { .. }
                    | Self::Claimed { .. }
                    | Self::GitBrought { .. }
                    | Self::Lineage { .. }
            ),
        }
    }

    /// Returns what a path holds by a baseline or a version; `None` for other
    /// facts.
    pub fn held(&self) -> Option<&Held> {
        match self {
            Self::Baseline { held, .. } => Some(held),
            Self::Version(version) => Some(&version.held),
            _ => None,
        }
    }

    /// Returns the path of a baseline or a version, by which the log is
    /// indexed; `None` for other facts.
    pub fn version_path(&self) -> Option<&RelPath> {
        match self {
            Self::Baseline { path, .. } => Some(path),
            Self::Version(version) => Some(&version.path),
            _ => None,
        }
    }
}
