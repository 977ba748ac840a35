//! What Codex does with the hooks in its settings.

pub(super) mod table;
mod trust;

use super::plan::Part;
use super::{Around, Scope, agent};
use crate::daemon::doctor::Finding;

/// Checks whether Codex runs the hooks in its settings. Returns nothing if
/// there are none.
pub(super) fn examine(around: &Around<'_>) -> Vec<Finding> {
    let configuration = around.of_user("CODEX_HOME", ".codex").join("config.toml");
    let Some(codex) = agent("codex") else {
        return Vec::new();
    };
    let Part::Hooks(hooks) = codex.part("touchmark") else {
        return Vec::new();
    };
    [Scope::User, Scope::Project]
        .into_iter()
        .filter_map(|scope| trust::examine(&hooks, &codex.path(scope, around), &configuration))
        .collect()
}
