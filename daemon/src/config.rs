//! The configuration: the user's file, and the workspace's file, which may only
//! tighten the user's settings (SEC-5).
//!
//! An entry that is wrong, unknown, or not allowed in a repository's file is
//! reported with file, line and reason, and the daemon runs without it: a file
//! that comes with a repository must not prevent the daemon's start. Durations
//! are texts like `"60 s"`, `"10 min"`, `"30 days"`; sizes are texts like `"16
//! MiB"`. A plain number is a number of seconds or bytes. Each has bounds; see
//! `units`.

mod case;
#[cfg(test)]
mod documented;
mod file;
mod gate;
mod keys;
mod reload;
mod telemetry;
#[cfg(test)]
mod tests;
mod units;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use touchmark_engine::patterns::{PROTECTED, SECRETS};
use touchmark_proto::trust::Trust;
use touchmark_proto::{Millis, Places};

use crate::system::open::trust;

use crate::watch::Choice;
pub use case::probe_case_insensitive;
pub use gate::{Gate, Unsaved};
pub use reload::Changes;
pub use telemetry::{Endpoint, Headers, Paths};

/// An error in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {reason}", file.display())]
pub struct ConfigError {
    /// The configuration file.
    pub file: PathBuf,
    /// The line, counted from 1; 0 if the error concerns the whole file.
    pub line: usize,
    /// What is wrong, for people.
    pub reason: String,
    /// The part of the file that is wrong.
    pub part: Part,
}

/// The part of a configuration file that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole file: it cannot be read, or is not TOML.
    File,
    /// A key that does not exist.
    Unknown,
    /// The key of this name.
    Key(&'static str),
}

/// The maximum length of a reason, in characters: a part of it may be quoted
/// from a file of another author.
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

    /// Returns whether this error may hide names of secrets.
    fn hides_secrets(&self) -> bool {
        matches!(self.part, Part::File | Part::Key("contents.exclude"))
    }
}

/// Who controls a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The user. The file may set every key.
    User,
    /// The authors of the repository. The file may only tighten some keys.
    Repository,
}

/// The result of reading the configuration files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configured {
    /// The effective configuration.
    pub config: Config,
    /// The entries of the files that are not in effect, with the reasons.
    pub wrong: Vec<ConfigError>,
    /// Whether at least one of these entries is in the user's file.
    pub user_is_wrong: bool,
    /// The entries of the files that are in effect, in the order in which they
    /// were applied.
    pub set: Vec<Entry>,
}

/// An entry of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of its key.
    pub key: &'static str,
    /// The configuration file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
}

impl Configured {
    /// Returns a text for people about the entries that are not in effect;
    /// `None` if all are.
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

/// The entries of one configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Those that are in effect.
    pub set: Vec<Entry>,
    /// Those that are not, in the order of their lines.
    pub wrong: Vec<ConfigError>,
}

/// A key of the configuration, with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The name, as in the documentation.
    pub key: &'static str,
    /// The value, as a file says it. `None` if the daemon finds it out itself,
    /// or TOML cannot express it. Values of headers are not shown.
    pub value: Option<toml::Value>,
    /// Whether a changed value waits for the daemon's next start.
    pub at_restart: bool,
    /// What a repository's file may set. `None`: nothing.
    pub repository_may: Option<&'static str>,
}

/// How path names compare (SEEN-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    /// `A` and `a` are two files.
    Sensitive,
    /// `A` and `a` are one file.
    Insensitive,
}

/// What a change of state survives once it is answered (DUR-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The exit of the daemon, also by `kill -9`.
    Process,
    /// A crash or power failure of the machine as well.
    Power,
}

impl Durability {
    /// Returns the name that `status` and the configuration use.
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
    /// `case`: whether names that differ in case are one file. Default `None`:
    /// found out by probing the file system.
    pub case: Option<Case>,
    /// `durability`: what an answered change of state survives. Default:
    /// `"process"`.
    pub durability: Durability,
    /// `watch`: the watch backend. Default: `"auto"`.
    pub watch: Choice,
    /// `off`: the directories in which touchmark does nothing, with all below
    /// them. Default: none.
    pub off: Vec<PathBuf>,
    /// `idle_exit`: the time without a connection or request after which a
    /// daemon that was started on demand exits. Default: 30 min.
    pub idle_exit: Millis,
    /// `marks.edit_ttl`: how long an edit of `edit/begin` stays open by
    /// default. Default: 60 s.
    pub edit_ttl: Millis,
    /// `marks.flag_ttl`: how long a mark of `edit/mark` lasts by default.
    /// Default: 10 s.
    pub flag_ttl: Millis,
    /// `marks.hook_ttl`: how long an edit that names a call (a hook's) stays
    /// open by default. Default: 10 min.
    pub hook_ttl: Millis,
    /// `marks.command_ttl`: how long a command's window stays open by default.
    /// Default: 10 min.
    pub command_ttl: Millis,
    /// `marks.late`: the maximum age of a version that a late declaration can
    /// claim (ATTR-14). Default: 10 s.
    pub late: Millis,
    /// `limits.frame`: the maximum size of one message, in bytes. Default: 16
    /// MiB.
    pub frame: u64,
    /// `limits.connections`: the maximum number of simultaneous connections.
    /// Default: 4096.
    pub connections: u32,
    /// `limits.read_text`: the maximum size of the text in one answer, in
    /// bytes. Default: 4 MiB.
    pub read_text: u64,
    /// `contents.total`: the maximum size of all stored contents, in bytes
    /// after compression. Default: 512 MiB.
    pub contents_total: u64,
    /// `contents.file`: the size in bytes above which a file's content is not
    /// stored. Default: 8 MiB.
    pub contents_file: u64,
    /// `contents.exclude`: patterns of names whose content is never stored
    /// (SEC-3). Default: [`SECRETS`](touchmark_engine::patterns::SECRETS).
    pub contents_exclude: Vec<String>,
    /// `scope.exclude`: patterns of names that a command's window does not
    /// cover, in addition to ignored files (SCOPE-1). Default: none.
    pub scope_exclude: Vec<String>,
    /// `guard.protect`: patterns of names that are never written to for a
    /// client (SEC-10). Default:
    /// [`PROTECTED`](touchmark_engine::patterns::PROTECTED).
    pub guard_protect: Vec<String>,
    /// `versions.keep`: the maximum number of stored versions of one path.
    /// Default: 10,000.
    pub versions_per_path: u64,
    /// `versions.keep`: the age after which versions are removed. Default: 30
    /// days.
    pub versions_age: Millis,
    /// `sessions.keep`: the time after which unused sessions are removed.
    /// Default: 30 days.
    pub sessions_keep: Millis,
    /// `recovery.keep`: the age after which bytes in the recovery directory are
    /// removed. Default: 30 days.
    pub recovery_age: Millis,
    /// `recovery.keep`: the maximum size of the recovery directory, in bytes.
    /// Default: 1 GiB.
    pub recovery_bytes: u64,
    /// `recovery.ignored`: the maximum size of the contents in it that ignored
    /// files had before a witnessed command destroyed them, in bytes; 0 for none.
    pub recovery_ignored: u64,
    /// `dedup.enabled`: whether repeated reads are distinguished from first
    /// ones. Default: true.
    pub dedup: bool,
    /// `hooks.replace_repeats`: whether the output of a repeated read is
    /// replaced by one line, where the agent's hooks can replace a tool's
    /// output. Default: false.
    pub replace_repeats: bool,
    /// `hooks.gate`: what an agent's tools are denied for. Default:
    /// `Destructive`.
    pub gate: Gate,
    /// `hooks.gates`: the value of `hooks.gate` for single agents, by the names
    /// that `touchmark hook` uses.
    pub gates: BTreeMap<String, Gate>,
    /// `hooks.unsaved`: what is done about files with unsaved changes in an
    /// editor. Default: `Ask`.
    pub unsaved: Unsaved,
    /// `desktop.losses`: whether the desktop shows what is lost. Default: false.
    pub desktop_losses: bool,
    /// `worktrees.notice`: whether sessions are told of lines that other
    /// worktrees of the repository have changed.
    pub worktrees_notice: bool,
    /// `calls.keep`: the maximum number of stored tool calls of a session.
    /// Default: 50.
    pub calls_keep: u64,
    /// `calls.age`: the time after which a stored tool call is removed.
    /// Default: 5 min.
    pub calls_age: Millis,
    /// `calls.bytes`: the maximum size of a session's stored tool calls, in
    /// bytes. Default: 256 KiB.
    pub calls_bytes: u64,
    /// `calls.never`: the names of tools whose calls are never stored.
    pub calls_never: Vec<String>,
    /// `calls.rules`: for each tool, the arguments in which two equal calls
    /// agree.
    pub calls_rules: BTreeMap<String, Vec<String>>,
    /// `telemetry.enabled`: whether records are sent to a collector (TEL-1).
    /// Default: false.
    pub telemetry: bool,
    /// `telemetry.endpoint`: the address of the collector. Default `None`: as
    /// the standard variables say, else this machine's usual port.
    pub telemetry_endpoint: Option<Endpoint>,
    /// `telemetry.headers`: headers of each request to the collector. Default:
    /// those of the standard variable.
    pub telemetry_headers: Headers,
    /// `telemetry.paths`: how records name files. Default: `Hash`.
    pub telemetry_paths: Paths,
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
            contents_file: 8 << 20,
            contents_exclude: SECRETS.iter().copied().map(String::from).collect(),
            off: Vec::new(),
            scope_exclude: Vec::new(),
            guard_protect: PROTECTED.iter().copied().map(String::from).collect(),
            versions_per_path: 10_000,
            versions_age: 30 * DAY,
            sessions_keep: 30 * DAY,
            recovery_age: 30 * DAY,
            recovery_bytes: 1 << 30,
            recovery_ignored: 16 << 20,
            dedup: true,
            replace_repeats: false,
            gate: Gate::default(),
            gates: BTreeMap::new(),
            unsaved: Unsaved::default(),
            desktop_losses: false,
            worktrees_notice: true,
            calls_keep: 50,
            calls_age: 5 * MINUTE,
            calls_bytes: 256 << 10,
            calls_never: touchmark_engine::config::NEVER_KEPT
                .iter()
                .map(|tool| (*tool).to_owned())
                .collect(),
            calls_rules: touchmark_engine::Config::default().calls_rules,
            telemetry: false,
            telemetry_endpoint: None,
            telemetry_headers: Headers::default(),
            telemetry_paths: Paths::default(),
        }
    }
}

impl Config {
    /// Returns what the tools of `agent` are denied for.
    #[must_use]
    pub fn gate(&self, agent: &str) -> Gate {
        self.gates.get(agent).copied().unwrap_or(self.gate)
    }

    /// Returns the configuration of a workspace. `named` is the user's
    /// configuration file if it is not the usual one; then it must exist.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn of(places: &Places, named: Option<&Path>) -> Result<Configured, ConfigError> {
        let user = named.unwrap_or(&places.config);
        let trust = trust(&places.trusted);
        Self::load(user, &places.workspace_config, &trust, named.is_some())
    }

    /// Reads the user's file, then the workspace's, which may only tighten the
    /// user's settings (SEC-5) and is used only if the user trusts it (SEC-6).
    /// A file that does not exist sets nothing. An entry that is wrong is
    /// reported and not in effect; the other entries are.
    ///
    /// While anything is wrong in the user's file, nothing is removed because
    /// of its age or number. While a list of secrets cannot be read, no content
    /// is stored. A mistake in either could not be undone later.
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
                Ok(text) => {
                    let applied = done.config.apply(file, &text, whose);
                    done.set.extend(applied.set);
                    applied.wrong
                }
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

    /// Returns the engine's part of the configuration, for a workspace.
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

    /// Applies the keys in one file's text that `whose` may set; other keys
    /// keep their values.
    pub fn apply(&mut self, file: &Path, text: &[u8], whose: Whose) -> Applied {
        let taken = keys::take(self, text, whose);
        let line = |at: usize| line_at(text.get(..at).unwrap_or(text));
        let set = taken.set.into_iter().map(|(key, at)| Entry {
            key,
            file: file.to_owned(),
            line: line(at),
        });
        let wrong = taken.wrong.into_iter().map(|wrong| {
            let line = wrong.at.map_or(0, line);
            ConfigError::new(file, line, wrong.part, &wrong.reason)
        });
        let (set, mut wrong): (_, Vec<ConfigError>) = (set.collect(), wrong.collect());
        wrong.sort_by_key(|wrong| wrong.line);
        Applied { set, wrong }
    }

    /// Returns the names of all keys, in the order of the documentation.
    pub fn keys() -> impl Iterator<Item = &'static str> {
        keys::all().map(|key| key.name)
    }

    /// Returns every key, in the order of the documentation, with its value.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        keys::all().map(|key| Setting {
            key: key.name,
            value: key.show(self),
            at_restart: key.at_restart,
            repository_may: key.repository(),
        })
    }

    /// Sets all limits of age and number so high that nothing is removed that a
    /// correct configuration might keep.
    fn retain_all(&mut self) {
        const LONG: Millis = 36_500 * 86_400_000;
        const MANY: u64 = 1 << 40;
        (self.versions_per_path, self.versions_age) = (MANY, LONG);
        (self.recovery_bytes, self.recovery_age) = (MANY, LONG);
        self.recovery_ignored = MANY;
        self.sessions_keep = LONG;
    }
}

fn line_at(before: &[u8]) -> usize {
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Returns the value of `off` in the user's configuration file; empty if it sets
/// none that is right.
pub(crate) fn users_off(file: &Path) -> Vec<PathBuf> {
    let text = file::read(file).unwrap_or_default();
    // Hooks ask this, and few files set it.
    if !text.windows(3).any(|part| part == b"off") {
        return Vec::new();
    }
    let mut config = Config::default();
    config.apply(file, &text, Whose::User);
    config.off
}
