//! Requests about the daemon itself. The engine only decides their place in the
//! order of requests.

use std::sync::{Arc, Mutex};

use touchmark_engine::Fact;
use touchmark_engine::requests::ForShell;
use touchmark_proto::daemon::{
    Counters, Degraded, Done, Initialize, Initialized, KeptContents, Program, StatusReport,
    StoreStatus, Subscribe, Sync, Unsubscribe,
};
use touchmark_proto::{ConnectionId, Error, ErrorCode, ErrorData, PROTOCOL, Reply, RequestId};

use super::Daemon;
use super::replay;
use super::say::Say;
use super::subscriptions::Subscription;
use crate::event::Event;
use crate::system::proc;

/// The daemon's version.
const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Daemon {
    pub(super) fn host(&mut self, request: RequestId, connection: ConnectionId, ask: ForShell) {
        let outcome = match ask {
            ForShell::Initialize(ask) => self.initialize(&ask),
            ForShell::Ping(_) => Ok(Reply::Ping(Done {})),
            ForShell::Status(_) => Ok(Reply::Status(self.status())),
            ForShell::Shutdown(_) => return self.outbox.push(Say::End { request }),
            ForShell::Subscribe(ask) => match self.begin_subscription(request, connection, &ask) {
                Ok(say) => return self.outbox.push(say),
                Err(error) => Err(error),
            },
            ForShell::Unsubscribe(ask) => self.unsubscribe(connection, &ask),
            ForShell::RecoveryList(ask) => {
                return self.recover(request, move |guard| {
                    guard.list(ask.id.as_deref()).map(Reply::RecoveryList)
                });
            }
            ForShell::RecoveryShow(ask) => {
                let limit = self.options.config.read_text;
                return self.recover(request, move |guard| {
                    guard.show(&ask.id, limit).map(Reply::RecoveryShow)
                });
            }
            ForShell::RecoveryRestore(ask) => {
                let log = self.store.reader();
                let replacer = log.map(|log| self.replacer(request, &Arc::new(Mutex::new(log))));
                let inside = self.inside(request);
                return self.recover(request, move |_| {
                    let (restored, is_written) = replacer?.restore(&ask.id, ask.no_redo)?;
                    if is_written {
                        // The versions come first, as those of a restore.
                        let _ends = tokio::runtime::Handle::current().block_on(inside.ask(Sync {}));
                        let facts = restored.items.iter().map(|item| Fact::BroughtBack {
                            session: item.author.as_ref().and_then(|by| by.session.clone()),
                            path: item.path.clone(),
                            version: None,
                        });
                        inside.record(facts.collect());
                    }
                    Ok(Reply::RecoveryRestore(restored))
                });
            }
            ForShell::RecoveryDelete(ask) => {
                return self.recover(request, move |guard| {
                    guard.delete(&ask.id).map(Reply::RecoveryDelete)
                });
            }
            ForShell::SearchGrep(ask) => return self.search(request, connection, ask),
            ForShell::FleetYield(ask) => return self.fleet_yield(request, connection, &ask),
            ForShell::ContentsForget(_) => return self.forget_contents(request),
            ForShell::HookClaude(ask) => {
                return self.hook(request, "claude", ask.input, Reply::HookClaude);
            }
            ForShell::HookCodex(ask) => {
                return self.hook(request, "codex", ask.input, Reply::HookCodex);
            }
            ForShell::HookGemini(ask) => {
                return self.hook(request, "gemini", ask.input, Reply::HookGemini);
            }
            ForShell::HookCursor(ask) => {
                return self.hook(request, "cursor", ask.input, Reply::HookCursor);
            }
            ForShell::HookOpencode(ask) => {
                return self.hook(request, "opencode", ask.input, Reply::HookOpencode);
            }
            ForShell::HookEvent(ask) => {
                return self.hook(request, &ask.agent, ask.input, Reply::HookEvent);
            }
            ForShell::HookAck(ask) => return self.hook_ack(request, ask.ack),
            ForShell::HookJoin(ask) => return self.hook_join(request, ask),
            ForShell::Undo(ask) => return self.undo(request, ask),
            ForShell::Redo(ask) => return self.redo(request, ask),
            ForShell::UndoList(_) => return self.undo_list(request),
            ForShell::ReviewList(ask) => return self.review_list(request, ask),
            ForShell::ReviewKeep(ask) => return self.review_keep(request, ask),
            ForShell::ReviewUndo(ask) => return self.review_undo(request, ask),
            ForShell::Claim(ask) => return self.claim(request, ask),
            ForShell::SurvivalList(ask) => return self.survival_list(request, ask),
            ForShell::WorktreeList(ask) => return self.worktree_list(request, ask),
            ask @ (ForShell::FileContent(_)
            | ForShell::FileDiff(_)
            | ForShell::FileBlame(_)
            | ForShell::FileLog(_)
            | ForShell::ActivityList(_)
            | ForShell::FileRestore(_)) => return self.look_back(request, ask),
        };
        self.outbox.push(Say::Answer {
            request,
            answer: outcome.map(|reply| Box::new(reply.into())),
        });
    }

    fn initialize(&self, ask: &Initialize) -> Result<Reply, Error> {
        if ask.protocol != PROTOCOL {
            return Err(Error::new(
                ErrorCode::Incompatible,
                format!(
                    "the daemon speaks protocol {PROTOCOL}, the client {}",
                    ask.protocol
                ),
            )
            .with(ErrorData {
                server: Some(PROTOCOL),
                client: Some(ask.protocol),
                ..ErrorData::default()
            }));
        }
        let state = self.engine.state();
        Ok(Reply::Initialize(Initialized {
            server: Program {
                name: "touchmark".into(),
                version: VERSION.into(),
            },
            protocol: PROTOCOL,
            workspace: self.workspace(),
            clock: state.clock(state.n),
            capabilities: Vec::new(),
        }))
    }

    fn workspace(&self) -> String {
        self.options.workspace.to_string_lossy().into_owned()
    }

    fn status(&self) -> StatusReport {
        let state = self.engine.state();
        let counts = self.engine.counts();
        let (path, size_bytes, durability) = self.store.status();
        let memory = proc::memory();
        StatusReport {
            pid: std::process::id(),
            version: VERSION.into(),
            protocol: PROTOCOL,
            workspace: self.workspace(),
            clock: state.clock(state.n),
            uptime_ms: self.time.uptime(),
            tracked_files: counts.tracked,
            watched_directories: self.watcher.watched() as u64,
            sessions: counts.sessions,
            connections: self.peers.len() as u64,
            open_edits: counts.open_edits,
            counters: Counters {
                events: counts.hints,
                versions: counts.versions,
                fences: counts.fences,
                overflows: counts.overflows,
                rescans: counts.rescans,
                requests: self.requests,
            },
            backend: self.watcher.backend().into(),
            degraded: self.degraded(),
            configuration: self.configuration.clone(),
            store: StoreStatus {
                path: path.to_string_lossy().into_owned(),
                size_bytes,
                durability: durability.into(),
                contents: self.store.extent().map(|extent| KeptContents {
                    bytes: extent.bytes,
                    original_bytes: extent.unpacked,
                    pinned_bytes: extent.pinned,
                    since: extent.since,
                }),
            },
            rss_bytes: memory.resident,
            agents: self.hooks.agents(self.time.now()),
            telemetry: self.telemetry_status(),
            started_by: self.started_by(),
            idle_ms: self.idle(),
            idle_exit_ms: self
                .options
                .on_demand
                .then_some(self.options.config.idle_exit),
            open_commands: counts.open_commands,
            subscriptions: self.subscriptions.len() as u64,
            private_bytes: memory.private,
        }
    }

    /// Returns the places where coverage is reduced, and the conditions in
    /// which less is stored than should be.
    pub(super) fn degraded(&self) -> Vec<Degraded> {
        let everything = |cause: String| Degraded { path: None, cause };
        let mut degraded = self.watcher.degraded();
        degraded.extend(
            self.storage_trouble
                .as_ref()
                .map(|cause| everything(format!("the state cannot be stored: {cause}"))),
        );
        degraded.extend(
            self.loss
                .as_ref()
                .map(|cause| everything(format!("state was lost: {cause}"))),
        );
        let unreadable = self.store.unreadable();
        if unreadable > 0 {
            degraded.push(everything(format!(
                "records of the store that cannot be read: {unreadable}"
            )));
        }
        degraded.extend(self.time.told().map(everything));
        degraded
    }

    /// Removes all stored contents, and answers after that.
    fn forget_contents(&self, request: RequestId) {
        self.journal.forget(None);
        self.histories.blamed.forget();
        self.kept.reckon_anew();
        let events = self.events.clone();
        self.store.forget_contents(move || {
            let _loop_has_ended = events.send(Event::Answered {
                request,
                outcome: Ok(Reply::ContentsForget(Done {})),
            });
        });
    }

    fn begin_subscription(
        &mut self,
        request: RequestId,
        connection: ConnectionId,
        ask: &Subscribe,
    ) -> Result<Say, Error> {
        let subscription = Subscription::new(connection, ask)?;
        let state = self.engine.state();
        if let Some(since) = ask.since {
            replay::check(since, state)?;
        }
        Ok(Say::Subscribed {
            request,
            number: self.subscriptions.number(connection)?,
            subscription,
            since: ask.since,
            // Facts up to here were also published up to here.
            until: self.newest_fact,
        })
    }

    fn unsubscribe(&mut self, connection: ConnectionId, ask: &Unsubscribe) -> Result<Reply, Error> {
        if !self.subscriptions.remove(ask.subscription, connection) {
            return Err(Error::new(
                ErrorCode::NotFound,
                format!("this connection has no subscription {}", ask.subscription),
            ));
        }
        if let Some(peer) = self.peers.get(&connection) {
            peer.subscriptions(self.subscriptions.count(connection));
        }
        Ok(Reply::Unsubscribe(Done {}))
    }
}
