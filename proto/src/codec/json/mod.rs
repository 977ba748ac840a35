//! JSON-RPC 2.0 in both directions.
//!
//! - `tree`: parses text into a tree of limited size.
//! - `names`: names that are not UTF-8, as `uri`.
//! - `request`, `reply`: the two directions.

mod names;
mod reply;
mod request;
mod tree;

pub use reply::{decode_server, error_to_json, server_to_json};
pub use request::{client_to_json, parse};
pub(crate) use tree::read as read_tree;

use serde_json::Value;

use super::message::MessageId;

/// The maximum number of requests in one batch.
pub const MAX_BATCH: usize = 1000;

/// Returns an id as JSON.
fn id_to_json(id: &MessageId) -> Value {
    match id {
        MessageId::Null => Value::Null,
        MessageId::Number(number) => (*number).into(),
        MessageId::Negative(number) => (*number).into(),
        MessageId::Text(text) => text.as_str().into(),
    }
}

/// Returns an id from JSON; `None` if it has another type, is a fraction, or is
/// too long.
fn id_from_json(value: &Value) -> Option<MessageId> {
    let id = match value {
        Value::Null => MessageId::Null,
        Value::String(text) => MessageId::Text(text.clone()),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => MessageId::Number(number),
            (None, Some(number)) => MessageId::Negative(number),
            (None, None) => return None,
        },
        _ => return None,
    };
    id.is_valid().then_some(id)
}
