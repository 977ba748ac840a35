//! The shell around the engine: watcher, fence, hashing, store, sockets, one
//! loop. Nothing here decides who wrote or what is stale.
//!
//! - [`run`]: the loop. Who reads it sees everything that ever happens.
//! - [`socket`]: connections; requests in, answers and events out.
//! - [`watch`], [`links`], [`content`]: hints, and what the disk holds.
//! - [`guard`]: writes that destroy nothing.
//! - `hooks`: what agents' hooks say, and what they are answered.
//! - `scope`: what commands do to files that nobody tracks.
//! - [`tools`], [`time`]: searches; the time of day.
//! - [`store`], [`lines`]: facts and kept contents.
//! - [`start`], [`life`], [`config`], [`log`]: how the daemon lives.
//! - `failpoint`: where a test may end the process.
//! - `system`: what each system does in its own way.
//! - [`doctor`]: what can be wrong around it.
//! - [`error`]: what stops it.

pub mod config;
pub mod content;
pub mod doctor;
pub mod error;
pub mod event;
mod failpoint;
pub mod guard;
mod history;
mod hooks;
mod inside;
pub mod life;
pub mod links;
pub mod log;
mod review;
pub mod run;
mod scope;
pub mod socket;
pub mod start;
pub mod store;
mod system;
pub mod time;
pub mod tools;
mod undo;
pub mod watch;

pub use error::Error;
pub use hooks::{Unanswered, place};
pub use start::{DaemonOptions, main_daemon};
