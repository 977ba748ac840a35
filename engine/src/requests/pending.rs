//! A request that has not taken effect yet, and the possible results of
//! processing it.

use std::collections::BTreeSet;
use std::sync::Arc;

use touchmark_proto::{
    ConnectionId, Error, ErrorCode, ErrorData, Hash, Millis, RelPath, Reply, Request, SessionId,
};

use crate::disk::Content;
use crate::effect::{Answer, Effect, Question, WriteOrder};
use crate::input::Learned;
use crate::input::WriteOutcome;
use crate::requests::reads::Reads;
use crate::requests::table::row;
use crate::text::lines::Difference;
use touchmark_proto::writes::Matched;

/// The number of additional fences that a request waits for at most.
pub(super) const LOOKS: u32 = 3;

/// What is requested, by a client or by the engine itself.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // almost all are requests of clients
pub(crate) enum Ask {
    /// A request of a client.
    Client {
        ask: Request,
        /// The connection that sent it; `None` if it has ended since.
        connection: Option<ConnectionId>,
        /// The request has no effect after this time (ATTR-9).
        until: Option<Millis>,
    },
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
    /// The fence that the request waits for.
    pub fence: Option<u64>,
    /// Whether every path that it covers has to be read and hashed (SYNC-4).
    pub verify: bool,
    /// What is read for it.
    pub reads: Reads,
    /// How far it has come.
    pub stage: Stage,
    /// The time until which it waits for another session's edit to end.
    pub wait_until: Option<Millis>,
    /// Whether its paths were read once more after the fence.
    pub rechecked: bool,
    /// The second looks at contents that it has waited for.
    pub looks: Looks,
    /// Paths in the request's scope that it no longer waits for.
    pub late: BTreeSet<RelPath>,
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
    /// Until it is found that nothing has arrived for too long.
    Timed(Check),
    /// It has waited too long, and is answered without what is missing.
    Lost,
    /// It has waited too long, and waits in the same way for further reads.
    LostTimed(Check),
}

/// When it is checked whether a list has waited too long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    /// The time of the check.
    pub due: Millis,
    /// The last time at which something that the list waits for arrived.
    pub since: Millis,
}

impl Patience {
    /// Returns the next check, or `None` if none is scheduled.
    pub(super) fn check(self) -> Option<Check> {
        match self {
            Self::Timed(check) | Self::LostTimed(check) => Some(check),
            Self::Endless | Self::Lost => None,
        }
    }

    /// Returns whether the request has waited too long.
    pub(super) fn is_lost(self) -> bool {
        matches!(self, Self::Lost | Self::LostTimed(_))
    }

    /// Schedules a check.
    pub(super) fn schedule(&mut self, check: Check) {
        *self = match self.is_lost() {
            true => Self::LostTimed(check),
            false => Self::Timed(check),
        };
    }

    /// Notes that something has arrived that the request waits for.
    pub(super) fn arrived(&mut self, now: Millis) {
        if let Self::Timed(check) | Self::LostTimed(check) = self {
            check.since = now;
        }
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
    /// Returns a pending request with nothing read yet.
    pub(super) fn new(ask: Ask, fence: Option<u64>) -> Self {
        Self {
            ask,
            fence,
            verify: false,
            reads: Reads::default(),
            stage: Stage::Waiting,
            wait_until: None,
            rechecked: false,
            looks: Looks::AfterFences(0),
            late: BTreeSet::new(),
            patience: Patience::Endless,
            blocker: None,
            learned: None,
            lines: Lines::NotWanted,
            texts: Texts::default(),
        }
    }

    /// Returns the connection that waits for the answer; `None` if it has
    /// ended, and for the engine's own requests.
    pub(crate) fn connection(&self) -> Option<ConnectionId> {
        match self.ask {
            Ask::Client { connection, .. } => connection,
            _ => None,
        }
    }

    /// Returns the time after which the request has no effect, or `None`.
    pub(crate) fn until(&self) -> Option<Millis> {
        match self.ask {
            Ask::Client { until, .. } => until,
            _ => None,
        }
    }

    /// Has it processed once more after a fence, with new reads.
    pub(super) fn retry(&mut self, fence: u64) {
        self.fence = Some(fence);
        self.reads.found.clear();
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
        matches!(&self.ask, Ask::Client { ask, .. } if row(ask).by_shell)
    }
}

/// Returns the error for a request that has not taken effect in time.
pub(crate) fn too_late(pending: &Pending) -> Error {
    Error::new(
        ErrorCode::TooLate,
        "the answer would have come after `withinMs`",
    )
    .with(ErrorData {
        deadline: pending.until(),
        ..ErrorData::default()
    })
}

/// Returns the result of a request that has taken effect, with its answer.
pub(crate) fn done(reply: Reply) -> Answered {
    Ok(Answer::from(reply))
}
