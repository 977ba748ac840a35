//! What Codex does with the hooks in its settings.

pub(super) mod table;
mod trust;

use super::hooks::Hooks;
use super::places::{Places, Scope};
use super::rows::agent;
use crate::daemon::doctor::Finding;

/// Checks whether Codex runs the hooks in its settings. Returns nothing if
/// there are none.
pub(super) fn examine(places: &Places<'_>) -> Vec<Finding> {
    let configuration = places.of_user("CODEX_HOME", ".codex").join("config.toml");
    let Some(codex) = agent("codex") else {
        return Vec::new();
    };
    let hooks = Hooks::of(codex, "touchmark");
    let scopes = [Scope::User, Scope::Project].map(|scope| places.settings(codex, scope));
    let examined = scopes.map(|file| trust::examine(&hooks, &file, &configuration));
    examined.into_iter().flatten().collect()
}
