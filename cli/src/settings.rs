//! Agents' settings: `touchmark setup`, `touchmark hook install` and
//! `uninstall`.
//!
//! - `rows`: where each agent's settings are, and what goes into them.
//! - `hooks`, `server`: hooks and MCP servers in settings, put in and taken
//!   out; on `document`, which edits the text and touches no other byte, and
//!   `json`; `made`: what that made beside them, so that it can be taken back.
//! - `plan`: what becomes of an agent's files, and the change itself.
//! - `file`: reads and writes one file; `record`: what an installation made.
//! - `found`: which agents are on this machine, and what they have.
//! - `difference`: what will change, for people.

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

use crate::commands::daemon::doctor::{Finding, Level};
use crate::output::{Failure, Outcome};
use hooks::Hooks;
use plan::Part;
use rows::{Place, Row, What};
use server::Server;

pub(crate) use difference::difference;
pub(crate) use found::{Installed, Present, installed, present};
pub(crate) use plan::{Kind, Plan, Which, plans};

/// An agent that has hooks, and hooks can be installed for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent(&'static Row);

/// Whose settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The user's, for every project.
    User,
    /// The workspace's.
    Project,
}

/// What is done with the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Put the hooks in.
    Install,
    /// Take them out.
    Uninstall,
}

/// The user's directories, and the workspace's.
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

    /// A directory that a variable names, else one in the home directory.
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

/// The agent of this name.
fn agent(name: &str) -> Option<Agent> {
    let mut agents = rows::AGENTS.iter().copied();
    agents.find(|agent| agent.name() == name)
}

impl Agent {
    /// As in `touchmark hook NAME`.
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

    /// Its MCP servers, where it has settings for them.
    fn server(self, scope: Scope, around: &Around<'_>, program: &str) -> Option<Server> {
        let servers = self.0.servers.as_ref()?;
        let path = around.path(scope, &servers.user, servers.project);
        Some(Server::of(servers.entry, path, program))
    }

    /// Where its user's configuration is.
    fn directory(self, around: &Around<'_>) -> PathBuf {
        let settings = self.path(Scope::User, around);
        let mut above = settings.ancestors().skip(1);
        let parts = ["plugins", "hooks"];
        let is_its_own = |directory: &&Path| !parts.iter().any(|part| directory.ends_with(part));
        above.find(is_its_own).unwrap_or(&settings).to_owned()
    }

    /// What is left to its user, as far as it can be seen.
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

/// What agents do with the hooks in their settings, where that can be seen.
pub(crate) fn examine(environment: &Environment, workspace: &Path) -> Vec<Finding> {
    let around = Around::of(environment, workspace);
    around.as_ref().map(codex::examine).unwrap_or_default()
}

/// How a hook calls this program: by its name where that finds it, else by
/// its path.
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
