//! What was done: commands, undos, restores, reviews, prompts, git's moves.
//!
//! - [`actions`]: the rows of `activity/list` about them.
//! - [`operations`]: what git did, from its log of `HEAD`.
//! - [`planned`]: the lines that an undo would change.

pub(crate) mod actions;
mod operations;
pub(crate) mod planned;
