//! Agents' settings: `touchmark setup`, `touchmark hook install` and
//! `uninstall`.
//!
//! - `rows`: where each agent's settings are, and what is added to them.
//! - `hooks`, `server`: add hooks and MCP servers to settings, and remove them.
//!   They use `document`, which edits the text and leaves every other byte
//!   unchanged, and `json`. `made` records what else was created, so that it
//!   can be removed.
//! - `plan`: the planned changes of an agent's files, and their execution.
//! - `file`: reads and writes one file; `record`: what an installation created.
//! - `found`: which agents are on this machine, and what they have installed.
//! - `difference`: the planned change as a diff.

mod codex;
mod difference;
mod document;
mod file;
mod found;
mod hooks;
mod json;
mod made;
mod plan;
mod record;
mod rows;
mod server;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValue;
use touchmark_client::Environment;

use crate::daemon::doctor::{Finding, Level};
use crate::output::{Failure, Outcome};
use hooks::Hooks;
use plan::Part;
use rows::{Place, Row, What};
use server::Server;

pub(crate) use difference::{coloured, difference};
pub(crate) use found::{Installed, Present, installed, present, projects};
pub(crate) use plan::{Kind, Plan, Which, plans};

/// The prefix of the names of `setup`'s test sessions, by which `doctor`
/// distinguishes them from an agent's own.
pub(crate) const TEST_SESSION: &str = "touchmark-setup-";

/// An agent for which hooks can be installed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent(&'static Row);

/// The scope of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The user's, for every project.
    User,
    /// The workspace's.
    Project,
}

/// The change of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Add the hooks.
    Install,
    /// Remove the hooks.
    Uninstall,
}

/// The directories of the user and of the workspace.
#[derive(Debug)]
struct Around<'a> {
    home: PathBuf,
    environment: &'a Environment,
    workspace: &'a Path,
}

impl<'a> Around<'a> {
    fn of(environment: &'a Environment, workspace: &'a Path) -> Outcome<Self> {
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        Ok(Self {
            home: home
                .ok_or_else(|| Failure::Usage("there is no home directory: set HOME".into()))?,
            environment,
            workspace,
        })
    }

    fn path(&self, scope: Scope, user: &Place, project: &str) -> PathBuf {
        match (scope, user) {
            (Scope::Project, _) => self.workspace.join(project),
            (Scope::User, Place::Named(variable, directory, file)) => {
                self.of_user(variable, directory).join(file)
            }
            (Scope::User, Place::Home(file)) => self.home.join(file),
            (Scope::User, Place::Config(file)) => self.environment.base.config.join(file),
        }
    }

    /// Returns the directory that a variable names, else one in the home
    /// directory.
    fn of_user(&self, variable: &str, below_home: &str) -> PathBuf {
        match std::env::var_os(variable).filter(|named| !named.is_empty()) {
            Some(named) => PathBuf::from(named),
            None => self.home.join(below_home),
        }
    }
}

impl ValueEnum for Agent {
    fn value_variants<'a>() -> &'a [Self] {
        rows::AGENTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.0.title))
    }
}

impl PartialEq for Agent {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// Returns the agent with this name; `None` if there is none.
fn agent(name: &str) -> Option<Agent> {
    let mut agents = rows::AGENTS.iter().copied();
    agents.find(|agent| agent.name() == name)
}

impl Agent {
    /// Returns its name in `touchmark hook NAME`.
    pub(crate) fn name(self) -> &'static str {
        self.0.name
    }

    fn path(self, scope: Scope, around: &Around<'_>) -> PathBuf {
        around.path(scope, &self.0.user, self.0.project)
    }

    fn part(self, program: &str) -> Part {
        match &self.0.what {
            What::Hooks(shape) => Part::Hooks(Hooks::of(self.name(), shape, program)),
            What::File(text) => Part::File(text),
        }
    }

    /// Returns the settings of its MCP servers; `None` if it has none.
    fn server(self, scope: Scope, around: &Around<'_>, program: &str) -> Option<Server> {
        let servers = self.0.servers.as_ref()?;
        let path = around.path(scope, &servers.user, servers.project);
        Some(Server::of(servers.entry, path, program))
    }

    /// Returns the directory of its user's configuration.
    fn directory(self, around: &Around<'_>) -> PathBuf {
        let settings = self.path(Scope::User, around);
        let mut above = settings.ancestors().skip(1);
        let parts = ["plugins", "hooks"];
        let is_its_own = |directory: &&Path| !parts.iter().any(|part| directory.ends_with(part));
        above.find(is_its_own).unwrap_or(&settings).to_owned()
    }

    /// Returns the steps that are left to the user, as far as they can be
    /// detected.
    pub(crate) fn notes(
        self,
        scope: Scope,
        environment: &Environment,
        workspace: &Path,
    ) -> Vec<&'static str> {
        let is_trusted = || {
            let said = examine(environment, workspace);
            !said.is_empty() && said.iter().all(|said| said.level == Level::Good)
        };
        let note = self
            .note()
            .filter(|_| self.name() != "codex" || !is_trusted());
        let of_project = (self.name() == "claude" && scope == Scope::Project).then_some(
            "Claude Code asks whether you want a project's MCP servers when it starts there",
        );
        note.into_iter().chain(of_project).collect()
    }

    pub(crate) fn note(self) -> Option<&'static str> {
        self.0.note
    }
}

/// Returns findings about what agents do with the hooks in their settings,
/// where that can be detected.
pub(crate) fn examine(environment: &Environment, workspace: &Path) -> Vec<Finding> {
    let around = Around::of(environment, workspace);
    around.as_ref().map(codex::examine).unwrap_or_default()
}

/// Returns how a hook calls this program: by name if `PATH` finds it, else by
/// path.
fn own_name() -> Outcome<String> {
    let own = std::env::current_exe()?;
    let name = OsStr::new("touchmark");
    let found = std::env::var_os("PATH").and_then(|path: OsString| {
        std::env::split_paths(&path)
            .map(|directory| directory.join(name))
            .find(|candidate| candidate.is_file())
    });
    let same = |found: PathBuf| {
        let (found, own) = (found.canonicalize(), own.canonicalize());
        found.is_ok() && found.ok() == own.ok()
    };
    if found.is_some_and(same) {
        return Ok("touchmark".into());
    }
    own.into_os_string().into_string().map_err(|path| {
        Failure::No(format!(
            "settings cannot name {}: put touchmark where PATH finds it",
            path.display()
        ))
    })
}
