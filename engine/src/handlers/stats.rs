//! `stats`: how much was saved.

use touchmark_proto::daemon::{Savings, Stats};
use touchmark_proto::{Error, ErrorCode, Reply, Request, SessionId};

use super::context::Context;
use super::done;
use crate::ledger::session_memory::{Note, sum};
use crate::requests::pending::Step;
use crate::requests::session;

impl Context<'_> {
    pub(crate) fn stats(&mut self, ask: &Stats) -> Step {
        let sessions = self.state().sessions.iter();
        let mut savings = sessions
            .filter(|(name, _)| ask.session.as_ref().is_none_or(|wanted| wanted == *name))
            .map(|(_, session)| session.memory.savings)
            .fold(Savings::default(), sum);
        if ask.session.is_none() {
            savings.unclear_hooks += self.counts().unclear_hooks;
        }
        done(Reply::Stats(savings))
    }

    /// Counts an edit that was refused before it could destroy something.
    pub(crate) fn count_refusal(&mut self, ask: &Request, error: &Error) {
        let Some(session) = session(ask) else {
            return;
        };
        let mut savings = Savings::default();
        match error.code {
            ErrorCode::Stale => savings.stale_refused = 1,
            ErrorCode::NotRead => savings.not_read_refused = 1,
            ErrorCode::Conflict => savings.conflicts = 1,
            _ => return,
        }
        self.saved(&session.clone(), savings);
    }

    /// Counts a hook that let its agent continue before the daemon answered.
    pub(crate) fn count_unanswered(&mut self, session: &SessionId) {
        let savings = Savings {
            unanswered_hooks: 1,
            ..Savings::default()
        };
        self.saved(session, savings);
    }

    /// Counts a hook event that was not understood.
    pub(crate) fn count_not_understood(&mut self, session: Option<&SessionId>) {
        match session.filter(|session| self.state().sessions.contains_key(*session)) {
            Some(session) => {
                let savings = Savings {
                    unclear_hooks: 1,
                    ..Savings::default()
                };
                self.saved(session, savings);
            }
            None => self.counts().unclear_hooks += 1,
        }
    }

    /// Adds to the counts of what a session was saved.
    pub(super) fn saved(&mut self, session: &SessionId, savings: Savings) {
        // A refusal alone does not make a session known.
        if savings != Savings::default() && self.state().sessions.contains_key(session) {
            self.note(session, Note::Saved(savings));
        }
    }
}
