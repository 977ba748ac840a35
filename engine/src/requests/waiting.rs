//! The pending requests. They wait for a fence, for reads, or for another
//! session's edit. Requests of one connection take effect in their order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use touchmark_proto::{ConnectionId, Error, Millis, RelPath, Request, RequestId};

use super::pending::{Ask, Pending, Stage};
use super::scope::be_patient;
use super::table::row;
use super::waits::{Waits, look_again};
use crate::base::Base;
use crate::disk::ReadOutcome;
use crate::input::{Learned, WriteOutcome};
use crate::timers::Timer;
use crate::tracker::Tracker;
use crate::tracker::reconcile::release;
use crate::tracker::turn::Turn;

/// All pending requests, and the queues of the connections.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    pub(super) pending: BTreeMap<RequestId, Box<Pending>>,
    pub(super) queues: BTreeMap<ConnectionId, VecDeque<RequestId>>,
    /// Requests that are in no queue: the engine's own, and those that let
    /// later requests pass.
    unqueued: BTreeSet<RequestId>,
    next_internal: u64,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            pending: BTreeMap::new(),
            queues: BTreeMap::new(),
            unqueued: BTreeSet::new(),
            next_internal: u64::MAX,
        }
    }
}

impl Requests {
    /// Takes in a client's request.
    pub(crate) fn ask(
        &mut self,
        request: RequestId,
        connection: ConnectionId,
        ask: Request,
        until: Option<Millis>,
        base: &mut Base,
    ) {
        let need = row(&ask);
        let fence = need.fence.then(|| base.turn().want_fence());
        if let Some(until) = until {
            base.timers.insert((until, Timer::Request(request)));
        }
        self.queues
            .entry(connection)
            .or_default()
            .push_back(request);
        // New paths are watched and read from the request's arrival on, so that
        // later changes of them are noticed (SEEN-1).
        let new = base.view().paths_to_borrow(&ask);
        let ask = Ask::Client {
            ask,
            connection: Some(connection),
            until,
        };
        let mut pending = Box::new(Pending {
            verify: need.verify,
            ..Pending::new(ask, fence)
        });
        for path in new {
            base.turn().borrow(&path);
            let ticket = base.turn().order_read(&path, false);
            pending.reads.awaited.insert(path.clone(), ticket);
            pending.reads.borrowed.push(path);
        }
        if !need.fence && base.view().scope_of(&pending.ask).is_list() {
            be_patient(request, &mut pending, &mut base.turn());
        }
        self.pending.insert(request, pending);
    }

    /// Adds a request of the engine itself. Returns the number of the fence
    /// that it waits for.
    pub(crate) fn ask_internally(&mut self, ask: Ask, turn: &mut Turn<'_>) -> u64 {
        let request = RequestId(self.next_internal);
        self.next_internal -= 1;
        let fence = turn.want_fence();
        self.unqueued.insert(request);
        let pending = Pending::new(ask, Some(fence));
        self.pending.insert(request, Box::new(pending));
        fence
    }

    /// Returns the requests that can take effect or need a second look, in the
    /// order of their arrival. Only the first of each connection is examined,
    /// however many wait on it.
    pub(crate) fn ready(&mut self, base: &Base) -> Vec<RequestId> {
        let view = base.view();
        self.unqueued
            .retain(|request| self.pending.contains_key(request));
        let firsts = self.queues.values().filter_map(VecDeque::front);
        let mut ready: Vec<RequestId> = firsts.chain(&self.unqueued).copied().collect();
        self.note_blockers(&ready, view);
        ready.retain(|request| {
            let pending = self.pending.get(request);
            let waits = pending.map(|pending| self.waits_for(*request, pending, view));
            matches!(waits, Some(None | Some(Waits::SecondLook(_))))
        });
        ready.sort_unstable();
        ready
    }

    /// Removes and returns a request that can take effect now, or returns
    /// `None` if it has to wait.
    pub(crate) fn take_if_ready(
        &mut self,
        request: RequestId,
        base: &mut Base,
    ) -> Option<Box<Pending>> {
        let mut pending = self.pending.remove(&request)?;
        match self.waits_for(request, &pending, base.view()) {
            None => return Some(pending),
            Some(Waits::SecondLook(paths)) => {
                look_again(request, &mut pending, paths, &mut base.turn());
            }
            Some(_) => {}
        }
        self.pending.insert(request, pending);
        None
    }

    /// Puts a request back that has not taken effect.
    pub(crate) fn put_back(&mut self, request: RequestId, pending: Box<Pending>) {
        self.pending.insert(request, pending);
    }

    /// Removes and returns a request whose time has passed, or returns `None`
    /// if it goes on. A request that waits for an edit is processed once more
    /// after a new fence. It answers `busy` if nothing has changed.
    pub(crate) fn take_if_late(
        &mut self,
        request: RequestId,
        base: &mut Base,
    ) -> Option<Box<Pending>> {
        self.lose_patience(request, base);
        let pending = self.pending.get_mut(&request)?;
        if matches!(pending.stage, Stage::Writing(_)) {
            // The outcome of a write is always answered, however late.
        } else if pending.until().is_some_and(|until| base.now >= until) {
            return self.pending.remove(&request);
        } else if pending.wait_until.is_some_and(|until| base.now >= until) {
            pending.retry(base.turn().want_fence());
        }
        None
    }

    /// Blocks a request until another session's edit ends. Returns whether it
    /// has left its queue by that.
    pub(crate) fn block(
        &mut self,
        request: RequestId,
        mut pending: Box<Pending>,
        turn: &mut Turn<'_>,
    ) -> bool {
        // The request has not taken effect. It must not delay a later request
        // of the same connection that would end the edit it waits for.
        let was_queued = !pending.stage.has_left_queue();
        if let Some(connection) = pending.connection() {
            self.leave_queue(connection, request);
        }
        self.unqueued.insert(request);
        pending.stage = Stage::Blocked;
        pending.fence = None;
        if let Some(until) = pending.wait_until {
            turn.timers.insert((until, Timer::Request(request)));
        }
        self.pending.insert(request, pending);
        was_queued
    }

    /// Retries the requests that an edit has blocked, after a new fence, since
    /// an edit has ended.
    pub(crate) fn unblock(&mut self, turn: &mut Turn<'_>) {
        let mut shared = None;
        let blocked = self.pending.values_mut();
        for pending in blocked.filter(|pending| matches!(pending.stage, Stage::Blocked)) {
            pending.retry(*shared.get_or_insert_with(|| turn.want_fence()));
        }
    }

    /// Handles the answer to a question that was asked for a request.
    pub(crate) fn learned(&mut self, request: RequestId, learned: Result<Learned, Error>) {
        if let Some(pending) = self.pending.get_mut(&request) {
            pending.learned = Some(learned);
            pending.stage = Stage::Waiting;
        }
    }

    /// Forgets a request.
    pub(crate) fn leave(
        &mut self,
        request: RequestId,
        pending: &Pending,
        timers: &mut BTreeSet<(Millis, Timer)>,
    ) {
        self.pending.remove(&request);
        if let Some(connection) = pending.connection() {
            self.leave_queue(connection, request);
        }
        let check = pending.patience.check().map(|check| check.due);
        let due = [pending.until(), pending.wait_until, check];
        for due in due.into_iter().flatten() {
            timers.remove(&(due, Timer::Request(request)));
        }
    }

    fn leave_queue(&mut self, connection: ConnectionId, request: RequestId) {
        if let Some(queue) = self.queues.get_mut(&connection) {
            if queue.front() == Some(&request) {
                queue.pop_front();
            } else {
                queue.retain(|queued| *queued != request);
            }
            if queue.is_empty() {
                self.queues.remove(&connection);
            }
        }
    }

    /// Removes and returns a request, or returns `None` if it is not pending.
    pub(crate) fn take(&mut self, request: RequestId) -> Option<Box<Pending>> {
        self.pending.remove(&request)
    }

    /// Returns the requests of a connection that has ended. Those that are
    /// writing are not among them: a write takes effect, but no client receives
    /// the answer.
    pub(crate) fn orphans(&mut self, connection: ConnectionId) -> Vec<RequestId> {
        let mut orphans = Vec::new();
        for (request, pending) in &mut self.pending {
            let Ask::Client { connection: of, .. } = &mut pending.ask else {
                continue;
            };
            if *of != Some(connection) {
                continue;
            }
            if matches!(pending.stage, Stage::Writing(_)) {
                *of = None;
                self.unqueued.insert(*request);
            } else {
                orphans.push(*request);
            }
        }
        self.queues.remove(&connection);
        orphans
    }

    /// Returns the requests that waited for a fence after `before`, now that
    /// `fence` was reached. Without a fence, only reads show what is current:
    /// every path that the waiting requests cover is verified (SYNC-2).
    pub(crate) fn behind(&mut self, before: u64, fence: u64, is_made: bool) -> Vec<RequestId> {
        if !is_made {
            for pending in self.pending.values_mut() {
                pending.verify |= pending.fence.is_some_and(|wanted| wanted <= fence);
            }
        }
        let behind = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.fence.is_some_and(|of| of > before && of <= fence));
        behind.map(|(request, _)| *request).collect()
    }

    /// Returns whether a request waits that the shell does not answer alone.
    pub(crate) fn any_of_the_engine(&self) -> bool {
        let mut pending = self.pending.values();
        pending.any(|pending| !pending.is_for_the_shell())
    }

    /// Returns whether a look at the workspace is in progress for a window that
    /// is about to open.
    pub(crate) fn opens_window(&self) -> bool {
        self.pending.values().any(|pending| {
            let begin = |ask: &Request| matches!(ask, Request::CommandBegin(_));
            matches!(&pending.ask, Ask::Client { ask, .. } if begin(ask))
                && matches!(pending.stage, Stage::Learning)
        })
    }

    /// Has a path watched as long as it is needed by a request that had it
    /// read. Such a path may still begin a log, and its changes until then must
    /// not be missed.
    pub(crate) fn keep(&mut self, path: &RelPath, tracker: &mut Tracker) {
        for pending in self.pending.values_mut() {
            let needs = matches!(pending.ask, Ask::Client { .. }) && pending.reads.cover(path);
            if needs && !pending.reads.borrowed.contains(path) {
                tracker.borrow(path);
                pending.reads.borrowed.push(path.clone());
            }
        }
    }

    /// Passes the result of a read to the requests that wait for it. `file` is
    /// the file that the path resolves to.
    pub(crate) fn read_done(
        &mut self,
        path: &RelPath,
        file: &RelPath,
        ticket: u64,
        outcome: &ReadOutcome,
        now: Millis,
    ) {
        for pending in self.pending.values_mut() {
            let awaited = release(&mut pending.reads.awaited, path, ticket);
            if awaited {
                pending.patience.arrived(now);
            }
            pending.reads.take(path, outcome, awaited);
            if file != path {
                let awaited = awaited || pending.reads.found.contains_key(path);
                pending.reads.take(file, outcome, awaited);
            }
        }
    }

    /// Returns whether a request that waits for a read of `name`, or had it
    /// read, may wait for a read of `other` as well.
    pub(crate) fn may_wait(&self, name: &RelPath, other: &RelPath) -> bool {
        self.pending
            .values()
            .any(|pending| pending.reads.may_wait_too(name, other))
    }

    /// Has the requests that wait for a read of `name`, or had it read, wait
    /// for this read of `other` as well, each up to a limit.
    pub(crate) fn wait_too(&mut self, name: &RelPath, other: &RelPath, ticket: u64) {
        for pending in self.pending.values_mut() {
            if pending.reads.may_wait_too(name, other) {
                pending.reads.wait_too(other, ticket);
            }
        }
    }

    /// Notes that a content found by a name is a content of this file.
    pub(crate) fn joined(&mut self, name: &RelPath, file: &RelPath) {
        for pending in self.pending.values_mut() {
            if let Some(found) = pending.reads.found.get(name).cloned() {
                pending.reads.found.entry(file.clone()).or_insert(found);
            }
        }
    }

    /// Returns the request that a write was ordered for, and the edit that
    /// declares the write, or `None` if no such request is pending.
    pub(crate) fn of_write(&self, ticket: u64) -> Option<(RequestId, u64)> {
        self.pending.iter().find_map(|(request, pending)| {
            let Stage::Writing(write) = &pending.stage else {
                return None;
            };
            (write.ticket == ticket).then_some((*request, write.edit))
        })
    }

    /// Notes the outcome of a request's write, and that the request waits for a
    /// read of the path.
    pub(crate) fn written(
        &mut self,
        request: RequestId,
        path: &RelPath,
        read: u64,
        outcome: WriteOutcome,
    ) {
        if let Some(pending) = self.pending.get_mut(&request) {
            pending.reads.awaited.insert(path.clone(), read);
            if let Stage::Writing(write) = &mut pending.stage {
                write.outcome = Some(outcome);
            }
        }
    }
}
