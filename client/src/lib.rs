//! Finds a touchmark daemon, starts it and talks to it.
//!
//! touchmark tracks which of an agent's file copies are out of date, and who
//! changed each file. In ten lines:
//!
//! ```no_run
//! use touchmark_client::{Session, connect};
//!
//! let client = connect()?;
//! let session = Session::open(&client, "fix-42")?;
//! let before = session.read_text("src/parser.rs")?.text.unwrap_or_default();
//! for change in session.changed()? {
//!     println!("{} was changed by {:?}", change.path, change.changed_by);
//! }
//! let after = before.replace("old", "new");
//! session.write("src/parser.rs", after.as_bytes())?; // refused if the copy is stale
//! # Ok::<(), touchmark_client::Error>(())
//! ```
//!
//! # Layout
//!
//! - [`find`]: finds the workspace of a directory.
//! - [`sockets`]: where daemons listen.
//! - [`fleet`]: all daemons of the user.
//! - [`start`]: starts a daemon if none runs.
//! - [`blocking`] and [`aio`]: connections without and with tokio.
//! - [`Session`] and [`Edit`]: what an agent does, as values. Dropping an edit
//!   aborts it.
//! - [`tools`]: tools whose repeated calls are answered from the first result.
//! - [`feed`]: events, also after the daemon was restarted.
//!
//! # Requests
//!
//! A session's methods send the requests that agents need. [`Session::client`]
//! sends any other, with all of its fields:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use touchmark_client::proto::search::SearchGrep;
//! use touchmark_client::proto::writes::FileWrite;
//! use touchmark_client::{Session, connect};
//!
//! let session = Session::open(&connect()?, "fix-42")?;
//! // The required fields, then the optional ones.
//! let write = FileWrite::new(session.id().clone(), "notes/todo.md")
//!     .text("- parser\n")
//!     .create_directories(true);
//! let written = session.client().call(write)?;
//! println!("{:?} {:?}", written.outcome, written.version);
//! // A field can be set directly, too.
//! let mut search = SearchGrep::new("fn parse");
//! search.max_matches = Some(20);
//! let found = session.client().call_within(search, Duration::from_secs(60))?;
//! println!("{} matches", found.matches.len());
//! # Ok::<(), touchmark_client::Error>(())
//! ```
//!
//! A later version may add fields to the protocol's types and variants to its
//! enums, so they are `#[non_exhaustive]`: build them by `new`, and match them
//! with `..` and `_`.
//!
//! # Rules
//!
//! Names such as `LIFE-4` are the names of rules. They are in
//! [`proto::rules`].
//!
//! # Features
//!
//! - `aio` (default): the module of that name. Without it tokio is not compiled.
//! - `exhaustive`: for the crates of touchmark itself. Without it the types that
//!   may grow are `#[non_exhaustive]`.
//!
//! Every call has a deadline: a daemon that is gone, hung or slow becomes an
//! [`Error`] at that time, never a hang (LIFE-4). This crate prints nothing.

// `session.rs` and `requests.rs` are compiled twice, once for each kind of
// connection.
#![allow(clippy::duplicate_mod)]

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use touchmark_proto::daemon::{Initialize, Program, Role};
use touchmark_proto::{Hash, PROTOCOL, SessionId};

#[cfg(feature = "aio")]
pub mod aio;
pub mod blocking;
mod dial;
mod error;
pub mod feed;
pub mod find;
pub mod fleet;
mod local;
#[cfg_attr(not(target_os = "linux"), path = "scratch/fallback.rs")]
mod scratch;
pub mod sockets;
pub mod start;
pub mod tools;
mod values;
mod wire;
mod witness;

// These tests run both connections against a small fake daemon, which needs
// sockets.
#[cfg(all(test, feature = "aio"))]
mod tests;

pub use blocking::{Edit, Session};
pub use error::{Error, Result};
pub use find::{Environment, Workspace};
pub use start::{Start, connect_or_start};
/// The types of the protocol.
pub use touchmark_proto as proto;
pub use witness::{WITNESS_BINARY, witness_program, witnessed, witnessed_by};

/// The default time to wait for an answer. It is long because a query waits for
/// its fence, and a slow disk must not look like a daemon that has exited.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(10);

/// The default time for a daemon to start.
pub const START_DEADLINE: Duration = Duration::from_secs(10);

/// The maximum number of events that a connection buffers until they are read.
pub const MAX_WAITING_EVENTS: usize = 65_536;

/// How a client identifies itself, and how long it waits for answers.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Hello {
    /// The client's name and version.
    pub program: Program,
    /// The session that this connection works for; default `None`: for no
    /// single one.
    pub session: Option<SessionId>,
    /// The kind of the client; default `None`: not given.
    pub role: Option<Role>,
    /// The time to wait for the answer to a call; default [`DEFAULT_DEADLINE`].
    pub deadline: Duration,
}

impl Default for Hello {
    fn default() -> Self {
        Self::new("touchmark-client", env!("CARGO_PKG_VERSION"))
    }
}

impl Hello {
    /// Returns a hello for this name and version, with defaults for the other
    /// fields.
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            program: Program::new(name, version),
            session: None,
            role: None,
            deadline: DEFAULT_DEADLINE,
        }
    }
}

impl From<&Hello> for Initialize {
    fn from(hello: &Hello) -> Self {
        let mut ask = Self::new(hello.program.clone(), PROTOCOL);
        ask.session = hello.session.clone();
        ask.role = hello.role;
        ask
    }
}

/// Connects to the daemon of the current directory's workspace. Starts one if
/// none runs.
///
/// ```no_run
/// let client = touchmark_client::connect()?;
/// if let Some(server) = client.server() {
///     println!("{} {} in {}", server.server.name, server.server.version, server.workspace);
/// }
/// # Ok::<(), touchmark_client::Error>(())
/// ```
///
/// # Errors
/// The same as [`Workspace::here`] and [`connect_or_start`].
pub fn connect() -> Result<blocking::Client> {
    connect_or_start(&Workspace::here()?, &Hello::default(), &Start::default())
}

/// Returns the hash that identifies a content: SHA-256 of the file's bytes.
pub fn hash_of(bytes: &[u8]) -> Hash {
    Hash(Sha256::digest(bytes).into())
}
