//! `stats`: how much was saved.

use touchmark_proto::daemon::{Savings, Stats};
use touchmark_proto::{Error, ErrorCode, Reply, Request, SessionId};

use crate::base::Base;
use crate::ledger::recall::undone;
use crate::ledger::record::{Fact, Refusal};
use crate::ledger::session_memory::{Note, sum};
use crate::requests::pending::{Answered, done};
use crate::requests::table::session;

impl Base {
    pub(crate) fn stats(&mut self, ask: &Stats) -> Answered {
        let sessions = self.state.sessions.iter();
        let mut savings = sessions
            .filter(|(name, _)| ask.session.as_ref().is_none_or(|wanted| wanted == *name))
            .map(|(_, session)| session.memory.savings)
            .fold(Savings::default(), sum);
        if ask.session.is_none() {
            savings.unclear_hooks += self.counts.unclear_hooks;
        }
        done(Reply::Stats(savings))
    }

    /// Counts an edit that was refused before it could destroy something.
    pub(crate) fn count_refusal(&mut self, ask: &Request, error: &Error) {
        let Some(session) = session(ask) else {
            return;
        };
        let cause = match error.code {
            ErrorCode::Stale => Refusal::Stale,
            ErrorCode::NotRead => Refusal::NotRead,
            ErrorCode::Conflict => Refusal::Conflict,
            _ => return,
        };
        self.outcomes(vec![Fact::Refused {
            session: session.clone(),
            path: error.data.path.clone(),
            cause,
        }]);
    }

    /// Records results of the shell ([`Fact::is_outcome`]).
    pub(crate) fn outcomes(&mut self, facts: Vec<Fact>) {
        for fact in facts.into_iter().filter(Fact::is_outcome) {
            // A refusal alone does not make a session known.
            let acted = fact.session();
            if acted.is_none_or(|session| self.state.sessions.contains_key(session)) {
                let event = undone(&fact);
                self.record(fact);
                if let Some(event) = event {
                    self.publish(event, None);
                }
            }
        }
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
        match session.filter(|session| self.state.sessions.contains_key(*session)) {
            Some(session) => {
                let savings = Savings {
                    unclear_hooks: 1,
                    ..Savings::default()
                };
                self.saved(session, savings);
            }
            None => self.counts.unclear_hooks += 1,
        }
    }

    /// Adds to the counts of what a session was saved.
    pub(super) fn saved(&mut self, session: &SessionId, savings: Savings) {
        // A count alone does not make a session known.
        if savings != Savings::default() && self.state.sessions.contains_key(session) {
            self.note(session, Note::Saved(savings));
        }
    }
}
