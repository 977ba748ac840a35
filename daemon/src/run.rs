//! The loop: everything that ever happens.
//!
//! ```text
//!  disk ──► watch ──► loop ──► engine ──► effects ──► store (one commit) ──► answers, events
//!  client ─► socket ─►  │         ▲          │
//!                       └── read ─┘◄─────────┘
//! ```
//!
//! A turn takes what has come, hands each to the engine with the time,
//! carries out the effects in order, and commits the turn's facts as one.
//! What is to be said waits in the [`outbox`] until they are stored (DUR-1).
//! Nothing else changes state.

mod admit;
mod backlog;
mod checkpoints;
mod coverage;
mod edited;
mod end;
mod fill;
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
#[cfg(test)]
mod tests;
mod undo;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use touchmark_engine::{Effect, Engine, Fact, Input, Learned, Question, Record};
use touchmark_proto::daemon::{Configuration, Degraded};
use touchmark_proto::{ConnectionId, Hash, Millis, Places, RelPath, RequestId};

use crate::Error;
use crate::config::Config;
use crate::content::Reader;
use crate::event::Event;
use crate::failpoint;
use crate::guard::{Guard, Umask};
use crate::life::Lock;
use crate::life::systemd::{self, Manager};
use crate::review::Kept;
use crate::scope::Sweeper;
use crate::socket::{Hub, Listener, Peer};
use crate::store::{self, CheckpointContents, Store};
use crate::system::{proc, signals};
use crate::time::Timeline;
use crate::undo::Journal;
use crate::watch::{MountBell, Watcher};

use backlog::Backlog;
pub use backlog::Waiting;
use end::Ending;
use histories::Histories;
use hooks::Hooks;
use outbox::Outbox;
use reading::Aside;
use say::Say;
use searches::Searches;
use subscriptions::Subscriptions;

/// Events taken in one turn, so that the first of a flood is answered before
/// the last has come.
const EVENTS_PER_TURN: usize = 1_024;

/// While too many descriptors are open, this long nobody is let in.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a daemon ends whose workspace was removed or renamed (LIFE-1).
const GONE: &str = "the workspace is gone";

/// What the loop is to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// The canonical path of the workspace.
    pub workspace: PathBuf,
    /// Where the daemon's things are.
    pub places: Places,
    /// The configuration.
    pub config: Config,
    /// What of its files is not in force, for people.
    pub refused: Option<String>,
    /// The user's file, if it is not the usual one.
    pub user_config: Option<PathBuf>,
    /// Started by a client: ends when idle (LIFE-1).
    pub on_demand: bool,
    /// Who is told how the daemon is.
    pub manager: Manager,
    /// What the starter's files are made with.
    pub umask: Umask,
}

/// Serves a workspace until `shutdown` comes, a client asks for the end, the
/// workspace is gone, or nobody has asked for long (LIFE-1). The lock is held
/// to the end.
///
/// A daemon that could not open its store for writing begins anew once it can
/// (LOSS-3): connections end, the socket stays.
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
        // What a first life could not write, a later one may.
        lock = lock.renewed(&options.places, &options.workspace)?;
        let (daemon, events) = Daemon::open(listener, lock, options.clone())?;
        match daemon.serve(events, shutdown.as_mut()).await? {
            Some(kept) => (listener, lock) = kept,
            None => return Ok(()),
        }
    }
}

/// The daemon's parts; fields live as long as it does.
struct Daemon {
    options: Options,
    time: Timeline,
    engine: Engine,
    watcher: Watcher,
    /// Events of the watcher that wait for the loop.
    backlog: Arc<Backlog>,
    reader: Reader,
    guard: Arc<Guard>,
    journal: Arc<Journal>,
    kept: Arc<Kept>,
    /// What an undo that was cut short has written.
    undone: Vec<(RelPath, Hash)>,
    store: Store,
    /// A connection of the loop's own to the store; made anew if lost.
    log: Option<store::Reader>,
    /// What the files say and is not in force.
    configuration: Configuration,
    /// What was lost when the store was opened.
    loss: Option<String>,
    /// Records that the state would rest on were left out at this start.
    left_out: bool,
    listener: Listener,
    lock: Lock,
    hub: Arc<Hub>,
    events: UnboundedSender<Event>,
    peers: HashMap<ConnectionId, Arc<Peer>>,
    last_connection: u64,
    /// Processes whose end is waited for.
    processes: HashSet<u32>,
    /// Requests with the engine or in the outbox, until they are answered.
    asked: HashMap<RequestId, Asked>,
    /// Effects not carried out yet.
    effects: VecDeque<Effect>,
    /// Always empty between decisions; keeps its room.
    decided: Vec<Effect>,
    /// Facts of this turn.
    facts: Vec<Record>,
    /// The newest fact whose effects have been carried out.
    newest_fact: u64,
    outbox: Outbox<Say>,
    /// Whose answers are to be written at the end of the turn.
    answered: Vec<Arc<Peer>>,
    subscriptions: Subscriptions,
    searches: Searches,
    sweeper: Sweeper,
    hooks: Hooks,
    histories: Histories,
    /// Why facts are not stored at the moment (LOSS-3).
    storage_trouble: Option<String>,
    /// Turns whose facts were not stored when they came, and why.
    failed_turns: BTreeMap<u64, String>,
    next_snapshot: snapshot::Next,
    /// The stamps that the last snapshot held.
    stamps_in_snapshot: u64,
    /// What checkpoints of this turn name.
    named: Vec<CheckpointContents>,
    /// A session was forgotten, and is in the store's file still.
    forgotten: bool,
    inline_reads: usize,
    aside: Aside,
    requests: u64,
    /// When the last connection ended or the last request came.
    last_use: Instant,
    accept_after: Option<Instant>,
    next_mend: Option<Instant>,
    /// When to bind anew, unless the socket's name leads to it again.
    mend_place_at: Option<Instant>,
    /// What the service manager is told.
    manager: systemd::ServiceReport,
    /// What subscribers were told of.
    told_degraded: Vec<Degraded>,
    ending: Option<Ending>,
}

/// A request that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Asked {
    connection: ConnectionId,
    /// The answer is worthless after that.
    until: Option<Millis>,
    /// It fails if its facts cannot be stored.
    changes_state: bool,
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
                // Connections get their turn too, however many events wait.
                tokio::task::yield_now().await;
            }
        }
        Ok(self.end(events).await)
    }

    /// One turn: take what has come, decide, store, say.
    fn turn(&mut self, first: Option<Event>, events: &mut UnboundedReceiver<Event>) {
        self.inline_reads = 0;
        let mut next = first;
        let mut taken = 0;
        while let Some(event) = next {
            taken += event.weight();
            self.take(event);
            // What has ended the daemon must not be followed by an answer as
            // if it had not: a workspace that is gone may have another in its
            // place by now.
            let more = taken < EVENTS_PER_TURN && self.ending.is_none();
            next = more.then(|| events.try_recv().ok()).flatten();
        }
        self.look_at_the_time();
        self.close_turn();
        self.tell_manager();
    }

    /// Ready is who answers at once: after the comparison that a start begins
    /// with (ATTR-13).
    fn tell_manager(&mut self) {
        if self.manager.is_heard() {
            let ready = !self.engine.is_reconciling();
            self.manager.turn(ready, self.summary(ready));
        }
    }

    /// The daemon in a line.
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
                if self.watcher.root_gone() {
                    self.ending = Some(Ending::Done(GONE));
                }
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
                self.last_use = Instant::now();
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
        }
    }

    fn feed_all(&mut self, inputs: Vec<Input>) {
        for input in inputs {
            if let Some(input) = guarded::without_temporary_names(input) {
                self.feed(input);
            }
        }
    }

    /// Hands something to the engine and carries out what follows.
    fn feed(&mut self, input: Input) {
        self.decide(input);
        self.carry_out_all();
    }

    fn carry_out_all(&mut self) {
        while let Some(effect) = self.effects.pop_front() {
            self.carry_out(effect);
        }
    }

    /// Hands something to the engine; what follows goes behind the effects
    /// that wait.
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
                // The log must hold what was recorded in this turn.
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

    /// The end of a process comes as an event, without looking (LIFE-3).
    fn await_process(&mut self, pid: u32) {
        if !self.processes.insert(pid) {
            return;
        }
        let events = self.events.clone();
        let ended = proc::process_end(pid);
        tokio::spawn(async move {
            let ended = ended
                .await
                // The window has its deadline, and its connection if bound.
                .inspect_err(|error| {
                    tracing::warn!("the end of process {pid} will not be seen: {error}");
                })
                .is_ok();
            let _loop_has_ended = events.send(Event::Process { pid, ended });
        });
    }

    /// What has come due: the engine's deadline, the degraded places, the
    /// idle exit.
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

    /// When the idle daemon ends (LIFE-1).
    fn idle_end(&self) -> Option<Instant> {
        (self.options.on_demand && self.peers.is_empty())
            .then(|| self.last_use + Duration::from_millis(self.options.config.idle_exit))
    }

    /// When to look at the time next; never, if there is nothing to wait for
    /// (LIFE-3).
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

    /// Stores the turn's facts and says what may be said. What is said can
    /// lead to further decisions, hence further turns.
    fn close_turn(&mut self) {
        loop {
            let facts = std::mem::take(&mut self.facts);
            self.next_snapshot.count(facts.len() as u64);
            if let Some(turn) = self.outbox.close_turn(!facts.is_empty()) {
                failpoint::pass("a turn is closed");
                let mut settled = Vec::new();
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
        // Where nothing can be stored, the next fact asks again.
        if self.next_snapshot.take_due() && self.storage_trouble.is_none() {
            self.snapshot();
        }
        if std::mem::take(&mut self.forgotten) {
            // The facts and the snapshot of before tell of it still.
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
