//! The engine: how it processes an input.

mod act;
mod steps;

use std::collections::BTreeSet;

use touchmark_proto::daemon::SessionWitnessed;
use touchmark_proto::events::Happening;
use touchmark_proto::{Millis, RelPath};

use crate::config::Config;
use crate::counts::Counts;
use crate::effect::Effect;
use crate::input::Input;
use crate::ledger::record::Record;
use crate::ledger::state::State;
use crate::ledger::stored::Saved;
use crate::parts::Core;
use crate::timers::Timer;
use crate::tracker::files::Files;
use crate::witnesses::Seen;

/// Decides who wrote, whose copies are out of date, and what to answer.
///
/// The shell calls [`Engine::restore`] once, then [`Engine::start`] once, then
/// [`Engine::handle`] for every input. [`Engine::deadline`] returns when to
/// pass [`Input::Tick`].
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) core: Core,
}

impl Engine {
    /// Replaces the limits and delays. They apply to what begins from now on: a
    /// deadline that an answer has named does not change. Three settings keep
    /// their old values: the root and how names compare, since the state
    /// depends on them, and which names are secrets, since the stored contents
    /// depend on it.
    pub fn reconfigure(&mut self, config: Config) {
        self.core.base.config = Config {
            root: std::mem::take(&mut self.core.base.config.root),
            case_insensitive: self.core.base.config.case_insensitive,
            secrets: std::mem::take(&mut self.core.base.config.secrets),
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
        Self {
            core: Core::new(config, state, stamps, now),
        }
    }

    /// Begins to watch all tracked paths and compares them with the disk. The
    /// time before counts as a gap (ATTR-13). Queries wait until the comparison
    /// is complete.
    pub fn start(&mut self, now: Millis, effects: &mut Vec<Effect>) {
        self.core.base.now = now.max(self.core.base.now);
        // The target of each name is not stored for a file with several names,
        // so every such name is read.
        let several = self.core.base.state.names.others().cloned();
        let paths = self.core.base.state.paths.keys().cloned().chain(several);
        let (known, unknown): (BTreeSet<RelPath>, BTreeSet<RelPath>) = paths.partition(|path| {
            !self.core.base.state.names.has_others(path)
                && self.core.base.tracker.files.watch_proven(path)
        });
        for path in &unknown {
            self.core.base.turn().watch(path);
        }
        self.core.base.turn().begin_comparison(known, unknown);
        let edits: Vec<(u64, Millis)> = self
            .core
            .base
            .state
            .edits
            .values()
            .map(|edit| (edit.fact.edit, edit.fact.deadline))
            .collect();
        for (edit, deadline) in edits {
            self.core.base.timers.insert((deadline, Timer::Edit(edit)));
        }
        self.core.resume_commands();
        self.reconcile();
        effects.append(&mut self.core.base.out);
    }

    /// Processes one input. Never fails and never blocks.
    pub fn handle(&mut self, now: Millis, input: Input, effects: &mut Vec<Effect>) {
        self.core.base.now = now.max(self.core.base.now);
        match input {
            Input::Hint { path, hint } => {
                let path = self.core.base.view().spelling(path);
                self.core.note_for_audits(&path);
                self.core.base.turn().hint(&path, hint);
            }
            Input::Hints { paths, hint } => {
                let names = paths
                    .into_iter()
                    .map(|path| self.core.base.view().spelling(path))
                    .collect();
                for (name, hint) in self.core.base.view().names_hinted(names, hint) {
                    self.core.note_for_audits(&name);
                    self.core.base.turn().hint(&name, hint);
                }
            }
            Input::Renamed { from, to } => self.core.renamed(&from, &to),
            Input::Exchanged { from, to } => self.core.exchanged(&from, &to),
            Input::Paused(paused) => self.core.base.paused = paused,
            Input::Overflow => {
                self.core.base.publish(Happening::Overflow {}, None);
                let paths = self.core.base.turn().lose_everything();
                self.lose_coverage(paths);
            }
            Input::Gap { below } => {
                let paths = self.core.base.tracker.watched_below(&below);
                self.lose_coverage(paths);
            }
            Input::Unwatched { paths, at_once } => {
                self.core.base.turn().compare_unseen(paths, at_once)
            }
            Input::Request {
                request,
                connection,
                ask,
                until,
            } => {
                let Core { base, requests, .. } = &mut self.core;
                requests.ask(request, connection, ask, until, base);
            }
            Input::Read {
                path,
                ticket,
                outcome,
            } => self.core.read_done(&path, ticket, outcome),
            Input::Compared { number, differ } => self.core.base.turn().compared(number, differ),
            Input::Written {
                path,
                ticket,
                outcome,
            } => {
                let file = self.core.base.view().file_of(&path);
                self.core.written(&file, ticket, outcome);
            }
            Input::FenceReached { fence } => self.fence_reached(fence, true),
            Input::FenceFailed { fence } => self.fence_reached(fence, false),
            Input::Disconnected { connection } => self.disconnected(connection),
            Input::ProcessEnded { pid } => self.core.process_ended(pid),
            Input::Learned { request, learned } => self.learned(request, learned),
            Input::Swept(swept) => self.core.swept(None, &swept),
            Input::CommandUnanswered { command } => self.core.command_unanswered(&command),
            Input::Witnessed { seen, sightings } => {
                self.core.base.witnessed(seen, sightings);
            }
            Input::CommandBegan { command, time } => self.core.command_began(&command, time),
            Input::CommandNeverRan { command } => self.core.command_never_ran(&command),
            Input::HookUnanswered { session } => self.core.base.count_unanswered(&session),
            Input::HookNotUnderstood { session } => {
                self.core.base.count_not_understood(session.as_ref());
            }
            Input::Noted { session, note } => {
                if self.core.base.state.sessions.contains_key(&session) {
                    self.core.base.note(&session, note);
                }
            }
            Input::Outcome(mut facts) => {
                facts.retain(|fact| !self.core.base.view().is_read(fact));
                self.core.base.outcomes(facts);
            }
            Input::Inherited {
                session,
                from,
                over,
            } => self.core.inherit(&session, &from, over),
            Input::Tick => {}
        }
        self.run_timers();
        self.reconcile();
        self.advance();
        effects.append(&mut self.core.base.out);
    }

    /// Returns when [`Input::Tick`] has to be passed next, or `None` if no
    /// timer is set (LIFE-3).
    pub fn deadline(&self) -> Option<Millis> {
        self.core.base.timers.first().map(|(due, _)| *due)
    }

    /// Returns the durable state: the result of folding the recorded facts.
    pub fn state(&self) -> &State {
        &self.core.base.state
    }

    /// Returns whether marks of a witness are still needed.
    pub fn needs_witness(&self, seen: Seen) -> bool {
        self.core.base.witnesses.has(seen)
    }

    /// Returns whether a window may still need the bytes that a witness has stored.
    pub fn needs_stored(&self, seen: Seen) -> bool {
        self.core.base.witnesses.is_used(seen)
    }

    /// Returns what witnesses have seen of each session's commands, for `status`.
    pub fn witnessed(&self) -> Vec<SessionWitnessed> {
        let state = &self.core.base.state;
        let all = self.core.base.witnesses.of_sessions().cloned();
        let known = all.filter(|one| state.sessions.contains_key(&one.session));
        let labelled = known.map(|mut one| {
            one.session_label = state.label(&one.session).map(str::to_owned);
            one
        });
        labelled.collect()
    }

    /// Returns the stats that save reads after a restart.
    pub fn stamps(&self) -> &Files {
        &self.core.base.tracker.files
    }

    /// Returns a number that changes whenever [`stamps`](Self::stamps) changes.
    pub fn stamps_noted(&self) -> u64 {
        self.core.base.tracker.stamps_noted()
    }

    /// Sets whether at least one subscriber receives [`Effect::Publish`].
    /// Without one, no events are built.
    pub fn set_subscribed(&mut self, subscribed: bool) {
        self.core.base.subscribed = subscribed;
    }

    /// Returns the counters for `status`.
    pub fn counts(&self) -> Counts {
        Counts {
            tracked: self.core.base.state.paths.len() as u64,
            sessions: self
                .core
                .base
                .state
                .sessions
                .values()
                .filter(|s| s.open)
                .count() as u64,
            open_edits: self.core.base.state.edits.len() as u64,
            open_commands: self.core.base.state.commands.len() as u64,
            ..self.core.base.counts
        }
    }

    /// Returns whether a guarded write is in progress.
    pub fn is_writing(&self) -> bool {
        self.core.base.tracker.written().len() > 0
    }

    /// Begins a comparison of paths that were not watched for some time
    /// (ATTR-13).
    fn lose_coverage(&mut self, paths: Vec<RelPath>) {
        for path in &paths {
            self.core.note_for_audits(path);
        }
        self.core.base.turn().lose_coverage(paths);
    }

    /// Continues the comparison with the disk of what may have changed during a
    /// gap.
    fn reconcile(&mut self) {
        // Requests that the shell answers do not wait for a comparison.
        let is_asked = self.core.requests.any_of_the_engine();
        self.core.base.turn().reconcile(is_asked);
    }

    /// Returns whether some paths are still to be compared with the disk, so
    /// that queries wait.
    pub fn is_reconciling(&self) -> bool {
        self.core.base.tracker.reconciliation.is_under_way()
    }

    fn fence_reached(&mut self, fence: u64, is_made: bool) {
        let Some(before) = self.core.base.tracker.fences.reach(fence) else {
            return;
        };
        // Paths with a hint from before the fence are read after it, for the
        // requests that cover them.
        let Core { base, requests, .. } = &mut self.core;
        for request in requests.behind(before, fence, is_made) {
            requests.gather(request, base);
        }
        base.turn().next_fence();
    }

    fn run_timers(&mut self) {
        while let Some((due, _)) = self.core.base.timers.first() {
            if *due > self.core.base.now {
                return;
            }
            let Some((_, timer)) = self.core.base.timers.pop_first() else {
                return;
            };
            match timer {
                Timer::Read(path) => {
                    if self.core.base.tracker.is_hinted(&path) {
                        self.core.base.turn().look_soon(&path);
                    }
                }
                Timer::Settle(path) => {
                    // Only the latest deadline of the path counts.
                    let due = self.core.base.tracker.passing(&path).due();
                    if due.is_some_and(|due| due <= self.core.base.now) {
                        self.core.settle_in_time(&path);
                    }
                }
                Timer::Marked(path) => self.core.base.look_at_mark(&path),
                Timer::Edit(edit) => self.core.edit_due(edit),
                Timer::Command(command) => self.core.command_due(command),
                Timer::Request(request) => self.request_due(request),
                // This timer only wakes the engine: every input continues the
                // comparison.
                Timer::Reconcile => {}
            }
        }
    }
}
