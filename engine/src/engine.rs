//! The engine: its fields, and how it processes an input.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use touchmark_proto::{ConnectionId, Hash, Millis, RelPath, RequestId};

use crate::config::Config;
use crate::counts::Counts;
use crate::effect::{Effect, Notice};
use crate::handlers::audit::Audit;
use crate::handlers::editors::Unsaved;
use crate::input::Input;
use crate::ledger::record::{Fact, Record};
use crate::ledger::state::State;
use crate::ledger::stored::Saved;
use crate::requests::pending::{Ask, Pending};
use crate::timers::Timer;
use crate::tracker::Tracker;
use crate::tracker::files::Files;
use crate::tracker::spoken::Spoken;
use touchmark_proto::events::Happening;

/// Decides who wrote, whose copies are out of date, and what to answer.
///
/// The shell calls [`Engine::restore`] once, then [`Engine::start`] once, then
/// [`Engine::handle`] for every input. [`Engine::deadline`] returns when to
/// pass [`Input::Tick`].
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) config: Config,
    pub(crate) state: State,
    pub(crate) tracker: Tracker,
    pub(crate) now: Millis,
    pub(crate) out: Vec<Effect>,
    pub(crate) pending: BTreeMap<RequestId, Box<Pending>>,
    pub(crate) queues: BTreeMap<ConnectionId, VecDeque<RequestId>>,
    /// Pending requests that are in no queue: the engine's own, and those that
    /// let later requests pass.
    pub(crate) aside: BTreeSet<RequestId>,
    /// At least one subscriber is connected.
    pub(crate) heard: bool,
    pub(crate) timers: BTreeSet<(Millis, Timer)>,
    /// Edits with a number up to this one were begun before this process
    /// started. Their connections have ended, and a new connection may have the
    /// number of an old one.
    pub(crate) inherited_edits: u64,
    /// Bound edits whose connection has ended, each with the time at which its
    /// grace ends.
    pub(crate) graces: BTreeMap<u64, Millis>,
    /// Command windows with a number up to this one were opened before this
    /// process started; see [`inherited_edits`](Self::inherited_edits).
    pub(crate) inherited_commands: u64,
    /// Bound command windows whose connection has ended, each with the time at
    /// which its grace ends.
    pub(crate) command_graces: BTreeMap<u64, Millis>,
    /// For each open command window: the number of the last fact up to which
    /// another window of the same session was open at the same time.
    pub(crate) commands_beside: BTreeMap<u64, u64>,
    /// For each open command window whose command's first process is known:
    /// when that process began (ATTR-6).
    pub(crate) command_starts: BTreeMap<u64, Millis>,
    /// What editors saved to untracked files while a window with `scope:
    /// "workspace"` is open (SCOPE-2).
    pub(crate) saved_untracked: BTreeMap<RelPath, Hash>,
    /// Audits in progress. Hints are recorded for them.
    pub(crate) audits: BTreeMap<RequestId, Audit>,
    /// Unsaved buffers of editors, by the connection that reported them.
    pub(crate) unsaved: BTreeMap<ConnectionId, Unsaved>,
    /// The names that the answer to the current request uses.
    pub(crate) spoken: Spoken,
    pub(crate) next_internal: u64,
    pub(crate) counts: Counts,
}

impl Engine {
    /// Replaces the limits and delays. They apply to what begins from now on: a
    /// deadline that an answer has named does not change. Three settings keep
    /// their old values: the root and how names compare, since the state
    /// depends on them, and which names are secrets, since the stored contents
    /// depend on it.
    pub fn reconfigure(&mut self, config: Config) {
        self.config = Config {
            root: std::mem::take(&mut self.config.root),
            case_insensitive: self.config.case_insensitive,
            secrets: std::mem::take(&mut self.config.secrets),
            ..config
        };
    }

    /// Rebuilds an engine from a stored state and the facts recorded after it.
    /// For a new workspace, pass [`State::new`] and no records.
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
        let tracker = Tracker::new(&config, stamps, state.paths.keys());
        Self {
            config,
            state,
            tracker,
            now,
            out: Vec::new(),
            pending: BTreeMap::new(),
            queues: BTreeMap::new(),
            aside: BTreeSet::new(),
            heard: true,
            timers: BTreeSet::new(),
            inherited_edits,
            graces: BTreeMap::new(),
            inherited_commands,
            command_graces: BTreeMap::new(),
            commands_beside: BTreeMap::new(),
            command_starts: BTreeMap::new(),
            saved_untracked: BTreeMap::new(),
            audits: BTreeMap::new(),
            unsaved: BTreeMap::new(),
            spoken: Spoken::default(),
            next_internal: u64::MAX,
            counts: Counts::default(),
        }
    }

    /// Begins to watch all tracked paths and compares them with the disk. The
    /// time before counts as a gap (ATTR-13). Queries wait until the comparison
    /// is complete.
    pub fn start(&mut self, now: Millis, effects: &mut Vec<Effect>) {
        self.now = now.max(self.now);
        // The target of each name is not stored for a file with several names,
        // so every such name is read.
        let several = self.state.names.others().cloned();
        let paths = self.state.paths.keys().cloned().chain(several);
        let (known, unknown): (BTreeSet<RelPath>, BTreeSet<RelPath>) = paths.partition(|path| {
            !self.state.names.has_others(path) && self.tracker.files.watch_vouched(path)
        });
        for path in &unknown {
            self.turn().watch(path);
        }
        self.turn().begin_comparison(known, unknown);
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

    /// Processes one input. Never fails and never blocks.
    pub fn handle(&mut self, now: Millis, input: Input, effects: &mut Vec<Effect>) {
        self.now = now.max(self.now);
        match input {
            Input::Hint { path, hint } => {
                let path = self.view().spelling(path);
                self.note_for_audits(&path);
                self.turn().hint(&path, hint);
            }
            Input::Hints { paths, hint } => {
                let names = paths
                    .into_iter()
                    .map(|path| self.view().spelling(path))
                    .collect();
                for (name, hint) in self.view().names_hinted(names, hint) {
                    self.note_for_audits(&name);
                    self.turn().hint(&name, hint);
                }
            }
            Input::Renamed { from, to } => self.renamed(&from, &to),
            Input::Exchanged { from, to } => self.exchanged(&from, &to),
            Input::Overflow => {
                self.publish(Happening::Overflow {}, None);
                let paths = self.turn().lose_everything();
                self.lose_coverage(paths);
            }
            Input::Gap { below } => {
                let paths = self.tracker.watched_below(&below);
                self.lose_coverage(paths);
            }
            Input::Unwatched { paths, at_once } => self.turn().compare_unseen(paths, at_once),
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
            Input::Compared { number, differ } => self.turn().compared(number, differ),
            Input::Written {
                path,
                ticket,
                outcome,
            } => {
                let file = self.view().file_of(&path);
                self.written(&file, ticket, outcome);
            }
            Input::FenceReached { fence } => self.fence_reached(fence, true),
            Input::FenceFailed { fence } => self.fence_reached(fence, false),
            Input::Disconnected { connection } => self.disconnected(connection),
            Input::ProcessEnded { pid } => self.process_ended(pid),
            Input::Learned { request, learned } => self.learned(request, learned),
            Input::CommandUnheard { command } => self.command_unheard(&command),
            Input::CommandBegan { command, time } => self.command_began(&command, time),
            Input::CommandNeverRan { command } => self.command_never_ran(&command),
            Input::HookUnanswered { session } => self.context().count_unanswered(&session),
            Input::HookNotUnderstood { session } => {
                self.context().count_not_understood(session.as_ref());
            }
            Input::Noted { session, note } => {
                if self.state.sessions.contains_key(&session) {
                    self.context().note(&session, note);
                }
            }
            Input::Outcome(mut facts) => {
                facts.retain(|fact| !self.view().is_read(fact));
                self.context().outcomes(facts);
            }
            Input::Inherited {
                session,
                from,
                over,
            } => self.inherit(&session, &from, over),
            Input::Tick => {}
        }
        self.run_timers();
        self.reconcile();
        self.advance();
        effects.append(&mut self.out);
    }

    /// Returns when [`Input::Tick`] has to be passed next, or `None` if no
    /// timer is set (LIFE-3).
    pub fn deadline(&self) -> Option<Millis> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Returns the durable state: the result of folding the recorded facts.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns the stats that save reads after a restart.
    pub fn stamps(&self) -> &Files {
        &self.tracker.files
    }

    /// Returns a number that changes whenever [`stamps`](Self::stamps) changes.
    pub fn stamps_noted(&self) -> u64 {
        self.tracker.stamps_noted()
    }

    /// Sets whether at least one subscriber receives [`Effect::Publish`].
    /// Without one, no events are built.
    pub fn set_heard(&mut self, heard: bool) {
        self.heard = heard;
    }

    /// Returns the counters for `status`.
    pub fn counts(&self) -> Counts {
        Counts {
            tracked: self.state.paths.len() as u64,
            sessions: self.state.sessions.values().filter(|s| s.open).count() as u64,
            open_edits: self.state.edits.len() as u64,
            open_commands: self.state.commands.len() as u64,
            ..self.counts
        }
    }

    /// Returns whether a guarded write is in progress.
    pub fn is_writing(&self) -> bool {
        self.tracker.written().len() > 0
    }

    /// Records a fact: folds it into the state and orders it to be stored.
    /// Returns its number. Records first the copies and uses of names that have
    /// to come before it.
    pub(crate) fn record(&mut self, fact: Fact) -> u64 {
        for copied in self.copied_before(&fact) {
            self.record(copied);
        }
        for used in self.names_used(&fact) {
            self.record(used);
        }
        self.record_alone(fact)
    }

    /// Records one fact alone, without the copies and uses of names that
    /// [`record`](Self::record) adds.
    pub(crate) fn record_alone(&mut self, fact: Fact) -> u64 {
        let record = Record {
            n: self.state.n + 1,
            time: self.now,
            fact,
        };
        self.state.apply(&record);
        self.tracker.recorded(&record);
        self.out.push(Effect::Record(record));
        self.state.n
    }

    /// Publishes an event to the subscribers, if there are any.
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

    /// Ends the watch of a path, unless something still needs it.
    pub(crate) fn unwatch(&mut self, path: &RelPath) {
        let kept = self.state.paths.contains_key(path) || self.state.names.is_other(path);
        if kept {
            return;
        }
        // What was held back for a log that has ended must not begin another
        // log.
        if self.tracker.passing(path).copy_of().is_none() {
            self.tracker.settled(path);
        }
        // A path that a pending request had read may still begin a log. Its
        // changes until then must not be missed.
        for pending in self.pending.values_mut() {
            let needs = matches!(pending.ask, Ask::Client(_))
                && (pending.reads.contains_key(path) || pending.found.contains_key(path));
            if needs && !pending.borrowed.contains(path) {
                self.tracker.borrow(path);
                pending.borrowed.push(path.clone());
            }
        }
        self.turn().unwatch(path);
    }

    /// Begins a comparison of paths that were not watched for some time
    /// (ATTR-13).
    fn lose_coverage(&mut self, paths: Vec<RelPath>) {
        for path in &paths {
            self.note_for_audits(path);
        }
        self.turn().lose_coverage(paths);
    }

    /// Continues the comparison with the disk of what may have changed during a
    /// gap.
    fn reconcile(&mut self) {
        // Requests that the shell answers do not wait for a comparison.
        let mut pending = self.pending.values();
        let is_asked = pending.any(|pending| !pending.is_for_the_shell());
        self.turn().reconcile(is_asked);
    }

    /// Returns whether some paths are still to be compared with the disk, so
    /// that queries wait.
    pub fn is_reconciling(&self) -> bool {
        self.tracker.reconciliation.is_under_way()
    }

    fn fence_reached(&mut self, fence: u64, ordered: bool) {
        let Some(before) = self.tracker.fences.reach(fence) else {
            return;
        };
        if !ordered {
            // Without a fence, only reads show what is current: every path that
            // the waiting requests cover is verified (SYNC-2).
            for pending in self.pending.values_mut() {
                pending.verify |= pending.fence.is_some_and(|wanted| wanted <= fence);
            }
        }
        // Paths with a hint from before the fence are read after it, for the
        // requests that cover them.
        let behind: Vec<RequestId> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.fence.is_some_and(|of| of > before && of <= fence))
            .map(|(request, _)| *request)
            .collect();
        for request in behind {
            self.gather(request);
        }
        self.turn().next_fence();
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
                    if self.tracker.is_hinted(&path) {
                        self.turn().look_soon(&path);
                    }
                }
                Timer::Settle(path) => {
                    // Only the latest deadline of the path counts.
                    let due = self.tracker.passing(&path).due();
                    if due.is_some_and(|due| due <= self.now) {
                        self.settle_in_time(&path);
                    }
                }
                Timer::Edit(edit) => self.edit_due(edit),
                Timer::Command(command) => self.command_due(command),
                Timer::Request(request) => self.request_due(request),
                // This timer only wakes the engine: every input continues the
                // comparison.
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
