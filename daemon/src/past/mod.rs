//! Earlier contents of files, who wrote them, and what was done.
//!
//! - [`actions`]: commands, undos, restores, reviews, prompts and git's moves,
//!   as rows of `activity/list`. [`operations`]: what git did, from its log of
//!   `HEAD`.
//! - [`claim`]: the user says who wrote a change. [`committed`]: which commits
//!   lines belong to. [`notes`]: the agents that the notes of commits name.
//! - [`unmerged`]: which files are in the middle of a merge.
//! - [`entry`]: the record of one undo. [`planned`]: the lines that it would
//!   change. [`markers`]: conflict markers.
//! - [`versions`]: the versions of one file. [`undos`]: which of them are undos
//!   and redos.
//!
//! Which file each name stands for, and stood for before (HIST-9), is decided
//! once for each burst of changes, from the contents:
//!
//! - [`lineage`]: what is decided.
//! - [`decide`]: the decision about new bursts.
//! - [`search`]: where files went whose removal was not observed.
//!
//! Which versions git brought onto the disk (HIST-8): no user typed what a
//! switch, a merge or a `stash pop` writes. Such a content was in git before it
//! was in the file. So a version is looked at right after it was recorded, in
//! the background, and the result is a fact
//! ([`touchmark_engine::Fact::GitBrought`]). Answers about authors wait for the
//! looks that are pending.
//!
//! - [`blobs`]: whether the repository has a content, and since when.
//! - [`moves`]: when `HEAD` was moved, and which files each move changed.
//! - [`stashes`]: what is stashed, and was until lately.
//! - [`converted`]: what git makes of a content when it stores it.
//! - [`place`]: one repository, and what is cached of it.
//! - [`judge`]: the decision about one version.
//! - [`looks`]: the queue of versions to look at.

pub(crate) mod actions;
mod blobs;
mod claim;
pub(crate) mod committed;
pub(crate) mod converted;
mod decide;
pub(crate) mod entry;
#[cfg(any(test, fuzzing))]
#[path = "../../../fuzz/past.rs"]
pub(crate) mod fuzzed;
mod judge;
pub(crate) mod lineage;
mod looks;
pub(crate) mod markers;
mod moves;
mod neighbours;
mod notes;
mod operations;
mod place;
pub(crate) mod planned;
mod search;
mod stashes;
pub(crate) mod undos;
pub(crate) mod unmerged;
pub(crate) mod versions;

use std::sync::Arc;

pub(crate) use blobs::Blobs;
pub(crate) use decide::Lineages;
pub(crate) use lineage::Lineage;
pub(crate) use looks::Looks;
pub(crate) use place::top_of;

/// What is known of where the contents of files come from.
#[derive(Clone)]
pub(crate) struct Origins {
    /// Which versions git brought.
    pub(crate) looks: Arc<Looks>,
    /// Which names stand for which files.
    pub(crate) lineages: Arc<Lineages>,
}
