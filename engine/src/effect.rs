//! Everything that the engine orders, as one closed enum.

use std::sync::Arc;

use touchmark_proto::events::Happening;
use touchmark_proto::{
    Author, Clock, ConnectionId, Error, Hash, LineRange, Millis, RelPath, Reply, RequestId,
};

use crate::disk::Stamp;
use crate::input::Prior;
use crate::ledger::record::{Held, Record};
use crate::requests::table::ForShell;
use crate::text::lines::TextPair;
use crate::witnesses::Seen;

/// An order to the shell. The shell carries out effects in their order.
/// [`Reply`](Effect::Reply) and [`Publish`](Effect::Publish) leave the process
/// only after every record before them is committed (DUR-1).
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Store this fact.
    Record(Record),
    /// Watch this path. The watch has to be set before any later effect.
    Track(RelPath),
    /// Stop watching this path.
    Untrack(RelPath),
    /// Read and hash this path, then pass [`Input::Read`](crate::Input::Read).
    Read(ReadOrder),
    /// Compare the stats of these files with the given ones, then pass
    /// [`Input::Compared`](crate::Input::Compared).
    Compare(Comparison),
    /// Make a fence with this number. Pass `FenceReached` with the number once
    /// everything that the watcher saw earlier has been passed.
    Fence(u64),
    /// Pass [`Input::ProcessEnded`](crate::Input::ProcessEnded) when this
    /// process has ended, immediately if it does not exist.
    AwaitProcess(u32),
    /// Make a ring for this witness, and report what it sees as [`Input::Witnessed`](crate::Input::Witnessed), each time before
    /// the next input (ATTR-3).
    Witness(Seen),
    /// Write a file, guarded, once every earlier record is committed; then pass
    /// [`Input::Written`](crate::Input::Written).
    Write {
        /// The request that the write is for.
        request: RequestId,
        /// The path and the contents before and after.
        order: WriteOrder,
    },
    /// Answer a question of the engine; then pass
    /// [`Input::Learned`](crate::Input::Learned).
    Learn {
        /// The request that the question is for.
        request: RequestId,
        /// The question to answer.
        question: Question,
    },
    /// Answer a request.
    Reply {
        /// The request to answer.
        request: RequestId,
        /// The answer, or the error that the request is refused with.
        answer: Result<Box<Answer>, Error>,
    },
    /// Answer a request from the log; see [`crate::ledger::recall`].
    Recall {
        /// The request to answer.
        request: RequestId,
        /// What to look up.
        recall: Recall,
    },
    /// Answer this request in the shell. All requests before it have taken
    /// effect.
    Host {
        /// The request to answer.
        request: RequestId,
        /// The connection that sent the request.
        connection: ConnectionId,
        /// What the shell has to answer.
        ask: ForShell,
    },
    /// Publish an event to the subscribers.
    Publish(Notice),
}

/// An order to read a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOrder {
    /// The path to read.
    pub path: RelPath,
    /// The number of the order, repeated in the result.
    pub ticket: u64,
    /// Lengths, in bytes. For each, the hash of that number of bytes from the
    /// file's beginning is wanted too.
    pub prefixes: Vec<u64>,
    /// Whether the bytes are wanted.
    pub bytes: bool,
    /// Whether the content should be kept under its hash for line counts,
    /// within the configured limits and never for secrets.
    pub keep: bool,
}

impl ReadOrder {
    /// Returns an order to read a path for its hash alone. Its number is 0: the
    /// caller waits for the result itself.
    pub fn of(path: RelPath) -> Self {
        Self {
            path,
            ticket: 0,
            prefixes: Vec::new(),
            bytes: false,
            keep: false,
        }
    }
}

/// An order to compare the stats of files with the stats that prove their known
/// contents. A file always counts as different if it has several names, if a
/// symlink leads to it, or if its changes may cause no event (LOSS-2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The number of the order, repeated in the result.
    pub number: u64,
    /// Whether the files have to be watched first, as by [`Effect::Track`].
    pub track: bool,
    /// The files, each with the stat at which its content was read.
    pub files: Vec<(RelPath, Stamp)>,
}

/// An order to replace one content with another, and no third content
/// (GUARD-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOrder {
    /// The path to write.
    pub path: RelPath,
    /// The number of the order, repeated in the result.
    pub ticket: u64,
    /// The content that has to be there before; `None` for no file.
    pub base: Option<Hash>,
    /// The content to write.
    pub bytes: Arc<[u8]>,
    /// The hash of `bytes`.
    pub hash: Hash,
    /// The session has not seen all of the base, so the base is put into the
    /// recovery directory. If it may not be kept, nothing is written (GUARD-3).
    pub keep_base: bool,
    /// Who wrote the base; `None` if that is not known.
    pub base_author: Option<Author>,
    /// Whether to create missing directories above the path.
    pub create_directories: bool,
}

/// An answer, with the parts that the shell fills in from kept contents.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The answer itself.
    pub reply: Reply,
    /// The line counts to fill in. Each names a change in the reply by its
    /// index.
    pub lines: Vec<LinesWanted>,
    /// The previews to fill in: the index of a file record in the reply, and
    /// the hash of the content.
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

/// A request for line counts between two kept contents; `None` is an absent
/// file, which has no lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinesWanted {
    /// The index of the change in the reply.
    pub index: usize,
    /// The older content; `None` for an absent file.
    pub old: Option<Hash>,
    /// The newer content; `None` for an absent file.
    pub new: Option<Hash>,
    /// The contents before and after each run of the requesting session's own
    /// writes, the newest last, if the newer content may have taken back some of
    /// their lines (SEEN-7).
    pub own: Vec<(Option<Hash>, Option<Hash>)>,
}

impl LinesWanted {
    /// Returns the line counts wanted between two contents, for the first
    /// change of a reply.
    pub(crate) fn between(old: Option<Hash>, new: Option<Hash>) -> Self {
        Self {
            index: 0,
            old,
            new,
            own: Vec::new(),
        }
    }
}

/// What to look up in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recall {
    /// For `file/history`: baselines and versions of one path, newest first.
    History {
        /// The path whose history is requested.
        path: RelPath,
        /// Only facts with a lower number than this; `None` for all.
        before: Option<u64>,
        /// Other names, each with a fact number. Facts of the name up to that
        /// number belong to the file's history; see
        /// [`spans`](crate::recall::spans).
        earlier: Vec<(RelPath, u64)>,
        /// The name to use in the answer.
        named: RelPath,
        /// The maximum number of versions in the answer.
        limit: usize,
        /// What the state says about these versions beyond the log.
        marks: Marks,
    },
    /// For `modified/list` without a session, or with `since`: all versions
    /// after a fact, oldest first.
    Since {
        /// Only facts with a higher number than this.
        after: u64,
        /// Only paths that sort after this one, from the request's cursor;
        /// `None` for all.
        cursor: Option<RelPath>,
        /// The maximum number of paths in the answer.
        limit: usize,
        /// Leave out the versions that this session itself declared; `None` to
        /// keep all.
        session: Option<touchmark_proto::SessionId>,
        /// The clock to put into the answer.
        clock: Clock,
    },
}

/// A question whose answer is not in the engine's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// When did these processes start, by the kernel?
    Processes(Vec<u32>),
    /// Where do these pairs of texts differ (SEEN-8)?
    Differences(Vec<TextPair>),
    /// What are these lines of a file that is too large to read whole?
    Lines(LinesOrder),
    /// Which files of the workspace have changed since the last look (SCOPE-1)?
    Sweep(Sweep),
    /// Which versions after a moment are in the log (CHK-1)? Everything
    /// recorded earlier is in the log by then.
    Edited {
        /// Versions after this moment are wanted.
        moment: Moment,
        /// Versions of these paths only; `None` for all paths.
        paths: Option<Vec<RelPath>>,
        /// Paths whose content at the moment is wanted even if they have no
        /// version after it.
        also: Vec<RelPath>,
    },
}

/// An order to look at files of the workspace. A file in a list stands with its
/// last recorded content (SCOPE-9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Look at these files.
    Named(Vec<(RelPath, Held)>),
    /// Look at all files. A command window was open the whole time since the last
    /// look, so all changes are wanted. These were marked by witnesses.
    InWindow(Vec<MarkedFile>),
    /// Look at these files, which were marked by witnesses: they saw that nothing
    /// else was written by commands.
    Marked(Vec<MarkedFile>),
    /// Look at these files. A command window opens, and if all files were looked
    /// at once, no look is made at the others: its witness will tell what the
    /// command writes.
    Opening(Vec<(RelPath, Held)>),
    /// Look at all files. No window was open, so only changes of these files are
    /// wanted, and those that an earlier look left out.
    Between(Vec<(RelPath, Held)>),
}

/// A file that a witness has marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedFile {
    /// The file's path.
    pub path: RelPath,
    /// What had the name before the first mark since it was recorded last.
    pub prior: Prior,
    /// Whose witness marked it, and may have stored its content.
    pub by: Seen,
}

/// An order to read some lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinesOrder {
    /// The file's path.
    pub path: RelPath,
    /// The content that the lines have to be from. The file has to begin with
    /// it.
    pub hash: Hash,
    /// The length in bytes of the content with this hash.
    pub size: u64,
    /// The wanted lines. The file may end before the last of them.
    pub range: LineRange,
    /// The maximum number of bytes to return. If there are more, one more byte
    /// is returned.
    pub most: u64,
}

/// A moment in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Directly after the fact with this number.
    After(u64),
    /// A wall clock time.
    Time(Millis),
}

/// What the state says about versions, in addition to their facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Versions that were overwritten before the session that overwrote them
    /// had seen them.
    pub overwritten: Vec<u64>,
    /// Edits that are open. Versions attributed to them are provisional
    /// (ATTR-4).
    pub open_edits: Vec<u64>,
}

/// An event for subscribers.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The clock of the fact that the event reports.
    pub clock: Clock,
    /// The event.
    pub happening: Happening,
    /// For a version: the content before and after, for line counts. `None` for
    /// other events.
    pub lines: Option<(Option<Hash>, Option<Hash>)>,
}
