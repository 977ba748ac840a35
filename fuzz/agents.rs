//! The body of the fuzz target `agents`: the settings of agents, as JSON with
//! comments and as TOML. It is a module of the command's, since it calls what is
//! private there.
#![allow(missing_docs, clippy::unwrap_used)]

use std::path::PathBuf;

use clap::ValueEnum as _;

use super::agent::Agent;
use super::document::Unreadable;
use super::hooks::Hooks;
use super::made::Made;
use super::server::{Presence, Server};

/// Adds hooks and a server to the settings of the agent that the first byte
/// chooses, and removes them again. That restores every byte, and what cannot be
/// edited is refused with a line of the text.
pub(crate) fn agents(bytes: &[u8]) {
    let all = Agent::value_variants();
    let Some((which, text)) = bytes.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let agent = all[usize::from(*which) % all.len()];
    let hooks = Hooks::of(agent, "/a path/touchmark");
    let mut made = Made::default();
    if !hooks.events.is_empty()
        && let Some(with) = edited(text, hooks.put(text, &mut made))
        && hooks.any_in(text) == Ok(false)
    {
        assert!(hooks.are_in(&with).unwrap(), "{with}");
        assert_eq!(hooks.take(&with, Some(&made)).unwrap(), text, "{with}");
    }
    edited(text, hooks.take(text, None));
    let Some(servers) = &agent.settings().servers else {
        return;
    };
    let server = Server::of(servers.entry, PathBuf::from("/f"), "touchmark");
    let mut made = Made::default();
    if let Some(with) = edited(text, server.put(text, &mut made))
        && server.found(text, None) == Ok(Presence::Nothing)
    {
        assert_eq!(
            server.found(&with, Some(&made)),
            Ok(Presence::Ours),
            "{with}"
        );
        assert_eq!(server.take(&with, Some(&made)).unwrap(), text, "{with}");
    }
    edited(text, server.take(text, Some(&made)));
}

fn edited(text: &str, edited: Result<String, Unreadable>) -> Option<String> {
    match edited {
        Ok(edited) => {
            assert!(edited.len() <= text.len() + (16 << 10));
            Some(edited)
        }
        Err(Unreadable { line, reason }) => {
            let lines = text.split(['\r', '\n']).count();
            assert!((1..=lines).contains(&line), "{line} of {lines}: {reason}");
            None
        }
    }
}

#[cfg(test)]
#[test]
fn seeds_of_settings() {
    crate::seeds::each_seed("agents", agents);
}
