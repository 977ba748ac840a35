//! A request that has not taken effect yet, and what may come of looking at it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use touchmark_proto::{ConnectionId, Error, ErrorCode, ErrorData, Millis, RelPath, Request};

use crate::by_path::ByPath;
use crate::effect::{Answer, Effect, Question, WriteOrder};
use crate::handlers::Write;
use crate::input::{Content, Found, Learned, ReadOutcome};
use crate::requests::row;
use crate::tracker::carry::Texts;

/// How often a request waits for one more fence.
pub(super) const LOOKS: u32 = 3;

/// Who asks what.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    /// A client.
    Client(Request),
    /// An edit's time is up; a deadline stands behind a fence like a query
    /// (ATTR-16).
    Expire(u64),
    /// A command window's time is up, or its process has ended.
    EndCommand(u64),
    /// What a command window was opened for never ran.
    WithdrawCommand(u64),
    /// What a command window was opened for began then, and not before.
    CommandBegan(u64, Millis),
    /// What was hinted at of this path is to be read behind a fence.
    Look(RelPath),
}

/// A request that has not taken effect yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub ask: Ask,
    /// `None` for the engine's own.
    pub connection: Option<ConnectionId>,
    /// It has no effect after that (ATTR-9).
    pub until: Option<Millis>,
    /// The fence it waits behind.
    pub fence: Option<u64>,
    /// Every path it speaks of is to be read and hashed (SYNC-4).
    pub verify: bool,
    /// Paths it needs read, resolved; watched for it where nobody else does.
    pub borrowed: Vec<RelPath>,
    /// Every read that is ordered for it from now on is to bring the bytes.
    pub bytes: bool,
    /// Reads it waits for.
    pub reads: ByPath<u64>,
    /// The newest reads done for it.
    pub found: BTreeMap<RelPath, ReadOutcome>,
    /// The newest of those that brought the bytes.
    pub texts_read: BTreeMap<RelPath, (Content, Arc<[u8]>)>,
    /// What it is to do next.
    pub stage: Stage,
    /// It waits that long for another session's edit to end.
    pub wait_until: Option<Millis>,
    /// It was looked at once more because the file changed meanwhile.
    pub rechecked: bool,
    /// Fences it has waited for beyond its own, for contents that had to be
    /// looked at twice.
    pub looks: u32,
    /// It waits that long for a content that may be in the middle of a cut.
    pub not_before: Option<Millis>,
    /// What it held before that second look (SEEN-1).
    pub first_hash: Option<Option<touchmark_proto::Hash>>,
    /// Paths that it speaks of and does not wait for any longer.
    pub late: BTreeSet<RelPath>,
    /// Since when nothing has come that it waits for.
    pub since: Millis,
    /// When to look whether that has been too long, for a list.
    pub patience: Option<Millis>,
    /// It has been: it is answered without what has not come.
    pub impatient: bool,
    /// Something it speaks of that is still to be compared with the disk.
    pub blocker: Option<RelPath>,
    /// What is being written for it.
    pub write: Option<Write>,
    /// What was found out for it.
    pub learned: Option<Result<Learned, Error>>,
    /// Lines of a large file that are read for it.
    pub lines: Lines,
    /// Whether texts were compared for it (SEEN-8).
    pub texts: Texts,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its turn on its connection has not come, or its fence is not reached.
    Fence,
    /// Its reads are ordered.
    Reads,
    /// Another session's edit is in its way.
    Blocked,
    /// The shell finds something out for it.
    Learning,
    /// The shell writes for it; it cannot be taken back.
    Writing,
}

/// Lines of a file too large to be handed over whole.
#[derive(Clone, Debug)]
pub(crate) enum Lines {
    /// None are wanted, as far as is known.
    NotWanted,
    /// The shell reads them, out of this content.
    Awaited(Content),
    /// The bytes from where the first of them begins.
    Read(Content, Arc<[u8]>),
}

/// What came of looking at a request.
// One at a time is on its way, and most are `Done`.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Step {
    /// It has taken effect.
    Done(Result<Answer, Error>),
    /// It has taken effect; the shell or the log answers it.
    Passed(Effect),
    /// It needs these paths read first; with their bytes or without.
    Read(Vec<RelPath>, bool),
    /// It needs one more fence before it is looked at again.
    Fence,
    /// Another session's edit is in its way.
    Blocked(Error),
    /// The shell is to find something out for it.
    Learn(Question),
    /// The shell is to write for it.
    Write(Box<Write>, WriteOrder),
}

impl Pending {
    /// The engine's own, of which nothing has been found out yet.
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
            found: BTreeMap::new(),
            texts_read: BTreeMap::new(),
            stage: Stage::Fence,
            wait_until: None,
            rechecked: false,
            looks: 0,
            not_before: None,
            first_hash: None,
            late: BTreeSet::new(),
            since: now,
            patience: None,
            impatient: false,
            blocker: None,
            write: None,
            learned: None,
            lines: Lines::NotWanted,
            texts: Texts::default(),
        }
    }

    /// Takes in what a path held: a read it waits for, or a later one of a
    /// path that nobody else keeps in mind.
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
            // It changed after the request had arrived (SEEN-1).
            self.first_hash.get_or_insert(earlier.hash());
        }
        *earlier = outcome.clone();
    }

    /// What its answer does not know of, for want of a read.
    pub(crate) fn late(&self) -> Option<Vec<RelPath>> {
        (!self.late.is_empty()).then(|| self.late.iter().cloned().collect())
    }

    /// Whether nothing about files is asked: the shell answers alone.
    pub(crate) fn is_for_the_shell(&self) -> bool {
        matches!(&self.ask, Ask::Client(ask) if row(ask).by_shell)
    }
}

pub(super) fn too_late(pending: &Pending, now: Millis) -> Error {
    let _ = now;
    Error::new(
        ErrorCode::TooLate,
        "the answer would have come after `withinMs`",
    )
    .with(ErrorData {
        deadline: pending.until,
        ..ErrorData::default()
    })
}
