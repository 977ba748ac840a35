//! Everything that can happen to the engine, as one closed enum.

use std::collections::BTreeMap;
use std::sync::Arc;

use touchmark_proto::writes::Guard;
use touchmark_proto::{
    ConnectionId, Error, FileMode, Hash, Millis, RelPath, Request, RequestId, SessionId,
};

use crate::disk::Hint;
use crate::disk::ReadOutcome;
use crate::ledger::record::{Fact, Held, Record};
use crate::ledger::session_memory::Note;
use crate::text::lines::Difference;
use crate::witnesses::Seen;

/// An observation that the shell passes to the engine. The shell passes inputs
/// one by one, in the order in which it received them.
#[derive(Clone, Debug)]
pub enum Input {
    /// The watcher reports that this path may have changed. A hint only causes
    /// a read; the read decides what the path contains.
    Hint {
        /// A tracked path, or a path that may become one.
        path: RelPath,
        /// The event that the watcher saw.
        hint: Hint,
    },
    /// The watcher reports one event that may concern several names, since each
    /// of them may resolve to the file.
    Hints {
        /// The paths, each as in [`Hint`](Self::Hint).
        paths: Vec<RelPath>,
        /// The event that the watcher saw.
        hint: Hint,
    },
    /// The watcher saw a rename inside watched directories. For a directory,
    /// everything below it was renamed too.
    Renamed {
        /// The name before the rename.
        from: RelPath,
        /// The name after the rename.
        to: RelPath,
    },
    /// The watcher saw two names exchanged, and has already reported the first
    /// half as [`Renamed`](Self::Renamed). That was no rename (ATTR-12).
    Exchanged {
        /// The name before that rename.
        from: RelPath,
        /// The name after that rename.
        to: RelPath,
    },
    /// Coverage was lost for the whole workspace: the event queue overflowed,
    /// or the watcher was rebuilt. All tracked paths are compared with the disk
    /// (ATTR-13).
    Overflow,
    /// Coverage was lost below one directory, which was not watched for some
    /// time. The tracked paths below it are compared with the disk.
    Gap {
        /// The directory, or a single path.
        below: RelPath,
    },
    /// From now on, or no longer, changes have no known author, since the user
    /// has paused touchmark (OFF-2).
    Paused(bool),
    /// Changes of these paths may cause no event (LOSS-2). Each path is read
    /// before the next answer that covers it.
    Unwatched {
        /// The tracked paths whose changes may be missed.
        paths: Vec<RelPath>,
        /// Whether they are also read when no request covers them.
        at_once: bool,
    },
    /// A client sent a request.
    Request {
        /// The shell's number for the request.
        request: RequestId,
        /// The connection that sent the request.
        connection: ConnectionId,
        /// The request itself.
        ask: Request,
        /// The request has no effect unless it is answered by this time
        /// (ATTR-9). `None`: no limit.
        until: Option<Millis>,
    },
    /// A read that the engine ordered is complete.
    Read {
        /// The path that was read.
        path: RelPath,
        /// The number of the order (`ReadOrder::ticket`).
        ticket: u64,
        /// What the read found.
        outcome: ReadOutcome,
    },
    /// A comparison that the engine ordered is complete.
    Compared {
        /// The number of the order (`Comparison::number`).
        number: u64,
        /// The paths whose content may differ, or whose name may resolve to
        /// another file now.
        differ: Vec<RelPath>,
    },
    /// A guarded write that the engine ordered was done, or was not done.
    Written {
        /// The path of the order.
        path: RelPath,
        /// The number of the order (`WriteOrder::ticket`).
        ticket: u64,
        /// The result of the write.
        outcome: WriteOutcome,
    },
    /// Every hint about a change before this fence was ordered has been passed
    /// to the engine.
    FenceReached {
        /// The number in the order ([`Effect::Fence`](crate::Effect::Fence)).
        fence: u64,
    },
    /// No fence can be made here. Requests that wait for it are answered from
    /// reads of the paths that they name (SYNC-2).
    FenceFailed {
        /// The number in the order ([`Effect::Fence`](crate::Effect::Fence)).
        fence: u64,
    },
    /// A connection ended. Its pending requests have no effect, and its bound
    /// edits end after the grace (ATTR-9).
    Disconnected {
        /// The connection that ended.
        connection: ConnectionId,
    },
    /// A process ended. The command windows that name it end too.
    ProcessEnded {
        /// The number of the process.
        pid: u32,
    },
    /// The answer to a question of the engine, or an error.
    Learned {
        /// The request that the question was asked for.
        request: RequestId,
        /// The answer to the question.
        learned: Result<Learned, Error>,
    },
    /// What a look at the workspace found after the request that ordered it was
    /// answered, or without a request (SCOPE-5).
    Swept(Swept),
    /// The client never received the answer that opened this command window, so
    /// the window ends.
    CommandUnanswered {
        /// The command's name on the wire.
        command: String,
    },
    /// What a witness has seen, oldest first (ATTR-3). It was seen before the call
    /// went on, so it comes before the read that finds what the call did.
    Witnessed {
        /// Whose processes it sees.
        seen: Seen,
        /// What was seen.
        sightings: Vec<Sighting>,
    },
    /// The first process of a window's command began at this time. The window
    /// claims no changes from before it.
    CommandBegan {
        /// The command's name on the wire.
        command: String,
        /// When the process began.
        time: Millis,
    },
    /// The command of this window never ran. The window ends and has claimed no
    /// changes (ATTR-6).
    CommandNeverRan {
        /// The command's name on the wire.
        command: String,
    },
    /// A hook let its agent continue before the daemon answered. It is counted
    /// for its session.
    HookUnanswered {
        /// The hook's session.
        session: SessionId,
    },
    /// A hook event was not understood. It is counted.
    HookNotUnderstood {
        /// The hook's session; `None` if it is not known.
        session: Option<SessionId>,
    },
    /// A session is to remember something in addition to files. No effect if
    /// the session is not known.
    Noted {
        /// Which.
        session: SessionId,
        /// What.
        note: Note,
    },
    /// The shell found or did something that is only recorded: facts for which
    /// [`Fact::is_outcome`] is true. Other facts are ignored, and so are
    /// refusals of sessions that are not known.
    Outcome(Vec<Fact>),
    /// Two sessions turned out to be one conversation: what `from` has seen,
    /// `session` has seen too (HOOK-9).
    Inherited {
        /// The session that gets the knowledge.
        session: SessionId,
        /// The session that has the knowledge now.
        from: SessionId,
        /// Whether the session `from` is over: both sessions were one agent's.
        over: bool,
    },
    /// The time that [`Engine::deadline`](crate::Engine::deadline) returned has
    /// come.
    Tick,
}

/// What the witness of a command has seen (ATTR-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// The command is witnessed from its start.
    Began,
    /// A process of the command may write a name from now on, or what is below
    /// it.
    MayWrite(Mark),
    /// Something happened to a name in a watched directory, by any process.
    Happened {
        /// The name.
        name: RelPath,
        /// What happened.
        event: NameEvent,
        /// When the witness was told.
        at: Millis,
    },
    /// It is not known what happened to the names that were marked before.
    Missed,
    /// Not every write is seen.
    Gap {
        /// Why, for people.
        why: String,
        /// Whether this also concerns what the processes will run later.
        lasts: bool,
    },
}

impl Sighting {
    /// Returns a gap that concerns the commands which run now.
    pub fn passing(why: impl Into<String>) -> Self {
        Self::Gap {
            why: why.into(),
            lasts: false,
        }
    }

    /// Returns a gap that also concerns what runs later.
    pub fn lasting(why: impl Into<String>) -> Self {
        Self::Gap {
            why: why.into(),
            lasts: true,
        }
    }
}

/// A mark of a witness: a name that a process may write from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The name.
    pub name: RelPath,
    /// When it was made, before the call went on.
    pub made: Millis,
    /// Whether the name is taken away, and not written.
    pub removes: bool,
    /// Whether what has the name is opened, and not replaced by a rename.
    pub in_place: bool,
    /// The inode number of the file that the call leaves at the name; `None` if
    /// it is not known.
    pub inode: Option<u64>,
    /// Whether the call fails, unless what the witness found has changed since.
    pub is_poor: bool,
    /// The process; `None` if it is not known, or if the command that started it
    /// has left it behind.
    pub process: Option<Marker>,
    /// What had the name before.
    pub prior: Prior,
    /// What happens to the name if the call succeeds; `None` if that is not
    /// known, or if the name is not watched.
    pub events: Option<Vec<NameEvent>>,
    /// What the call does to the names below.
    pub subtree: Subtree,
}

/// What a call does to the names below the one that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subtree {
    /// Nothing.
    Same,
    /// A symbolic link gets or loses the name: those below may be others.
    Redirected,
    /// A directory gets or loses it by a rename, with all that is below.
    Moved,
}

/// What happened to a name in a watched directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameEvent {
    /// A file was closed that was open for writing.
    Closed,
    /// The name was made, not by a rename.
    Created,
    /// The name was removed.
    Removed,
    /// What had the name was renamed away.
    MovedFrom,
    /// Something was renamed to the name.
    MovedTo,
}

impl NameEvent {
    pub(crate) const ALL: [Self; 5] = [
        Self::Closed,
        Self::Created,
        Self::Removed,
        Self::MovedFrom,
        Self::MovedTo,
    ];
}

/// What had a name before a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prior {
    /// It is not known.
    Unknown,
    /// Nothing had it.
    Absent,
    /// Nothing had it, if the name was created since. Else the call has failed.
    New,
    /// This file had it.
    File(PriorFile),
    /// This content, which is recorded, had it.
    Held(Held),
}

/// A file before a mark, by its stat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorFile {
    /// The inode number.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// When it was changed, in nanoseconds since 1970.
    pub changed: i64,
    /// When it was modified, in nanoseconds since 1970.
    pub modified: i64,
    /// The permissions.
    pub mode: Option<FileMode>,
    /// Where the witness has stored its bytes; `None` if it has not.
    pub stored: Option<StoredBytes>,
}

/// Bytes that a witness has stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBytes {
    /// Where they are.
    pub at: u64,
    /// Their checksum.
    pub sum: u64,
}

impl Prior {
    /// Returns whether no file had the name that was changed after this time.
    pub(crate) fn is_older_than(self, time: Millis) -> bool {
        match self {
            Self::File(file) => {
                u64::try_from(file.changed / 1_000_000).is_ok_and(|changed| changed <= time)
            }
            Self::Absent | Self::New => true,
            Self::Unknown | Self::Held(_) => false,
        }
    }
}

impl Mark {
    /// Returns the mark of a write in place of which only the name is known.
    pub fn new(name: RelPath) -> Self {
        Self {
            name,
            made: 0,
            removes: false,
            in_place: true,
            inode: None,
            is_poor: false,
            process: None,
            prior: Prior::Unknown,
            events: None,
            subtree: Subtree::Same,
        }
    }
}

/// A process that may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// When it was started.
    pub began: Millis,
    /// When the last program that a person types into was started, of this
    /// process and those above it: an editor, or a shell without a script.
    /// `None` if there is none.
    pub typed: Option<Millis>,
}

/// The answer to a [`Question`](crate::effect::Question).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Learned {
    /// Processes, each with its start in ticks since boot; `None` if no process
    /// has that number.
    Processes(Vec<(u32, Option<u64>)>),
    /// The versions after a moment.
    Edited(Edited),
    /// The differences between pairs of texts. A pair is missing if it could
    /// not be compared: one of the two is not kept, is not text, or is too
    /// large.
    Differences(Vec<Difference>),
    /// Lines of a file; `None` if the file no longer begins with that content.
    Lines(Option<Arc<[u8]>>),
    /// The result of a look at the workspace.
    Swept(Swept),
}

/// The files of the workspace that have changed since the last look (SCOPE-1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// The changed files: first the removed ones, then the others.
    pub changes: Vec<SweptFile>,
    /// The branch that is checked out, else the commit; `None` outside a
    /// repository.
    pub branch: Option<String>,
    /// Why not all files were looked at yet; `None` if all were, by this look
    /// and those before.
    pub partial: Option<String>,
}

/// A file that has changed since the last look at the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptFile {
    /// The file's path.
    pub path: RelPath,
    /// The name that the file had before; `None` if it was not renamed.
    pub from: Option<RelPath>,
    /// The file's content at the last look, or [`Held::ABSENT`] if there was no
    /// file. `None` if it is what is recorded, or else not known.
    pub before: Option<Held>,
    /// The file's content now, or [`Held::ABSENT`] if there is no file.
    pub after: Held,
    /// When the file was last changed, according to the file system. If there is
    /// no file, when it was removed at the latest; `None` if not known.
    pub changed_ms: Option<Millis>,
    /// Git brought it, together with many others (SCOPE-9).
    pub by_git: bool,
    /// The file's inode number; `None` if there is no file, or if it is not
    /// known.
    pub inode: Option<u64>,
    /// Whether any process may have the file open for writing.
    pub is_open: bool,
}

impl SweptFile {
    /// Returns a change of this file, of which no more is known.
    pub fn new(path: RelPath, before: Option<Held>, after: Held) -> Self {
        Self {
            path,
            from: None,
            before,
            after,
            changed_ms: None,
            by_git: false,
            inode: None,
            is_open: false,
        }
    }
}

/// The versions in the log after a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edited {
    /// The versions and corrections after the moment, oldest first.
    pub versions: Vec<Record>,
    /// The content at that moment of each path in `versions` and of each path
    /// that was wanted in any case; `None` for no file. Paths that were not
    /// tracked then are missing.
    pub then: BTreeMap<RelPath, Option<Hash>>,
}

/// The result of a guarded write (GUARD-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The new content replaced the base.
    Done {
        /// How the write was guarded.
        guard: Guard,
        /// Whether a lease could show which other processes had the file open.
        lease: bool,
        /// Absolute paths of the contents put into the recovery directory.
        recovered: Vec<String>,
    },
    /// The file's content was not the base, or another process had the file
    /// open for writing. That content is still there, or a newer one by the
    /// same writer.
    Conflict {
        /// The content found instead of the base; `None` for no file.
        found: Option<Hash>,
        /// The reason, for a person or a model.
        cause: String,
        /// Absolute paths of the contents put into the recovery directory.
        recovered: Vec<String>,
    },
    /// The write could not be done. The base is still there.
    Failed(Error),
}
