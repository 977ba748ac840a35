//! What handlers can use that only remember something for a session: the
//! recorded state, the current content of files, and one way to record a note.
//! They cannot use fences, timers, watches or pending requests.

use touchmark_proto::{ClientPath, Clock, Error, FileState, Millis, RelPath, SessionId};

use crate::config::Config;
use crate::counts::Counts;
use crate::engine::Engine;
use crate::ledger::record::Fact;
use crate::ledger::session_memory::{Note, SessionMemory};
use crate::ledger::state::State;
use crate::requests::pending::Pending;
use crate::view::Now;

/// The part of the engine that such a handler may use.
pub(crate) struct Context<'a>(&'a mut Engine);

impl Engine {
    pub(crate) fn context(&mut self) -> Context<'_> {
        Context(self)
    }
}

impl Context<'_> {
    pub(super) fn state(&self) -> &State {
        &self.0.state
    }

    pub(super) fn config(&self) -> &Config {
        &self.0.config
    }

    /// Returns the counters since the engine's start.
    pub(super) fn counts(&mut self) -> &mut Counts {
        &mut self.0.counts
    }

    pub(super) fn now(&self) -> Millis {
        self.0.now
    }

    pub(super) fn resolve(&self, path: &ClientPath) -> Result<RelPath, Error> {
        self.0.view().resolve(path)
    }

    pub(super) fn known_clock(&self, clock: Clock) -> Result<u64, Error> {
        self.0.view().known_clock(clock)
    }

    /// Returns the current content of a file, as the request has read it or as
    /// it is on record.
    pub(super) fn current(&self, path: &RelPath, pending: &Pending) -> Now {
        self.0.view().current(path, pending.found.get(path))
    }

    /// Returns the error for a path that cannot be used, or `None`.
    pub(super) fn unusable(&self, path: &RelPath, pending: &Pending) -> Option<Error> {
        self.0.view().unusable(path, pending)
    }

    /// Returns the state of a session's copy of a file.
    pub(super) fn file_state(
        &self,
        session: &SessionId,
        path: &RelPath,
        pending: &Pending,
    ) -> FileState {
        self.0
            .view()
            .file_state(session, path, pending.found.get(path))
    }

    pub(super) fn ensure_session(&mut self, session: &SessionId) {
        self.0.ensure_session(session);
    }

    /// Returns what a session remembers besides files, or `None` if the session
    /// is not known.
    pub(super) fn memory(&self, session: &SessionId) -> Option<&SessionMemory> {
        Some(&self.0.state.sessions.get(session)?.memory)
    }

    /// Records a note in a session's memory.
    pub(crate) fn note(&mut self, session: &SessionId, note: Note) {
        self.record(Fact::Noted {
            session: session.clone(),
            note,
        });
    }

    /// Records a fact that is only remembered.
    pub(super) fn record(&mut self, fact: Fact) {
        self.0.record(fact);
    }
}
