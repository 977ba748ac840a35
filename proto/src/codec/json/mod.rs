//! JSON-RPC 2.0 in both directions.
//!
//! - `tree`: parses text into a tree of limited size.
//! - `ids`: the ids of requests.
//! - `names`: names that are not UTF-8, as `uri`.
//! - `request`, `reply`: the two directions.

mod ids;
mod names;
mod reply;
mod request;
mod tree;

pub use reply::{decode_server, error_to_json, server_to_json};
pub use request::{MAX_BATCH, client_to_json, parse};
pub(crate) use tree::read as read_tree;
