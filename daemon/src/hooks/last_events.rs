//! The events of each agent, so that a person can check whether its hooks run
//! and whether its tools are known (`touchmark doctor`). Each daemon
//! counts from its start.

use std::collections::BTreeMap;

use touchmark_proto::daemon::AgentHeard;
use touchmark_proto::{Millis, SessionId};

use super::agent::Odd;
use super::happened::Happened;
use super::memory::Memory;

/// The counts and the last event of each agent, by its name.
#[derive(Debug, Default)]
pub(super) struct LastEvents(BTreeMap<&'static str, Counted>);

#[derive(Debug, Default)]
struct Counted {
    events: u64,
    tools: u64,
    unclear: u64,
    unclear_tools: u64,
    last_unclear: Option<String>,
    event: String,
    session: Option<SessionId>,
    at: Millis,
}

/// One event of an agent.
pub(super) struct LastEvent<'a> {
    /// The event; `None` if it was not understood, or has no effect here.
    pub(super) happened: Option<&'a Happened>,
    /// What was not understood in it.
    pub(super) odd: Option<&'a Odd>,
    /// The session that it names.
    pub(super) session: Option<&'a SessionId>,
    /// Whether it is about a tool of the agent's table, and was understood.
    pub(super) knows_tool: bool,
}

/// The maximum length of an event's name, in characters; it comes from outside.
const MOST: usize = 100;

/// The session of an agent none of whose events has named one.
const NONE: &str = "-";

impl Memory {
    /// Notes an event of an agent.
    pub(super) fn heard(&self, agent: &'static str, event: &LastEvent<'_>, now: Millis) {
        self.last_events(|heard| {
            let counted = heard.0.entry(agent).or_default();
            if let Some(odd) = event.odd {
                counted.unclear += 1;
                // An event with an unknown tool is understood but for that.
                counted.unclear_tools += u64::from(event.happened.is_some());
                counted.last_unclear = Some(odd.to_string());
            }
            counted.tools += u64::from(event.knows_tool);
            if let Some(happened) = event.happened {
                counted.events += 1;
                counted.event = happened.event.chars().take(MOST).collect();
                counted.session = Some(happened.session.clone());
                counted.at = now;
            } else if counted.events == 0 {
                counted.session = event.session.cloned().or(counted.session.take());
                counted.at = now;
            }
        });
    }

    /// Returns the events of each agent.
    pub(crate) fn of_agents(&self, now: Millis) -> Vec<AgentHeard> {
        self.last_events(|heard| {
            let all = heard.0.iter();
            all.filter(|(_, counted)| counted.events > 0 || counted.unclear > 0)
                .filter_map(|(agent, counted)| {
                    let session = counted
                        .session
                        .clone()
                        .or_else(|| SessionId::new(NONE).ok())?;
                    Some(AgentHeard {
                        agent: (*agent).to_owned(),
                        events: counted.events,
                        last_event: counted.event.clone(),
                        last_session: session,
                        last_ago_ms: now.saturating_sub(counted.at),
                        tools: counted.tools,
                        unclear: counted.unclear,
                        unclear_tools: counted.unclear_tools,
                        last_unclear: counted.last_unclear.clone(),
                    })
                })
                .collect()
        })
    }
}
