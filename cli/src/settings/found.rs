//! Which agents are on this machine, and what touchmark has installed for them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use touchmark_client::Environment;

use super::agent::Agent;
use super::file::{self, SettingsFile};
use super::part::{Kind, Part, files};
use super::places::{Places, Scope};
use super::record::Records;
use super::server::Presence;
use crate::daemon::agent::WORKSPACE;
use crate::output::Outcome;
use crate::system::files::{in_path, is_program};

/// An agent on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Present {
    pub(crate) agent: Agent,
    /// The program's path from `PATH`; `None` if it is not found.
    pub(crate) program: Option<PathBuf>,
    /// The directory of its configuration; `None` if there is none.
    pub(crate) directory: Option<PathBuf>,
}

/// Something that touchmark added to an agent's settings.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    pub(crate) kind: Kind,
    /// The file that contains it.
    pub(crate) path: PathBuf,
    /// Whether it is what this version of touchmark would write.
    pub(crate) current: bool,
    /// The command that the agent runs for it, word by word; empty for a
    /// plug-in.
    pub(crate) command: Vec<String>,
    /// For hooks: an event that they run for, preferably the first of a
    /// conversation.
    pub(crate) event: String,
}

impl Places<'_> {
    /// Returns the agents whose program is found, or that have a configuration.
    pub(crate) fn present(&self) -> Vec<Present> {
        let all = Agent::value_variants().iter().map(|&agent| Present {
            agent,
            program: self.program(agent),
            directory: Some(self.configuration(agent)).filter(|directory| directory.is_dir()),
        });
        all.filter(|found| found.program.is_some() || found.directory.is_some())
            .collect()
    }

    /// Returns the path of an agent's program; `None` if it is not found.
    fn program(&self, agent: Agent) -> Option<PathBuf> {
        let mut names = agent.settings().programs.iter();
        names.find_map(|name| {
            let shim = self.shim(name);
            in_path(name, |file| is_program(file) && file != shim)
        })
    }

    /// Returns what touchmark has added to an agent's settings. Files that
    /// cannot be read are skipped.
    ///
    /// # Errors
    /// Settings cannot name this program.
    pub(crate) fn installed(&self, agent: Agent, scope: Scope) -> Outcome<Vec<Installed>> {
        let records = Records::of(self.environment);
        let mut all = Vec::new();
        for (path, parts) in files(agent, scope, self)? {
            let read = SettingsFile::of(&path, None).and_then(|target| target.read());
            let Ok(Some(bytes)) = read else { continue };
            let bytes = bytes.strip_prefix(file::BYTE_ORDER_MARK).unwrap_or(&bytes);
            let Ok(text) = std::str::from_utf8(bytes) else {
                continue;
            };
            let made = records.read(&path).map(|record| record.made);
            // The setting stands for the file that it names.
            let parts = parts
                .iter()
                .filter(|part| !matches!(part, Part::Script(Kind::Witness, _)));
            for part in parts {
                let found = part.found(text, made.as_ref());
                let found = found.unwrap_or(Presence::Nothing);
                if !matches!(found, Presence::Ours | Presence::Older) {
                    continue;
                }
                let (event, mut command) = part.runs(text).unwrap_or_default();
                for word in command.iter_mut().filter(|word| *word == WORKSPACE) {
                    *word = self.workspace.to_string_lossy().into_owned();
                }
                all.push(Installed {
                    kind: part.kind(),
                    path: path.clone(),
                    current: found == Presence::Ours,
                    command,
                    event,
                });
            }
        }
        Ok(all)
    }

    /// Returns the workspaces whose own settings something was added to.
    ///
    /// # Errors
    /// Settings cannot name this program.
    pub(crate) fn projects(environment: &Environment) -> Outcome<BTreeSet<PathBuf>> {
        // With the root as the workspace, a file's path is its path within the
        // project.
        let places = Places::of(environment, Path::new("/"))?;
        let written = Records::of(environment).paths();
        let mut found = BTreeSet::new();
        for agent in Agent::value_variants() {
            for (file, _) in files(*agent, Scope::Project, &places)? {
                let within = file.strip_prefix("/").unwrap_or(&file);
                let depth = within.components().count();
                let of = written.iter().filter(|path| path.ends_with(within));
                found.extend(of.filter_map(|path| Some(path.ancestors().nth(depth)?.to_owned())));
            }
        }
        Ok(found)
    }
}
