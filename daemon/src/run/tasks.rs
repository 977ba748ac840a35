//! Requests that are answered in tasks. A task makes requests as a client inside
//! the daemon, so that it waits only for the answers to its own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use touchmark_engine::requests::ForShell;
use touchmark_proto::{ConnectionId, Error, ErrorCode, RequestId};

use super::Daemon;
use crate::answers::{Answer, answer};
use crate::context::Context;
use crate::event::Event;
use crate::hooks;
use crate::inside::Inside;
use crate::standing::Standing;
use crate::system::proc;

impl Daemon {
    /// Answers a request in a separate task.
    pub(super) fn answer_aside(&mut self, request: RequestId, ask: ForShell) {
        let mut cx = self.context(request);
        let session = match &ask {
            ForShell::HookEvent(ask) => hooks::session(ask),
            _ => None,
        };
        cx.standing = session.map(|session| Standing::of(self.engine.state(), &session));
        let (parts, events) = (Arc::clone(&self.parts), self.events.clone());
        let peer = self.clients.peers.get(&cx.client);
        // A hook's task begins at once: its standing is that of this moment.
        let tasks = peer.filter(|_| cx.standing.is_none());
        let tasks = tasks.map(|peer| Arc::clone(&peer.tasks));
        tokio::spawn(async move {
            let permit = match tasks {
                Some(tasks) => Some(tasks.acquire_owned().await),
                None => None,
            };
            // The connection has ended before the task began: nothing reads
            // the answer.
            if matches!(permit, Some(Err(_))) {
                let error = Error::new(ErrorCode::ShuttingDown, "the client has gone");
                let _loop_has_ended = events.send(Event::Answered {
                    request,
                    outcome: Err(error),
                    undo: Vec::new(),
                });
                return;
            }
            // The client receives an answer even if the request makes the task
            // panic.
            let answered = AssertUnwindSafe(answer(cx, &parts, ask)).catch_unwind();
            let Answer { outcome, undo } = answered.await.unwrap_or_else(|_| {
                tracing::error!("an answer broke off");
                let error = Error::new(ErrorCode::InternalError, "the answer broke off");
                Answer {
                    outcome: Err(error),
                    undo: Vec::new(),
                }
            });
            let _loop_has_ended = events.send(Event::Answered {
                request,
                outcome: outcome.map(Box::new),
                undo,
            });
        });
    }

    /// Returns what a task gets that answers a request.
    pub(super) fn context(&mut self, request: RequestId) -> Context {
        let asked = self.clients.asked.get(&request).copied();
        let peer = asked.and_then(|asked| self.clients.peers.get(&asked.connection));
        let process = peer.and_then(|peer| peer.process());
        let mut inside = self.inside();
        inside.until = asked.and_then(|asked| asked.until);
        Context {
            inside,
            client: asked.map_or(ConnectionId(0), |asked| asked.connection),
            process,
            starters_umask: self.options.umask,
            standing: None,
            config: Arc::clone(&self.options.config),
            now: self.workspace.time.now(),
            epoch: self.engine.state().epoch,
            workspace: Arc::clone(&self.workspace),
        }
    }

    /// Returns a connection to the loop for a task. It is a separate one, so that
    /// the task waits for no other request of its client.
    pub(super) fn inside(&mut self) -> Inside {
        Inside {
            events: self.events.clone(),
            connection: self.clients.new_connection(),
            until: None,
        }
    }

    /// Waits for the end of a process, which arrives as an event, without
    /// polling (LIFE-3).
    pub(super) fn await_process(&mut self, pid: u32) {
        if !self.clients.processes.insert(pid) {
            return;
        }
        let events = self.events.clone();
        let ended = proc::process_end(pid);
        tokio::spawn(async move {
            let ended = ended
                .await
                // The window then ends by its deadline or, if bound, with its
                // connection.
                .inspect_err(|error| {
                    tracing::warn!("the end of process {pid} will not be seen: {error}");
                })
                .is_ok();
            let _loop_has_ended = events.send(Event::Process { pid, ended });
        });
    }

    /// Looks in the background whether git brought the queued versions (HIST-8).
    pub(super) fn look_at_versions(&mut self) {
        let inside = self.inside();
        tokio::spawn(Arc::clone(&self.parts.origins.looks).run(inside));
    }
}
