//! What agents' tools do with files in addition to reading and writing them:
//! searches. This module records nothing and does not decide who wrote a
//! content.

pub mod grep;
mod searches;

pub(crate) use grep::GIT;
pub(crate) use grep::ignored::{Files, MOST_PATTERNS, compile, unignored};
pub(crate) use searches::Searches;
