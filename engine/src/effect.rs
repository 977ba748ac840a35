//! Everything the engine wants done, as one closed enum.

use std::sync::Arc;

use touchmark_proto::events::Happening;
use touchmark_proto::{
    Author, Clock, ConnectionId, Error, Hash, LineRange, Millis, RelPath, Reply, RequestId,
};

use crate::input::Stamp;
use crate::ledger::record::Record;
use crate::requests::ForShell;

/// Something the shell is to do. Effects are carried out in their order;
/// [`Reply`](Effect::Reply) and [`Publish`](Effect::Publish) leave the
/// process only after every record before them is committed (DUR-1).
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Keep this fact.
    Record(Record),
    /// Watch what can happen to this path, before any later effect.
    Track(RelPath),
    /// Nobody asks about this path any more.
    Untrack(RelPath),
    /// Read and hash this path, then hand over
    /// [`Input::Read`](crate::Input::Read).
    Read(ReadOrder),
    /// Look which of these files are as they were, then hand over
    /// [`Input::Compared`](crate::Input::Compared).
    Compare(Comparison),
    /// Make a fence, then hand over `FenceReached` with this number behind
    /// everything the watcher saw earlier.
    Fence(u64),
    /// Hand over [`Input::ProcessEnded`](crate::Input::ProcessEnded) once this
    /// process has ended, at once if there is none.
    AwaitProcess(u32),
    /// Write a file, guarded, once every record before is committed; then
    /// hand over [`Input::Written`](crate::Input::Written).
    Write {
        /// Who asks for it.
        request: RequestId,
        /// What is asked.
        order: WriteOrder,
    },
    /// Find something out for a request, then hand over
    /// [`Input::Learned`](crate::Input::Learned).
    Learn {
        /// Which request.
        request: RequestId,
        /// What.
        question: Question,
    },
    /// Answer a request.
    Reply {
        /// Which.
        request: RequestId,
        /// The answer.
        answer: Result<Box<Answer>, Error>,
    },
    /// Answer a request out of the log; see [`crate::ledger::recall`].
    Recall {
        /// Which.
        request: RequestId,
        /// What to look up.
        recall: Recall,
    },
    /// It is this request's turn, and the shell answers it by itself.
    Host {
        /// Which.
        request: RequestId,
        /// The connection it came on.
        connection: ConnectionId,
        /// What is asked.
        ask: ForShell,
    },
    /// Tell subscribers.
    Publish(Notice),
}

/// An order to read a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOrder {
    /// What.
    pub path: RelPath,
    /// Comes back with the outcome.
    pub ticket: u64,
    /// Lengths whose prefix hash is wanted too.
    pub prefixes: Vec<u64>,
    /// Whether the bytes are wanted.
    pub bytes: bool,
    /// Whether the content should be kept by its hash, for line counts
    /// (within the configured caps, never of secrets).
    pub keep: bool,
    /// All of it is to be read, also if it seems only to have grown (SYNC-4).
    pub whole: bool,
}

/// An order to compare files with the stats that vouch for what is known of
/// them. A file that has several names, or that a symlink leads to, differs in
/// any case, and so does one whose changes may come without events (LOSS-2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Comes back with the outcome.
    pub number: u64,
    /// They are to be watched first, as by [`Effect::Track`].
    pub track: bool,
    /// Which, with the stat that the content was read at.
    pub files: Vec<(RelPath, Stamp)>,
}

/// An order to put a content in the place of another, and of no third
/// (GUARD-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOrder {
    /// What.
    pub path: RelPath,
    /// Comes back with the outcome.
    pub ticket: u64,
    /// What must be there; `None` for no file.
    pub base: Option<Hash>,
    /// What shall be there.
    pub bytes: Arc<[u8]>,
    /// Its hash.
    pub hash: Hash,
    /// The session has not seen all of the base: it is kept, and where it may
    /// not be kept nothing is written (GUARD-3).
    pub keep_base: bool,
    /// Who wrote the base, where that is known.
    pub base_author: Option<Author>,
    /// Make the directories that are missing.
    pub create_directories: bool,
}

/// An answer, with what the shell is to fill in from kept contents.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The answer.
    pub reply: Reply,
    /// Line counts wanted: the n-th change of the reply.
    pub lines: Vec<LinesWanted>,
    /// Previews wanted: the n-th file record of the reply, by this hash.
    pub previews: Vec<(usize, Hash)>,
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self {
            reply,
            lines: Vec::new(),
            previews: Vec::new(),
        }
    }
}

/// Line counts wanted between two kept contents; `None` is an absent file,
/// that is no lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinesWanted {
    /// Which change of the reply.
    pub index: usize,
    /// The older content.
    pub old: Option<Hash>,
    /// The newer content.
    pub new: Option<Hash>,
    /// What the asking session's own last writes took the place of, and what
    /// they wrote, where the newer content may have taken some of their lines
    /// back (SEEN-7).
    pub own: Option<(Option<Hash>, Option<Hash>)>,
}

impl LinesWanted {
    /// Those between two contents, of the first change.
    pub(crate) fn between(old: Option<Hash>, new: Option<Hash>) -> Self {
        Self {
            index: 0,
            old,
            new,
            own: None,
        }
    }
}

/// What to look up in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recall {
    /// `file/history`: baselines and versions of one path, newest first.
    History {
        /// Which path.
        path: RelPath,
        /// Only facts before this one.
        before: Option<u64>,
        /// Other names whose facts up to these belong to the file's history;
        /// see [`spans`](crate::recall::spans).
        earlier: Vec<(RelPath, u64)>,
        /// The name to tell it by.
        spoken: RelPath,
        /// At most this many.
        limit: usize,
        /// What the log itself does not say about these versions.
        marks: Marks,
    },
    /// `modified/list` without a session, or with `since`: all versions after
    /// a fact, oldest first.
    Since {
        /// Only facts after this one.
        after: u64,
        /// Only paths after this one, as the cursor said.
        cursor: Option<RelPath>,
        /// At most this many paths.
        limit: usize,
        /// Leave out what this session itself declared.
        session: Option<touchmark_proto::SessionId>,
        /// The clock to answer.
        clock: Clock,
    },
}

/// What the engine cannot know by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// When the kernel started these processes.
    Processes(Vec<u32>),
    /// Where these pairs of texts differ (SEEN-8).
    Differences(Vec<TextPair>),
    /// Some lines of a file too large to be handed over whole.
    Lines(LinesOrder),
    /// Which files of the workspace have changed since they were looked at last
    /// (SCOPE-1).
    Sweep {
        /// Somebody's window was open all the time since, who may have changed
        /// them.
        claims: bool,
    },
    /// What the log holds of versions after a moment (CHK-1). By then it holds
    /// all that was recorded before.
    Edited {
        /// The moment.
        moment: Moment,
        /// Only these paths; all if absent.
        paths: Option<Vec<RelPath>>,
        /// Paths whose content at the moment is wanted in any case.
        also: Vec<RelPath>,
    },
}

/// An order to read some lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinesOrder {
    /// Which file.
    pub path: RelPath,
    /// The content they are to be from: what the file begins with.
    pub hash: Hash,
    /// Its length in bytes.
    pub size: u64,
    /// Which lines. The file may end before the last of them.
    pub range: LineRange,
    /// So many bytes of them at most, and one more where there are more.
    pub most: u64,
}

/// An older and a newer content of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPair {
    /// The older.
    pub old: Hash,
    /// The newer.
    pub new: Hash,
}

/// A moment in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Right after this fact.
    After(u64),
    /// By the clock on the wall.
    Time(Millis),
}

/// What the state knows about versions beyond their facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Versions that were overwritten unseen.
    pub overwritten: Vec<u64>,
    /// Open edits: versions marked by them are provisional (ATTR-4).
    pub open_edits: Vec<u64>,
}

/// Something to tell subscribers.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The fact it rests on.
    pub clock: Clock,
    /// What happened.
    pub happening: Happening,
    /// For a version: the content before and after, to count lines.
    pub lines: Option<(Option<Hash>, Option<Hash>)>,
}
