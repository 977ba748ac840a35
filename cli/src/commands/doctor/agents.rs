//! `doctor`'s findings about agents: whether touchmark's hooks are installed,
//! and whether the daemon receives their events.

use std::path::Path;

use clap::ValueEnum as _;
use touchmark_client::proto::daemon::{AgentHeard, StatusReport};

use crate::context::Context;
use crate::daemon::doctor::Finding;
use crate::settings::{Agent, Installed, Places, Present, Scope, TEST_SESSION, Which};
use crate::text::{directory, duration, escaped};

/// Returns a finding for each agent that is on this machine, has touchmark's
/// hooks, or has sent events.
pub(super) fn examine(
    context: &Context,
    root: &Path,
    status: Option<&StatusReport>,
) -> Vec<Finding> {
    let places = Places::of(&context.environment, root).ok();
    let found = places.as_ref().map(Places::present).unwrap_or_default();
    let all = Agent::value_variants().iter();
    all.filter_map(|&agent| {
        let scopes = [Scope::User, Scope::Project].into_iter();
        let there = scopes.flat_map(|scope| places.as_ref()?.installed(agent, scope).ok());
        let hooks: Vec<Installed> = there
            .flatten()
            .filter(|one| Which::HOOKS.is(one.kind))
            .collect();
        let name = agent.name();
        let heard = status.and_then(|status| status.agents.iter().find(|one| one.agent == name));
        let found = found.iter().find(|found| found.agent == agent);
        let off = || places.as_ref()?.switched_off(agent, name.to_owned());
        if !hooks.is_empty()
            && let Some(off) = off()
        {
            return Some(off);
        }
        (found.is_some() || heard.is_some() || !hooks.is_empty())
            .then(|| finding(agent, found, &hooks, heard, status))
    })
    .collect()
}

/// Returns a finding, with a mark if the agent's support was never run with the
/// real program.
fn finding(
    agent: Agent,
    found: Option<&Present>,
    hooks: &[Installed],
    heard: Option<&AgentHeard>,
    status: Option<&StatusReport>,
) -> Finding {
    let mut finding = state(agent, found, hooks, heard, status);
    if let Some(untried) = agent.untried() {
        finding.says = format!("{}; {untried}", finding.says);
    }
    finding
}

fn state(
    agent: Agent,
    found: Option<&Present>,
    hooks: &[Installed],
    heard: Option<&AgentHeard>,
    status: Option<&StatusReport>,
) -> Finding {
    let name = agent.name().to_owned();
    let again = format!("`touchmark setup --agent {name}`");
    let last = match (heard, status) {
        (Some(heard), _) => last_event(heard),
        (None, Some(status)) => format!(
            "no event since the daemon started {} ago",
            duration(status.uptime_ms)
        ),
        (None, None) => "no daemon runs, so no event was received".into(),
    };
    if let Some(broken) = heard.and_then(|heard| not_recognised(agent, heard)) {
        return broken;
    }
    if let Some(heard) = heard.filter(|heard| heard.unclear > 0) {
        return Finding::note(
            name,
            format!(
                "{last}; {} not understood in full: {}",
                were(heard.unclear),
                last_unclear(heard)
            ),
            "what such a tool does to a file counts as yours; `touchmark logs` names each kind",
        );
    }
    let places: Vec<String> = hooks.iter().map(|one| directory(&one.path)).collect();
    let places = places.join(" and ");
    if hooks.is_empty() {
        let at = found.and_then(|found| found.program.as_ref().or(found.directory.as_ref()));
        let at = at.map_or_else(String::new, |at| format!(" ({})", directory(at)));
        return match heard.filter(|heard| !is_try(heard)) {
            Some(_) => Finding::good(
                name,
                format!(
                    "{last}; its settings have no hooks: a plug-in has them, or they were removed since"
                ),
            ),
            None => Finding::note(
                name,
                format!("installed{at}, without touchmark's hooks"),
                again,
            ),
        };
    }
    let is_same = hooks.windows(2).all(|two| two[0].command == two[1].command);
    if hooks.len() > 1 && !(agent.settings().runs_once && is_same) {
        return Finding::note(
            name,
            format!("{last}; hooks in {places}, so each event is sent twice"),
            "`touchmark setup --remove` removes the user's, with --project the workspace's",
        );
    }
    match hooks.iter().all(|one| one.current) {
        true => Finding::good(name, format!("{last}; hooks in {places}")),
        false => Finding::note(
            name,
            format!("{last}; the hooks in {places} were not written by this touchmark"),
            again,
        ),
    }
}

/// Returns a finding if an agent sends events, but none of which touchmark can
/// know what the agent does; else `None`.
fn not_recognised(agent: Agent, heard: &AgentHeard) -> Option<Finding> {
    let says = match heard {
        heard if heard.events == 0 && heard.unclear > 0 => {
            format!("none of its events is understood: {}", last_unclear(heard))
        }
        heard if heard.tools == 0 && heard.unclear_tools > 0 => format!(
            "its events arrive, but none of its tools is recognised: {}",
            last_unclear(heard)
        ),
        _ => return None,
    };
    Some(Finding::wrong(
        agent.name().to_owned(),
        format!("{says}. So its changes count as yours, and it is told nothing"),
        "this version of the agent needs another touchmark; `touchmark logs` names each kind",
    ))
}

fn last_unclear(heard: &AgentHeard) -> String {
    escaped(heard.last_unclear.as_deref().unwrap_or("?"), 120)
}

fn were(events: u64) -> String {
    match events {
        1 => "1 event was".into(),
        events => format!("{events} events were"),
    }
}

fn last_event(heard: &AgentHeard) -> String {
    let ago = duration(heard.last_ago_ms);
    match is_try(heard) {
        true => {
            format!("no event from the agent yet, but `touchmark setup` tried the hooks {ago} ago")
        }
        false => format!("last event {} {ago} ago", escaped(&heard.last_event, 60)),
    }
}

/// Returns whether the last event was a test by `touchmark setup`.
fn is_try(heard: &AgentHeard) -> bool {
    heard.last_session.as_str().starts_with(TEST_SESSION)
}
