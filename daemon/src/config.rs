//! The configuration: the user's file, and the workspace's, which may tighten
//! what the user's says (SEC-5).
//!
//! What is wrong, unknown or not a repository's to say is told with file, line
//! and reason, and the daemon runs without it: a file that comes with a
//! repository must not keep the daemon from starting. Durations
//! are texts like `"60 s"`, `"10 min"`, `"30 days"`; sizes like `"16 MiB"`;
//! plain numbers are seconds and bytes. Each has bounds; see `units`.

mod case;
#[cfg(test)]
mod documented;
mod file;
mod gate;
mod keys;
mod reload;
#[cfg(test)]
mod tests;
mod units;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use touchmark_engine::patterns::{PROTECTED, SECRETS};
use touchmark_proto::trust::Trust;
use touchmark_proto::{Millis, Places};

use crate::system::open::trust;

use crate::watch::Choice;
pub use case::probe_case_insensitive;
pub use gate::{Gate, Unsaved};
pub use reload::Changes;

/// A configuration file is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {reason}", file.display())]
pub struct ConfigError {
    /// Which file.
    pub file: PathBuf,
    /// The line, from 1; 0 where the file as a whole is meant.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
    /// What of it.
    pub part: Part,
}

/// What is wrong in a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it: it cannot be read, or is no TOML.
    File,
    /// A key that there is not.
    Unknown,
    /// That key.
    Key(&'static str),
}

/// The longest reason: a part of it may be a stranger's.
const MOST_REASON: usize = 300;

impl ConfigError {
    fn new(file: &Path, line: usize, part: Part, reason: &str) -> Self {
        Self {
            file: file.to_owned(),
            line,
            reason: reason.chars().take(MOST_REASON).collect(),
            part,
        }
    }

    fn unread(file: &Path, cause: &std::io::Error) -> Self {
        Self::new(file, 0, Part::File, &cause.to_string())
    }

    /// Whether names of secrets may have been lost with it.
    fn hides_secrets(&self) -> bool {
        matches!(self.part, Part::File | Part::Key("contents.exclude"))
    }
}

/// Who speaks in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The user: every key.
    User,
    /// Whoever made the repository: keys that it may tighten.
    Repository,
}

/// What the files came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configured {
    /// What is in force.
    pub config: Config,
    /// What is not in force of what the files say.
    pub wrong: Vec<ConfigError>,
    /// Some of it stands in the user's file.
    pub user_is_wrong: bool,
}

impl Configured {
    /// What is not in force, for people; `None` if all is.
    pub fn refused(&self) -> Option<String> {
        const MOST: usize = 10;
        let mut told: Vec<String> = self
            .wrong
            .iter()
            .take(MOST)
            .map(ToString::to_string)
            .collect();
        if let Some(more) = self.wrong.len().checked_sub(MOST).filter(|more| *more > 0) {
            told.push(format!("{more} more"));
        }
        (!told.is_empty()).then(|| told.join("; "))
    }
}

/// How path names compare (SEEN-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    /// `A` and `a` are two files.
    Sensitive,
    /// `A` and `a` are one file.
    Insensitive,
}

/// What an answered change of state survives (DUR-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The daemon's death.
    Process,
    /// The machine's death too.
    Power,
}

impl Durability {
    /// As `status` and the configuration spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Power => "power",
        }
    }
}

/// Every key of the configuration, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `case`: probed unless told.
    pub case: Option<Case>,
    /// `durability`: `"process"` unless told.
    pub durability: Durability,
    /// `watch`: `"auto"` unless told.
    pub watch: Choice,
    /// `idle_exit`: a daemon started on demand ends after that long without
    /// a connection and a request; 30 min unless told.
    pub idle_exit: Millis,
    /// `marks.edit_ttl`: 60 s unless told.
    pub edit_ttl: Millis,
    /// `marks.flag_ttl`: 10 s unless told.
    pub flag_ttl: Millis,
    /// `marks.hook_ttl`: 10 min unless told.
    pub hook_ttl: Millis,
    /// `marks.command_ttl`: 10 min unless told.
    pub command_ttl: Millis,
    /// `marks.late`: 10 s unless told.
    pub late: Millis,
    /// `limits.frame`: bytes of one message; 16 MiB unless told.
    pub frame: u64,
    /// `limits.connections`: 4096 unless told.
    pub connections: u32,
    /// `limits.read_text`: bytes of text in one answer; 4 MiB unless told.
    pub read_text: u64,
    /// `contents.total`: bytes of kept contents, compressed; 512 MiB unless told.
    pub contents_total: u64,
    /// `contents.file`: larger files are not kept; 4 MiB unless told.
    pub contents_file: u64,
    /// `contents.exclude`: names never kept (SEC-3);
    /// [`SECRETS`](touchmark_engine::patterns::SECRETS) unless told.
    pub contents_exclude: Vec<String>,
    /// `scope.exclude`: names that a command's window leaves alone, beside what
    /// is ignored (SCOPE-1); none unless told.
    pub scope_exclude: Vec<String>,
    /// `guard.protect`: names never written to for a client (SEC-10);
    /// [`PROTECTED`](touchmark_engine::patterns::PROTECTED) unless told.
    pub guard_protect: Vec<String>,
    /// `versions.keep`: versions kept of one path; 10,000 unless told.
    pub versions_per_path: u64,
    /// `versions.keep`: how long versions are kept; 30 days unless told.
    pub versions_age: Millis,
    /// `sessions.keep`: how long unused sessions are kept; 30 days unless
    /// told.
    pub sessions_keep: Millis,
    /// `recovery.keep`: how long bytes are kept that would have lost their
    /// name; 30 days unless told.
    pub recovery_age: Millis,
    /// `recovery.keep`: how many bytes of them; 1 GiB unless told.
    pub recovery_bytes: u64,
    /// `dedup.enabled`: repeats are told from first reads; true unless told.
    pub dedup: bool,
    /// `hooks.replace_repeats`: where an agent's hook may put another output
    /// in the place of a tool's, a repeated read gets one line; false unless
    /// told.
    pub replace_repeats: bool,
    /// `hooks.gate`: what an agent's tools are denied for; `Destructive` unless
    /// told.
    pub gate: Gate,
    /// `hooks.gates`: the same for single agents, by the names of `touchmark hook`.
    pub gates: BTreeMap<String, Gate>,
    /// `hooks.unsaved`: what is done about files with unsaved changes in an
    /// editor; `Ask` unless told.
    pub unsaved: Unsaved,
    /// `calls.keep`: tool calls kept for a session; 50 unless told.
    pub calls_keep: u64,
    /// `calls.age`: how long they are kept; 5 min unless told.
    pub calls_age: Millis,
    /// `calls.bytes`: bytes of them kept for a session; 256 KiB unless told.
    pub calls_bytes: u64,
    /// `calls.never`: tools whose calls are never kept.
    pub calls_never: Vec<String>,
    /// `calls.rules`: by which arguments two calls of a tool are alike.
    pub calls_rules: BTreeMap<String, Vec<String>>,
}

impl Default for Config {
    fn default() -> Self {
        const MINUTE: Millis = 60_000;
        const DAY: Millis = 24 * 60 * MINUTE;
        Self {
            case: None,
            durability: Durability::Process,
            watch: Choice::Auto,
            idle_exit: 30 * MINUTE,
            edit_ttl: MINUTE,
            flag_ttl: 10_000,
            hook_ttl: 10 * MINUTE,
            command_ttl: 10 * MINUTE,
            late: 10_000,
            frame: 16 << 20,
            connections: 4096,
            read_text: 4 << 20,
            contents_total: 512 << 20,
            contents_file: 4 << 20,
            contents_exclude: SECRETS.iter().copied().map(String::from).collect(),
            scope_exclude: Vec::new(),
            guard_protect: PROTECTED.iter().copied().map(String::from).collect(),
            versions_per_path: 10_000,
            versions_age: 30 * DAY,
            sessions_keep: 30 * DAY,
            recovery_age: 30 * DAY,
            recovery_bytes: 1 << 30,
            dedup: true,
            replace_repeats: false,
            gate: Gate::default(),
            gates: BTreeMap::new(),
            unsaved: Unsaved::default(),
            calls_keep: 50,
            calls_age: 5 * MINUTE,
            calls_bytes: 256 << 10,
            calls_never: touchmark_engine::config::NEVER_KEPT
                .iter()
                .map(|tool| (*tool).to_owned())
                .collect(),
            calls_rules: touchmark_engine::Config::default().calls_rules,
        }
    }
}

impl Config {
    /// What the tools of an agent are denied for.
    #[must_use]
    pub fn gate(&self, agent: &str) -> Gate {
        self.gates.get(agent).copied().unwrap_or(self.gate)
    }

    /// The configuration of a workspace. `named` is the user's file if it is
    /// not the usual one; it must exist then.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn of(places: &Places, named: Option<&Path>) -> Result<Configured, ConfigError> {
        let user = named.unwrap_or(&places.config);
        let trust = trust(&places.trusted);
        Self::load(user, &places.workspace_config, &trust, named.is_some())
    }

    /// Reads the user's file, then the workspace's, which may tighten what
    /// the user's says (SEC-5), if it is taken over at all (SEC-6). Files that do not exist say nothing. What is
    /// wrong in a file is told and not in force; the rest is.
    ///
    /// While anything is wrong in the user's file nothing is dropped for its
    /// age or number, and while a list of secrets cannot be read no content
    /// is kept: neither could be made good later.
    ///
    /// # Errors
    /// If the user's file must exist and does not.
    pub fn load(
        user: &Path,
        workspace: &Path,
        trust: &Trust,
        must_exist: bool,
    ) -> Result<Configured, ConfigError> {
        let mut done = Configured::default();
        let mut secrets_unknown = false;
        for (file, whose) in [(user, Whose::User), (workspace, Whose::Repository)] {
            let read = match whose {
                Whose::User => file::read(file),
                Whose::Repository => file::read_trusted(file, trust),
            };
            let wrong = match read {
                Ok(text) => done.config.apply(file, &text, whose),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    if must_exist && whose == Whose::User {
                        return Err(ConfigError::unread(file, &error));
                    }
                    continue;
                }
                Err(error) => vec![ConfigError::unread(file, &error)],
            };
            secrets_unknown |= wrong.iter().any(|wrong| wrong.hides_secrets());
            if whose == Whose::User {
                done.user_is_wrong = !wrong.is_empty();
            }
            done.wrong.extend(wrong);
        }
        if done.user_is_wrong {
            done.config.retain_all();
        }
        if secrets_unknown {
            done.config.contents_file = 0;
        }
        Ok(done)
    }

    /// The engine's part of it, for a workspace.
    pub fn engine(&self, root: Vec<u8>, case_insensitive: bool) -> touchmark_engine::Config {
        touchmark_engine::Config {
            root,
            case_insensitive,
            edit_ttl: self.edit_ttl,
            flag_ttl: self.flag_ttl,
            hook_ttl: self.hook_ttl,
            command_ttl: self.command_ttl,
            late: self.late,
            dedup: self.dedup,
            read_text: self.read_text,
            calls_keep: self.calls_keep,
            calls_age: self.calls_age,
            calls_bytes: self.calls_bytes,
            calls_never: self.calls_never.iter().cloned().collect(),
            calls_rules: self.calls_rules.clone(),
            ..touchmark_engine::Config::default()
        }
    }

    /// Takes over the keys of one file's text, as far as it may say them;
    /// other keys stay. Returns what is not in force of it, in the order of
    /// the lines.
    pub fn apply(&mut self, file: &Path, text: &[u8], whose: Whose) -> Vec<ConfigError> {
        let mut wrong: Vec<ConfigError> = keys::take(self, text, whose)
            .into_iter()
            .map(|wrong| {
                let before = wrong.at.map(|at| text.get(..at).unwrap_or(text));
                let line = before.map_or(0, line_at);
                ConfigError::new(file, line, wrong.part, &wrong.reason)
            })
            .collect();
        wrong.sort_by_key(|wrong| wrong.line);
        wrong
    }

    /// Drops nothing that a right configuration might want kept.
    fn retain_all(&mut self) {
        const LONG: Millis = 36_500 * 86_400_000;
        const MANY: u64 = 1 << 40;
        (self.versions_per_path, self.versions_age) = (MANY, LONG);
        (self.recovery_bytes, self.recovery_age) = (MANY, LONG);
        self.sessions_keep = LONG;
    }
}

fn line_at(before: &[u8]) -> usize {
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}
