//! The last event of each agent, so that a person can check whether its hooks
//! run (`touchmark doctor`). It is lost when the daemon ends.

use std::collections::BTreeMap;

use touchmark_proto::daemon::AgentHeard;
use touchmark_proto::{Millis, SessionId};

use super::happened::Happened;
use super::memory::Memory;

/// The last events, by the agent's name.
#[derive(Debug, Default)]
pub(super) struct LastEvents(BTreeMap<&'static str, Last>);

#[derive(Debug)]
struct Last {
    events: u64,
    event: String,
    session: SessionId,
    at: Millis,
}

/// The maximum length of an event's name, in characters; it comes from outside.
const MOST: usize = 100;

impl Memory {
    /// Notes an event of an agent.
    pub(super) fn heard(&self, agent: &'static str, happened: &Happened, now: Millis) {
        self.last_events(|heard| {
            let events = heard.0.get(agent).map_or(0, |last| last.events) + 1;
            let last = Last {
                events,
                event: happened.event.chars().take(MOST).collect(),
                session: happened.session.clone(),
                at: now,
            };
            heard.0.insert(agent, last);
        });
    }

    /// Returns the last event of each agent.
    pub(crate) fn of_agents(&self, now: Millis) -> Vec<AgentHeard> {
        self.last_events(|heard| {
            let all = heard.0.iter();
            all.map(|(agent, last)| AgentHeard {
                agent: (*agent).to_owned(),
                events: last.events,
                last_event: last.event.clone(),
                last_session: last.session.clone(),
                last_ago_ms: now.saturating_sub(last.at),
            })
            .collect()
        })
    }
}
