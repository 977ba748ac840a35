//! Which events have already arrived through another hook. Some agents also run
//! other agents' hook files, so one event can arrive several times.

use std::collections::{HashMap, VecDeque};
use std::mem::{Discriminant, discriminant};

use touchmark_proto::SessionId;

use super::happened::{Happened, What};

/// The maximum number of events that are remembered; the oldest is forgotten
/// first.
const EVENTS: usize = 4_096;

/// What is counted: a session's events of one kind, and of one call if they are
/// about a call.
type Key = (SessionId, Discriminant<What>, String);

/// How often each event arrived, by the agent whose hook it came through.
#[derive(Debug, Default)]
pub(super) struct Heard {
    counts: HashMap<Key, Vec<(&'static str, u32)>>,
    order: VecDeque<Key>,
}

impl Heard {
    /// Notes an event that arrived through this agent's hook. Returns whether
    /// it arrived through no other hook before. The nth through one hook is the
    /// same event as the nth through another.
    pub(super) fn is_first(&mut self, happened: &Happened, hook: &'static str) -> bool {
        let about = match &happened.what {
            What::Before { call, .. }
            | What::After { call, .. }
            | What::Failed { call, .. }
            | What::Declined { call } => call.clone(),
            What::Attached { path, .. } => path.clone(),
            _ => String::new(),
        };
        let key = (
            happened.session.clone(),
            discriminant(&happened.what),
            about,
        );
        if !self.counts.contains_key(&key) {
            self.order.push_back(key.clone());
            if self.order.len() > EVENTS
                && let Some(oldest) = self.order.pop_front()
            {
                self.counts.remove(&oldest);
            }
        }
        let counts = self.counts.entry(key).or_default();
        let others = counts.iter().filter(|(known, _)| *known != hook);
        let by_others = others.map(|(_, count)| *count).max().unwrap_or(0);
        let count = match counts.iter_mut().find(|(known, _)| *known == hook) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                counts.push((hook, 1));
                1
            }
        };
        count > by_others
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::super::Agent;
    use super::*;

    #[test]
    fn what_happened_counts_once_by_whatever_hook() {
        let mut heard = Heard::default();
        let mut tell = |hook: &str, event: &str, call: &str| {
            let agent = Agent::named(hook).unwrap();
            let input = json!({"hookEventName": event, "sessionId": "s", "cwd": "/w",
                "toolName": "read_file", "toolUseId": call, "toolInput": {"target_file": "/w/a"}});
            let happened = agent.speaker(&input).read(&input).happened.unwrap();
            heard.is_first(&happened, agent.name)
        };
        assert!(tell("grok", "pre_tool_use", "1"));
        assert!(!tell("claude", "pre_tool_use", "1"));
        assert!(!tell("cursor", "pre_tool_use", "1"));
        assert!(tell("claude", "post_tool_use", "1"));
        assert!(!tell("grok", "post_tool_use", "1"));
        assert!(tell("cursor", "pre_tool_use", "2"));
        // Events without a call's id are counted.
        assert!(tell("claude", "user_prompt_submit", ""));
        assert!(!tell("grok", "user_prompt_submit", ""));
        assert!(tell("grok", "user_prompt_submit", ""));
        assert!(!tell("claude", "user_prompt_submit", ""));
    }

    #[test]
    fn events_are_remembered_within_bounds() {
        let mut heard = Heard::default();
        let agent = Agent::named("claude").unwrap();
        for call in 0..=EVENTS {
            let input = json!({"hook_event_name": "PreToolUse", "session_id": "s",
                "tool_name": "Bash", "tool_use_id": call.to_string(), "tool_input": {"command": "x"}});
            let happened = agent.read(&input).happened.unwrap();
            assert!(heard.is_first(&happened, agent.name));
        }
        assert_eq!((heard.counts.len(), heard.order.len()), (EVENTS, EVENTS));
    }
}
