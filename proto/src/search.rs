//! The request that searches the files of the workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClientPath, RelPath, SessionId};

/// Searches files for a regular expression, as `rg` does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchGrep {
    /// Whose; only for the log.
    pub session: Option<SessionId>,
    /// The regular expression, in the syntax of the Rust crate `regex`.
    pub pattern: String,
    /// Only this file, or below this directory; the whole workspace if absent.
    /// What is named is searched even if it is ignored or hidden.
    pub path: Option<ClientPath>,
    /// Only files whose names match; `!` before it leaves them out.
    pub glob: Option<String>,
    /// Only files of this type: `rust`, `ts`, `py`, ... as `rg --type-list`.
    pub file_type: Option<String>,
    /// Lines before each match; at most 1,000.
    pub before_context: Option<u32>,
    /// Lines after each match; at most 1,000.
    pub after_context: Option<u32>,
    /// Both, where they are not given.
    pub context: Option<u32>,
    /// Upper and lower case are the same.
    #[serde(default)]
    pub case_insensitive: bool,
    /// A match may reach over lines.
    #[serde(default)]
    pub multiline: bool,
    /// At most this many; 1,000 unless told, and never more than 100,000.
    pub max_matches: Option<u32>,
}

/// A match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Match {
    /// In which file, by its real name.
    pub path: RelPath,
    /// On which line, from 1.
    pub line: u64,
    /// In which column, in bytes from 1.
    pub column: u64,
    /// The line, or the lines it reaches over, without the last line's end. Of
    /// a very long one what lies around the match, with `…` where it was cut.
    pub text: String,
    /// Lines before it.
    pub before: Vec<String>,
    /// Lines after it.
    pub after: Vec<String>,
}

/// Matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Matches {
    /// By path, name by name, and line.
    pub matches: Vec<Match>,
    /// There are more, or they do not fit one message, or not every file could
    /// be searched to its end in time.
    pub truncated: bool,
    /// Files looked into.
    pub files_searched: u64,
}
