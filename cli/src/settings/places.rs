//! Where an agent's settings are, the user's and a workspace's.

use std::path::{Path, PathBuf};

use clap::Args;
use touchmark_client::Environment;

use super::agent::Agent;
use crate::daemon::agent::UserFile;
use crate::output::{Failure, Outcome};

/// The scope of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The user's, for every project.
    User,
    /// The workspace's.
    Project,
}

/// Which settings are changed, and how.
#[derive(Debug, Args)]
pub(crate) struct WriteOptions {
    /// Change the user's settings, for every project [default]
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Change the workspace's settings
    #[arg(long)]
    project: bool,
    /// Write without asking
    #[arg(long, short, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
    /// Only show what would be written
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl WriteOptions {
    /// Returns the scope of the settings.
    pub(crate) fn scope(&self) -> Scope {
        match self.project {
            true => Scope::Project,
            false => Scope::User,
        }
    }
}

/// The directories of the user and of a workspace, below which settings are.
#[derive(Debug)]
pub(crate) struct Places<'a> {
    pub(super) home: PathBuf,
    pub(super) environment: &'a Environment,
    pub(super) workspace: &'a Path,
}

impl<'a> Places<'a> {
    /// Returns the directories of this user and of a workspace.
    ///
    /// # Errors
    /// There is no home directory.
    pub(crate) fn of(environment: &'a Environment, workspace: &'a Path) -> Outcome<Self> {
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        Ok(Self {
            home: home.ok_or_else(|| Failure::Usage("HOME is not set".into()))?,
            environment,
            workspace,
        })
    }

    /// Returns the file with an agent's hooks.
    pub(super) fn settings(&self, agent: Agent, scope: Scope) -> PathBuf {
        let settings = agent.settings();
        self.file(scope, &settings.user, settings.project)
    }

    /// Returns the file through which an agent starts its shell commands.
    pub(super) fn shell(&self, agent: Agent) -> PathBuf {
        let name = format!("touchmark/{}-shell", agent.name());
        self.environment.base.config.join(name)
    }

    /// Returns the file that stands for an agent's program on the PATH.
    pub(super) fn shim(&self, program: &str) -> PathBuf {
        let shims = self.environment.base.config.join("touchmark/shims");
        shims.join(program)
    }

    /// Returns a file in its place: the user's, or `project` below the
    /// workspace.
    pub(super) fn file(&self, scope: Scope, user: &UserFile, project: &str) -> PathBuf {
        match (scope, user) {
            (Scope::Project, _) => self.workspace.join(project),
            (Scope::User, UserFile::Named(variable, directory, file)) => {
                self.of_user(variable, directory).join(file)
            }
            (Scope::User, UserFile::Home(file)) => self.home.join(file),
            (Scope::User, UserFile::Config(file)) => self.environment.base.config.join(file),
        }
    }

    /// Returns the directory that a variable names, else one in the home
    /// directory.
    pub(super) fn of_user(&self, variable: &str, below_home: &str) -> PathBuf {
        match std::env::var_os(variable).filter(|named| !named.is_empty()) {
            Some(named) => PathBuf::from(named),
            None => self.home.join(below_home),
        }
    }

    /// Returns the directory of an agent's configuration of the user.
    pub(super) fn configuration(&self, agent: Agent) -> PathBuf {
        let settings = self.settings(agent, Scope::User);
        let mut above = settings.ancestors().skip(1);
        let parts = ["plugins", "hooks"];
        let is_its_own = |directory: &&Path| !parts.iter().any(|part| directory.ends_with(part));
        above.find(is_its_own).unwrap_or(&settings).to_owned()
    }
}
