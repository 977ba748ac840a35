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
mod backlog;
mod checkpoints;
mod coverage;
mod edited;
mod end;
mod fill;
mod fleet;
mod guarded;
mod histories;
mod hooks;
mod host;
mod lane;
mod open;
mod outbox;
mod place;
mod reading;
mod reload;
mod replay;
mod say;
mod searches;
mod snapshot;
mod subscriptions;
mod survival;
mod telemetry;
#[cfg(test)]
mod tests;
mod undo;
mod worktrees;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use touchmark_engine::requests::row;
use touchmark_engine::{Effect, Engine, Fact, Input, Learned, Question, Record};
use touchmark_proto::daemon::{Configuration, Degraded};
use touchmark_proto::{COMMON_ERRORS, ConnectionId, ErrorCode, Millis, Places, Request, RequestId};

use crate::Error;
use crate::config::Config;
use crate::content::Reader;
use crate::event::Event;
use crate::failpoint;
use crate::guard::{Guard, Umask};
use crate::life::Lock;
use crate::life::systemd::{self, Manager};
use crate::past::{Lineages, Looks};
use crate::review::Kept;
use crate::scope::Sweeper;
use crate::socket::{Hub, Listener, Peer};
use crate::store::{self, CheckpointContents, Store};
use crate::survival::Judge;
use crate::system::{proc, signals};
use crate::time::Timeline;
use crate::undo::{Journal, Resumed};
use crate::watch::{MountBell, Watcher};
use crate::worktrees::Worktrees;

use backlog::Backlog;
pub use backlog::Waiting;
use end::Ending;
use fleet::Fleet;
use histories::Histories;
use hooks::Hooks;
use outbox::Outbox;
use reading::Aside;
use say::Say;
use searches::Searches;
use subscriptions::Subscriptions;
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
    pub config: Config,
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
        let (daemon, events) = Daemon::open(listener, lock, options.clone())?;
        match daemon.serve(events, shutdown.as_mut()).await? {
            Some(kept) => (listener, lock) = kept,
            None => return Ok(()),
        }
    }
}

/// The parts of the daemon. They exist until it ends or starts again.
struct Daemon {
    options: Options,
    time: Timeline,
    engine: Engine,
    watcher: Watcher,
    /// Events of the watcher that the loop has not taken yet.
    backlog: Arc<Backlog>,
    reader: Reader,
    guard: Arc<Guard>,
    journal: Arc<Journal>,
    kept: Arc<Kept>,
    /// What is to be reported about interrupted undos that were completed.
    undone: Resumed,
    /// The other worktrees of the workspace's repository.
    worktrees: Arc<Worktrees>,
    store: Store,
    /// The loop's own connection to the store; opened again if it was lost.
    log: Option<store::Reader>,
    /// The entries of the configuration files that are not in effect.
    configuration: Configuration,
    telemetry: Telemetry,
    /// What was lost when the store was opened; `None` if nothing was.
    loss: Option<String>,
    /// Whether records on which the state rests were left out at this start.
    left_out: bool,
    listener: Listener,
    lock: Lock,
    hub: Arc<Hub>,
    events: UnboundedSender<Event>,
    peers: HashMap<ConnectionId, Arc<Peer>>,
    last_connection: u64,
    /// The processes whose end is being waited for.
    processes: HashSet<u32>,
    /// Requests in the engine or in the outbox that are not answered yet.
    asked: HashMap<RequestId, Asked>,
    /// Effects that are not executed yet.
    effects: VecDeque<Effect>,
    /// A buffer for the effects of one decision. It is always empty between
    /// decisions, and keeps its capacity.
    decided: Vec<Effect>,
    /// The facts of this turn.
    facts: Vec<Record>,
    /// The number of the newest fact whose effects were executed.
    newest_fact: u64,
    outbox: Outbox<Say>,
    /// The connections whose answers are written at the end of the turn.
    answered: Vec<Arc<Peer>>,
    subscriptions: Subscriptions,
    searches: Searches,
    sweeper: Sweeper,
    hooks: Hooks,
    histories: Histories,
    /// Why facts cannot be stored at the moment (LOSS-3); `None` if they can.
    storage_trouble: Option<String>,
    /// The turns whose facts could not be stored in the first attempt, and why.
    failed_turns: BTreeMap<u64, String>,
    next_snapshot: snapshot::Next,
    /// The number of stats in the last snapshot.
    stamps_in_snapshot: u64,
    /// The contents that checkpoints of this turn name.
    named: Vec<CheckpointContents>,
    /// Whether a session was forgotten but is still in the store's file.
    forgotten: bool,
    inline_reads: usize,
    aside: Aside,
    requests: u64,
    /// When the last connection that used the daemon ended, or the last request
    /// arrived that is a use.
    last_use: Instant,
    /// This daemon among the others of the user.
    fleet: Fleet,
    accept_after: Option<Instant>,
    next_mend: Option<Instant>,
    /// When to bind the socket again, unless its name refers to it again by
    /// then.
    mend_place_at: Option<Instant>,
    /// The reports to the service manager.
    manager: systemd::ServiceReport,
    /// The degraded conditions that were last reported to subscribers.
    told_degraded: Vec<Degraded>,
    ending: Option<Ending>,
    /// The versions of which it is found out whether git brought them.
    looks: Arc<Looks>,
    /// What was judged of agents' lines.
    judge: Arc<Judge>,
    /// Which names stand for which files.
    lineages: Arc<Lineages>,
    /// When that was looked at last; `None` if it was not.
    last_judged: Option<Instant>,
}

/// A request that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Asked {
    connection: ConnectionId,
    /// The errors that its method can answer in addition to the common ones.
    errors: &'static [ErrorCode],
    /// The time after which the client ignores the answer; `None`: never.
    until: Option<Millis>,
    /// Whether the request fails if its facts cannot be stored.
    changes_state: bool,
}

impl Asked {
    fn new(connection: ConnectionId, ask: &Request, until: Option<Millis>) -> Self {
        Self {
            connection,
            errors: ask.errors(),
            until,
            changes_state: row(ask).changes,
        }
    }

    /// Returns whether the method's row in the table of methods has this error.
    fn may_fail_with(&self, code: ErrorCode) -> bool {
        COMMON_ERRORS.contains(&code) || self.errors.contains(&code)
    }
}

impl Daemon {
    async fn serve(
        mut self,
        mut events: UnboundedReceiver<Event>,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Option<(Listener, Lock)>, Error> {
        let mut hangup = signals::hangup().map_err(|cause| Error::Part {
            part: "signals",
            cause: cause.to_string(),
        })?;
        let mounts = MountBell::open();
        self.begin();
        self.look_at_places();
        self.look_at_fleet();
        self.tell_manager();
        while self.ending.is_none() {
            let wake = self.wake();
            let accepting = self.accept_after.is_none();
            let first = tokio::select! {
                () = shutdown.as_mut() => {
                    self.ending = Some(Ending::Done("asked to"));
                    None
                }
                accepted = self.listener.accept(), if accepting => {
                    self.accepted(accepted);
                    continue;
                }
                event = events.recv() => event,
                _ = hangup.recv() => Some(Event::HungUp),
                () = mounts.rung() => Some(Event::Mounted),
                () = sleep_until(wake) => None,
            };
            self.turn(first, &mut events);
            if !events.is_empty() {
                // Tasks of connections must run too, however many events wait.
                tokio::task::yield_now().await;
            }
        }
        Ok(self.end(events).await)
    }

    /// Runs one turn: takes the events that have arrived, decides, stores,
    /// sends.
    fn turn(&mut self, first: Option<Event>, events: &mut UnboundedReceiver<Event>) {
        self.inline_reads = 0;
        let mut next = first;
        let mut taken = 0;
        while let Some(event) = next {
            taken += event.weight();
            self.take(event);
            // No answer may follow an event that has ended the daemon: if the
            // workspace was removed, another one may have its name by now.
            let more = taken < EVENTS_PER_TURN && self.ending.is_none();
            next = more.then(|| events.try_recv().ok()).flatten();
        }
        self.look_at_the_time();
        self.close_turn();
        self.look_at_fleet();
        self.tell_manager();
    }

    /// Reports to the service manager. The daemon is ready when it can answer
    /// immediately: after the comparison that a start begins with (ATTR-13).
    fn tell_manager(&mut self) {
        if self.manager.is_heard() {
            let ready = !self.engine.is_reconciling();
            self.manager.turn(ready, self.summary(ready));
        }
    }

    /// Returns a line about the daemon's state.
    fn summary(&self, ready: bool) -> String {
        let counts = self.engine.counts();
        let mut line = format!(
            "{}: {} tracked files, {} sessions",
            self.options.workspace.display(),
            counts.tracked,
            counts.sessions
        );
        if !ready {
            line.push_str("; comparing with the disk");
        }
        if self.storage_trouble.is_some() {
            line.push_str("; the state cannot be stored");
        }
        if self.configuration.refused.is_some() {
            line.push_str("; the configuration was refused in part");
        }
        line
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Watch(waiting) => {
                let raw = self.backlog.take(waiting);
                let mut inputs = Vec::new();
                self.watcher.digest(raw, &mut inputs);
                self.feed_all(inputs);
                self.end_if_gone();
                if self.watcher.take_beside() {
                    self.look_at_places();
                }
            }
            Event::Ask {
                request,
                connection,
                ask,
                until,
            } => self.ask(request, connection, ask, until),
            Event::Read { readings, last } => {
                self.aside.under_way -= usize::from(last);
                if self.is_of_another_workspace() {
                    return;
                }
                for reading in readings {
                    let input = self.report(reading);
                    self.feed(input);
                }
            }
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
            Event::Answered { request, outcome } => {
                self.searched(request);
                self.outbox.push(Say::Answer {
                    request,
                    answer: outcome.map(|reply| Box::new(self.labelled(reply).into())),
                });
                self.tell_kept();
            }
            Event::Kept => self.tell_kept(),
            Event::Learned { request, learned } => self.feed(Input::Learned { request, learned }),
            Event::Met(contents) => {
                for (hash, bytes) in contents {
                    match bytes {
                        Some(bytes) => self.store.keep(hash, bytes),
                        None => self.store.keep_out(hash),
                    }
                }
            }
            Event::Store(event) => self.stored(event),
            Event::Describe { session, answer } => self.describe(&session, answer),
            Event::Consult(consult) => self.consult(consult),
            Event::Hooked {
                request,
                outcome,
                undo,
            } => self.hooked(request, outcome, undo),
            Event::Disconnected(connection) => {
                self.peers.remove(&connection);
                self.subscriptions.disconnect(connection);
                if self.peers.is_empty() {
                    self.engine.set_heard(false);
                }
                self.searches.disconnect(connection);
                self.asked.retain(|_, asked| asked.connection != connection);
                if self.fleet.disconnected(connection) {
                    self.used();
                }
                self.feed(Input::Disconnected { connection });
            }
            Event::Process { pid, ended } => {
                self.processes.remove(&pid);
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
        while let Some(effect) = self.effects.pop_front() {
            self.carry_out(effect);
        }
    }

    /// Passes an input to the engine. The new effects are queued after the
    /// pending ones.
    fn decide(&mut self, input: Input) {
        self.engine
            .handle(self.time.now(), input, &mut self.decided);
        self.effects.extend(self.decided.drain(..));
    }

    fn carry_out(&mut self, effect: Effect) {
        failpoint::pass("an effect");
        match effect {
            Effect::Record(record) => {
                self.newest_fact = record.n;
                self.forgotten |= record.forgets();
                if let Fact::SessionForgotten { session } = &record.fact {
                    self.journal.forget(Some(session));
                    self.kept.reckon_anew();
                    self.worktrees.keep(|known| known != session);
                }
                self.named
                    .extend(checkpoints::named(&record, self.engine.state()));
                self.facts.push(record);
            }
            Effect::Track(path) => self.watcher.track(&path),
            Effect::Untrack(path) => self.watcher.untrack(&path),
            Effect::Read(order) => self.read(order),
            Effect::Compare(comparison) => self.compare(comparison),
            Effect::Fence(fence) => self.fence(fence),
            Effect::AwaitProcess(pid) => self.await_process(pid),
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

    /// Waits for the end of a process, which arrives as an event, without
    /// polling (LIFE-3).
    fn await_process(&mut self, pid: u32) {
        if !self.processes.insert(pid) {
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

    /// Handles what is scheduled for now: the engine's deadline, degraded
    /// places, the idle exit.
    fn look_at_the_time(&mut self) {
        let now = Instant::now();
        if self.accept_after.is_some_and(|after| after <= now) {
            self.accept_after = None;
        }
        if self
            .engine
            .deadline()
            .is_some_and(|deadline| deadline <= self.time.now())
        {
            self.feed(Input::Tick);
        }
        let waits = |asked: &Asked| asked.until.is_some();
        if self.engine.deadline().is_none() && !self.asked.values().any(waits) {
            self.time.follow();
        }
        let mut inputs = Vec::new();
        self.watcher.look_at_busy(now, &mut inputs);
        self.feed_all(inputs);
        self.look_at_coverage(now);
        if self.mend_place_at.is_some_and(|at| at <= now) {
            self.look_at_places();
        }
        self.manager.alive(now);
        self.look_at_all_moved(now);
        if self.idle_end().is_some_and(|end| end <= now) {
            self.ending = Some(Ending::Done("idle"));
        }
    }

    /// Returns when the idle daemon exits (LIFE-1); `None` if it does not.
    fn idle_end(&self) -> Option<Instant> {
        (self.options.on_demand && self.peers.is_empty())
            .then(|| self.last_use + Duration::from_millis(self.options.config.idle_exit))
    }

    /// Returns when to handle scheduled work next; `None` if nothing is
    /// scheduled (LIFE-3).
    fn wake(&self) -> Option<Instant> {
        let engine = self.engine.deadline().map(|due| self.time.instant(due));
        [
            engine,
            self.watcher.next_look(),
            self.next_mend,
            self.accept_after,
            self.guard.next_look(),
            self.idle_end(),
            self.mend_place_at,
            self.next_snapshot.due(),
            self.manager.due(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Stores the turn's facts and sends the messages that may be sent. Sending
    /// can cause further decisions, and so further turns.
    fn close_turn(&mut self) {
        let mut is_reason = false;
        loop {
            let facts = std::mem::take(&mut self.facts);
            is_reason |= survival::is_reason(&facts);
            if self.looks.queue(&facts) {
                self.look_at_versions();
            }
            self.next_snapshot.count(facts.len() as u64);
            if let Some(turn) = self.outbox.close_turn(!facts.is_empty()) {
                failpoint::pass("a turn is closed");
                let mut settled = Vec::new();
                if let Some(exporter) = &mut self.telemetry.exporter {
                    exporter.heed(turn, &facts);
                }
                self.store.commit(turn, facts, |event| settled.push(event));
                failpoint::pass("a turn is handed over");
                for event in settled {
                    self.stored(event);
                }
            }
            for named in self.named.drain(..) {
                self.store.pin_checkpoint(named);
            }
            self.say_all();
            if self.facts.is_empty() && !self.outbox.has_fresh() {
                break;
            }
        }
        self.read_aside();
        self.flush();
        if is_reason {
            self.judge_survival();
        }
        // While nothing can be stored, the next fact schedules the snapshot
        // again.
        if self.next_snapshot.take_due() && self.storage_trouble.is_none() {
            self.snapshot();
        }
        if std::mem::take(&mut self.forgotten) {
            // The earlier facts and the earlier snapshot still contain the
            // session.
            self.snapshot();
            self.store.purge();
        }
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake.into()).await,
        None => std::future::pending().await,
    }
}
