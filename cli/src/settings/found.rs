//! Which agents are on this machine, and what touchmark has installed for them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use serde_json::Value;
use touchmark_client::Environment;

use super::file::{self, Target};
use super::plan::{Kind, Part, files};
use super::record::Records;
use super::rows::WORKSPACE;
use super::server::{Found, words};
use super::{Agent, Around, Scope};
use crate::output::Outcome;
use crate::system::files::is_program;

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

/// Returns the agents whose program is found, or that have a configuration.
///
/// # Errors
/// There is no home directory.
pub(crate) fn present(environment: &Environment, workspace: &Path) -> Outcome<Vec<Present>> {
    let around = Around::of(environment, workspace)?;
    let all = Agent::value_variants().iter().map(|&agent| Present {
        agent,
        program: program(agent),
        directory: Some(agent.directory(&around)).filter(|directory| directory.is_dir()),
    });
    Ok(all
        .filter(|found| found.program.is_some() || found.directory.is_some())
        .collect())
}

fn program(agent: Agent) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = agent.0.programs.iter();
    names
        .flat_map(|name| std::env::split_paths(&path).map(move |directory| directory.join(name)))
        .find(|program| is_program(program))
}

/// Returns what touchmark has added to an agent's settings. Files that cannot
/// be read are skipped.
pub(crate) fn installed(
    agent: Agent,
    scope: Scope,
    environment: &Environment,
    workspace: &Path,
) -> Outcome<Vec<Installed>> {
    let around = Around::of(environment, workspace)?;
    let records = Records::of(environment);
    let mut all = Vec::new();
    for (path, parts) in files(agent, scope, &around)? {
        let read = Target::of(&path, None).and_then(|target| target.read());
        let Ok(Some(bytes)) = read else { continue };
        let bytes = bytes.strip_prefix(file::BYTE_ORDER_MARK).unwrap_or(&bytes);
        let Ok(text) = std::str::from_utf8(bytes) else {
            continue;
        };
        let made = records.read(&path).map(|record| record.made);
        for part in &parts {
            let found = part.found(text, made.as_ref()).unwrap_or(Found::Nothing);
            if !matches!(found, Found::Ours | Found::Older) {
                continue;
            }
            let (event, mut command) = part.runs(text).unwrap_or_default();
            for word in command.iter_mut().filter(|word| *word == WORKSPACE) {
                *word = workspace.to_string_lossy().into_owned();
            }
            all.push(Installed {
                kind: part.kind(),
                path: path.clone(),
                current: found == Found::Ours,
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
/// There is no home directory.
pub(crate) fn projects(environment: &Environment) -> Outcome<BTreeSet<PathBuf>> {
    // With the root as the workspace, a file's path is its path within the
    // project.
    let around = Around::of(environment, Path::new("/"))?;
    let written = Records::of(environment).paths();
    let mut found = BTreeSet::new();
    for agent in Agent::value_variants() {
        for (file, _) in files(*agent, Scope::Project, &around)? {
            let within = file.strip_prefix("/").unwrap_or(&file);
            let depth = within.components().count();
            let of = written.iter().filter(|path| path.ends_with(within));
            found.extend(of.filter_map(|path| Some(path.ancestors().nth(depth)?.to_owned())));
        }
    }
    Ok(found)
}

impl Part {
    /// Returns the event and the command that an agent runs for this part of
    /// its settings.
    fn runs(&self, text: &str) -> Option<(String, Vec<String>)> {
        match self {
            Self::Hooks(hooks) => {
                let handlers = hooks.handlers(text).ok()?;
                let begins =
                    |(event, _): &&(String, Value)| event.eq_ignore_ascii_case("sessionstart");
                let (event, handler) = handlers.iter().find(begins).or(handlers.first())?;
                Some((event.clone(), handler_words(handler)?))
            }
            Self::Server(server) => Some((String::new(), words(&server.entry(text).ok()??)?)),
            Self::File(_) => None,
        }
    }
}

/// Returns the words of a handler's command. A command with separate arguments
/// is run directly, else by a shell.
fn handler_words(handler: &Value) -> Option<Vec<String>> {
    let command = handler.get("bash").unwrap_or(&handler["command"]);
    let command = command.as_str()?.to_owned();
    Some(match handler["args"].as_array() {
        Some(arguments) => {
            let words = arguments.iter().filter_map(Value::as_str);
            std::iter::once(command)
                .chain(words.map(str::to_owned))
                .collect()
        }
        None => vec!["sh".into(), "-c".into(), command],
    })
}
