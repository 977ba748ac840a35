//! Agents' settings: `touchmark setup`, `touchmark hook install` and
//! `uninstall`.
//!
//! - `agent`: an agent as an argument; `places`: the files of its settings for a
//!   user and a workspace. The agent's row, in the daemon's crate, names these
//!   files and what is added to them.
//! - `part`: one thing that is added. `hooks`, `server`, `witness`: add hooks, MCP
//!   servers and a prefix of shell commands to settings, and remove them. They use
//!   `member`, `json`, and `document`, which edits the text and leaves every other
//!   byte unchanged. `made` records what else was created, so that it can be
//!   removed.
//! - `plan`: the planned changes of an agent's files, and their execution.
//! - `file`: reads and writes one file; `record`: what an installation created.
//! - `found`: which agents are on this machine, and what they have installed.
//! - `switched_off`: whether an agent runs any hook at all.
//! - `codex`: what Codex does with the hooks, and its configuration.
//! - `difference`: the planned change as a diff.

mod agent;
mod codex;
mod difference;
mod document;
mod file;
mod found;
#[cfg(test)]
#[path = "../../fuzz/agents.rs"]
mod fuzzed;
mod hooks;
mod json;
mod made;
mod member;
mod part;
mod places;
mod plan;
mod record;
mod server;
mod switched_off;
#[cfg(test)]
mod tests;
mod witness;

use clap::ValueEnum as _;

use crate::daemon::doctor::{Finding, Level};

pub(crate) use agent::Agent;
pub(crate) use difference::coloured;
pub(crate) use file::SettingsFile;
pub(crate) use found::{Installed, Present};
pub(crate) use part::{Kind, Which};
pub(crate) use places::{Places, Scope, WriteOptions};
pub(crate) use plan::{Direction, Plan};

/// The prefix of the names of `setup`'s test sessions, by which `doctor`
/// distinguishes them from an agent's own.
pub(crate) const TEST_SESSION: &str = "touchmark-setup-";

impl Places<'_> {
    /// Returns findings about what agents do with the hooks in their settings,
    /// where that can be detected.
    pub(crate) fn examine(&self) -> Vec<Finding> {
        let all = Agent::value_variants().iter();
        all.flat_map(|agent| codex::examine(self, *agent)).collect()
    }

    /// Returns the steps that are left to an agent's user, as far as they can
    /// be detected.
    pub(crate) fn notes(&self, agent: Agent, scope: Scope) -> Vec<&'static str> {
        let is_trusted = || {
            let said = codex::examine(self, agent);
            !said.is_empty() && said.iter().all(|said| said.level == Level::Good)
        };
        let settings = agent.settings();
        let note = settings.note.filter(|_| !is_trusted());
        let of_project = settings.project_note;
        let of_project = of_project.filter(|_| scope == Scope::Project);
        note.into_iter().chain(of_project).collect()
    }
}
