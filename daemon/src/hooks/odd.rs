//! Parts of agents' events that are not understood: one line in the log for
//! each kind, and a count of all in `stats`.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use touchmark_engine::Input;
use touchmark_proto::SessionId;
use touchmark_proto::quoting::quoted;

use super::agent::{Agent, Odd};
use super::daemon_handle::DaemonHandle;

/// The maximum number of kinds that are logged; further kinds are only counted.
const KINDS: usize = 256;

/// The maximum length of a name in the log, in characters.
const NAME: usize = 80;

/// The kinds that were already logged, with their agents.
#[derive(Debug, Default)]
pub(super) struct Said(Mutex<HashSet<(&'static str, Odd)>>);

impl Said {
    /// Returns whether to log this kind, and notes it.
    fn is_news(&self, agent: &'static str, odd: &Odd) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.len() < KINDS && said.insert((agent, odd.clone()))
    }
}

/// Logs and counts something in an agent's event that was not understood.
pub(super) fn heard(daemon: &DaemonHandle, agent: &Agent, session: Option<SessionId>, odd: &Odd) {
    if daemon.memory.odd.is_news(agent.name, odd) {
        tracing::warn!(
            "a hook of {} is not understood: {odd}; further ones are only counted (`touchmark stats`)",
            agent.name
        );
    }
    daemon.cx.inside.feed(Input::HookNotUnderstood { session });
}

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEvent => write!(f, "an event without a name"),
            Self::Event(name) => write!(f, "the event {} is not known", quoted(name, NAME)),
            Self::Tool(name) => write!(f, "the tool {} is not known", quoted(name, NAME)),
            Self::Field(of, field) => write!(f, "{of} has no {field}, or one of another type"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_said_once_and_not_without_end() {
        let said = Said::default();
        let event = |name: usize| Odd::Event(name.to_string());
        assert!(said.is_news("claude", &event(1)));
        assert!(!said.is_news("claude", &event(1)));
        assert!(said.is_news("codex", &event(1)));
        assert!(said.is_news("claude", &Odd::Tool("1".into())));
        let news = (2..10_000).filter(|name| said.is_news("claude", &event(*name)));
        assert_eq!(news.count(), KINDS - 3);
    }
}
