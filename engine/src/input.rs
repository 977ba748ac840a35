//! Everything that can happen to the engine, as one closed enum.

use std::collections::BTreeMap;
use std::sync::Arc;

use touchmark_proto::writes::Guard;
use touchmark_proto::{ConnectionId, Error, Hash, Millis, RelPath, Request, RequestId, SessionId};

use crate::ledger::record::{Held, Record};
use crate::tracker::carry::Difference;

/// Something happened. The shell hands these over one by one, in the order
/// in which it learned of them.
#[derive(Clone, Debug)]
pub enum Input {
    /// The watcher says: look at this path. A hint is never trusted beyond
    /// that; what the path holds is what the read that follows finds.
    Hint {
        /// A tracked path, or a path that may be one.
        path: RelPath,
        /// What the watcher saw.
        hint: Hint,
    },
    /// The same of several names at once: one thing happened, and each of them
    /// may lead to it.
    Hints {
        /// Paths as of [`Hint`](Self::Hint).
        paths: Vec<RelPath>,
        /// What the watcher saw.
        hint: Hint,
    },
    /// The watcher saw one name become another, both inside watched
    /// directories. Either may be a directory, then everything below moved.
    Renamed {
        /// The old name.
        from: RelPath,
        /// The new name.
        to: RelPath,
    },
    /// The watcher saw two names change places, and has said the first half of
    /// it as [`Renamed`](Self::Renamed). That was no rename (ATTR-12).
    Exchanged {
        /// The old name of that rename.
        from: RelPath,
        /// The new name of that rename.
        to: RelPath,
    },
    /// Coverage was lost (queue overflow, or the watcher had to be made
    /// anew): everything tracked is compared with the disk (ATTR-13).
    Overflow,
    /// Coverage was lost below one directory (it was not watched for a
    /// while): the paths tracked below it are compared with the disk.
    Gap {
        /// The directory, or a single path.
        below: RelPath,
    },
    /// Changes of these paths come without events (LOSS-2): each is read
    /// before the next answer that speaks of it.
    Unwatched {
        /// Tracked paths.
        paths: Vec<RelPath>,
        /// They are read although nobody asks.
        at_once: bool,
    },
    /// A client asks.
    Request {
        /// The shell's number for it.
        request: RequestId,
        /// The connection it came on.
        connection: ConnectionId,
        /// What is asked.
        ask: Request,
        /// It has no effect unless answered by then (ATTR-9).
        until: Option<Millis>,
    },
    /// A read that the engine ordered is done.
    Read {
        /// The path that was read.
        path: RelPath,
        /// The number the order carried.
        ticket: u64,
        /// What was found.
        outcome: ReadOutcome,
    },
    /// A comparison that the engine ordered is done.
    Compared {
        /// The number the order carried.
        number: u64,
        /// The paths that may hold something else, or may be reached in
        /// another way.
        differ: Vec<RelPath>,
    },
    /// A guarded write that the engine ordered is done, or was not done.
    Written {
        /// The path the order named.
        path: RelPath,
        /// The number the order carried.
        ticket: u64,
        /// What became of it.
        outcome: WriteOutcome,
    },
    /// Every hint about anything written before the fence was ordered has
    /// been handed over.
    FenceReached {
        /// The number the order carried.
        fence: u64,
    },
    /// No fence can be made here: whoever waited for it is answered from
    /// reads of the paths asked for (SYNC-2).
    FenceFailed {
        /// The number the order carried.
        fence: u64,
    },
    /// A connection ended: its requests in waiting have no effect, its bound
    /// edits end after the grace (ATTR-9).
    Disconnected {
        /// Which.
        connection: ConnectionId,
    },
    /// A process ended: so do the command windows that name it.
    ProcessEnded {
        /// Which.
        pid: u32,
    },
    /// What the engine asked for was found out, or could not be.
    Learned {
        /// The request it was asked for.
        request: RequestId,
        /// What was found.
        learned: Result<Learned, Error>,
    },
    /// Nobody was told that this command window is open: it ends.
    CommandUnheard {
        /// Its name on the wire.
        command: String,
    },
    /// The first process of the command that a window was opened for began at
    /// that time: the window has claimed nothing from before.
    CommandBegan {
        /// Its name.
        command: String,
        /// When.
        time: Millis,
    },
    /// What this command window was opened for never ran: it ends, and has
    /// claimed nothing (ATTR-6).
    CommandNeverRan {
        /// Its name on the wire.
        command: String,
    },
    /// A hook of this session had to let its agent go on unanswered: it is
    /// counted.
    HookUnanswered {
        /// Whose.
        session: SessionId,
    },
    /// A hook's event was not understood: it is counted.
    HookNotUnderstood {
        /// Whose, if that is known.
        session: Option<SessionId>,
    },
    /// One conversation's context holds what another session knows.
    Inherited {
        /// Whose context.
        session: SessionId,
        /// Which other session.
        from: SessionId,
        /// That one is over: both were one agent's.
        over: bool,
    },
    /// [`Engine::deadline`](crate::Engine::deadline) has come.
    Tick,
}

/// The answer to a [`Question`](crate::effect::Question).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Learned {
    /// Processes, each with its start in ticks since boot; `None` where there
    /// is none of that number.
    Processes(Vec<(u32, Option<u64>)>),
    /// Versions after a moment.
    Edited(Edited),
    /// Where texts differ. Pairs that are not here could not be compared: one
    /// is not kept, is no text, or is too large.
    Differences(Vec<Difference>),
    /// Lines of a file; `None` if it does not begin with that content any more.
    Lines(Option<Arc<[u8]>>),
    /// What a look at the whole workspace found.
    Swept(Swept),
}

/// What has changed in the workspace since it was looked at last (SCOPE-1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Which files, those that are gone before those that came.
    pub changes: Vec<SweptFile>,
    /// The branch that is checked out, or the commit; `None` where there is no
    /// repository.
    pub branch: Option<String>,
    /// Why not all files were looked at, if they were not.
    pub partial: Option<String>,
}

/// A file that has changed since it was looked at last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptFile {
    /// Which.
    pub path: RelPath,
    /// The name that it had before.
    pub from: Option<RelPath>,
    /// What it held then, [`Held::ABSENT`] if it was not there; `None` where
    /// nobody knows.
    pub before: Option<Held>,
    /// What it holds now, [`Held::ABSENT`] if it is not there.
    pub after: Held,
    /// When it was changed last, by the file system; `None` if it is not there.
    pub changed_ms: Option<Millis>,
}

/// What the log holds of versions after a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edited {
    /// Versions and corrections after it, the oldest first.
    pub versions: Vec<Record>,
    /// What each path of those, and each path wanted in any case, held at that
    /// moment, `None` for no file; a path that was not tracked then is missing.
    pub then: BTreeMap<RelPath, Option<Hash>>,
}

/// What the watcher saw on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Bytes were written or cut off; the writer has not closed yet.
    Written,
    /// A writer closed the file, or the content arrived by a rename.
    Closed,
    /// Both, with nothing in between: what most saves are.
    WrittenAndClosed,
    /// The name appeared: created, linked.
    Appeared,
    /// The name is gone: removed, or renamed away to where nobody looks.
    Removed,
    /// Anything else (attributes): look, without meaning.
    Touched,
}

/// What a read of a path found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOutcome {
    /// What is there.
    pub found: Found,
    /// For each length ordered that is no longer than the file: the hash of
    /// the file's first bytes up to there.
    pub prefixes: Vec<(u64, Hash)>,
    /// The bytes, where the order asked for them and there is a file.
    pub bytes: Option<Arc<[u8]>>,
    /// Its content may not be kept (SEC-3).
    pub secret: bool,
    /// Where symlinks on the way led, if there were any: the real name, also
    /// of what is not there.
    pub real: Option<RelPath>,
    /// Which file it is, where it has several links (FILE-1).
    pub object: Option<Object>,
    /// How long the read took, where that was long enough to matter: the next
    /// look that nobody asks for comes the later (LOSS-4).
    pub took: Millis,
}

/// A file by itself, whatever its names. Its number is another file's once
/// the last link is gone (ATTR-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// The file system's number.
    pub device: u64,
    /// The inode's number.
    pub inode: u64,
}

impl ReadOutcome {
    /// The content found, if a file was.
    pub fn hash(&self) -> Option<Hash> {
        match &self.found {
            Found::File(content) => Some(content.hash),
            _ => None,
        }
    }
}

impl From<Found> for ReadOutcome {
    fn from(found: Found) -> Self {
        Self {
            found,
            prefixes: Vec::new(),
            bytes: None,
            secret: false,
            real: None,
            object: None,
            took: 0,
        }
    }
}

/// What became of a guarded write (GUARD-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The new content took the place of the base.
    Done {
        /// How it was guarded.
        guard: Guard,
        /// Whether a lease told of others who had the file open.
        lease: bool,
        /// Absolute paths of bytes kept.
        recovered: Vec<String>,
    },
    /// Something else than the base was there, or somebody had it open: it
    /// is there still, or something newer of the same writer's.
    Conflict {
        /// What was found in place of the base; `None` for no file.
        found: Option<Hash>,
        /// Why, for a person or a model.
        cause: String,
        /// Absolute paths of bytes kept.
        recovered: Vec<String>,
    },
    /// It could not be done; the base is there still.
    Failed(Error),
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing, or a symlink to nothing.
    Absent,
    /// A regular file, read whole while its stat stayed the same.
    File(Content),
    /// A regular file that changed under every try to read it.
    Unstable {
        /// Its size at the last look.
        size: u64,
    },
    /// It may not be read.
    Unreadable {
        /// The system's words.
        cause: String,
    },
    /// A directory, FIFO, device or socket; it was not opened.
    NotAFile {
        /// `directory`, `fifo`, `device`, `socket`.
        file_type: &'static str,
    },
    /// A symlink leads out of the workspace (SEC-2).
    Outside,
}

/// A regular file's content and the stat that vouches for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// SHA-256 of all its bytes.
    pub hash: Hash,
    /// In bytes.
    pub size: u64,
    /// Lines: line feeds, and one more if the last line has none.
    pub lines: u32,
    /// The file's own modification time.
    pub mtime_ms: Millis,
    /// What tells this stat from another.
    pub stamp: Stamp,
    /// The stat may vouch for the content later (FILE-5): its times lay far
    /// enough back when the content was read that whatever is written later
    /// gets another.
    pub settled: bool,
}

/// A stat, as far as it tells one state of a file from another. Equal stamps
/// mean that nothing was written in between, as far as the file system's
/// clock can tell; they prove equal content only where the first was settled
/// (FILE-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The inode's number.
    pub inode: u64,
    /// In bytes.
    pub size: u64,
    /// Modification time in nanoseconds since 1970.
    pub modified: i64,
    /// Change time in nanoseconds since 1970.
    pub changed: i64,
    /// The device's number: with the inode's, which file it is.
    pub device: u64,
    /// What tells the mount from others that may have had the device's number
    /// before; 0 where that number says enough.
    pub mount: u64,
}
