//! What witnesses have seen of ended commands, for people. It is kept until the
//! next restart.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::daemon::{CommandGap, SessionWitnessed};
use touchmark_proto::{Millis, SessionId};

use crate::ledger::wire_names::command_name;

/// The maximum number of windows that are kept, as many as commands.
const WINDOWS: usize = 1_000;

/// The maximum number of sessions that are kept. One more replaces all of them.
const SESSIONS: usize = 1_000;

/// What was seen of the windows that have ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports {
    /// The newest ones, each with why not all writes were seen; `None` if they
    /// were.
    windows: BTreeMap<u64, Option<String>>,
    /// Sessions whose last window had a witness.
    expected: BTreeSet<SessionId>,
    sessions: BTreeMap<SessionId, SessionWitnessed>,
}

impl Reports {
    /// Adds a window of a session, which was open from `began` on and ends now.
    pub(super) fn add(
        &mut self,
        window: u64,
        session: &SessionId,
        began: Millis,
        now: Millis,
        gap: Option<String>,
    ) {
        if self.sessions.len() >= SESSIONS && !self.sessions.contains_key(session) {
            self.sessions.clear();
            self.expected.clear();
        }
        self.expected.insert(session.clone());
        let new = || SessionWitnessed {
            session: session.clone(),
            session_label: None,
            since: began,
            commands: 0,
            incomplete: 0,
            gap: None,
        };
        let of_session = self.sessions.entry(session.clone()).or_insert_with(new);
        of_session.commands += 1;
        if let Some(why) = &gap {
            of_session.incomplete += 1;
            of_session.gap = Some(CommandGap {
                command: command_name(window),
                at: now,
                why: why.clone(),
            });
        }
        self.windows.insert(window, gap);
        if self.windows.len() > WINDOWS {
            self.windows.pop_first();
        }
    }

    /// Notes that a session's window without a witness has ended.
    pub(super) fn unseen(&mut self, session: &SessionId) {
        self.expected.remove(session);
    }

    /// Returns whether a session's last window had a witness.
    pub(super) fn expects(&self, session: &SessionId) -> bool {
        self.expected.contains(session)
    }

    /// Returns why not all writes of a window were seen, or the inner `None` if
    /// they were. The outer `None` if the window is not kept.
    pub(super) fn outcome(&self, window: u64) -> Option<Option<String>> {
        self.windows.get(&window).cloned()
    }

    pub(super) fn of_sessions(&self) -> impl Iterator<Item = &SessionWitnessed> {
        self.sessions.values()
    }
}
