//! The engine itself: what it keeps between inputs, and the way of an input.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use touchmark_proto::{ConnectionId, Millis, RelPath, RequestId};

use crate::by_path::{ByPath, Paths};
use crate::config::Config;
use crate::effect::{Effect, Notice};
use crate::handlers::audit::Audit;
use crate::input::Input;
use crate::ledger::record::{Fact, Record};
use crate::ledger::state::State;
use crate::requests::queue::{Ask, Pending};
use crate::tracker::live::Live;
use crate::tracker::reading::Outstanding;
use crate::tracker::reconcile::Reconciliation;
use crate::tracker::spoken::Spoken;
use crate::tracker::stamps::Stamps;
use crate::tracker::ways::Ways;
use touchmark_proto::events::Happening;

/// How long a file that is found empty may be in the middle of a cut that the
/// system has not told of (ATTR-5, ATTR-12).
pub(crate) const CUT_DELAY: Millis = 5;

/// Decides everything: who wrote, whose copies are out of date, what to
/// answer.
///
/// The methods a shell calls, in their order: [`Engine::restore`] once,
/// [`Engine::start`] once, then [`Engine::handle`] for every input;
/// [`Engine::deadline`] says when to hand over [`Input::Tick`].
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) config: Config,
    pub(crate) state: State,
    pub(crate) stamps: Stamps,
    /// Changes whenever a stat is noted.
    pub(crate) stamps_noted: u64,
    pub(crate) now: Millis,
    pub(crate) out: Vec<Effect>,
    /// Passing state of watched paths; absent means idle.
    pub(crate) live: ByPath<Live>,
    /// Paths hinted at whose read is not ordered yet.
    pub(crate) dirty: Paths,
    /// When a path's read was ordered lately; older entries have no meaning.
    pub(crate) lately: ByPath<Millis>,
    /// Reads ordered and not done.
    pub(crate) outstanding: ByPath<Outstanding>,
    /// Paths whose changes come without events, and that are to be read before
    /// an answer speaks of them (LOSS-2).
    pub(crate) unseen: Paths,
    /// Paths that could not be read: nothing tells when they can be (LOSS-4).
    pub(crate) unreadable: Paths,
    /// Paths that `Track` is in force for.
    pub(crate) watched: BTreeSet<RelPath>,
    /// Paths watched for requests in waiting, that no session holds yet.
    pub(crate) borrowed: ByPath<u32>,
    /// Absences and copies that may still dissolve.
    pub(crate) unsettled: Paths,
    /// Closed contents that wait for a second look (ATTR-5).
    pub(crate) unconfirmed: Paths,
    /// What must be compared before anything is answered (LOSS-1).
    pub(crate) reconciliation: Reconciliation,
    /// Paths being written by the daemon, with the read that will show the
    /// end of it: what lies between makes no version (GUARD-1).
    pub(crate) writing: ByPath<Option<u64>>,
    pub(crate) fences: Fences,
    pub(crate) pending: BTreeMap<RequestId, Box<Pending>>,
    pub(crate) queues: BTreeMap<ConnectionId, VecDeque<RequestId>>,
    /// Those pending that stand in no queue: the engine's own, and those that
    /// let others pass.
    pub(crate) aside: BTreeSet<RequestId>,
    /// Somebody listens.
    pub(crate) heard: bool,
    pub(crate) timers: BTreeSet<(Millis, Timer)>,
    /// Edits begun before this process: their connections are long gone, and
    /// a new connection may have the number of an old one.
    pub(crate) inherited_edits: u64,
    /// Bound edits whose connection has ended, and until when they live on.
    pub(crate) graces: BTreeMap<u64, Millis>,
    /// Command windows opened before this process, as
    /// [`inherited_edits`](Self::inherited_edits).
    pub(crate) inherited_commands: u64,
    /// Bound command windows whose connection has ended, and until when they
    /// live on.
    pub(crate) command_graces: BTreeMap<u64, Millis>,
    /// Audits under way: hints are noted for them.
    pub(crate) audits: BTreeMap<RequestId, Audit>,
    /// Editors' unsaved buffers, by the connection that told of them.
    pub(crate) unsaved: BTreeMap<ConnectionId, BTreeSet<RelPath>>,
    /// The spelling first used, by folded name (SEEN-6).
    pub(crate) spellings: ByPath<RelPath>,
    /// Where names lead that are not plain (FILE-1).
    pub(crate) ways: Ways,
    /// By which names the request being answered speaks.
    pub(crate) spoken: Spoken,
    pub(crate) next_ticket: u64,
    pub(crate) next_internal: u64,
    pub(crate) episodes: u64,
    pub(crate) counts: Counts,
}

/// What a life of the engine leaves to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The durable state.
    pub state: State,
    /// What saves reading; may be empty.
    pub stamps: Stamps,
}

impl From<State> for Saved {
    fn from(state: State) -> Self {
        Self {
            state,
            stamps: Stamps::default(),
        }
    }
}

/// Fences ordered and reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fences {
    /// The last one ordered.
    pub started: u64,
    /// The last one reached.
    pub done: u64,
    /// One more is wanted once the running one is reached.
    pub wanted: bool,
}

/// What may come due.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// An edit's deadline, or the end of its connection's grace.
    Edit(u64),
    /// A command window's deadline, or the end of its connection's grace.
    Command(u64),
    /// A hinted path is to be read.
    Read(RelPath),
    /// An absence or a copy is to be recorded.
    Settle(RelPath),
    /// A request's `withinMs` or `waitMs` has passed.
    Request(RequestId),
    /// The comparison after a loss begins although nobody asks.
    Reconcile,
}

/// Counted since the engine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Hints taken.
    pub hints: u64,
    /// Versions recorded.
    pub versions: u64,
    /// Fences ordered.
    pub fences: u64,
    /// Overflows.
    pub overflows: u64,
    /// Times everything tracked was compared with the disk.
    pub rescans: u64,
    /// Requests answered.
    pub requests: u64,
    /// Paths tracked.
    pub tracked: u64,
    /// Sessions open.
    pub sessions: u64,
    /// Edits open.
    pub open_edits: u64,
}

impl Engine {
    /// Takes other limits and delays. They hold for what begins from now on:
    /// deadlines that were answered stay. The root and how names compare stay
    /// as well, since the state rests on them.
    pub fn reconfigure(&mut self, config: Config) {
        self.config = Config {
            root: std::mem::take(&mut self.config.root),
            case_insensitive: self.config.case_insensitive,
            ..config
        };
    }

    /// Rebuilds an engine from a kept state and the facts recorded after it.
    /// A new workspace hands over a [`State::new`] and no records.
    pub fn restore(
        config: Config,
        kept: impl Into<Saved>,
        records: impl IntoIterator<Item = Record>,
        now: Millis,
    ) -> Self {
        let Saved {
            mut state,
            mut stamps,
        } = kept.into();
        for record in records {
            if record.n > state.n {
                state.apply(&record);
                stamps.recorded(&record);
            }
        }
        let now = now.max(state.time);
        let inherited_edits = state.edits_begun;
        let inherited_commands = state.commands_begun;
        let mut spellings = ByPath::default();
        if config.case_insensitive {
            for path in state.paths.keys() {
                spellings.insert(crate::tracker::resolve::fold(path), path.clone());
            }
        }
        Self {
            config,
            state,
            stamps,
            stamps_noted: 0,
            now,
            out: Vec::new(),
            live: ByPath::default(),
            dirty: Paths::default(),
            lately: ByPath::default(),
            outstanding: ByPath::default(),
            unseen: Paths::default(),
            unreadable: Paths::default(),
            watched: BTreeSet::new(),
            borrowed: ByPath::default(),
            unsettled: Paths::default(),
            unconfirmed: Paths::default(),
            reconciliation: Reconciliation::default(),
            writing: ByPath::default(),
            fences: Fences::default(),
            pending: BTreeMap::new(),
            queues: BTreeMap::new(),
            aside: BTreeSet::new(),
            heard: true,
            timers: BTreeSet::new(),
            inherited_edits,
            graces: BTreeMap::new(),
            inherited_commands,
            command_graces: BTreeMap::new(),
            audits: BTreeMap::new(),
            unsaved: BTreeMap::new(),
            spellings,
            ways: Ways::default(),
            spoken: Spoken::default(),
            next_ticket: 1,
            next_internal: u64::MAX,
            episodes: 0,
            counts: Counts::default(),
        }
    }

    /// Watches and compares everything tracked with the disk: nobody watched
    /// until now (ATTR-13). Queries wait until that is done.
    pub fn start(&mut self, now: Millis, effects: &mut Vec<Effect>) {
        self.now = now.max(self.now);
        // Where several names lead is not kept: each is looked at.
        let several = self.state.names.others().cloned();
        let paths = self.state.paths.keys().cloned().chain(several);
        let (known, unknown): (BTreeSet<RelPath>, BTreeSet<RelPath>) = paths
            .partition(|path| self.stamps.of(path).is_some() && !self.state.names.has_others(path));
        for path in &unknown {
            self.watch(path);
        }
        self.watched.append(&mut known.clone());
        self.begin_comparison(known, unknown);
        let edits: Vec<(u64, Millis)> = self
            .state
            .edits
            .values()
            .map(|edit| (edit.fact.edit, edit.fact.deadline))
            .collect();
        for (edit, deadline) in edits {
            self.timers.insert((deadline, Timer::Edit(edit)));
        }
        self.resume_commands();
        self.reconcile();
        effects.append(&mut self.out);
    }

    /// Takes one input in. Never fails, never blocks.
    pub fn handle(&mut self, now: Millis, input: Input, effects: &mut Vec<Effect>) {
        self.now = now.max(self.now);
        match input {
            Input::Hint { path, hint } => {
                let path = self.spelling(path);
                self.hint(&path, hint);
            }
            Input::Hints { paths, hint } => {
                let names = paths.into_iter().map(|path| self.spelling(path)).collect();
                for name in self.files_hinted(names) {
                    self.hint(&name, hint);
                }
            }
            Input::Renamed { from, to } => self.renamed(&from, &to),
            Input::Overflow => {
                self.counts.overflows += 1;
                self.publish(Happening::Overflow {}, None);
                self.lose_everything();
            }
            Input::Gap { below } => {
                let paths: Vec<RelPath> = self
                    .watched
                    .iter()
                    .filter(|path| **path == below || path.below(&below).is_some())
                    .cloned()
                    .collect();
                self.lose_coverage(paths);
            }
            Input::Unwatched { paths, at_once } => self.compare_unseen(paths, at_once),
            Input::Request {
                request,
                connection,
                ask,
                until,
            } => self.ask(request, connection, ask, until),
            Input::Read {
                path,
                ticket,
                outcome,
            } => self.read_done(&path, ticket, outcome),
            Input::Compared { number, differ } => self.compared(number, differ),
            Input::Written {
                path,
                ticket,
                outcome,
            } => {
                let file = self.file_of(&path);
                self.written(&file, ticket, outcome);
            }
            Input::FenceReached { fence } => self.fence_reached(fence, true),
            Input::FenceFailed { fence } => self.fence_reached(fence, false),
            Input::Disconnected { connection } => self.disconnected(connection),
            Input::ProcessEnded { pid } => self.process_ended(pid),
            Input::Learned { request, learned } => self.learned(request, learned),
            Input::CommandUnheard { command } => self.command_unheard(&command),
            Input::Tick => {}
        }
        self.run_timers();
        self.reconcile();
        self.advance();
        effects.append(&mut self.out);
    }

    /// When [`Input::Tick`] is due next; `None` while there is nothing to
    /// wait for (LIFE-3).
    pub fn deadline(&self) -> Option<Millis> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// The durable state: what folding the recorded facts gives.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What saves the next life reading.
    pub fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    /// Changes whenever [`stamps`](Self::stamps) has learned something.
    pub fn stamps_noted(&self) -> u64 {
        self.stamps_noted
    }

    /// Says whether anybody listens to [`Effect::Publish`]: while nobody does,
    /// nothing is put together for them.
    pub fn set_heard(&mut self, heard: bool) {
        self.heard = heard;
    }

    /// Counts for `status`.
    pub fn counts(&self) -> Counts {
        Counts {
            tracked: self.state.paths.len() as u64,
            sessions: self.state.sessions.values().filter(|s| s.open).count() as u64,
            open_edits: self.state.edits.len() as u64,
            ..self.counts
        }
    }

    /// Whether a guarded write is under way.
    pub fn is_writing(&self) -> bool {
        !self.writing.is_empty()
    }

    /// Records a fact: folds it in and has it kept.
    pub(crate) fn record(&mut self, fact: Fact) -> u64 {
        for used in self.names_used(&fact) {
            self.record(used);
        }
        let record = Record {
            n: self.state.n + 1,
            time: self.now,
            fact,
        };
        self.state.apply(&record);
        self.stamps.recorded(&record);
        self.out.push(Effect::Record(record));
        self.state.n
    }

    /// Tells subscribers.
    pub(crate) fn publish(
        &mut self,
        mut happening: Happening,
        lines: Option<(Option<touchmark_proto::Hash>, Option<touchmark_proto::Hash>)>,
    ) {
        if !self.heard {
            return;
        }
        if !self.state.names.is_empty() {
            Spoken::happening(&self.state, &mut happening);
        }
        self.state.label_happening(&mut happening);
        self.out.push(Effect::Publish(Notice {
            clock: self.state.clock(self.state.n),
            happening,
            lines,
        }));
    }

    /// Has a path watched from now on.
    pub(crate) fn watch(&mut self, path: &RelPath) {
        if self.watched.insert(path.clone()) {
            if self.config.case_insensitive {
                self.spellings
                    .entry(crate::tracker::resolve::fold(path))
                    .or_insert_with(|| path.clone());
            }
            self.out.push(Effect::Track(path.clone()));
        }
    }

    /// Has a path watched no longer, if nobody needs it.
    pub(crate) fn unwatch(&mut self, path: &RelPath) {
        let needed = self.state.paths.contains_key(path)
            || self.state.names.is_other(path)
            || self.borrowed.contains_key(path)
            || self
                .live
                .get(path)
                .is_some_and(|live| live.copy_of.is_some());
        if !needed && self.watched.remove(path) {
            self.live.remove(path);
            self.forget_way(path);
            self.stamps.forget(path);
            self.dirty.remove(path);
            self.unsettled.remove(path);
            self.unconfirmed.remove(path);
            self.unseen.remove(path);
            self.unreadable.remove(path);
            self.out.push(Effect::Untrack(path.clone()));
            if self.config.case_insensitive {
                self.spellings.remove(&crate::tracker::resolve::fold(path));
            }
        }
    }

    /// A new fence for a query that arrives now: one that begins after it
    /// (SYNC-1), shared with every other query that arrives until then.
    pub(crate) fn want_fence(&mut self) -> u64 {
        if self.fences.started == self.fences.done {
            self.start_fence()
        } else {
            self.fences.wanted = true;
            self.fences.started + 1
        }
    }

    fn start_fence(&mut self) -> u64 {
        self.fences.started += 1;
        self.counts.fences += 1;
        self.out.push(Effect::Fence(self.fences.started));
        self.fences.started
    }

    fn fence_reached(&mut self, fence: u64, ordered: bool) {
        if fence <= self.fences.done {
            return;
        }
        let before = std::mem::replace(&mut self.fences.done, fence);
        if !ordered {
            // Without a fence only reads tell: verify everything that the
            // waiting requests speak of (SYNC-2).
            for pending in self.pending.values_mut() {
                pending.verify |= pending.fence.is_some_and(|wanted| wanted <= fence);
            }
        }
        // What was hinted at before the fence is read after it, by whom it
        // concerns.
        let behind: Vec<RequestId> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.fence.is_some_and(|of| of > before && of <= fence))
            .map(|(request, _)| *request)
            .collect();
        for request in behind {
            self.gather(request);
        }
        if std::mem::take(&mut self.fences.wanted) {
            self.start_fence();
        }
    }

    fn run_timers(&mut self) {
        while let Some((due, _)) = self.timers.first() {
            if *due > self.now {
                return;
            }
            let Some((_, timer)) = self.timers.pop_first() else {
                return;
            };
            match timer {
                Timer::Read(path) => {
                    if self.dirty.contains(&path) {
                        self.look_soon(&path);
                    }
                }
                Timer::Settle(path) => {
                    // Only the latest reason to wait counts.
                    let due = self.live.get(&path).map(|live| live.settle_at);
                    if due.is_some_and(|due| due <= self.now) {
                        self.settle_in_time(&path);
                    }
                }
                Timer::Edit(edit) => self.edit_due(edit),
                Timer::Command(command) => self.command_due(command),
                Timer::Request(request) => self.request_due(request),
                // Only wakes: every input goes on with it.
                Timer::Reconcile => {}
            }
        }
    }

    fn edit_due(&mut self, edit: u64) {
        let Some(open) = self.state.edits.get(&edit) else {
            return;
        };
        let grace = self.graces.get(&edit).copied();
        let due = self.now >= open.fact.deadline || grace.is_some_and(|until| self.now >= until);
        if due {
            self.ask_internally(Ask::Expire(edit));
        }
    }
}
