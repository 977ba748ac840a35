//! Agents' settings: `touchmark hook install` and `uninstall`.
//!
//! - `rows`: where each agent's settings are, and what goes into them.
//! - `hooks`: hooks in settings, put in and taken out; on `document`, which
//!   edits the text and touches no other byte, and `json`.
//! - `file`: reads and writes one file; `record`: what an installation made.
//! - `difference`: what will change, for people.

mod codex;
mod difference;
mod document;
mod file;
mod hooks;
mod json;
mod record;
mod rows;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValue;
use touchmark_client::Environment;

use crate::commands::daemon::doctor::Finding;
use crate::output::{Failure, Outcome};
use hooks::Hooks;
use record::{Record, Records};
use rows::{Place, Row, What};

pub(crate) use difference::difference;
use document::Unreadable;
use file::Target;

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

impl Around<'_> {
    /// A directory that a variable names, else one in the home directory.
    fn of_user(&self, variable: &str, below_home: &str) -> PathBuf {
        match std::env::var_os(variable).filter(|named| !named.is_empty()) {
            Some(named) => PathBuf::from(named),
            None => self.home.join(below_home),
        }
    }
}

/// What an agent is to have.
#[derive(Debug)]
enum Wanted {
    /// Hooks among its settings.
    Hooks(Hooks),
    /// A file of its own, with this text; its first line says whose it is.
    File(&'static str),
}

/// A change of one file, not yet made.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The file, as it is named.
    pub(crate) path: PathBuf,
    target: Target,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
    record: Option<Record>,
    records: Records,
    /// What the user has to do himself.
    pub(crate) note: Option<&'static str>,
}

impl ValueEnum for Agent {
    fn value_variants<'a>() -> &'a [Self] {
        rows::AGENTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.0.title))
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
        match (scope, &self.0.user) {
            (Scope::Project, _) => around.workspace.join(self.0.project),
            (Scope::User, Place::Named(variable, directory, file)) => {
                around.of_user(variable, directory).join(file)
            }
            (Scope::User, Place::Home(file)) => around.home.join(file),
            (Scope::User, Place::Config(file)) => around.environment.base.config.join(file),
        }
    }

    fn wanted(self, program: &str) -> Wanted {
        match &self.0.what {
            What::Hooks(shape) => Wanted::Hooks(Hooks::of(self.name(), shape, program)),
            What::File(text) => Wanted::File(text),
        }
    }
}

/// What is to be changed for an agent.
///
/// # Errors
/// For a file that cannot be read or parsed, with line and reason.
pub(crate) fn plan(
    agent: Agent,
    scope: Scope,
    action: Action,
    environment: &Environment,
    workspace: &Path,
) -> Outcome<Plan> {
    let home = std::env::home_dir()
        .filter(|home| !home.as_os_str().is_empty())
        .ok_or_else(|| Failure::Usage("there is no home directory: set HOME".into()))?;
    let around = Around {
        home,
        environment,
        workspace,
    };
    let path = agent.path(scope, &around);
    let project = (scope == Scope::Project).then_some(workspace);
    let target = Target::of(&path, project)?;
    let before = target.read()?;
    let records = Records::of(environment);
    let earlier = records.read(&path);
    let (after, record) = match agent.wanted(&own_name()?) {
        Wanted::Hooks(hooks) => of_hooks(&hooks, &path, action, before.as_deref(), earlier)?,
        Wanted::File(text) => of_file(text, &path, action, before.as_deref(), earlier)?,
    };
    Ok(Plan {
        note: agent.0.note.filter(|_| action == Action::Install),
        path,
        target,
        before,
        after,
        record,
        records,
    })
}

/// What agents do with the hooks in their settings, where that can be seen.
pub(crate) fn examine(environment: &Environment, workspace: &Path) -> Vec<Finding> {
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let around = home.map(|home| Around {
        home,
        environment,
        workspace,
    });
    around.as_ref().map(codex::examine).unwrap_or_default()
}

type Change = (Option<Vec<u8>>, Option<Record>);

fn of_hooks(
    hooks: &Hooks,
    path: &Path,
    action: Action,
    before: Option<&[u8]>,
    earlier: Option<Record>,
) -> Outcome<Change> {
    let unreadable = |wrong: Unreadable| {
        Failure::No(format!(
            "{} line {}: {}; the file is left as it is",
            crate::context::directory(path),
            wrong.line,
            wrong.reason
        ))
    };
    let bytes = before.unwrap_or_default();
    // A mark of the encoding is not part of the JSON.
    let (mark, bytes) = match bytes.strip_prefix(file::BYTE_ORDER_MARK) {
        Some(rest) => (file::BYTE_ORDER_MARK, rest),
        None => (&[][..], bytes),
    };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let read = &bytes[..error.valid_up_to()];
        unreadable(Unreadable {
            line: read.iter().filter(|&&byte| byte == b'\n').count() + 1,
            reason: "it is not UTF-8".into(),
        })
    })?;
    if action == Action::Install && hooks.are_in(text).map_err(unreadable)? {
        return Ok((before.map(<[u8]>::to_vec), earlier));
    }
    let made = earlier.as_ref().map(|record| &record.made);
    let without = hooks.take(text, made).map_err(unreadable)?;
    let mut record = Record {
        file: earlier
            .as_ref()
            .map_or(before.is_none(), |record| record.file),
        directories: earlier.map(|record| record.directories).unwrap_or_default(),
        ..Record::default()
    };
    if action == Action::Uninstall {
        let nothing = record.file && without.trim().is_empty() && mark.is_empty();
        let left = before
            .filter(|_| !nothing)
            .map(|_| [mark, without.as_bytes()].concat());
        return Ok((left, (nothing && before.is_some()).then_some(record)));
    }
    let with = hooks.put(&without, &mut record.made).map_err(unreadable)?;
    if before.is_none() {
        record.directories = file::missing_directories(path);
    }
    Ok((Some([mark, with.as_bytes()].concat()), Some(record)))
}

fn of_file(
    text: &str,
    path: &Path,
    action: Action,
    before: Option<&[u8]>,
    earlier: Option<Record>,
) -> Outcome<Change> {
    let first = |text: &[u8]| text.split(|&byte| byte == b'\n').next().map(<[u8]>::to_vec);
    if before.is_some_and(|before| first(before) != first(text.as_bytes())) {
        return Err(Failure::No(format!(
            "{} is not touchmark's: its first line is another; the file is left as it is",
            crate::context::directory(path)
        )));
    }
    let mut record = earlier.unwrap_or_default();
    record.file = true;
    if action == Action::Uninstall {
        return Ok((None, before.is_some().then_some(record)));
    }
    if before.is_none() {
        record.directories = file::missing_directories(path);
    }
    Ok((Some(text.as_bytes().to_vec()), Some(record)))
}

impl Plan {
    /// Whether there is anything to do.
    pub(crate) fn changes(&self) -> bool {
        self.before != self.after
    }

    /// The file's text before and after, where it is there.
    pub(crate) fn texts(&self) -> [Option<String>; 2] {
        let text = |bytes: &Option<Vec<u8>>| {
            let bytes = bytes.as_ref()?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        };
        [text(&self.before), text(&self.after)]
    }

    /// Does it.
    ///
    /// # Errors
    /// If the file changed meanwhile, or the system refuses.
    pub(crate) fn carry_out(&self) -> Outcome {
        let replace = || {
            let (before, after) = (self.before.as_deref(), self.after.as_deref());
            self.target.replace(before, after)
        };
        match (&self.after, &self.record) {
            (Some(_), Some(record)) => {
                // First, so that whatever is made can be taken back.
                self.records.write(&self.path, Some(record))?;
                replace()
            }
            (Some(_), None) => {
                replace()?;
                self.records.write(&self.path, None)
            }
            (None, record) => {
                replace()?;
                let made = record.iter().flat_map(|record| &record.directories);
                file::remove_empty(made);
                self.records.write(&self.path, None)
            }
        }
    }
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
