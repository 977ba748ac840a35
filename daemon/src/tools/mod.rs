//! What agents' tools do with files beside reading and writing them: searches.
//! Nothing here is recorded, and nothing here decides who wrote.

pub mod grep;

pub(crate) use grep::GIT;
pub(crate) use grep::ignored::{Files, MOST_PATTERNS, compile};
