//! The shell around the engine: watcher, fence, hashing, store, sockets, and
//! the event loop. Nothing in this crate decides who wrote a content or which
//! copy is stale.
//!
//! - [`run`]: the event loop. It handles every input of the daemon.
//! - [`socket`]: connections; requests in, answers and events out.
//! - [`watch`], [`links`], [`content`]: hints, symlinks, and the contents on
//!   disk.
//! - [`guard`]: writes that destroy nothing.
//! - [`git`]: starts git safely.
//! - `answers`, `context`, `inside`, `standing`: requests that are answered in
//!   tasks, what these tasks get, and how they ask the loop.
//! - `fill`, `losses`: line counts and previews in answers; which of the losses
//!   in them are ones.
//! - `hooks`: the events of agents' hooks, and the answers to them.
//! - `scope`: what commands do to untracked files.
//! - [`tools`], [`time`]: searches; the time of day.
//! - `past`: which file a name stood for at any time, and which contents git
//!   brought.
//! - `history`: earlier contents of files, line by line.
//! - `undo`, `review`: taking changes away by their author; the queue of agents'
//!   changes.
//! - `survival`: how many lines of agents are left.
//! - `worktrees`: what other worktrees of the repository have changed.
//! - [`store`]: facts and stored contents.
//! - [`start`], [`life`], [`config`], [`log`]: start, lifetime, configuration
//!   and log of the daemon.
//! - `failpoint`: the points at which a test may end the process.
//! - [`off`]: where the user has switched touchmark off.
//! - `telemetry`: records for a collector, if the user has switched it on.
//! - `system`: interfaces that each operating system implements differently.
//! - `fleet`: what all daemons of a user share.
//! - [`doctor`]: problems in the daemon's surroundings.
//! - [`error`]: errors that end the daemon.
//! - `fuzzed`: the bodies of fuzz targets, for tests and fuzzers alone (`fuzz/`).

mod answers;
pub mod config;
pub mod content;
mod context;
mod desktop;
pub mod doctor;
pub mod error;
pub mod event;
mod failpoint;
mod fill;
mod fleet;
#[cfg(any(test, fuzzing))]
#[path = "../../fuzz/daemon.rs"]
pub mod fuzzed;
pub mod git;
pub mod guard;
mod history;
mod hooks;
mod inside;
pub mod life;
pub mod links;
pub mod log;
mod losses;
pub mod off;
mod past;
mod review;
pub mod run;
mod scope;
pub mod socket;
mod standing;
pub mod start;
pub mod store;
mod survival;
mod system;
mod telemetry;
pub mod time;
pub mod tools;
mod undo;
pub mod watch;
mod witness;
mod worktrees;

pub use error::Error;
pub use hooks::{Unanswered, agent, place};
pub use start::{DaemonOptions, main_daemon};
pub use witness::probe as probe_witness;
