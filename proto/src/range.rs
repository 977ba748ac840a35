//! Ranges of lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lines `start` to `end`, 1-based, both inclusive.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct LineRange {
    /// The first line.
    pub start: u32,
    /// The last line.
    pub end: u32,
}

impl LineRange {
    /// All lines of any file.
    pub const ALL: Self = Self {
        start: 1,
        end: u32::MAX,
    };

    /// Whether it names at least one line, counting from 1.
    pub fn is_valid(self) -> bool {
        self.start >= 1 && self.start <= self.end
    }
}
