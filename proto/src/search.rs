//! The request that searches the workspace's files.

use crate::{ClientPath, RelPath, SessionId};

/// Searches files for a regular expression, as `rg` does.
#[apply(request!)]
#[derive(Default)]
pub struct SearchGrep {
    /// The session that searches; used only in the log.
    pub session: Option<SessionId>,
    /// The regular expression, in the syntax of the Rust crate `regex`.
    pub pattern: String,
    /// Only this file, or the files below this directory; `None` means the
    /// whole workspace. The path is searched even if it is ignored or hidden.
    pub path: Option<ClientPath>,
    /// Only files whose paths match this glob. A leading `!` excludes the files
    /// that match.
    pub glob: Option<String>,
    /// Only files of this type: `rust`, `ts`, `py`, ... as listed by `rg
    /// --type-list`.
    pub file_type: Option<String>,
    /// The number of lines to return before each match; at most 1,000.
    pub before_context: Option<u32>,
    /// The number of lines to return after each match; at most 1,000.
    pub after_context: Option<u32>,
    /// The default of `before_context` and `after_context`.
    pub context: Option<u32>,
    /// Whether upper and lower case are the same; default false.
    #[serde(default)]
    pub case_insensitive: bool,
    /// Whether a match may span several lines; default false.
    #[serde(default)]
    pub multiline: bool,
    /// The maximum number of matches to return; default 1,000, at most 100,000.
    pub max_matches: Option<u32>,
}

/// A match of a search.
#[apply(answer!)]
pub struct Match {
    /// The path of the file, with symlinks resolved.
    pub path: RelPath,
    /// The line number, from 1.
    pub line: u64,
    /// The column in bytes, from 1.
    pub column: u64,
    /// The line or lines of the match, without the last line ending. A very
    /// long line is shortened around the match, with `…` where it was cut.
    pub text: String,
    /// The lines before the match.
    pub before: Vec<String>,
    /// The lines after the match.
    pub after: Vec<String>,
}

/// The result of a search.
#[apply(answer!)]
pub struct Matches {
    /// The matches, sorted by path, component by component, and then by line.
    pub matches: Vec<Match>,
    /// Whether matches are missing: there are more than requested, they do not
    /// fit one message, or not every file could be searched in time.
    pub truncated: bool,
    /// The number of files searched.
    pub files_searched: u64,
}
