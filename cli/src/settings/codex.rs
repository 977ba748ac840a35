//! What Codex does with the hooks in its settings.

pub(super) mod table;
mod trust;

use super::agent::Agent;
use super::hooks::Hooks;
use super::places::{Places, Scope};
use crate::daemon::doctor::Finding;

/// Checks whether an agent that records its user's approval of hooks, as Codex
/// does, runs the hooks in its settings. Returns nothing if there are none.
pub(super) fn examine(places: &Places<'_>, agent: Agent) -> Vec<Finding> {
    let settings = agent.settings();
    let Some(servers) = settings.servers.as_ref().filter(|_| settings.records_trust) else {
        return Vec::new();
    };
    let configuration = places.file(Scope::User, &servers.user, servers.project);
    let hooks = Hooks::of(agent, "touchmark");
    let scopes = [Scope::User, Scope::Project].map(|scope| places.settings(agent, scope));
    let examined = scopes.map(|file| trust::examine(&hooks, &file, &configuration));
    examined.into_iter().flatten().collect()
}
