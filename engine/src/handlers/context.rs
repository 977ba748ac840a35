//! What the families that only remember things for sessions can reach: the
//! recorded state, what a file holds now, and one way to record a note. Not
//! fences, timers, watches or requests in waiting.

use touchmark_proto::{ClientPath, Clock, Error, FileState, Millis, RelPath, SessionId};

use crate::config::Config;
use crate::engine::{Counts, Engine};
use crate::ledger::record::Fact;
use crate::ledger::session_memory::{Note, SessionMemory};
use crate::ledger::state::State;
use crate::requests::pending::Pending;
use crate::view::Now;

/// The engine, as far as such a handler may use it.
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

    /// Counts since the engine's start.
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

    /// What a file holds now, as far as it was read for the request or is
    /// known.
    pub(super) fn current(&self, path: &RelPath, pending: &Pending) -> Now {
        self.0.view().current(path, pending.found.get(path))
    }

    /// The error that a path cannot be used for, if it cannot.
    pub(super) fn unusable(&self, path: &RelPath, pending: &Pending) -> Option<Error> {
        self.0.view().unusable(path, pending)
    }

    /// What a session's copy of a file is worth.
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

    /// What a session remembers beside files.
    pub(super) fn memory(&self, session: &SessionId) -> Option<&SessionMemory> {
        Some(&self.0.state.sessions.get(session)?.memory)
    }

    /// Has a session remember something.
    pub(super) fn note(&mut self, session: &SessionId, note: Note) {
        self.0.record(Fact::Noted {
            session: session.clone(),
            note,
        });
    }
}
