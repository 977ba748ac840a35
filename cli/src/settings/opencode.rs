//! opencode's plug-in: a file of its own, which opencode finds by itself.

use std::path::PathBuf;

use super::{Around, Scope};

/// The plug-in. Its first line says whose it is.
pub(super) const PLUGIN: &str = include_str!("../../../bindings/typescript/opencode/touchmark.ts");

/// What is left to the user.
pub(super) const NOTE: &str = "opencode takes the plug-in up when it starts the next time. With any plug-in it first waits for its own package @opencode-ai/plugin, which it fetches once; without a network that takes more than a minute at each start";

pub(super) fn path(scope: Scope, around: &Around<'_>) -> PathBuf {
    match scope {
        Scope::User => around.environment.base.config.join("opencode"),
        Scope::Project => around.workspace.join(".opencode"),
    }
    .join("plugins/touchmark.ts")
}
