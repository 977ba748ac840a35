//! The engine's limits and delays; each is a key of the configuration.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::Millis;

use crate::patterns::Patterns;

/// Tools that act, or whose answer is never the same: `calls.never`.
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

/// By which arguments two calls of a tool are alike: `calls.rules`.
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
    /// The canonical absolute path of the workspace, to resolve names by text.
    pub root: Vec<u8>,
    /// Names differing in case are one file (SEEN-6).
    pub case_insensitive: bool,
    /// How long an edit stays open: `marks.edit_ttl`.
    pub edit_ttl: Millis,
    /// How long a one-call mark holds: `marks.flag_ttl`.
    pub flag_ttl: Millis,
    /// How long an edit named by a hook stays open: `marks.hook_ttl`.
    pub hook_ttl: Millis,
    /// How long a command window stays open: `marks.command_ttl`.
    pub command_ttl: Millis,
    /// How late a declaration may come: `marks.late` (ATTR-14).
    pub late: Millis,
    /// How long a bound edit or window outlives its connection (ATTR-9).
    pub bind_grace: Millis,
    /// How far an editor's report and the version may lie apart (ATTR-2).
    pub editor_window: Millis,
    /// How long an absence is waited out before it is recorded although
    /// nobody asked; shorter absences are part of a save (ATTR-12).
    pub settle: Millis,
    /// Whether repeats are told from first reads: `dedup.enabled`.
    pub dedup: bool,
    /// Names whose contents are never kept: `contents.exclude`; none by
    /// default.
    pub secrets: Patterns,
    /// Tool calls kept for a session: `calls.keep`.
    pub calls_keep: u64,
    /// How long they are kept: `calls.age`.
    pub calls_age: Millis,
    /// Bytes of them kept for a session: `calls.bytes`.
    pub calls_bytes: u64,
    /// Tools whose calls are never kept: `calls.never`.
    pub calls_never: BTreeSet<String>,
    /// By which arguments two calls of a tool are alike: `calls.rules`.
    pub calls_rules: BTreeMap<String, Vec<String>>,
    /// How far the zone is from UTC, in milliseconds: for times of day in
    /// messages.
    pub utc_offset: i64,
    /// Bytes of text in one answer: `limits.read_text`.
    pub read_text: u64,
    /// Rows in one answer unless told (LIM-2).
    pub list_limit: u32,
    /// Sessions known, closed ones included (LIM-1).
    pub sessions: usize,
    /// Paths that are tracked or have a history (LIM-1).
    pub tracked: usize,
    /// Files in all open edits together (LIM-1): all are looked at for each new
    /// version.
    pub marked: usize,
    /// Files that one connection's editor may hold with unsaved changes
    /// (LIM-1).
    pub unsaved: usize,
    /// Command windows open (LIM-1).
    pub windows: usize,
    /// What each session may have of files in open edits, and of paths that it
    /// holds, even where others have used up all there is: whoever piles up
    /// must not lock the others out.
    pub own_files: usize,
    /// The same of command windows.
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
