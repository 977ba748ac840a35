//! A request that has not taken effect yet, and the possible results of
//! processing it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use touchmark_proto::{
    ConnectionId, Error, ErrorCode, ErrorData, Hash, Millis, RelPath, Reply, Request, SessionId,
};

use crate::by_path::ByPath;
use crate::disk::{Content, Found, ReadOutcome};
use crate::effect::{Answer, Effect, Question, WriteOrder};
use crate::input::Learned;
use crate::input::WriteOutcome;
use crate::requests::table::row;
use crate::text::lines::Difference;
use crate::tracker::ways::MAX_LOOKS;
use touchmark_proto::writes::Matched;

/// The number of additional fences that a request waits for at most.
pub(super) const LOOKS: u32 = 3;

/// What is requested, by a client or by the engine itself.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // almost all are requests of clients
pub(crate) enum Ask {
    /// A request of a client.
    Client(Request),
    /// An edit's deadline has passed. A deadline takes effect after a fence,
    /// like a query (ATTR-16).
    Expire(u64),
    /// A command window's deadline has passed, or its process has ended.
    EndCommand(u64),
    /// The command of a window never ran.
    WithdrawCommand(u64),
    /// The command of a window began at this time, and not before.
    CommandBegan(u64, Millis),
    /// A path with a pending hint has to be read after a fence.
    Look(RelPath),
}

/// A request that has not taken effect yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub ask: Ask,
    /// The connection that sent it; `None` for the engine's own requests.
    pub connection: Option<ConnectionId>,
    /// The request has no effect after this time (ATTR-9).
    pub until: Option<Millis>,
    /// The fence that the request waits for.
    pub fence: Option<u64>,
    /// Whether every path that it covers has to be read and hashed (SYNC-4).
    pub verify: bool,
    /// Paths that have to be read for the request. They are watched only for it
    /// if nothing else watches them.
    pub borrowed: Vec<RelPath>,
    /// Whether every read that is ordered for it from now on has to return the
    /// bytes.
    pub bytes: bool,
    /// The reads that it waits for, by path, with the numbers of their orders.
    pub reads: ByPath<u64>,
    /// How often it has waited for a read of a path because of what another
    /// name resolves to.
    pub names_read: ByPath<u32>,
    /// The newest result of a read for it, for each path.
    pub found: BTreeMap<RelPath, ReadOutcome>,
    /// The newest content with its bytes, for each path that was read with
    /// them.
    pub texts_read: BTreeMap<RelPath, (Content, Arc<[u8]>)>,
    /// How far it has come.
    pub stage: Stage,
    /// The time until which it waits for another session's edit to end.
    pub wait_until: Option<Millis>,
    /// Whether its paths were read once more after the fence.
    pub rechecked: bool,
    /// The second looks at contents that it has waited for.
    pub looks: Looks,
    /// The content that the first read found, if a later one found another
    /// (SEEN-1).
    pub first_hash: Option<Option<Hash>>,
    /// Paths in the request's scope that it no longer waits for.
    pub late: BTreeSet<RelPath>,
    /// The last time at which something that it waits for arrived.
    pub since: Millis,
    /// How long it waits for what is missing in a list.
    pub patience: Patience,
    /// A path that it covers and that still has to be compared with the disk.
    pub blocker: Option<RelPath>,
    /// The answer to the question that was asked for it.
    pub learned: Option<Result<Learned, Error>>,
    /// The lines of a large file that are read for it.
    pub lines: Lines,
    /// The results of comparing texts for the request (SEEN-8).
    pub texts: Texts,
}

/// How far a request has come.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// It waits for its turn on its connection, its fence and its reads.
    Waiting,
    /// Another session's edit blocks it. It has left its queue, so that a later
    /// request of its connection can end that edit.
    Blocked,
    /// It was blocked, and waits for a fence and reads outside of its queue.
    Unblocked,
    /// The shell is answering a question for it.
    Learning,
    /// The shell is writing for it, or has written. It can no longer be
    /// cancelled.
    Writing(Box<Write>),
}

impl Stage {
    /// Returns whether the request has left its queue because an edit blocked
    /// it.
    pub(crate) fn has_left_queue(&self) -> bool {
        matches!(self, Self::Blocked | Self::Unblocked)
    }
}

/// The second looks at contents that a request waits for (ATTR-5). A writer that
/// never pauses must not delay it forever.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Looks {
    /// It has waited for this number of fences beyond its own, at most
    /// [`LOOKS`].
    AfterFences(u32),
    /// It waits until this time for a content that may be in the middle of a
    /// truncating save.
    AfterPause(Millis),
    /// It has waited for the last one.
    Over,
}

/// How long a list waits for what is missing in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// As long as it takes.
    Endless,
    /// At this time, it is checked whether it has waited too long.
    Until(Millis),
    /// It has waited too long, and is answered without what is missing.
    Lost,
    /// It has waited too long, and waits until this time for further reads.
    LostUntil(Millis),
}

impl Patience {
    /// Returns when it is checked whether the request has waited too long, or
    /// `None`.
    pub(super) fn due(self) -> Option<Millis> {
        match self {
            Self::Until(due) | Self::LostUntil(due) => Some(due),
            Self::Endless | Self::Lost => None,
        }
    }

    /// Returns whether the request has waited too long.
    pub(super) fn is_lost(self) -> bool {
        matches!(self, Self::Lost | Self::LostUntil(_))
    }

    /// Checks at this time whether the request has waited too long.
    pub(super) fn check_at(&mut self, due: Millis) {
        *self = match self.is_lost() {
            true => Self::LostUntil(due),
            false => Self::Until(due),
        };
    }
}

/// The lines wanted of a file that is too large to be read whole.
#[derive(Clone, Debug)]
pub(crate) enum Lines {
    /// No lines are wanted so far.
    NotWanted,
    /// The shell is reading the lines from this content.
    Awaited(Content),
    /// The lines were read: the content, and its bytes from the first wanted
    /// line on.
    Read(Content, Arc<[u8]>),
}

/// How far the comparison of texts for a request has come.
#[derive(Clone, Debug, Default)]
pub(crate) enum Texts {
    /// No texts were compared yet.
    #[default]
    ToCompare,
    /// Texts are being compared that may show that a copy is fresh.
    Awaited,
    /// The texts that may show that a copy is fresh were compared.
    Compared,
    /// All contents are being compared with the content to be shown of which
    /// the session has lines on record that will not be shown.
    AwaitedToShow,
    /// The comparison with the content to be shown is complete. Contains its
    /// results.
    ComparedToShow(Vec<Difference>),
}

/// A write that the shell carries out for a request.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub ticket: u64,
    pub session: SessionId,
    pub path: RelPath,
    /// The number of the edit that declares the write.
    pub edit: u64,
    pub base: Option<Hash>,
    pub hash: Hash,
    /// For `file/edit`: how the old text was found.
    pub found: Option<TextFound>,
    /// The outcome of the write; `None` until the shell has reported it.
    pub outcome: Option<WriteOutcome>,
}

/// How `file/edit` found the old text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextFound {
    pub matched: Matched,
    pub count: u32,
    pub line: u32,
}

/// The answer to a request, or why it has none yet.
pub(crate) type Answered = Result<Answer, Box<Stop>>;

/// Why a request has no answer of its handler.
#[allow(clippy::large_enum_variant, reason = "it is always boxed")]
pub(crate) enum Stop {
    /// It is refused.
    Refused(Error),
    /// It has taken effect. The shell or the log answers it.
    Passed(Effect),
    /// It needs these paths to be read first. The flag says whether with their
    /// bytes.
    Read(Vec<RelPath>, bool),
    /// It needs one more fence before it is processed again.
    Fence,
    /// Another session's edit blocks it. The error is its answer if it does not
    /// wait.
    Blocked(Error),
    /// It needs the shell to answer a question first.
    Learn(Question),
    /// It needs the shell to write first.
    Write(Box<Write>, WriteOrder),
}

impl From<Error> for Box<Stop> {
    fn from(error: Error) -> Self {
        Self::new(Stop::Refused(error))
    }
}

impl Pending {
    /// Returns a pending request of the engine itself, with nothing read yet.
    pub(super) fn new(ask: Ask, now: Millis) -> Self {
        Self {
            ask,
            connection: None,
            until: None,
            fence: None,
            verify: false,
            borrowed: Vec::new(),
            bytes: false,
            reads: ByPath::default(),
            names_read: ByPath::default(),
            found: BTreeMap::new(),
            texts_read: BTreeMap::new(),
            stage: Stage::Waiting,
            wait_until: None,
            rechecked: false,
            looks: Looks::AfterFences(0),
            first_hash: None,
            late: BTreeSet::new(),
            since: now,
            patience: Patience::Endless,
            blocker: None,
            learned: None,
            lines: Lines::NotWanted,
            texts: Texts::default(),
        }
    }

    /// Takes the result of a read: one that the request waits for, or a later
    /// one of a path that it has already read.
    pub(crate) fn take_found(&mut self, path: &RelPath, outcome: &ReadOutcome, awaited: bool) {
        if (awaited || self.found.contains_key(path))
            && let (Found::File(content), Some(bytes)) = (&outcome.found, &outcome.bytes)
        {
            let read = (*content, Arc::clone(bytes));
            self.texts_read.insert(path.clone(), read);
        }
        let Some(earlier) = self.found.get_mut(path) else {
            if awaited {
                self.found.insert(path.clone(), outcome.clone());
            }
            return;
        };
        if earlier.found != outcome.found {
            // The file changed after the request had arrived (SEEN-1).
            self.first_hash.get_or_insert(earlier.hash());
        }
        *earlier = outcome.clone();
    }

    /// Returns whether it waits for a read of `name`, or had it read, and may
    /// wait for one more read of `other` because of what that resolves to.
    pub(super) fn may_wait_too(&self, name: &RelPath, other: &RelPath) -> bool {
        let for_it = self.reads.contains_key(name) || self.found.contains_key(name);
        for_it
            && self
                .names_read
                .get(other)
                .is_none_or(|count| *count < MAX_LOOKS)
    }

    /// Waits for a read of a path as well, because of what another name
    /// resolves to.
    pub(crate) fn wait_too(&mut self, path: &RelPath, ticket: u64) {
        if self.reads.insert(path.clone(), ticket) != Some(ticket) {
            *self.names_read.entry(path.clone()).or_default() += 1;
        }
    }

    /// Has it processed once more after a fence, with new reads.
    pub(super) fn retry(&mut self, fence: u64) {
        self.fence = Some(fence);
        self.found.clear();
        if matches!(self.stage, Stage::Blocked) {
            self.stage = Stage::Unblocked;
        }
    }

    /// Returns the paths that its answer does not cover because they were not
    /// read in time.
    pub(crate) fn late(&self) -> Option<Vec<RelPath>> {
        (!self.late.is_empty()).then(|| self.late.iter().cloned().collect())
    }

    /// Returns whether its write was ordered, and has no outcome yet.
    pub(super) fn awaits_write(&self) -> bool {
        matches!(&self.stage, Stage::Writing(write) if write.outcome.is_none())
    }

    /// Removes and returns its write, or returns `None` if none was ordered.
    pub(crate) fn take_write(&mut self) -> Option<Write> {
        match std::mem::replace(&mut self.stage, Stage::Waiting) {
            Stage::Writing(write) => Some(*write),
            stage => {
                self.stage = stage;
                None
            }
        }
    }

    /// Returns whether the shell answers the request without the engine.
    pub(crate) fn is_for_the_shell(&self) -> bool {
        matches!(&self.ask, Ask::Client(ask) if row(ask).by_shell)
    }
}

/// Returns the error for a request that has not taken effect in time.
pub(crate) fn too_late(pending: &Pending) -> Error {
    Error::new(
        ErrorCode::TooLate,
        "the answer would have come after `withinMs`",
    )
    .with(ErrorData {
        deadline: pending.until,
        ..ErrorData::default()
    })
}

/// Returns the result of a request that has taken effect, with its answer.
pub(crate) fn done(reply: Reply) -> Answered {
    Ok(Answer::from(reply))
}
