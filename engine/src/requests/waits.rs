//! What a pending request waits for. Only this module decides whether a request
//! can take effect.

use touchmark_proto::{RelPath, RequestId};

use super::pending::{Ask, LOOKS, Pending, Stage};
use super::scope::Scope;
use super::waiting::Requests;
use crate::requests::pending::Looks;
use crate::timers::Timer;
use crate::tracker::reading::CUT_DELAY;
use crate::tracker::turn::Turn;
use crate::view::View;

/// The reason why a request cannot take effect yet. The first that applies, in
/// this order.
#[derive(Debug)]
pub(super) enum Waits {
    /// An earlier request of its connection has not taken effect.
    Turn,
    /// The shell has not answered a question that was asked for it.
    Shell,
    /// The time for a second look at a content that may be incomplete has not
    /// come.
    Time,
    /// Another session's edit blocks the request.
    Edit,
    /// The request's fence has not been reached: earlier writes may not be
    /// known yet.
    Fence,
    /// Files in the request's scope are being read.
    Reads,
    /// A file in the request's scope still has to be compared with the disk
    /// (LOSS-1).
    Comparison,
    /// The daemon itself is writing a file in the request's scope.
    OwnWrite,
    /// A file in the request's scope is in the middle of a save. The request
    /// waits for the close, for a short time (ATTR-12).
    Close,
    /// The contents of these paths need a second look before an answer covers
    /// them (ATTR-5).
    SecondLook(Vec<RelPath>),
}

impl Requests {
    /// Returns what a request waits for, or `None` if it can take effect now.
    pub(super) fn waits_for(
        &self,
        request: RequestId,
        pending: &Pending,
        view: View<'_>,
    ) -> Option<Waits> {
        let before_it = |connection| {
            let first = self.queues.get(&connection).and_then(|queue| queue.front());
            first != Some(&request)
        };
        let (lost, fences) = (&view.tracker.reconciliation, &view.tracker.fences);
        // A request that another session's edit blocks has left its queue.
        if !pending.stage.has_left_queue() && pending.connection().is_some_and(before_it) {
            Some(Waits::Turn)
        } else if matches!(pending.stage, Stage::Learning) {
            Some(Waits::Shell)
        } else if pending.awaits_write() {
            // Also if its path has become a name of another file meanwhile.
            Some(Waits::OwnWrite)
        } else if matches!(pending.looks, Looks::AfterPause(due) if view.now < due) {
            Some(Waits::Time)
        } else if matches!(pending.stage, Stage::Blocked) {
            Some(Waits::Edit)
        } else if pending.fence.is_some_and(|fence| !fences.is_done(fence)) {
            Some(Waits::Fence)
        } else if !pending.reads.awaited.is_empty() {
            Some(Waits::Reads)
        } else if !pending.patience.is_lost()
            && pending
                .blocker
                .as_ref()
                .is_some_and(|path| lost.concerns(path))
        {
            Some(Waits::Comparison)
        } else if view.is_written(pending) {
            Some(Waits::OwnWrite)
        } else if view.awaits_close(pending) {
            Some(Waits::Close)
        } else {
            let doubtful = view.looked_at_once(pending)?;
            Some(Waits::SecondLook(doubtful))
        }
    }

    /// Sets, for each of the requests, a path of the current comparison that it
    /// has to wait for.
    pub(super) fn note_blockers(&mut self, requests: &[RequestId], view: View<'_>) {
        if !view.tracker.reconciliation.is_under_way() {
            return;
        }
        for request in requests {
            let Some(pending) = self.pending.get_mut(request) else {
                continue;
            };
            let blocker = pending.blocker.as_ref();
            if blocker.is_some_and(|path| view.tracker.reconciliation.concerns(path)) {
                continue;
            }
            pending.blocker = view.held_up_by(pending);
        }
    }
}

/// Orders a second look at contents for a request: after one more fence, or
/// after a delay if several fences were not enough.
pub(super) fn look_again(
    request: RequestId,
    pending: &mut Pending,
    paths: Vec<RelPath>,
    turn: &mut Turn<'_>,
) {
    pending.looks = match pending.looks {
        Looks::AfterFences(LOOKS) => {
            let due = turn.now + CUT_DELAY;
            turn.timers.insert((due, Timer::Request(request)));
            pending.looks = Looks::AfterPause(due);
            return;
        }
        Looks::AfterFences(count) => Looks::AfterFences(count + 1),
        Looks::AfterPause(_) | Looks::Over => Looks::Over,
    };
    pending.fence = Some(turn.want_fence());
    turn.tracker.look_again(paths);
}

impl View<'_> {
    /// Returns a path in a request's scope that still has to be compared with
    /// the disk, or `None`.
    fn held_up_by(&self, pending: &Pending) -> Option<RelPath> {
        let lost = &self.tracker.reconciliation;
        if pending.patience.is_lost() || pending.is_for_the_shell() {
            return None;
        }
        match self.scope_of(&pending.ask) {
            Scope::Everything => lost.under_way().next().cloned(),
            Scope::Paths(files) => {
                let mut names = self.by_all_names(files).into_iter();
                names.find(|name| lost.concerns(name))
            }
            scope @ Scope::Session(_) if self.has_several_names() => {
                let mut lost = lost.under_way();
                lost.find(|name| self.covers(&scope, name)).cloned()
            }
            Scope::Session(session) => {
                let files = &self.state.sessions.get(&session)?.files;
                if lost.len() < files.len() {
                    let mut lost = lost.under_way();
                    lost.find(|path| files.contains_key(path)).cloned()
                } else {
                    files.keys().rev().find(|path| lost.concerns(path)).cloned()
                }
            }
        }
    }

    /// Returns whether a path in the scope of a client's request with a fence
    /// is in the middle of a save. The request waits for the close, for a short
    /// time (ATTR-12).
    fn awaits_close(&self, pending: &Pending) -> bool {
        let as_of_now = pending.fence.is_some() && matches!(pending.ask, Ask::Client { .. });
        let mut unclosed = self.tracker.unclosed(self.now).peekable();
        if unclosed.peek().is_none() || !as_of_now || pending.is_for_the_shell() {
            return false;
        }
        let scope = self.scope_of(&pending.ask);
        unclosed.any(|path| !pending.late.contains(path) && self.covers(&scope, path))
    }

    /// Returns whether the daemon itself is writing a file in a request's
    /// scope.
    fn is_written(&self, pending: &Pending) -> bool {
        if self.tracker.written().len() == 0
            || pending.patience.is_lost()
            || pending.is_for_the_shell()
        {
            return false;
        }
        let scope = self.scope_of(&pending.ask);
        self.tracker.written().any(|path| self.covers(&scope, path))
    }

    /// Returns the paths in a request's scope whose contents need a second
    /// look, or `None`. A writer that never pauses must not delay a request
    /// forever: after some looks, the request waits only for very recent
    /// contents, and only once.
    fn looked_at_once(&self, pending: &Pending) -> Option<Vec<RelPath>> {
        let as_of_now = pending.fence.is_some() && matches!(pending.ask, Ask::Client { .. });
        if !as_of_now || self.tracker.unconfirmed().len() == 0 {
            return None;
        }
        let scope = self.scope_of(&pending.ask);
        let of_it = self.tracker.unconfirmed();
        let of_it: Vec<RelPath> = of_it
            .filter(|path| self.covers(&scope, path) && !pending.late.contains(*path))
            .cloned()
            .collect();
        let young = |path: &RelPath| {
            let live = self.tracker.live(path);
            let first = live.and_then(|live| live.seen.first_look);
            first.is_some_and(|first| first.since + CUT_DELAY > self.now)
        };
        let waits = match pending.looks {
            Looks::AfterFences(LOOKS) => of_it.iter().any(young),
            Looks::AfterFences(_) | Looks::AfterPause(_) => !of_it.is_empty(),
            Looks::Over => false,
        };
        waits.then_some(of_it)
    }
}
