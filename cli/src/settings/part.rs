//! What touchmark adds to settings: hooks, a plug-in, an MCP server.

use std::path::{Path, PathBuf};

use serde_json::Value;
use touchmark_client::start::{BINARY, HOOK_BINARY};

use super::agent::Agent;
use super::document::Unreadable;
use super::hooks::Hooks;
use super::made::Made;
use super::member::Member;
use super::places::{Places, Scope};
use super::server::{Presence, Server, words};
use super::witness;
use crate::daemon::agent::Addition;
use crate::output::{Failure, Outcome};
use crate::system::files::{in_path, is_program};

/// Something that can be added to a file.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// Hooks among the settings.
    Hooks(Hooks),
    /// An entry among the MCP servers.
    Server(Server),
    /// The file itself, with this text. Its first line identifies it.
    File(&'static str),
    /// A script, with this text. Its second line identifies it.
    Script(Kind, String),
    /// The setting that names this file.
    Setting(Member),
}

/// Which parts to change, besides hooks or the plug-in that replaces them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Which {
    /// MCP servers.
    pub(crate) servers: bool,
    /// What lets the agent's commands be witnessed.
    pub(crate) witness: bool,
    /// What lets the agent be witnessed, on the PATH.
    pub(crate) shims: bool,
}

impl Which {
    /// Hooks alone.
    pub(crate) const HOOKS: Self = Self {
        servers: false,
        witness: false,
        shims: false,
    };

    /// Everything.
    pub(crate) const ALL: Self = Self {
        servers: true,
        witness: true,
        shims: true,
    };

    /// Returns whether a part of this kind is to be changed.
    pub(crate) fn is(self, kind: Kind) -> bool {
        match kind {
            Kind::Hooks | Kind::Plugin => true,
            Kind::Server => self.servers,
            Kind::Witness => self.witness,
            Kind::Shim => self.shims,
        }
    }
}

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Hooks in settings.
    Hooks,
    /// A plug-in.
    Plugin,
    /// An MCP server.
    Server,
    /// What lets the agent's commands be witnessed.
    Witness,
    /// What lets the agent be witnessed, on the PATH.
    Shim,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hooks => "hooks",
            Self::Plugin => "plug-in",
            Self::Server => "MCP server",
            Self::Witness => "witness",
            Self::Shim => "shim",
        }
    }
}

/// Returns the files of an agent, each with what touchmark adds to it.
///
/// # Errors
/// Settings cannot name this program.
pub(super) fn files(
    agent: Agent,
    scope: Scope,
    places: &Places<'_>,
) -> Outcome<Vec<(PathBuf, Vec<Part>)>> {
    let program = hook_program()?;
    let own = Part::of(agent, &program);
    let mut files = vec![(places.settings(agent, scope), vec![own])];
    // A project is on several machines. Its settings name no file of this one.
    if let (Some(prefix), Scope::User) = (&agent.settings().shell, scope) {
        let path = places.shell(agent);
        if let Some(setting) = witness::setting(prefix, &path) {
            files[0].1.push(Part::Setting(setting));
            let script = witness::script(agent, prefix, &program);
            // The file comes before the setting that names it.
            files.insert(0, (path, vec![Part::Script(Kind::Witness, script)]));
        }
    }
    if scope == Scope::User {
        for name in agent.0.terminal_programs() {
            let shim = witness::shim(agent, name, &program);
            files.push((places.shim(name), vec![Part::Script(Kind::Shim, shim)]));
        }
    }
    if let Some(servers) = &agent.settings().servers {
        let path = places.file(scope, &servers.user, servers.project);
        let server = Server::of(servers.entry, path, &own_name()?);
        let path = server.path.clone();
        let part = Part::Server(server);
        match files.iter_mut().find(|(known, _)| *known == path) {
            Some((_, parts)) => parts.push(part),
            None => files.push((path, vec![part])),
        }
    }
    Ok(files)
}

impl Part {
    /// Returns what is added for an agent: its hooks, or the plug-in that
    /// replaces them.
    pub(super) fn of(agent: Agent, program: &str) -> Self {
        match &agent.settings().adds {
            Addition::Hooks(_) => Self::Hooks(Hooks::of(agent, program)),
            Addition::File(text) => Self::File(text),
        }
    }

    /// Returns whether a change of `which` parts is about this one.
    pub(super) fn is(&self, which: Which) -> bool {
        which.is(self.kind())
    }

    /// Returns its kind.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Hooks(_) => Kind::Hooks,
            Self::Server(_) => Kind::Server,
            Self::File(_) => Kind::Plugin,
            Self::Script(kind, _) => *kind,
            Self::Setting(_) => Kind::Witness,
        }
    }

    /// Returns the whole text of the file, if the part is the file itself.
    pub(super) fn whole(&self) -> Option<&str> {
        match self {
            Self::File(text) => Some(text),
            Self::Script(_, text) => Some(text),
            Self::Hooks(_) | Self::Server(_) | Self::Setting(_) => None,
        }
    }

    /// Returns its state in a text.
    pub(super) fn found(&self, text: &str, made: Option<&Made>) -> Result<Presence, Unreadable> {
        match self {
            Self::Hooks(hooks) => Ok(match hooks.are_in(text)? {
                true => Presence::Ours,
                false if hooks.any_in(text)? => Presence::Older,
                false => Presence::Nothing,
            }),
            Self::Server(server) => server.found(text, made),
            Self::Setting(setting) => witness::found(setting, text, made),
            Self::File(_) | Self::Script(..) => Ok(match (text, self.whole()) {
                ("", _) => Presence::Nothing,
                (text, Some(own)) if text == own => Presence::Ours,
                (text, Some(own)) if is_its_file(text, own) => Presence::Older,
                _ => Presence::Theirs,
            }),
        }
    }

    /// Adds the part to a text.
    pub(super) fn put(&self, text: &str, made: &mut Made) -> Result<String, Unreadable> {
        match self {
            Self::Hooks(hooks) => hooks.put(text, made),
            Self::Server(server) => server.put(text, made),
            Self::Setting(setting) => setting.put(text, made),
            Self::File(own) => Ok((*own).to_owned()),
            Self::Script(_, own) => Ok(own.clone()),
        }
    }

    /// Removes the part from a text.
    pub(super) fn take(&self, text: &str, made: Option<&Made>) -> Result<String, Unreadable> {
        match self {
            Self::Hooks(hooks) => hooks.take(text, made),
            Self::Server(server) => server.take(text, made),
            Self::Setting(setting) => match (witness::found(setting, text, made)?, made) {
                (Presence::Ours | Presence::Older, Some(made)) => setting.take(text, made),
                _ => Ok(text.to_owned()),
            },
            Self::File(_) | Self::Script(..) => Ok(String::new()),
        }
    }

    /// Returns the event and the command that an agent runs for this part of
    /// its settings.
    pub(super) fn runs(&self, text: &str) -> Option<(String, Vec<String>)> {
        match self {
            Self::Hooks(hooks) => {
                let handlers = hooks.handlers(text).ok()?;
                let begins =
                    |(event, _): &&(String, Value)| event.eq_ignore_ascii_case("sessionstart");
                let (event, handler) = handlers.iter().find(begins).or(handlers.first())?;
                Some((event.clone(), handler_words(handler)?))
            }
            Self::Server(server) => Some((String::new(), words(&server.entry(text).ok()??)?)),
            Self::Setting(setting) => {
                let script = setting.found(text).ok()??.as_str()?.to_owned();
                Some((String::new(), vec![script]))
            }
            Self::File(_) | Self::Script(..) => None,
        }
    }
}

/// Returns whether a text is another version of a file of touchmark's: its first
/// line is the same, or the line after the one that names the interpreter.
pub(super) fn is_its_file(text: &str, own: &str) -> bool {
    let mut lines = own.lines().zip(text.lines());
    let is_first = |(own, found): &(&str, &str)| own != found || !own.starts_with("#!");
    lines
        .find(is_first)
        .is_some_and(|(own, found)| own == found)
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

/// Returns how settings call the program for hooks. That is this program where
/// `PATH` finds it and not the small one: a name stays right longer than a path.
fn hook_program() -> Outcome<String> {
    let small = own()?.with_file_name(HOOK_BINARY);
    let by_name = is_in_path(&small, HOOK_BINARY) || !is_in_path(&own()?, BINARY);
    match is_program(&small) && by_name {
        true => named(small, HOOK_BINARY),
        false => own_name(),
    }
}

/// Returns how settings call this program.
fn own_name() -> Outcome<String> {
    named(own()?, BINARY)
}

fn own() -> Outcome<PathBuf> {
    Ok(std::env::current_exe()?)
}

/// Returns how settings call a program: by name if `PATH` finds it, else by
/// path.
fn named(program: PathBuf, name: &str) -> Outcome<String> {
    if is_in_path(&program, name) {
        return Ok(name.into());
    }
    program.into_os_string().into_string().map_err(|path| {
        Failure::No(format!(
            "settings cannot name {}: put touchmark where PATH finds it",
            path.display()
        ))
    })
}

/// Returns whether `PATH` finds a program by a name.
fn is_in_path(program: &Path, name: &str) -> bool {
    let found = in_path(name, Path::is_file).and_then(|found| found.canonicalize().ok());
    found.is_some() && found == program.canonicalize().ok()
}
