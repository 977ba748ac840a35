//! Agents' settings: `touchmark setup`, `touchmark hook install` and
//! `uninstall`.
//!
//! - `rows`: where each agent's settings are, and what is added to them;
//!   `places`: the files that this means for a user and a workspace.
//! - `part`: one thing that is added. `hooks`, `server`: add hooks and MCP
//!   servers to settings, and remove them. They use `document`, which edits the
//!   text and leaves every other byte unchanged, and `json`. `made` records
//!   what else was created, so that it can be removed.
//! - `plan`: the planned changes of an agent's files, and their execution.
//! - `file`: reads and writes one file; `record`: what an installation created.
//! - `found`: which agents are on this machine, and what they have installed.
//! - `codex`: what Codex does with the hooks, and its configuration.
//! - `difference`: the planned change as a diff.

mod codex;
mod difference;
mod document;
mod file;
mod found;
mod hooks;
mod json;
mod made;
mod part;
mod places;
mod plan;
mod record;
mod rows;
mod server;
#[cfg(test)]
mod tests;

use crate::daemon::doctor::{Finding, Level};

pub(crate) use difference::coloured;
pub(crate) use found::{Installed, Present};
pub(crate) use part::{Kind, Which};
pub(crate) use places::{Places, Scope, WriteOptions};
pub(crate) use plan::{Direction, Plan};
pub(crate) use rows::Agent;

/// The prefix of the names of `setup`'s test sessions, by which `doctor`
/// distinguishes them from an agent's own.
pub(crate) const TEST_SESSION: &str = "touchmark-setup-";

impl Places<'_> {
    /// Returns findings about what agents do with the hooks in their settings,
    /// where that can be detected.
    pub(crate) fn examine(&self) -> Vec<Finding> {
        codex::examine(self)
    }

    /// Returns the steps that are left to an agent's user, as far as they can
    /// be detected.
    pub(crate) fn notes(&self, agent: Agent, scope: Scope) -> Vec<&'static str> {
        let is_trusted = || {
            let said = self.examine();
            !said.is_empty() && said.iter().all(|said| said.level == Level::Good)
        };
        let note = agent.note();
        let note = note.filter(|_| agent.name() != "codex" || !is_trusted());
        let of_project = (agent.name() == "claude" && scope == Scope::Project).then_some(
            "Claude Code asks whether you want a project's MCP servers when it starts there",
        );
        note.into_iter().chain(of_project).collect()
    }
}
