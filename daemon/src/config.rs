//! The configuration: the user's file, and the workspace's, which wins.
//!
//! A wrong or unknown key is refused with file, line and reason. Durations
//! are texts like `"60 s"`, `"10 min"`, `"30 days"`; sizes like `"16 MiB"`;
//! plain numbers are seconds and bytes. Each has bounds; see `units`.

mod case;
#[cfg(test)]
mod documented;
mod file;
mod reload;
mod units;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use touchmark_proto::{Millis, Places};

use crate::watch::Choice;
pub use case::probe_case_insensitive;
pub use reload::Changes;
use units::{Bytes, Connections, FrameBytes, Keep, KeepBytes, Span, TextBytes};

/// A configuration file is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{}:{line}: {reason}", file.display())]
pub struct ConfigError {
    /// Which file.
    pub file: PathBuf,
    /// The line, from 1; 0 where the file as a whole is meant.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
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
    /// `contents.total`: bytes of kept contents; 256 MiB unless told.
    pub contents_total: u64,
    /// `contents.file`: larger files are not kept; 1 MiB unless told.
    pub contents_file: u64,
    /// `contents.exclude`: names never kept (SEC-3); `.env*`, `*.pem`,
    /// `id_*`, `*.key` unless told.
    pub contents_exclude: Vec<String>,
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
            contents_total: 256 << 20,
            contents_file: 1 << 20,
            contents_exclude: [".env*", "*.pem", "id_*", "*.key"]
                .map(String::from)
                .to_vec(),
            versions_per_path: 10_000,
            versions_age: 30 * DAY,
            sessions_keep: 30 * DAY,
            recovery_age: 30 * DAY,
            recovery_bytes: 1 << 30,
            dedup: true,
            replace_repeats: false,
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
    /// The configuration of a workspace. `named` is the user's file if it is
    /// not the usual one; it must exist then.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn of(places: &Places, named: Option<&Path>) -> Result<Self, ConfigError> {
        let user = named.unwrap_or(&places.config);
        Self::load(user, &places.workspace_config, named.is_some())
    }

    /// Reads the user's file, then the workspace's, which wins key by key.
    /// Files that do not exist say nothing, unless `must_exist`.
    ///
    /// # Errors
    /// A file that cannot be read, or a key that is wrong.
    pub fn load(user: &Path, workspace: &Path, must_exist: bool) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for (file, must_exist) in [(user, must_exist), (workspace, false)] {
            match file::read(file) {
                Ok(text) => config.apply(file, &text)?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => {}
                Err(error) => {
                    return Err(ConfigError {
                        file: file.to_owned(),
                        line: 0,
                        reason: error.to_string(),
                    });
                }
            }
        }
        Ok(config)
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

    /// Takes over the keys of one file's text; other keys stay.
    ///
    /// # Errors
    /// A text that is no TOML, and a key that is unknown or out of bounds;
    /// then nothing has changed.
    pub fn apply(&mut self, file: &Path, text: &[u8]) -> Result<(), ConfigError> {
        let wrong = |line, reason| ConfigError {
            file: file.to_owned(),
            line,
            reason,
        };
        let text = std::str::from_utf8(text).map_err(|error| {
            let before = text.get(..error.valid_up_to()).unwrap_or_default();
            wrong(line_at(before), "not UTF-8".into())
        })?;
        let raw: Raw = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| {
                line_at(text.as_bytes().get(..span.start).unwrap_or_default())
            });
            wrong(line, error.message().into())
        })?;
        for pattern in raw.contents.exclude.iter().flatten() {
            globset::Glob::new(pattern.get_ref()).map_err(|error| {
                let before = text.as_bytes().get(..pattern.span().start);
                wrong(line_at(before.unwrap_or_default()), error.to_string())
            })?;
        }
        self.merge(raw);
        Ok(())
    }

    fn merge(&mut self, raw: Raw) {
        fn set<T, R: Into<T>>(value: &mut T, raw: Option<R>) {
            if let Some(raw) = raw {
                *value = raw.into();
            }
        }
        if raw.case.is_some() {
            self.case = raw.case;
        }
        set(&mut self.durability, raw.durability);
        set(&mut self.watch, raw.watch);
        set(&mut self.idle_exit, raw.idle_exit);
        set(&mut self.edit_ttl, raw.marks.edit_ttl);
        set(&mut self.flag_ttl, raw.marks.flag_ttl);
        set(&mut self.hook_ttl, raw.marks.hook_ttl);
        set(&mut self.command_ttl, raw.marks.command_ttl);
        set(&mut self.late, raw.marks.late);
        set(&mut self.frame, raw.limits.frame);
        set(&mut self.connections, raw.limits.connections);
        set(&mut self.read_text, raw.limits.read_text);
        set(&mut self.contents_total, raw.contents.total);
        set(&mut self.contents_file, raw.contents.file);
        if let Some(patterns) = raw.contents.exclude {
            self.contents_exclude = patterns
                .into_iter()
                .map(toml::Spanned::into_inner)
                .collect();
        }
        if let Some(Keep { count, age }) = raw.versions.keep {
            set(&mut self.versions_per_path, count);
            set(&mut self.versions_age, age);
        }
        set(&mut self.sessions_keep, raw.sessions.keep);
        if let Some(KeepBytes { bytes, age }) = raw.recovery.keep {
            set(&mut self.recovery_bytes, bytes);
            set(&mut self.recovery_age, age);
        }
        set(&mut self.dedup, raw.dedup.enabled);
        set(&mut self.replace_repeats, raw.hooks.replace_repeats);
        set(&mut self.calls_keep, raw.calls.keep);
        set(&mut self.calls_age, raw.calls.age);
        set(&mut self.calls_bytes, raw.calls.bytes);
        set(&mut self.calls_never, raw.calls.never);
        // Tool by tool: a rule for one leaves the others.
        self.calls_rules.extend(raw.calls.rules.unwrap_or_default());
    }
}

fn line_at(before: &[u8]) -> usize {
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    case: Option<Case>,
    durability: Option<Durability>,
    watch: Option<Choice>,
    idle_exit: Option<Span>,
    marks: Marks,
    limits: Limits,
    contents: Contents,
    versions: Versions,
    sessions: Sessions,
    recovery: Recovery,
    dedup: Dedup,
    hooks: Hooks,
    calls: Calls,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Marks {
    edit_ttl: Option<Span>,
    flag_ttl: Option<Span>,
    hook_ttl: Option<Span>,
    command_ttl: Option<Span>,
    late: Option<Span>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Limits {
    frame: Option<FrameBytes>,
    connections: Option<Connections>,
    read_text: Option<TextBytes>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Contents {
    total: Option<Bytes>,
    file: Option<Bytes>,
    exclude: Option<Vec<toml::Spanned<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Versions {
    keep: Option<Keep>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Sessions {
    keep: Option<Span>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Recovery {
    keep: Option<KeepBytes>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Calls {
    keep: Option<u64>,
    age: Option<Span>,
    bytes: Option<Bytes>,
    never: Option<Vec<String>>,
    rules: Option<BTreeMap<String, Vec<String>>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Dedup {
    enabled: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Hooks {
    replace_repeats: Option<bool>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        config
            .apply(Path::new("c.toml"), text.as_bytes())
            .map_err(|error| error.to_string())?;
        Ok(config)
    }

    #[test]
    fn every_key() {
        let config = parse(
            r#"
            case = "insensitive"
            durability = "power"
            watch = "off"
            idle_exit = "5 min"
            [marks]
            edit_ttl = "90 s"
            flag_ttl = 3
            hook_ttl = "1 h"
            command_ttl = "2 h"
            late = "500 ms"
            [limits]
            frame = "1 MiB"
            connections = 7
            read_text = 1000
            [contents]
            total = "1 GiB"
            file = "64 KiB"
            exclude = ["*.secret"]
            [versions]
            keep = "1,000 per path, 2 days"
            [sessions]
            keep = "7 days"
            [recovery]
            keep = "3 days, 1 MiB"
            [dedup]
            enabled = false
            [hooks]
            replace_repeats = true
            [calls]
            keep = 5
            age = "1 min"
            bytes = "1 KiB"
            never = ["say"]
            rules = { readFile = ["file"] }
            "#,
        )
        .unwrap();
        assert_eq!(
            config,
            Config {
                case: Some(Case::Insensitive),
                durability: Durability::Power,
                watch: Choice::Off,
                idle_exit: 300_000,
                edit_ttl: 90_000,
                flag_ttl: 3_000,
                hook_ttl: 3_600_000,
                command_ttl: 7_200_000,
                late: 500,
                frame: 1 << 20,
                connections: 7,
                read_text: 1000,
                contents_total: 1 << 30,
                contents_file: 64 << 10,
                contents_exclude: vec!["*.secret".into()],
                versions_per_path: 1000,
                versions_age: 2 * 86_400_000,
                sessions_keep: 7 * 86_400_000,
                recovery_age: 3 * 86_400_000,
                recovery_bytes: 1 << 20,
                dedup: false,
                replace_repeats: true,
                calls_keep: 5,
                calls_age: 60_000,
                calls_bytes: 1 << 10,
                calls_never: vec!["say".into()],
                calls_rules: {
                    let mut rules = Config::default().calls_rules;
                    rules.insert("readFile".into(), vec!["file".into()]);
                    rules
                },
            }
        );
    }

    #[test]
    fn the_engine_shares_its_defaults() {
        let engine = Config::default().engine(b"/".to_vec(), false);
        assert_eq!(engine, touchmark_engine::Config::default());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, start) in [
            ("\n\ncolour = 1\n", "c.toml:3: unknown field `colour`"),
            ("[marks]\nttl = 1\n", "c.toml:2: unknown field `ttl`"),
            ("case = \"loud\"\n", "c.toml:1: unknown variant `loud`"),
            (
                "[marks]\n\nlate = \"10 parsecs\"\n",
                "c.toml:3: \"10 parsecs\" is not a duration",
            ),
            (
                "[limits]\nframe = \"-1 MiB\"\n",
                "c.toml:2: \"-1 MiB\" is not a size",
            ),
            ("[limits]\nframe = -1\n", "c.toml:2: "),
            (
                "[limits]\nframe = \"1 KiB\"\n",
                "c.toml:2: \"1 KiB\" is not a size like \"16 MiB\", from 65536 to",
            ),
            ("[contents]\n\ntotal = \"2048 GiB\"\n", "c.toml:3: "),
            (
                "idle_exit = \"36501 days\"\n",
                "c.toml:1: \"36501 days\" is not a duration",
            ),
            (
                "[limits]\nconnections = 0\n",
                "c.toml:2: 0 is not a number from 1 to 1000000",
            ),
            ("[recovery]\nkeep = \"5000000000\"\n", "c.toml:2: "),
            ("[contents]\nexclude = [\n\"ok\",\n\"[\"]\n", "c.toml:4: "),
            ("a = = 1", "c.toml:1: "),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(start), "{text:?} gave {error:?}");
        }
    }

    #[test]
    fn the_workspace_wins_and_absent_files_say_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let user = directory.path().join("config.toml");
        let workspace = directory.path().join(".touchmark.toml");
        assert_eq!(
            Config::load(&user, &workspace, false).unwrap(),
            Config::default()
        );
        assert!(Config::load(&user, &workspace, true).is_err());
        std::fs::write(&user, "idle_exit = \"1 s\"\n[marks]\nlate = \"1 s\"\n").unwrap();
        std::fs::write(&workspace, "[marks]\nlate = \"2 s\"\n").unwrap();
        let config = Config::load(&user, &workspace, false).unwrap();
        assert_eq!((config.idle_exit, config.late), (1000, 2000));
    }
}
