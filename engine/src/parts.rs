//! All parts of the engine, for what ends edits and watches.

use std::collections::BTreeMap;

use touchmark_proto::{Hash, Millis, RelPath, RequestId};

use crate::base::Base;
use crate::config::Config;
use crate::ledger::state::State;
use crate::observe::LateWindows;
use crate::requests::audits::Audits;
use crate::requests::pending::{Ask, Pending};
use crate::requests::waiting::Requests;
use crate::tracker::files::Files;

/// The parts of the engine. They do not know each other.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub base: Base,
    pub writers: Writers,
    pub requests: Requests,
    pub audits: Audits,
}

/// What is known of open edits and command windows until the next restart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writers {
    /// Edits with a number up to this one were begun before this process
    /// started. Their connections have ended, and a new connection may have the
    /// number of an old one.
    pub inherited_edits: u64,
    /// Bound edits whose connection has ended, each with the time at which its
    /// grace ends.
    pub graces: BTreeMap<u64, Millis>,
    /// Command windows with a number up to this one were opened before this
    /// process started; see [`inherited_edits`](Self::inherited_edits).
    pub inherited_commands: u64,
    /// Bound command windows whose connection has ended, each with the time at
    /// which its grace ends.
    pub command_graces: BTreeMap<u64, Millis>,
    /// For each open command window: the number of the last fact up to which
    /// another window of the same session was open at the same time.
    pub commands_beside: BTreeMap<u64, u64>,
    /// For each open command window that does not claim all that changed since
    /// the last look: from when on it claims changes. That is the start of the
    /// command's first process, if it is known (ATTR-6), else when the window
    /// opened, if the look before that was not complete (SCOPE-5).
    pub command_starts: BTreeMap<u64, Millis>,
    /// What editors saved to untracked files while a window with `scope:
    /// "workspace"` is open (SCOPE-2).
    pub saved_untracked: BTreeMap<RelPath, Hash>,
    /// Ended windows whose commands' changes are not all recorded (SCOPE-5).
    pub late_windows: LateWindows,
}

impl Core {
    /// Returns the parts for this state, with nothing watched yet.
    pub(crate) fn new(config: Config, state: State, stamps: Files, now: Millis) -> Self {
        Self {
            writers: Writers {
                inherited_edits: state.edits_begun,
                inherited_commands: state.commands_begun,
                ..Writers::default()
            },
            base: Base::new(config, state, stamps, now),
            requests: Requests::default(),
            audits: Audits::default(),
        }
    }

    /// Adds a request of the engine itself. Returns the number of the fence
    /// that it waits for.
    pub(crate) fn ask_internally(&mut self, ask: Ask) -> u64 {
        self.requests.ask_internally(ask, &mut self.base.turn())
    }

    /// Notes in all audits that a path may change, or may have changed.
    pub(crate) fn note_for_audits(&mut self, path: &RelPath) {
        self.audits.hinted(path, self.base.view());
    }

    /// Ends the watch of a path, unless something still needs it.
    pub(crate) fn unwatch(&mut self, path: &RelPath) {
        let Base { state, tracker, .. } = &mut self.base;
        if state.paths.contains_key(path) || state.names.is_other(path) {
            return;
        }
        // What was held back for a log that has ended must not begin another
        // log.
        if tracker.passing(path).copy_of().is_none() {
            tracker.settled(path);
        }
        self.requests.keep(path, tracker);
        self.base.turn().unwatch(path);
    }

    /// Forgets a request that has taken effect or never will.
    pub(crate) fn leave(&mut self, request: RequestId, pending: &Pending) {
        self.audits.end(request);
        self.requests.leave(request, pending, &mut self.base.timers);
        for path in &pending.reads.borrowed {
            if self.base.tracker.give_back(path) {
                self.unwatch(path);
            }
        }
        for path in pending.reads.found.keys() {
            self.base.forget_idle(path);
        }
    }
}
