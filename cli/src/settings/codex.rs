//! What Codex does with the hooks in its settings.

mod trust;

use super::{Around, Scope, Wanted, agent};
use crate::commands::daemon::doctor::Finding;

/// Whether Codex runs the hooks that were put there; nothing where none were.
pub(super) fn examine(around: &Around<'_>) -> Vec<Finding> {
    let configuration = around.of_user("CODEX_HOME", ".codex").join("config.toml");
    let Some(codex) = agent("codex") else {
        return Vec::new();
    };
    let Wanted::Hooks(hooks) = codex.wanted("touchmark") else {
        return Vec::new();
    };
    [Scope::User, Scope::Project]
        .into_iter()
        .filter_map(|scope| trust::examine(&hooks, &codex.path(scope, around), &configuration))
        .collect()
}
