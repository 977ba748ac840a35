//! Earlier contents of files, who wrote them, and what was done.
//!
//! - [`actions`]: commands, undos, restores, reviews, prompts and git's moves,
//!   as rows of `activity/list`. [`operations`]: what git did, from its log of
//!   `HEAD`.
//! - [`claim`]: the user says who wrote a change.
//! - [`entry`]: the record of one undo. [`planned`]: the lines that it would
//!   change. [`markers`]: conflict markers.

pub(crate) mod actions;
mod claim;
pub(crate) mod entry;
pub(crate) mod markers;
mod operations;
pub(crate) mod planned;
