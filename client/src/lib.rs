//! Finds, starts and talks to a touchmark daemon.
//!
//! touchmark knows which of an agent's file copies are out of date, and who
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
//! - [`find`]: which workspace, and where its daemon listens.
//! - [`start`]: starting a daemon where none runs.
//! - [`blocking`] and [`aio`]: connections without and with tokio.
//! - [`Session`] and [`Edit`]: what an agent does, as values that end what
//!   they began when they are dropped.
//! - [`tools`]: tools that do not do twice what was done already.
//! - [`feed`]: events across restarts of the daemon.
//!
//! # Features
//!
//! - `aio` (default): the module of that name. Without it tokio is not compiled.
//!
//! Every call has a deadline: a daemon that is gone, hung or slow becomes an
//! [`Error`] at that time, never a hang (LIFE-4). This crate prints nothing.

// `session.rs` and `requests.rs` are one source for both kinds of connection.
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
mod local;
#[cfg_attr(not(target_os = "linux"), path = "scratch/fallback.rs")]
mod scratch;
pub mod start;
pub mod tools;
mod values;
mod wire;

// A daemon of a few lines needs sockets. It is asked by both connections.
#[cfg(all(test, feature = "aio"))]
mod tests;

pub use blocking::{Edit, Session};
pub use error::{Error, Result};
pub use find::{Environment, Workspace};
pub use start::{Start, connect_or_start};
/// The words of the protocol.
pub use touchmark_proto as proto;

/// How long a call waits unless told: a query waits for its fence, and a slow
/// disk must not look like a dead daemon.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(10);

/// How long a daemon may take to come up.
pub const START_DEADLINE: Duration = Duration::from_secs(10);

/// How many events a connection keeps for a reader that does not come.
pub const MAX_WAITING_EVENTS: usize = 65_536;

/// How a client introduces itself, and how long it waits.
#[derive(Clone, Debug)]
pub struct Hello {
    /// The client's program.
    pub program: Program,
    /// The session this connection works for.
    pub session: Option<SessionId>,
    /// What the client is.
    pub role: Option<Role>,
    /// How long each call waits for its answer.
    pub deadline: Duration,
}

impl Default for Hello {
    fn default() -> Self {
        Self::new("touchmark-client", env!("CARGO_PKG_VERSION"))
    }
}

impl Hello {
    /// A program by its name and version.
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            program: Program {
                name: name.into(),
                version: version.into(),
            },
            session: None,
            role: None,
            deadline: DEFAULT_DEADLINE,
        }
    }
}

impl From<&Hello> for Initialize {
    fn from(hello: &Hello) -> Self {
        Self {
            client: hello.program.clone(),
            protocol: PROTOCOL,
            session: hello.session.clone(),
            role: hello.role,
        }
    }
}

/// Connects to the daemon of the current directory's workspace, and starts
/// one if none runs.
///
/// # Errors
/// As [`Workspace::here`] and [`connect_or_start`].
pub fn connect() -> Result<blocking::Client> {
    connect_or_start(&Workspace::here()?, &Hello::default(), &Start::default())
}

/// The hash by which touchmark knows a content: SHA-256 of the file's bytes.
pub fn hash_of(bytes: &[u8]) -> Hash {
    Hash(Sha256::digest(bytes).into())
}
