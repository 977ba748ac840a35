//! Pending requests: they wait for a fence, for reads, or for another session's
//! edit. Requests of one connection take effect in their order.

use std::collections::VecDeque;

use touchmark_proto::{ConnectionId, Error, Millis, RelPath, Request, RequestId};

use crate::effect::{Answer, Effect};
use crate::engine::Engine;
use crate::input::Learned;
use crate::requests::pending::{Ask, Pending, Stage, Step, too_late};
use crate::requests::row;
use crate::requests::scope::Scope;
use crate::requests::waits::Waits;
use crate::timers::Timer;
use crate::tracker::spoken::Spoken;

impl Engine {
    /// Takes in a client's request.
    pub(crate) fn ask(
        &mut self,
        request: RequestId,
        connection: ConnectionId,
        ask: Request,
        until: Option<Millis>,
    ) {
        let need = row(&ask);
        let fence = need.fence.then(|| self.turn().want_fence());
        if let Some(until) = until {
            self.timers.insert((until, Timer::Request(request)));
        }
        self.queues
            .entry(connection)
            .or_default()
            .push_back(request);
        let mut pending = Box::new(Pending {
            connection: Some(connection),
            until,
            fence,
            verify: need.verify,
            ..Pending::new(Ask::Client(ask), self.now)
        });
        // New paths are watched and read from the request's arrival on, so that
        // later changes of them are noticed (SEEN-1).
        if let Ask::Client(ask) = &pending.ask {
            for path in self.view().paths_to_borrow(ask) {
                self.borrow(&path);
                let ticket = self.turn().order_read(&path, false);
                pending.reads.insert(path.clone(), ticket);
                pending.borrowed.push(path);
            }
        }
        if !need.fence && self.view().scope_of(&pending.ask).is_list() {
            self.be_patient(request, &mut pending);
        }
        self.pending.insert(request, pending);
    }

    /// Adds a request of the engine itself. Returns the number of the fence
    /// that it waits for.
    pub(crate) fn ask_internally(&mut self, ask: Ask) -> u64 {
        let request = RequestId(self.next_internal);
        self.next_internal -= 1;
        let fence = self.turn().want_fence();
        self.aside.insert(request);
        let pending = Pending {
            fence: Some(fence),
            ..Pending::new(ask, self.now)
        };
        self.pending.insert(request, Box::new(pending));
        fence
    }

    /// Lets every request take effect that can.
    pub(crate) fn advance(&mut self) {
        // A request that takes effect may let others take effect: those that an
        // edit blocked, or the next one of its connection.
        loop {
            let mut moved = false;
            for request in self.ready() {
                let Some(mut pending) = self.pending.remove(&request) else {
                    continue;
                };
                match self.waits_for(request, &pending) {
                    None => moved |= self.step(request, pending),
                    Some(waits) => {
                        if let Waits::SecondLook(paths) = waits {
                            self.look_again(request, &mut pending, paths);
                        }
                        self.pending.insert(request, pending);
                    }
                }
            }
            if !moved {
                break;
            }
        }
    }

    /// Returns the requests that can take effect or need a second look, in the
    /// order of their arrival. Only the first of each connection is examined,
    /// however many wait on it.
    fn ready(&mut self) -> Vec<RequestId> {
        self.aside
            .retain(|request| self.pending.contains_key(request));
        let firsts = self.queues.values().filter_map(VecDeque::front);
        let mut ready: Vec<RequestId> = firsts.chain(&self.aside).copied().collect();
        self.note_blockers(&ready);
        ready.retain(|request| {
            let pending = self.pending.get(request);
            let waits = pending.map(|pending| self.waits_for(*request, pending));
            matches!(waits, Some(None | Some(Waits::SecondLook(_))))
        });
        ready.sort_unstable();
        ready
    }

    /// Processes one request. Returns whether other requests may be able to
    /// take effect now.
    fn step(&mut self, request: RequestId, pending: Box<Pending>) -> bool {
        let moved = self.take_step(request, pending);
        self.spoken = Spoken::default();
        moved
    }

    fn take_step(&mut self, request: RequestId, mut pending: Box<Pending>) -> bool {
        let late = pending.until.is_some_and(|until| self.now > until);
        if late && pending.stage != Stage::Writing {
            self.finish(request, &pending, Err(too_late(&pending, self.now)));
            return true;
        }
        let step = match pending.ask.clone() {
            Ask::Expire(edit) => {
                self.expire(edit);
                self.pending.remove(&request);
                return true;
            }
            Ask::EndCommand(command) => {
                self.settle_for(&Scope::Everything);
                if self.end_in_time(command, &pending) {
                    self.pending.remove(&request);
                    return true;
                }
                Step::Learn(self.sweep())
            }
            Ask::WithdrawCommand(command) => {
                self.settle_for(&Scope::Everything);
                self.withdraw_command(command);
                self.pending.remove(&request);
                return true;
            }
            Ask::CommandBegan(command, since) => {
                self.settle_for(&Scope::Everything);
                self.withdraw_before(command, since);
                self.pending.remove(&request);
                return true;
            }
            Ask::Look(_) => {
                self.pending.remove(&request);
                return true;
            }
            Ask::Client(ask) => {
                if self.view().has_several_names() {
                    self.spoken = self.view().spoken_in(&ask);
                }
                self.answer(request, &mut pending, ask)
            }
        };
        match step {
            Step::Done(answer) => {
                self.finish(request, &pending, answer);
                true
            }
            Step::Passed(effect) => {
                self.leave(request, &pending);
                self.out.push(effect);
                true
            }
            Step::Read(paths, bytes) => {
                let whole = pending.verify || self.audits.contains_key(&request);
                pending.bytes |= bytes;
                // What a name resolves to may have changed without an event as
                // well, so it is verified for each name (SYNC-4).
                let paths = match pending.verify {
                    true => self.view().by_all_names(paths),
                    false => paths,
                };
                for path in paths {
                    if !pending.borrowed.contains(&path) {
                        self.borrow(&path);
                        pending.borrowed.push(path.clone());
                    }
                    let ticket = self.turn().order(&path, pending.bytes, whole);
                    pending.reads.insert(path, ticket);
                }
                if self.view().scope_of(&pending.ask).is_list() {
                    self.be_patient(request, &mut pending);
                }
                // A request that another session's edit blocks has left its
                // queue.
                if pending.stage != Stage::Blocked {
                    pending.stage = Stage::Reads;
                }
                self.pending.insert(request, pending);
                false
            }
            Step::Fence => {
                pending.fence = Some(self.turn().want_fence());
                self.pending.insert(request, pending);
                false
            }
            Step::Learn(question) => {
                pending.stage = Stage::Learning;
                self.pending.insert(request, pending);
                self.out.push(Effect::Learn { request, question });
                false
            }
            Step::Write(write, mut order) => {
                self.tracker.writes(&order.path, None);
                // The write goes to the name that the request used.
                if let Some(name) = self.spoken.named.get(&order.path) {
                    order.path = name.clone();
                }
                pending.write = Some(*write);
                pending.stage = Stage::Writing;
                self.pending.insert(request, pending);
                self.out.push(Effect::Write { request, order });
                false
            }
            Step::Blocked(error) => {
                let waits = pending.wait_until.is_some_and(|until| self.now < until);
                if !waits {
                    self.finish(request, &pending, Err(error));
                    return true;
                }
                // The request has not taken effect. It must not delay a later
                // request of the same connection that would end the edit it
                // waits for.
                let stepped_aside = pending.stage != Stage::Blocked;
                if let Some(connection) = pending.connection {
                    self.leave_queue(connection, request);
                }
                self.aside.insert(request);
                pending.stage = Stage::Blocked;
                pending.fence = Some(u64::MAX);
                if let Some(until) = pending.wait_until {
                    self.timers.insert((until, Timer::Request(request)));
                }
                self.pending.insert(request, pending);
                stepped_aside
            }
        }
    }

    /// Handles the answer to a question that was asked for a request.
    pub(crate) fn learned(&mut self, request: RequestId, learned: Result<Learned, Error>) {
        // Changes that a look at the workspace found are recorded, whatever
        // happens to the request.
        if let Ok(Learned::Swept(swept)) = &learned {
            self.swept(&swept.changes);
        }
        if let Some(pending) = self.pending.get_mut(&request) {
            pending.learned = Some(learned);
            pending.stage = Stage::Reads;
        }
    }

    /// Retries the requests that an edit has blocked, after a new fence, since
    /// an edit has ended.
    pub(crate) fn unblock(&mut self) {
        let blocked: Vec<RequestId> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.fence == Some(u64::MAX))
            .map(|(request, _)| *request)
            .collect();
        if blocked.is_empty() {
            return;
        }
        let fence = self.turn().want_fence();
        for request in blocked {
            if let Some(pending) = self.pending.get_mut(&request) {
                pending.fence = Some(fence);
                pending.found.clear();
            }
        }
    }

    fn finish(&mut self, request: RequestId, pending: &Pending, answer: Result<Answer, Error>) {
        let mut answer = answer.map(Box::new);
        if self.view().has_several_names() {
            match &mut answer {
                Ok(answer) => self.spoken.reply(&self.state, &mut answer.reply),
                Err(error) => self.spoken.error(&self.state, error),
            }
        }
        self.leave(request, pending);
        if pending.connection.is_some() {
            match &mut answer {
                Ok(answer) => self.state.label_reply(&mut answer.reply),
                Err(error) => self.state.label_error(error),
            }
            self.counts.requests += 1;
            if let (Ask::Client(ask), Err(error)) = (&pending.ask, &answer) {
                // The session may have been named by its label.
                let mut ask = ask.clone();
                if self.view().name_session(&mut ask).is_ok() {
                    self.context().count_refusal(&ask, error);
                }
            }
            self.out.push(Effect::Reply { request, answer });
        }
    }

    fn leave(&mut self, request: RequestId, pending: &Pending) {
        self.pending.remove(&request);
        self.audits.remove(&request);
        if let Some(connection) = pending.connection {
            self.leave_queue(connection, request);
        }
        if let Some(until) = pending.until {
            self.timers.remove(&(until, Timer::Request(request)));
        }
        if let Some(until) = pending.wait_until {
            self.timers.remove(&(until, Timer::Request(request)));
        }
        if let Some(due) = pending.patience {
            self.timers.remove(&(due, Timer::Request(request)));
        }
        for path in &pending.borrowed {
            self.give_back(path);
        }
        for path in pending.found.keys() {
            self.forget_idle(path);
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

    fn borrow(&mut self, path: &RelPath) {
        self.tracker.borrow(path);
        self.turn().watch(path);
    }

    fn give_back(&mut self, path: &RelPath) {
        if self.tracker.give_back(path) {
            self.unwatch(path);
        }
    }

    /// Handles a request whose `withinMs` or `waitMs` has passed.
    pub(crate) fn request_due(&mut self, request: RequestId) {
        self.lose_patience(request);
        let Some(pending) = self.pending.get(&request) else {
            return;
        };
        if pending.stage == Stage::Writing {
            // The outcome of a write is always answered, however late.
        } else if pending.until.is_some_and(|until| self.now >= until) {
            let pending = pending.clone();
            self.finish(request, &pending, Err(too_late(&pending, self.now)));
        } else if pending.wait_until.is_some_and(|until| self.now >= until) {
            // The request is processed once more after a new fence. It answers
            // `busy` if nothing has changed.
            let fence = self.turn().want_fence();
            if let Some(pending) = self.pending.get_mut(&request) {
                pending.fence = Some(fence);
                pending.found.clear();
            }
        }
    }

    /// Handles the end of a connection: its pending requests have no effect,
    /// and its bound edits get their grace (ATTR-9).
    pub(crate) fn disconnected(&mut self, connection: ConnectionId) {
        let orphans: Vec<RequestId> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.connection == Some(connection))
            .map(|(request, _)| *request)
            .collect();
        for request in orphans {
            if let Some(mut pending) = self.pending.remove(&request) {
                if pending.stage == Stage::Writing {
                    // The write takes effect, but no client receives the
                    // answer.
                    pending.connection = None;
                    self.aside.insert(request);
                    self.pending.insert(request, pending);
                } else {
                    self.leave(request, &pending);
                }
            }
        }
        self.queues.remove(&connection);
        let bound: Vec<u64> = self
            .state
            .edits
            .values()
            .filter(|edit| {
                edit.fact.bound == Some(connection.0) && edit.fact.edit > self.inherited_edits
            })
            .map(|edit| edit.fact.edit)
            .collect();
        for edit in bound {
            let until = self.now + self.config.bind_grace;
            self.graces.insert(edit, until);
            self.timers.insert((until, Timer::Edit(edit)));
        }
        self.unbind_commands(connection);
        self.editor_gone(connection);
    }
}
