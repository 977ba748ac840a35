//! A world for end-to-end tests: a real daemon process, a real file system, and
//! separate directories for everything.
//!
//! - [`agents`]: real agents, whose model is [`model`].
//! - [`model`]: a model that answers as a test orders.
//! - [`world`]: temporary directories and the daemon in them.
//! - [`wire`]: a small client for the JSON lines wire, written from the
//!   protocol's document and not from the daemon's code.
//! - [`framed`]: a client for the `Content-Length` wire, likewise.
//! - [`vectors`]: the conformance vectors, to be played on any wire.
//! - [`sealed`]: a root directory without a compiler and without a network.
//! - [`shrink`]: finds the shortest list of steps that still fails.
//! - [`session`]: an agent's session over the JSON lines wire.
//! - [`soak`]: users, agents, undos and trouble in one workspace, and an oracle.
//! - [`snippets`]: the fenced blocks of the documents.
//! - [`user`]: what a user does to files: every way to save, git, vim, sed.
//! - [`hooks`]: agents whose hooks are the real `touchmark hook`.
//! - [`crafted`]: repositories that are made to do harm.
//! - [`dealt`]: sessions of several authors in the same files, and who wrote
//!   which line.
//! - [`dice`]: random numbers from a seed, and contents that occur once.
//! - [`disk_fuzz`]: random steps on a real file system, and an oracle.
//! - [`fetched`]: packages from registries, for tests that drive them.
//! - [`fleet`]: many workspaces of one user, each with a daemon.
//! - [`givenback`]: sessions in a repository, and what an undo gives back.
//! - [`http`]: a small HTTP client that sends what a browser would not.
//! - [`limits`]: a limit of watches that applies to only one daemon.
//! - [`lsp`]: a client of `touchmark lsp`.
//! - [`machine`]: a small virtual machine whose power can be cut, and the root
//!   directory of a whole system for one.
//! - [`mcp`]: a client of `touchmark mcp`, in both versions of the protocol.
//! - [`mounts`]: file systems that only one test sees.
//! - [`mutate`]: messages that are almost valid.
//! - [`neighbour`]: a well-behaved client next to a hostile one.
//! - [`network`]: a network that only one test sees.
//! - [`process`]: daemons that commands started.
//! - [`repeat`]: one scenario many times, in parallel, half of the runs with
//!   every core busy.
//! - [`otlp`]: a collector that does what a test orders.
//! - [`neovim`]: a real Neovim with the plug-in.
//! - [`parts`]: what runs only with `--parts` or `--soak`, and what could not
//!   be tested here.
//! - [`systemd`]: a systemd that only one test uses.
//! - [`terminal`]: a command on a terminal of its own.
//! - [`rotel`]: a real collector.
//! - [`race`]: processes that race for the same files, and an oracle.
//!
//! A failed expectation in a test panics. Every wait has a limit.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod agents;
pub mod children;
pub mod crafted;
pub mod dealt;
pub mod dice;
pub mod disk_fuzz;
pub mod fetched;
pub mod fleet;
pub mod fleet_export;
pub mod framed;
pub mod fuse;
pub mod givenback;
pub mod hooks;
pub mod house;
pub mod http;
pub mod limits;
pub mod lsp;
pub mod machine;
pub mod mcp;
pub mod messages;
pub mod model;
pub mod mounts;
pub mod mutate;
pub mod neighbour;
pub mod neovim;
pub mod network;
pub mod otlp;
pub mod parts;
pub mod process;
pub mod race;
pub mod repeat;
pub mod rotel;
pub mod sealed;
pub mod session;
pub mod shrink;
pub mod snippets;
pub mod soak;
pub mod stay;
pub mod stop;
pub mod systemd;
pub mod terminal;
pub mod user;
pub mod vectors;
pub mod wire;
pub mod words;
pub mod worktrees;
pub mod world;

pub use framed::Framed;
pub use lsp::Lsp;
pub use mcp::Mcp;
pub use neighbour::beside_a_neighbour;
pub use neovim::Neovim;
pub use repeat::{Lane, lanes, lanes_at_once, own_worlds};
pub use session::{Session, Way};
pub use wire::{Client, RpcError, on_tokio};
pub use world::World;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Returns the SHA-256 in the wire's notation.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

/// Returns the `path` of every element, sorted.
pub fn paths(changes: &[Value]) -> Vec<String> {
    let mut paths: Vec<String> = changes.iter().map(|change| text(change, "path")).collect();
    paths.sort();
    paths
}

/// Returns a text field. Panics if it is missing.
pub fn text(value: &Value, field: &str) -> String {
    value[field]
        .as_str()
        .unwrap_or_else(|| panic!("no text {field:?} in {value}"))
        .to_owned()
}

/// Returns the authors in a change as `user`, `unknown` or `agent:<session>`,
/// in order.
pub fn authors(change: &Value) -> Vec<String> {
    let list = change["changedBy"]
        .as_array()
        .unwrap_or_else(|| panic!("no changedBy in {change}"));
    list.iter().map(author).collect()
}

/// Returns one author as `user`, `unknown` or `agent:<session>`.
pub fn author(author: &Value) -> String {
    match author["session"].as_str() {
        Some(session) => format!("{}:{session}", text(author, "kind")),
        None => text(author, "kind"),
    }
}
