//! Ranges of lines.

use serde::{Deserialize, Serialize};

/// The lines from `start` to `end`, both included. The first line of a file is
/// 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LineRange {
    /// The number of the first line.
    pub start: u32,
    /// The number of the last line.
    pub end: u32,
}

impl LineRange {
    /// All lines of any file.
    pub const ALL: Self = Self {
        start: 1,
        end: u32::MAX,
    };

    /// Returns whether the range has at least one line and starts at 1 or
    /// later.
    pub fn is_valid(self) -> bool {
        self.start >= 1 && self.start <= self.end
    }
}
