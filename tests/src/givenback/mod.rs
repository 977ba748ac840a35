//! Sessions of several authors in a repository, and what an undo gives back.
//! From a seed, a user, two agents and a sub-agent edit, run commands, move
//! files, use git and undo. Every line that is ever typed occurs once, so the
//! files on disk say who typed what. It is written from the rules (UNDO, HIST,
//! REV, ATTR, SCOPE), without the program's code.
//!
//! - [`step`]: the steps; [`seed`] makes a session of them.
//! - [`features`]: which groups of steps and comparisons are switched on.
//! - [`stage`]: the means of the authors: tools, hooks, commands, saves, git.
//! - [`truth`]: who typed which line, and what was done with it since.
//! - [`play`]: runs the steps; [`acts`]: those with git and moves; [`answers`]:
//!   undo, redo, review.
//! - [`judge`]: what an undo must do; [`views`]: what blame and the review must
//!   show.
//! - [`allow`]: where the rules leave a choice.
//! - [`shrink`]: finds the shortest session that still fails.

pub mod acts;
pub mod allow;
pub mod answers;
pub mod features;
pub mod judge;
pub mod play;
pub mod seed;
pub mod shrink;
pub mod stage;
pub mod step;
pub mod truth;
pub mod views;
