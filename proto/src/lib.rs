//! touchmark's protocol.
//!
//! Everything that crosses the socket is defined once in this crate. It is
//! carried by three wires: bincode frames, JSON lines, and JSON with a
//! `Content-Length` header. This crate does not depend on sockets, on the
//! engine or on the file system.
//!
//! # Layout
//!
//! - [`path`]: names as clients send them ([`ClientPath`]) and names inside the
//!   workspace ([`RelPath`]).
//! - [`native`]: names as the operating system takes them.
//! - [`hash`], [`clock`], [`range`], [`ids`], [`at`]: the small values.
//! - [`facts`]: what the daemon reports about files: versions, changes, states.
//! - [`error`]: every error with its code, name and hint.
//! - one file per family of methods: [`daemon`], [`sessions`], [`files`],
//!   [`history`], [`edits`], [`writes`], [`commands`], [`changes`],
//!   [`checkpoints`], [`calls`], [`retention`], [`tasks`], [`models`],
//!   [`search`], [`editors`], [`hooks`], [`undo`], [`review`], [`worktrees`].
//! - [`quoting`]: how names from outside are written in sentences and tables.
//! - [`free`]: JSON of any shape, carried without being interpreted.
//! - [`places`]: where the daemon of a workspace keeps its files.
//! - [`trust`]: which files and sockets are accepted, by their owner.
//! - [`methods`]: the table that joins a method's name, parameters and result.
//! - [`events`]: notifications to subscribers.
//! - [`codec`]: the three wires.

#[cfg(not(unix))]
compile_error!("touchmark runs on Linux; on Windows, build and run it in WSL");

pub mod activity;
pub mod at;
pub mod calls;
pub mod changes;
pub mod checkpoints;
pub mod clock;
pub mod codec;
pub mod commands;
pub mod daemon;
pub mod editors;
pub mod edits;
pub mod error;
pub mod events;
pub mod facts;
pub mod files;
pub mod fleet;
pub mod free;
pub mod hash;
pub mod history;
pub mod hooks;
pub mod ids;
pub mod methods;
pub mod mode;
pub mod models;
pub mod native;
pub mod path;
pub mod places;
pub mod quoting;
pub mod range;
pub mod retention;
pub mod review;
pub mod search;
pub mod sessions;
pub mod survival;
pub mod tasks;
pub mod trust;
pub mod undo;
pub mod worktrees;
pub mod writes;

pub use at::At;
pub use clock::{Clock, Millis};
pub use error::{Error, ErrorCode, ErrorData};
pub use facts::{
    Author, AuthorKind, Change, Evidence, FileState, LineCounts, State, Version, VersionKind,
};
pub use free::FreeJson;
pub use hash::{Hash, HashOrAbsent};
pub use ids::{ConnectionId, RequestId, SessionId};
pub use methods::{COMMON_ERRORS, METHODS, Method, Reply, Request};
pub use mode::FileMode;
pub use path::{ClientPath, RelPath};
pub use places::{BaseDirectories, Holder, Places};
pub use range::LineRange;

/// The version of the protocol. A client of another version is refused with
/// `incompatible`.
pub const PROTOCOL: u32 = 1;
