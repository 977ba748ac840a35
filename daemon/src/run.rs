//! The event loop, which handles every input of the daemon.
//!
//! ```text
//!  disk ──► watch ──► loop ──► engine ──► effects ──► store (one commit) ──► answers, events
//!  client ─► socket ─►  │         ▲          │
//!                       └── read ─┘◄─────────┘
//! ```
//!
//! A turn takes the events that have arrived, passes each to the engine with
//! the time, executes the effects in order, and commits the turn's facts as one
//! transaction. Messages wait in the [`outbox`] until the facts are stored
//! (DUR-1). Nothing else changes state.

mod admit;
mod checkpoints;
mod clients;
mod coverage;
mod edited;
mod end;
mod fair;
mod fleet;
mod guarded;
mod host;
mod lane;
mod manager;
mod open;
mod outbox;
mod place;
mod produce;
mod reading;
mod reload;
mod replay;
mod say;
mod snapshot;
mod storage;
mod subscriptions;
mod tasks;
mod telemetry;
#[cfg(test)]
mod tests;
mod witnessed;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use touchmark_engine::{Effect, Engine, Fact, Input, Learned, Question, Record};
use touchmark_proto::Places;
use touchmark_proto::daemon::Configuration;

use crate::Error;
use crate::answers::Parts;
use crate::config::Config;
use crate::context::Workspace;
use crate::event::{Event, Look};
use crate::failpoint;
use crate::guard::Umask;
use crate::life::Lock;
use crate::life::systemd::{self, Manager};
use crate::off;
use crate::socket::Listener;
use crate::store::CheckpointContents;
use crate::system::{proc, signals};
use crate::undo::Resumed;
use crate::watch::MountBell;

use clients::Clients;
use end::Ending;
use fleet::Fleet;
use outbox::Outbox;
use reading::Disk;
use say::Say;
use storage::Storage;
use telemetry::Telemetry;

/// The maximum number of events in one turn, so that the first of many requests
/// is answered before the last has arrived.
const EVENTS_PER_TURN: usize = 1_024;

/// How long no connection is accepted after too many descriptors were open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The reason for the exit of a daemon whose workspace was removed or renamed
/// (LIFE-1).
const GONE: &str = "the workspace no longer exists";

/// What the loop serves, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The canonical path of the workspace.
    pub workspace: PathBuf,
    /// The paths of the daemon's socket, lock and state.
    pub places: Places,
    /// The configuration.
    pub config: Arc<Config>,
    /// The configuration entries that are not in effect, for people; `None` if
    /// all are.
    pub refused: Option<String>,
    /// Whether anything in the user's configuration file is wrong.
    pub user_is_wrong: bool,
    /// The user's configuration file; `None` for the usual one.
    pub user_config: Option<PathBuf>,
    /// Whether a client started the daemon. Such a daemon exits when idle
    /// (LIFE-1).
    pub on_demand: bool,
    /// The service manager that receives reports about the daemon.
    pub manager: Manager,
    /// The umask of the process that started the daemon.
    pub umask: Umask,
    /// What the daemon inherited from that process and could not change, a
    /// sentence each, for people.
    pub inherited: Vec<String>,
}

/// Serves a workspace until `shutdown` completes, a client requests the exit,
/// the workspace was removed, or no client has sent a request for a long time
/// (LIFE-1). The lock is held until the end.
///
/// A daemon that could not open its store for writing starts again in the same
/// process once it can (LOSS-3): connections end, the socket stays.
///
/// # Errors
/// If store or watcher cannot start.
pub async fn run(
    mut listener: Listener,
    mut lock: Lock,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    tokio::pin!(shutdown);
    loop {
        // The previous daemon could perhaps not write the lock file; this one
        // may be able to.
        lock = lock.renewed(&options.places, &options.workspace)?;
        let (daemon, events, undone) = Daemon::open(listener, lock, options.clone())?;
        match daemon.serve(events, undone, shutdown.as_mut()).await? {
            Some(kept) => (listener, lock) = kept,
            None => return Ok(()),
        }
    }
}

/// The daemon. It exists until it ends or starts again.
struct Daemon {
    options: Options,
    /// The entries of the configuration files that are not in effect.
    configuration: Configuration,
    workspace: Arc<Workspace>,
    parts: Arc<Parts>,
    engine: Engine,
    disk: Disk,
    storage: Storage,
    clients: Clients,
    turn: Turn,
    outbox: Outbox<Say>,
    telemetry: Telemetry,
    /// This daemon among the others of the user.
    fleet: Fleet,
    /// The reports to the service manager.
    manager: systemd::ServiceReport,
    events: UnboundedSender<Event>,
    ending: Option<Ending>,
}

/// What a turn has decided and not passed on yet.
#[derive(Default)]
struct Turn {
    /// Effects that are not executed yet.
    effects: VecDeque<Effect>,
    /// A buffer for the effects of one decision. It is always empty between
    /// decisions, and keeps its capacity.
    decided: Vec<Effect>,
    facts: Vec<Record>,
    /// The number of the newest fact whose effects were executed.
    newest_fact: u64,
    /// The contents that checkpoints name.
    named: Vec<CheckpointContents>,
    /// Whether a session was forgotten but is still in the store's file.
    forgotten: bool,
    /// Whether the user had paused touchmark at the last look (OFF-2).
    paused: bool,
}

impl Daemon {
    async fn serve(
        mut self,
        mut events: UnboundedReceiver<Event>,
        undone: Resumed,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<(Listener, Lock)>, Error> {
        let mut hangup = signals::hangup().map_err(|cause| Error::Part {
            part: "signals",
            cause: cause.to_string(),
        })?;
        let mounts = MountBell::open();
        self.begin(undone);
        self.look_at_places();
        self.look_at_fleet();
        self.tell_manager();
        while self.ending.is_none() {
            let wake = self.wake();
            let accepting = self.clients.accept_after.is_none();
            let first = tokio::select! {
                () = shutdown.as_mut() => {
                    self.ending = Some(Ending::Done("asked to"));
                    None
                }
                accepted = self.clients.listener.accept(), if accepting => {
                    self.accepted(accepted);
                    continue;
                }
                event = events.recv() => event,
                () = std::future::ready(()), if !self.clients.waiting.is_empty() => None,
                _ = hangup.recv() => Some(Event::HungUp),
                () = mounts.rung() => Some(Event::Mounted),
                () = sleep_until(wake) => None,
            };
            self.turn(first, &mut events);
            if !(events.is_empty() && self.clients.waiting.is_empty()) {
                // Tasks of connections must run too, however many events wait.
                tokio::task::yield_now().await;
            }
        }
        Ok(self.end(events).await)
    }

    /// Runs one turn: takes the events that have arrived, decides, stores,
    /// sends.
    fn turn(&mut self, first: Option<Event>, events: &mut UnboundedReceiver<Event>) {
        self.disk.begin_turn();
        self.look_at_pause();
        let mut next = first;
        let mut taken = 0;
        while let Some(event) = next {
            match event {
                Event::Ask { connection, .. } => self.clients.waiting.push(connection, event),
                Event::Disconnected(connection) => {
                    if let Some(peer) = self.clients.peers.get(&connection) {
                        peer.tasks.close();
                    }
                    self.clients.waiting.push(connection, event);
                }
                event => {
                    taken += event.weight();
                    self.take(event);
                }
            }
            // No answer may follow an event that has ended the daemon: if the
            // workspace was removed, another one may have its name by now.
            let more = taken < EVENTS_PER_TURN && self.ending.is_none();
            next = more.then(|| events.try_recv().ok()).flatten();
        }
        for event in self.clients.take_requests() {
            match self.ending {
                None => self.take(event),
                Some(_) => self.refuse(event),
            }
        }
        self.look_at_the_time();
        self.close_turn();
        self.look_at_fleet();
        self.tell_manager();
    }

    /// Notes whether the user has paused touchmark. The file is read in each turn,
    /// so that no timer runs for the end of a pause (LIFE-3).
    fn look_at_pause(&mut self) {
        let off = off::paused(&self.options.places, self.workspace.time.now());
        if off.is_some() != self.turn.paused {
            self.turn.paused = off.is_some();
            self.feed(Input::Paused(self.turn.paused));
        }
    }

    fn take(&mut self, event: Event) {
        tracing::trace!("takes {event:?}");
        match event {
            Event::Watch(waiting) => {
                let raw = self.disk.backlog.take(waiting);
                let mut inputs = Vec::new();
                self.disk.watcher.digest(raw, &mut inputs);
                self.feed_all(inputs);
                self.end_if_gone();
                if self.disk.watcher.take_beside() {
                    self.look_at_places();
                }
            }
            Event::Ask {
                request,
                connection,
                ask,
                until,
            } => self.ask(request, connection, ask, until),
            Event::Read { readings, last } => self.have_read(readings, last),
            Event::GivenUp(order) => self.given_up(order),
            Event::Written {
                path,
                ticket,
                outcome,
            } => {
                self.feed(Input::Written {
                    path,
                    ticket,
                    outcome,
                });
                self.tell_kept();
            }
            Event::Answered {
                request,
                outcome,
                undo,
            } => {
                self.clients.begun(request, undo);
                self.outbox.push(Say::Answer {
                    request,
                    answer: outcome.map(|reply| Box::new(self.labelled(*reply).into())),
                });
                self.tell_kept();
            }
            Event::Produced {
                request,
                produced,
                for_client,
            } => self.produced(request, produced, for_client),
            Event::Call {
                connection,
                ask,
                until,
                answer,
            } => {
                let request = self.clients.called(answer);
                self.ask(request, connection, ask, until);
            }
            Event::Feed(input) => self.feed(input),
            Event::Look(Look(look)) => look(self.engine.state()),
            Event::Kept => self.tell_kept(),
            Event::Met(contents) => {
                for (hash, bytes) in contents {
                    match bytes {
                        Some(bytes) => self.storage.store.keep(hash, bytes),
                        None => self.storage.store.keep_out(hash),
                    }
                }
            }
            Event::Store(event) => self.stored(event),
            Event::Disconnected(connection) => {
                if self.clients.disconnected(connection) {
                    self.engine.set_subscribed(false);
                    self.mend_store();
                }
                self.parts.searches.disconnect(connection);
                if self.fleet.disconnected(connection) {
                    self.used();
                }
                self.feed(Input::Disconnected { connection });
            }
            Event::Process { pid, ended } => {
                self.clients.processes.remove(&pid);
                if ended {
                    self.feed(Input::ProcessEnded { pid });
                }
            }
            Event::HungUp => {
                self.manager.reloading();
                self.reload();
                self.manager.reloaded();
                self.mend_coverage();
                self.look_at_places();
            }
            Event::Marked => self.look_at_rings(),
            Event::Mounted => {
                self.look_around();
                self.carry_out_all();
            }
            Event::Shared { ended } => self.shared(ended),
        }
    }

    fn feed_all(&mut self, inputs: Vec<Input>) {
        for input in inputs {
            if let Some(input) = guarded::without_temporary_names(input) {
                self.feed(input);
            }
        }
    }

    /// Passes an input to the engine and executes the effects.
    fn feed(&mut self, input: Input) {
        self.decide(input);
        self.carry_out_all();
    }

    fn carry_out_all(&mut self) {
        while let Some(effect) = self.turn.effects.pop_front() {
            self.carry_out(effect);
        }
    }

    /// Passes an input to the engine. The new effects are queued after the
    /// pending ones.
    fn decide(&mut self, input: Input) {
        self.look_at_rings();
        self.engine
            .handle(self.workspace.time.now(), input, &mut self.turn.decided);
        self.turn.effects.extend(self.turn.decided.drain(..));
    }

    fn carry_out(&mut self, effect: Effect) {
        failpoint::pass("an effect");
        match effect {
            Effect::Record(record) => {
                self.turn.newest_fact = record.n;
                self.turn.forgotten |= record.forgets();
                if let Fact::SessionForgotten { session } = &record.fact {
                    self.parts.journal.forget(Some(session));
                    self.parts.memory.comments.forget(Some(session));
                    self.parts.kept.reckon_anew();
                    self.parts.worktrees.keep(|known| known != session);
                }
                self.say_loss(&record.fact);
                self.turn
                    .named
                    .extend(checkpoints::named(&record, self.engine.state()));
                self.turn.facts.push(record);
            }
            Effect::Track(path) => self.disk.track(&path),
            Effect::Untrack(path) => self.disk.untrack(&path),
            Effect::Read(order) => self.read(order),
            Effect::Compare(comparison) => self.compare(comparison),
            Effect::Fence(fence) => self.fence(fence),
            Effect::AwaitProcess(pid) => self.await_process(pid),
            Effect::Witness(seen) => self.witness(seen),
            Effect::Write { request, order } => {
                self.outbox.push(Say::Write(request, Box::new(order)));
            }
            Effect::Reply { request, answer } => {
                self.outbox.push(Say::Answer { request, answer });
            }
            Effect::Learn { request, question } => match question {
                Question::Processes(processes) => self.decide(Input::Learned {
                    request,
                    learned: proc::process_starts(&processes).map(Learned::Processes),
                }),
                // The answer comes from the log, so what was recorded in this
                // turn must be stored first.
                question => self.outbox.push(Say::Learned { request, question }),
            },
            Effect::Recall { request, recall } => {
                self.outbox.push(Say::Recall { request, recall });
            }
            Effect::Host {
                request,
                connection,
                ask,
            } => self.host(request, connection, ask),
            Effect::Publish(notice) => self.outbox.push(Say::Notice(Box::new(notice))),
        }
    }

    /// Handles what is scheduled for now: the engine's deadline, degraded
    /// places, the idle exit.
    fn look_at_the_time(&mut self) {
        let now = Instant::now();
        if self.clients.accept_after.is_some_and(|after| after <= now) {
            self.clients.accept_after = None;
        }
        if self
            .engine
            .deadline()
            .is_some_and(|deadline| deadline <= self.workspace.time.now())
        {
            self.feed(Input::Tick);
        }
        let waits = |asked: &clients::Asked| asked.until.is_some();
        if self.engine.deadline().is_none() && !self.clients.asked.values().any(waits) {
            self.workspace.time.follow();
        }
        let mut inputs = Vec::new();
        self.disk.watcher.look_at_busy(now, &mut inputs);
        self.feed_all(inputs);
        self.look_at_coverage(now);
        if self.clients.mend_place_at.is_some_and(|at| at <= now) {
            self.look_at_places();
        }
        self.manager.alive(now);
        self.look_at_due_moved(now);
        if self.idle_end().is_some_and(|end| end <= now) {
            self.ending = Some(Ending::Done("idle"));
        }
    }

    /// Returns when the idle daemon exits (LIFE-1); `None` if it does not.
    fn idle_end(&self) -> Option<Instant> {
        (self.options.on_demand && self.clients.peers.is_empty())
            .then(|| self.clients.last_use + Duration::from_millis(self.options.config.idle_exit))
    }

    /// Returns when to handle scheduled work next; `None` if nothing is
    /// scheduled (LIFE-3).
    fn wake(&self) -> Option<Instant> {
        let engine = self
            .engine
            .deadline()
            .map(|due| self.workspace.time.instant(due));
        [
            engine,
            self.disk.watcher.next_look(),
            self.disk.next_mend,
            self.clients.accept_after,
            self.clients.next_look(),
            self.workspace.guard.next_look(),
            self.idle_end(),
            self.clients.mend_place_at,
            self.storage.next_snapshot.due(),
            self.manager.due(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Stores the turn's facts and sends the messages that may be sent. Sending
    /// can cause further decisions, and so further turns.
    fn close_turn(&mut self) {
        loop {
            let facts = std::mem::take(&mut self.turn.facts);
            if self.parts.origins.looks.queue(&facts) {
                self.look_at_versions();
            }
            self.storage.next_snapshot.count(facts.len() as u64);
            if let Some(turn) = self.outbox.close_turn(!facts.is_empty()) {
                failpoint::pass("a turn is closed");
                let mut settled = Vec::new();
                if let Some(exporter) = &mut self.telemetry.exporter {
                    exporter.heed(turn, &facts);
                }
                self.storage
                    .store
                    .commit(turn, facts, |event| settled.push(event));
                failpoint::pass("a turn is handed over");
                for event in settled {
                    self.stored(event);
                }
            }
            for named in self.turn.named.drain(..) {
                self.storage.store.pin_checkpoint(named);
            }
            self.say_all();
            if self.turn.facts.is_empty() && !self.outbox.has_fresh() {
                break;
            }
        }
        self.read_aside();
        self.clients.flush();
        // While nothing can be stored, the next fact schedules the snapshot
        // again.
        if self.storage.next_snapshot.take_due() && self.storage.trouble.is_none() {
            self.snapshot();
        }
        if std::mem::take(&mut self.turn.forgotten) {
            // The earlier facts and the earlier snapshot still contain the
            // session.
            self.snapshot();
            self.storage.store.purge();
        }
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake.into()).await,
        None => std::future::pending().await,
    }
}
