//! How requests take effect.

use touchmark_proto::{ConnectionId, Error, Request, RequestId};

use super::Engine;
use crate::effect::{Answer, Effect};
use crate::input::Learned;
use crate::parts::Core;
use crate::requests::pending::{Answered, Ask, Pending, Stage, Stop, too_late};
use crate::requests::scope::{Scope, be_patient};
use crate::view::names_used::NamesUsed;

impl Engine {
    /// Lets every request take effect that can.
    pub(super) fn advance(&mut self) {
        // A request that takes effect may let others take effect: those that an
        // edit blocked, or the next one of its connection.
        loop {
            let mut moved = false;
            for request in self.core.requests.ready(&self.core.base) {
                let Core { base, requests, .. } = &mut self.core;
                if let Some(pending) = requests.take_if_ready(request, base) {
                    moved |= self.step(request, pending);
                    self.core.base.names_used = NamesUsed::default();
                }
            }
            if !moved {
                break;
            }
        }
    }

    /// Processes one request. Returns whether other requests may be able to
    /// take effect now.
    fn step(&mut self, request: RequestId, mut pending: Box<Pending>) -> bool {
        let late = pending
            .until()
            .is_some_and(|until| self.core.base.now > until);
        if late && !matches!(pending.stage, Stage::Writing(_)) {
            self.finish(request, &pending, Err(too_late(&pending)));
            return true;
        }
        let answered = match pending.ask.clone() {
            Ask::Expire(edit) => {
                self.core.expire(edit);
                return true;
            }
            Ask::EndCommand(command) => {
                self.core.settle_for(&Scope::Everything);
                if self.core.end_in_time(request, command, &pending) {
                    return true;
                }
                Err(Stop::Learn(self.core.sweep_at_end(command)).into())
            }
            Ask::WithdrawCommand(command) => {
                self.core.settle_for(&Scope::Everything);
                self.core.withdraw_command(command);
                return true;
            }
            Ask::CommandBegan(command, since) => {
                self.core.settle_for(&Scope::Everything);
                self.core.withdraw_before(command, since);
                return true;
            }
            Ask::Look(_) => {
                return true;
            }
            Ask::Client { ask, .. } => {
                if self.core.base.view().has_several_names() {
                    self.core.base.names_used = self.core.base.view().names_used_by(&ask);
                }
                self.answer(request, &mut pending, ask)
            }
        };
        let stop = match answered {
            Ok(answer) => {
                self.finish(request, &pending, Ok(answer));
                return true;
            }
            Err(stop) => *stop,
        };
        match stop {
            Stop::Refused(error) => {
                self.finish(request, &pending, Err(error));
                true
            }
            Stop::Passed(effect) => {
                self.core.leave(request, &pending);
                self.core.base.out.push(effect);
                true
            }
            Stop::Read(paths, bytes) => {
                pending.reads.bytes |= bytes;
                // What a name resolves to may have changed without an event as
                // well, so it is verified for each name (SYNC-4).
                let paths = match pending.verify {
                    true => self.core.base.view().by_all_names(paths),
                    false => paths,
                };
                for path in paths {
                    if !pending.reads.borrowed.contains(&path) {
                        self.core.base.turn().borrow(&path);
                        pending.reads.borrowed.push(path.clone());
                    }
                    let ticket = self.core.base.turn().order_read(&path, pending.reads.bytes);
                    pending.reads.awaited.insert(path, ticket);
                }
                if self.core.base.view().scope_of(&pending.ask).is_list() {
                    be_patient(request, &mut pending, &mut self.core.base.turn());
                }
                // A request that another session's edit blocks has left its
                // queue.
                if !pending.stage.has_left_queue() {
                    pending.stage = Stage::Waiting;
                }
                self.core.requests.put_back(request, pending);
                false
            }
            Stop::Fence => {
                pending.fence = Some(self.core.base.turn().want_fence());
                self.core.requests.put_back(request, pending);
                false
            }
            Stop::Learn(question) => {
                pending.stage = Stage::Learning;
                self.core.requests.put_back(request, pending);
                self.core.base.out.push(Effect::Learn { request, question });
                false
            }
            Stop::Write(write, mut order) => {
                self.core.base.tracker.writes(&order.path, None);
                // The write goes to the name that the request used.
                if let Some(name) = self.core.base.names_used.named.get(&order.path) {
                    order.path = name.clone();
                }
                pending.stage = Stage::Writing(write);
                self.core.requests.put_back(request, pending);
                self.core.base.out.push(Effect::Write { request, order });
                false
            }
            Stop::Blocked(error) => {
                let waits = pending
                    .wait_until
                    .is_some_and(|until| self.core.base.now < until);
                if !waits {
                    self.finish(request, &pending, Err(error));
                    return true;
                }
                let Core { base, requests, .. } = &mut self.core;
                requests.block(request, pending, &mut base.turn())
            }
        }
    }

    /// Lets a client's request take effect.
    fn answer(&mut self, request: RequestId, pending: &mut Pending, mut ask: Request) -> Answered {
        self.core.base.view().name_session(&mut ask)?;
        // A request that has a fence is answered with absences as deletions.
        if pending.fence.is_some() {
            let scope = self.core.base.view().scope_of(&pending.ask);
            self.core.settle_for(&scope);
        }
        if let Some(question) = self.core.base.texts_to_compare(pending, &ask) {
            return Err(Stop::Learn(question).into());
        }
        self.core.base.view().within_limits(pending, &ask)?;
        self.core.command_files_read(pending, &ask);
        self.act(request, pending, ask)
    }

    /// Handles the answer to a question that was asked for a request.
    pub(super) fn learned(&mut self, request: RequestId, learned: Result<Learned, Error>) {
        // Changes that a look at the workspace found are recorded, whatever
        // happens to the request.
        if let Ok(Learned::Swept(swept)) = &learned {
            self.core.swept(Some(request), swept);
        }
        self.core.requests.learned(request, learned);
    }

    fn finish(&mut self, request: RequestId, pending: &Pending, answer: Result<Answer, Error>) {
        let mut answer = answer.map(Box::new);
        if self.core.base.view().has_several_names() {
            match &mut answer {
                Ok(answer) => self
                    .core
                    .base
                    .names_used
                    .reply(&self.core.base.state, &mut answer.reply),
                Err(error) => self
                    .core
                    .base
                    .names_used
                    .error(&self.core.base.state, error),
            }
        }
        self.core.leave(request, pending);
        if pending.connection().is_some() {
            match &mut answer {
                Ok(answer) => self.core.base.state.label_reply(&mut answer.reply),
                Err(error) => self.core.base.state.label_error(error),
            }
            self.core.base.counts.requests += 1;
            if let (Ask::Client { ask, .. }, Err(error)) = (&pending.ask, &answer) {
                // The session may have been named by its label.
                let mut ask = ask.clone();
                if self.core.base.view().name_session(&mut ask).is_ok() {
                    self.core.base.count_refusal(&ask, error);
                }
            }
            self.core.base.out.push(Effect::Reply { request, answer });
        }
    }

    /// Handles a request whose `withinMs` or `waitMs` has passed.
    pub(super) fn request_due(&mut self, request: RequestId) {
        let Core { base, requests, .. } = &mut self.core;
        if let Some(pending) = requests.take_if_late(request, base) {
            self.finish(request, &pending, Err(too_late(&pending)));
        }
    }

    /// Handles the end of a connection: its pending requests have no effect,
    /// and its bound edits get their grace (ATTR-9).
    pub(super) fn disconnected(&mut self, connection: ConnectionId) {
        for request in self.core.requests.orphans(connection) {
            if let Some(pending) = self.core.requests.take(request) {
                self.core.leave(request, &pending);
            }
        }
        self.core.unbind_edits(connection);
        self.core.unbind_commands(connection);
        self.core.base.unsaved.disconnected(connection);
    }
}
