//! The engine's limits and delays. Each is a key of the configuration.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::Millis;

use crate::patterns::Patterns;

/// The default of `calls.never`: tools that change something, or whose result
/// is different each time.
pub const NEVER_KEPT: &[&str] = &[
    "unifiedExec",
    "writeStdin",
    "closePtySession",
    "listPtySessions",
    "bash",
    "Bash",
    "shell",
    "execute_bash",
    "run_shell_command",
];

/// The default of `calls.rules`: for each tool, the arguments by which two of
/// its calls are compared.
pub const RULES: &[(&str, &[&str])] = &[
    ("readFile", &["path"]),
    (
        "grep",
        &["pattern", "path", "glob", "multiline", "caseInsensitive"],
    ),
    ("writeFile", &["path", "content"]),
    ("multiedit", &["path", "edits"]),
    ("webFetch", &["url"]),
];

/// Limits and delays, with the defaults of docs/configuration.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The canonical absolute path of the workspace. Absolute names are
    /// resolved against it by text.
    pub root: Vec<u8>,
    /// Names that differ only in case name the same file (SEEN-6).
    pub case_insensitive: bool,
    /// How long an edit stays open: `marks.edit_ttl`.
    pub edit_ttl: Millis,
    /// How long a one-call mark stays open: `marks.flag_ttl`.
    pub flag_ttl: Millis,
    /// How long an edit that a hook began stays open: `marks.hook_ttl`.
    pub hook_ttl: Millis,
    /// How long a command window stays open: `marks.command_ttl`.
    pub command_ttl: Millis,
    /// How long after its write a declaration still counts: `marks.late`
    /// (ATTR-14).
    pub late: Millis,
    /// How long a bound edit or command window stays open after its connection
    /// ended (ATTR-9).
    pub bind_grace: Millis,
    /// The longest time between an editor's report and the version that it
    /// explains (ATTR-2).
    pub editor_window: Millis,
    /// How long the engine waits before it records an absence that no request
    /// asks about. Shorter absences are part of a save (ATTR-12).
    pub settle: Millis,
    /// Whether repeated reads are reported as repeats: `dedup.enabled`.
    pub dedup: bool,
    /// Patterns of names whose contents are never kept: `contents.exclude`.
    /// None by default.
    pub secrets: Patterns,
    /// The maximum number of tool calls that are kept for each session:
    /// `calls.keep`.
    pub calls_keep: u64,
    /// How long a tool call is kept: `calls.age`.
    pub calls_age: Millis,
    /// The maximum number of bytes of tool calls that are kept for each
    /// session: `calls.bytes`.
    pub calls_bytes: u64,
    /// Tools whose calls are never kept: `calls.never`.
    pub calls_never: BTreeSet<String>,
    /// For each tool, the arguments by which two of its calls are compared:
    /// `calls.rules`.
    pub calls_rules: BTreeMap<String, Vec<String>>,
    /// The offset of the local time zone from UTC, in milliseconds. Used for
    /// times of day in messages.
    pub utc_offset: i64,
    /// The maximum number of bytes of text in one answer: `limits.read_text`.
    pub read_text: u64,
    /// The maximum number of rows in one answer if the request has no `limit`
    /// (LIM-2).
    pub list_limit: u32,
    /// The maximum number of sessions, closed ones included (LIM-1).
    pub sessions: usize,
    /// The maximum number of paths that are tracked or have a history (LIM-1).
    pub tracked: usize,
    /// The maximum number of files in all open edits together (LIM-1). Each new
    /// version is checked against all of them.
    pub marked: usize,
    /// The maximum number of files with unsaved changes that one connection's
    /// editor may report (LIM-1).
    pub unsaved: usize,
    /// The maximum number of open command windows (LIM-1).
    pub windows: usize,
    /// The number of files in open edits, and of tracked paths, that each
    /// session may have even when the overall limits are reached. So a session
    /// that uses up a limit cannot lock out the other sessions.
    pub own_files: usize,
    /// The number of command windows that each session may have even when the
    /// overall limit is reached.
    pub own_windows: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            root: b"/".to_vec(),
            case_insensitive: false,
            edit_ttl: 60_000,
            flag_ttl: 10_000,
            hook_ttl: 600_000,
            command_ttl: 600_000,
            late: 10_000,
            bind_grace: 2_000,
            editor_window: 2_000,
            settle: 100,
            dedup: true,
            secrets: Patterns::default(),
            calls_keep: 50,
            calls_age: 300_000,
            calls_bytes: 256 << 10,
            calls_never: NEVER_KEPT.iter().map(|tool| (*tool).to_owned()).collect(),
            calls_rules: RULES
                .iter()
                .map(|(tool, names)| {
                    let names = names.iter().map(|name| (*name).to_owned()).collect();
                    ((*tool).to_owned(), names)
                })
                .collect(),
            utc_offset: 0,
            read_text: 4 << 20,
            list_limit: 1_000,
            sessions: 100_000,
            tracked: 1_000_000,
            marked: 20_000,
            unsaved: 10_000,
            windows: 1_000,
            own_files: 100,
            own_windows: 4,
        }
    }
}
