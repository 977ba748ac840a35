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
//! - [`off`]: where touchmark does nothing for a while, and why.
//! - [`trust`]: which files and sockets are accepted, by their owner.
//! - [`methods`]: the table that joins a method's name, parameters and result.
//! - [`events`]: notifications to subscribers.
//! - [`codec`]: the three wires.
//!
//! # Building values
//!
//! Each request, and each value within one, has a function `new` that takes
//! its required fields, and a method for each optional field that sets it. The
//! fields can be set directly, too. A later version may add fields to types
//! and variants to enums, so they are `#[non_exhaustive]`.
//!
//! ```
//! use touchmark_proto::files::FileReadText;
//! use touchmark_proto::{LineRange, SessionId};
//!
//! let session = SessionId::new("fix-42")?;
//! let lines = LineRange { start: 1, end: 80 };
//! let mut request = FileReadText::new(session, "src/parser.rs").range(lines).force(true);
//! request.step = Some(7);
//! # Ok::<(), touchmark_proto::ids::SessionIdError>(())
//! ```
//!
//! # Rules
//!
//! Names such as `SEEN-4` are the names of rules. They are in [`rules`].
//!
//! # Features
//!
//! - `exhaustive`: for the crates of touchmark itself. Without it the types
//!   above are `#[non_exhaustive]`.
//! - `schema`: JSON schemas of all types.

#[cfg(not(unix))]
compile_error!("touchmark runs on Linux; on Windows, build and run it in WSL");

#[macro_use(apply)]
extern crate macro_rules_attribute;

#[macro_use]
mod new;
#[macro_use]
mod attributes;
#[macro_use]
mod text;

pub mod activity;
pub mod at;
pub mod calls;
pub mod changes;
pub mod checkpoints;
pub mod claim;
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
pub mod off;
pub mod path;
pub mod places;
pub mod quoting;
pub mod range;
pub mod retention;
pub mod review;
pub mod rules;
pub mod search;
pub mod sessions;
pub mod survival;
pub mod tasks;
pub mod trust;
pub mod undo;
pub mod worktrees;
pub mod writes;

pub use at::{At, When};
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
pub const PROTOCOL: u32 = 2;
