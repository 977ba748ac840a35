//! Which versions git brought onto the disk (HIST-8).
//!
//! Nobody typed what a switch, a merge or a `stash pop` writes. Such a content
//! was in git before it was in the file. So a version is looked at right after
//! it was recorded, in the background, and the result is a fact
//! ([`touchmark_engine::Fact::GitBrought`]). Answers about authors wait for the
//! looks that are pending.
//!
//! - [`blobs`]: whether the repository has a content, and since when.
//! - [`moves`]: how `HEAD` moved, and which files each move changed.
//! - [`stashes`]: what is stashed, and was until lately.
//! - [`place`]: one repository, and what is cached of it.
//! - [`judge`]: the decision about one version.
//! - [`looks`]: the queue of versions to look at.

mod blobs;
mod judge;
mod looks;
mod moves;
mod place;
mod stashes;

pub(crate) use looks::Looks;
pub(crate) use moves::moves_in;
