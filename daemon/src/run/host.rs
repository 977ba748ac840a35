//! Requests about the daemon itself. The engine only decides their place in the
//! order of requests.

use touchmark_engine::requests::ForShell;
use touchmark_proto::daemon::{
    Counters, Degraded, Done, Initialize, Initialized, KeptContents, Program, StatusReport,
    StoreStatus, Subscribe, Unsubscribe,
};
use touchmark_proto::off::OffReport;
use touchmark_proto::{ConnectionId, Error, ErrorCode, ErrorData, PROTOCOL, Reply, RequestId};

use super::Daemon;
use super::replay::{self, Beginning};
use super::say::{self, Say};
use super::subscriptions::Subscription;
use crate::event::Event;
use crate::off;
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
            ForShell::FleetYield(ask) => return self.fleet_yield(request, connection, &ask),
            ForShell::ContentsForget(_) => return self.forget_contents(request),
            ask => return self.answer_aside(request, ask),
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
        let (path, size_bytes, durability) = self.storage.store.status();
        let memory = proc::memory();
        StatusReport {
            pid: std::process::id(),
            version: VERSION.into(),
            protocol: PROTOCOL,
            workspace: self.workspace(),
            clock: state.clock(state.n),
            uptime_ms: self.workspace.time.uptime(),
            tracked_files: counts.tracked,
            watched_directories: self.disk.watcher.watched() as u64,
            sessions: counts.sessions,
            connections: self.clients.peers.len() as u64,
            open_edits: counts.open_edits,
            counters: Counters {
                events: counts.hints,
                versions: counts.versions,
                fences: counts.fences,
                overflows: counts.overflows,
                rescans: counts.rescans,
                requests: self.clients.requests,
            },
            backend: self.disk.watcher.backend().into(),
            degraded: self.degraded(),
            configuration: self.configuration.clone(),
            store: StoreStatus {
                path: path.to_string_lossy().into_owned(),
                size_bytes,
                durability: durability.into(),
                contents: self.storage.store.extent().map(|extent| KeptContents {
                    bytes: extent.bytes,
                    original_bytes: extent.unpacked,
                    pinned_bytes: extent.pinned,
                    since: extent.since,
                }),
            },
            rss_bytes: memory.resident,
            agents: self.parts.memory.of_agents(self.workspace.time.now()),
            telemetry: self.telemetry_status(),
            started_by: self.started_by(),
            idle_ms: self.idle(),
            idle_exit_ms: self
                .options
                .on_demand
                .then_some(self.options.config.idle_exit),
            open_commands: counts.open_commands,
            subscriptions: self.clients.subscriptions.len() as u64,
            private_bytes: memory.private,
            off: Some(self.off_report()),
            witnessed: self.engine.witnessed(),
        }
    }

    fn off_report(&self) -> OffReport {
        let (places, now) = (&self.options.places, self.workspace.time.now());
        let listed = &self.options.config.off;
        let off = off::off_with(places, &self.options.workspace, listed, now);
        OffReport {
            allowed: self.parts.memory.allowed(now),
            ..off::report(places, off, now)
        }
    }

    /// Returns the places where coverage is reduced, and the conditions in
    /// which less is stored than should be.
    pub(super) fn degraded(&self) -> Vec<Degraded> {
        let everything = |cause: String| Degraded { path: None, cause };
        let mut degraded = self.disk.watcher.degraded();
        degraded.extend(
            self.storage
                .trouble
                .as_ref()
                .map(|cause| everything(format!("the state cannot be stored: {cause}"))),
        );
        degraded.extend(
            self.storage
                .loss
                .as_ref()
                .map(|cause| everything(format!("state was lost: {cause}"))),
        );
        let malformed = self.storage.malformed.as_deref().map(say::malformed);
        degraded.extend(malformed.map(everything));
        let unreadable = self.storage.store.unreadable();
        if unreadable > 0 {
            degraded.push(everything(format!(
                "records of the store that cannot be read: {unreadable}"
            )));
        }
        degraded.extend(self.workspace.time.told().map(everything));
        if self.clients.lock.has_company(&self.options.workspace) {
            degraded.push(everything(Degraded::COMPANY.into()));
        }
        degraded.extend(self.options.inherited.iter().map(|what| {
            everything(format!(
                "the daemon was started with {what}; `touchmark stop`, and start it elsewhere"
            ))
        }));
        degraded
    }

    /// Removes all stored contents, and answers after that.
    fn forget_contents(&self, request: RequestId) {
        self.parts.journal.forget(None);
        self.parts.memory.comments.forget(None);
        self.parts.blamed.forget();
        self.parts.kept.reckon_anew();
        let events = self.events.clone();
        self.storage.store.forget_contents(move || {
            let _loop_has_ended = events.send(Event::Answered {
                request,
                outcome: Ok(Box::new(Reply::ContentsForget(Done {}))),
                undo: Vec::new(),
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
        Ok(Say::Subscribed(Box::new(Beginning {
            request,
            number: self.clients.subscriptions.number(connection)?,
            subscription,
            since: ask.since,
            // Facts up to here were also published up to here.
            until: self.turn.newest_fact,
            bytes: Vec::new(),
        })))
    }

    fn unsubscribe(&mut self, connection: ConnectionId, ask: &Unsubscribe) -> Result<Reply, Error> {
        if !self
            .clients
            .subscriptions
            .remove(ask.subscription, connection)
        {
            return Err(Error::new(
                ErrorCode::NotFound,
                format!("this connection has no subscription {}", ask.subscription),
            ));
        }
        if let Some(peer) = self.clients.peers.get(&connection) {
            peer.subscriptions(self.clients.subscriptions.count(connection));
        }
        Ok(Reply::Unsubscribe(Done {}))
    }
}
