//! Hooks. Their rules run in separate tasks, as clients inside the daemon, so
//! that a hook waits only for the answers to its own requests.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;
use touchmark_engine::{Input, State};
use touchmark_proto::daemon::AgentHeard;
use touchmark_proto::hooks::{HookJoin, HookPrinted};
use touchmark_proto::{
    ConnectionId, Error, ErrorCode, FreeJson, Millis, Reply, Request, RequestId, SessionId,
};

use super::Daemon;
use super::fill::Contents;
use super::say::Say;
use crate::config::Unsaved;
use crate::event::Event;
use crate::hooks::{self, Agent, Answered, Consult, DaemonHandle, Memory, Settings, Standing};
use crate::inside::Inside;
use crate::system::clock;

/// The hooks in progress.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    /// The hooks' requests that are not answered yet.
    waiting: HashMap<RequestId, oneshot::Sender<Result<Reply, Error>>>,
    /// The requests that revert what a hook began, until its answer is sent.
    undo: HashMap<RequestId, Vec<Request>>,
    memory: Arc<Memory>,
}

impl Hooks {
    /// Creates the record, without hooks in progress. What is stored of
    /// sessions is taken from the state.
    pub(super) fn new(state: &State) -> Self {
        Self {
            memory: Arc::new(Memory::new(state)),
            ..Self::default()
        }
    }

    /// Returns whether a hook's rules made this request.
    pub(super) fn is_own(&self, request: RequestId) -> bool {
        self.waiting.contains_key(&request)
    }

    pub(super) fn answer(&mut self, request: RequestId, outcome: Result<Reply, Error>) {
        if let Some(waiting) = self.waiting.remove(&request) {
            let _nobody_waits = waiting.send(outcome);
        }
    }

    /// Returns what the hooks' rules keep in memory.
    pub(super) fn memory(&self) -> Arc<Memory> {
        Arc::clone(&self.memory)
    }

    /// Returns the events received from each agent's hooks.
    pub(super) fn agents(&self, now: Millis) -> Vec<AgentHeard> {
        self.memory.of_agents(now)
    }

    /// Removes and returns the requests that revert what a hook began. Called
    /// when its answer is sent.
    pub(super) fn undo(&mut self, request: RequestId) -> Vec<Request> {
        self.undo.remove(&request).unwrap_or_default()
    }
}

impl Daemon {
    /// Processes an event of an agent's hook in a separate task. `reply` makes
    /// the answer.
    pub(super) fn hook(
        &mut self,
        request: RequestId,
        agent: &str,
        input: FreeJson,
        reply: fn(HookPrinted) -> Reply,
    ) {
        let Some(hook) = Agent::named(agent) else {
            let hint = format!("an agent is one of {}", Agent::names());
            let wrong = Error::invalid("no such agent").hint(hint);
            return self.hooked(request, Err(wrong), Vec::new());
        };
        let (mut daemon, events) = (self.daemon(request), self.events.clone());
        let agent = hook.speaker(&input.0);
        daemon.settings.gate = self.options.config.gate(agent.name);
        if !agent.asks {
            daemon.settings.unsaved = daemon.settings.unsaved.min(Unsaved::Deny);
        }
        tokio::spawn(async move {
            // In another task, so that the hook receives an answer even if its
            // input makes the rules panic.
            let answered =
                tokio::spawn(async move { hooks::answer(hook, agent, input.0, &daemon).await });
            let Answered { printed, undo } = answered.await.unwrap_or_else(|error| {
                tracing::error!("a hook's rules broke off: {error}");
                Answered {
                    printed: hooks::silence(),
                    undo: Vec::new(),
                }
            });
            let _loop_has_ended = events.send(Event::Hooked {
                request,
                outcome: Ok(reply(printed)),
                undo,
            });
        });
    }

    /// Answers `hook/ack`.
    pub(super) fn hook_ack(&mut self, request: RequestId, ack: String) {
        let (daemon, events) = (self.daemon(request), self.events.clone());
        tokio::spawn(async move {
            let outcome = hooks::acknowledge(&daemon, &ack).await;
            let _loop_has_ended = events.send(Event::Hooked {
                request,
                outcome: outcome.map(|()| Reply::HookAck(touchmark_proto::daemon::Done {})),
                undo: Vec::new(),
            });
        });
    }

    /// Answers `hook/join`.
    pub(super) fn hook_join(&mut self, request: RequestId, ask: HookJoin) {
        let (daemon, events) = (self.daemon(request), self.events.clone());
        tokio::spawn(async move {
            let joined = hooks::join(&daemon, ask).await;
            let _loop_has_ended = events.send(Event::Hooked {
                request,
                outcome: Ok(Reply::HookJoin(joined)),
                undo: Vec::new(),
            });
        });
    }

    /// Returns a connection to the loop for a task that answers a request.
    pub(super) fn inside(&mut self, request: RequestId) -> Inside {
        // A separate connection, so that the task waits for no other request of
        // its client.
        self.last_connection += 1;
        let asked = self.asked.get(&request);
        Inside {
            events: self.events.clone(),
            connection: ConnectionId(self.last_connection),
            until: asked.and_then(|asked| asked.until),
        }
    }

    fn daemon(&mut self, request: RequestId) -> DaemonHandle {
        let asked = self.asked.get(&request);
        let peer = asked.and_then(|asked| self.peers.get(&asked.connection));
        let process = peer.and_then(|peer| peer.process());
        DaemonHandle {
            inside: self.inside(request),
            process,
            root: self.options.workspace.clone(),
            state: self.options.places.state.clone(),
            memory: Arc::clone(&self.hooks.memory),
            worktrees: Arc::clone(&self.worktrees),
            settings: Settings {
                replace_repeats: self.options.config.replace_repeats,
                gate: self.options.config.gate,
                unsaved: self.options.config.unsaved,
                worktrees: self.options.config.worktrees_notice,
            },
            now: self.time.now(),
            running: clock::running(),
        }
    }

    /// Puts the answer of a hook's rules into the outbox. `undo` reverts what
    /// the hook began, for an answer that cannot be delivered.
    pub(super) fn hooked(
        &mut self,
        request: RequestId,
        outcome: Result<Reply, Error>,
        undo: Vec<Request>,
    ) {
        if !undo.is_empty() {
            self.hooks.undo.insert(request, undo);
        }
        self.outbox.push(Say::Answer {
            request,
            answer: outcome.map(|reply| Box::new(reply.into())),
        });
    }

    /// Executes a request of a hook's rules.
    pub(super) fn consult(&mut self, consult: Consult) {
        match consult {
            Consult::Ask {
                connection,
                ask,
                until,
                answer,
            } => {
                let number = &self.hub.requests;
                let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let request = RequestId(number);
                self.hooks.waiting.insert(request, answer);
                self.ask(request, connection, ask, until);
            }
            Consult::Tracked { path, answer } => {
                let state = self.engine.state().paths.get(&path);
                let _nobody_waits = answer.send(state.map(|state| state.held.hash));
            }
            Consult::Standing { session, answer } => {
                let _nobody_waits = answer.send(standing(self.engine.state(), &session));
            }
            Consult::Unanswered(session) => self.feed(Input::HookUnanswered { session }),
            Consult::Noted(session, note) => self.feed(Input::Noted { session, note }),
            Consult::Outcome(facts) => self.feed(Input::Outcome(facts)),
            Consult::NotUnderstood(session) => self.feed(Input::HookNotUnderstood { session }),
            Consult::Inherit {
                session,
                from,
                over,
            } => self.feed(Input::Inherited {
                session,
                from,
                over,
            }),
            Consult::CommandBegan(command, time) => {
                self.feed(Input::CommandBegan { command, time });
            }
            Consult::LookAround => {
                let mut open = self.engine.state().commands.values();
                // While a window is open, changes are attributed to its
                // session, which a sweep now would prevent.
                if !open.any(|window| window.fact.workspace) {
                    self.sweeper.sweep(None, false);
                }
            }
            Consult::EndWindow(command) => self.feed(Input::CommandUnheard { command }),
            Consult::Looked { answer } => {
                if self.looks.wait(answer) {
                    self.look_at_versions();
                }
            }
            Consult::Log { answer } => {
                let _nobody_waits = answer.send(self.store.reader());
            }
            Consult::Content { hash, answer } => {
                self.connect_log();
                let content = Contents::new(self.log.as_ref()).content(Some(hash));
                let _nobody_waits = answer.send(content);
            }
            Consult::WithdrawWindow(command) => self.feed(Input::CommandNeverRan { command }),
            Consult::Lines { old, new, answer } => {
                self.connect_log();
                let counts = Contents::new(self.log.as_ref()).lines(Some(old), Some(new));
                let _nobody_waits = answer.send(counts);
            }
        }
    }

    /// Answers all waiting hooks with an error: the daemon is ending.
    pub(super) fn end_hooks(&mut self) {
        for (_, waiting) in self.hooks.waiting.drain() {
            let _nobody_waits = waiting.send(Err(Error::new(
                ErrorCode::ShuttingDown,
                "the daemon is shutting down",
            )));
        }
    }
}

fn standing(state: &State, session: &SessionId) -> Standing {
    let Some(known) = state.sessions.get(session) else {
        return Standing::default();
    };
    let checkpoints = &known.memory.checkpoints;
    let edits = state.edits.values();
    let commands = state.commands.values();
    Standing {
        known: true,
        open: known.open,
        edits: edits
            .filter(|edit| edit.fact.session == *session)
            .filter_map(|edit| edit.fact.call.clone())
            .collect(),
        windows: commands
            .filter(|open| open.fact.session == *session)
            .filter_map(|open| {
                let name = touchmark_engine::recall::command_name(open.fact.command);
                Some((open.fact.call.clone()?, name))
            })
            .collect(),
        checkpoints: checkpoints.len(),
        oldest_checkpoint: checkpoints
            .first_key_value()
            .map(|(number, _)| touchmark_engine::recall::checkpoint_name(*number)),
        last_message: checkpoints
            .last_key_value()
            .and_then(|(_, newest)| newest.message.clone()),
    }
}
