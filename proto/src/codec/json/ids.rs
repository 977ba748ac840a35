//! The ids of requests, as JSON.

use serde_json::Value;

use crate::codec::message::MessageId;

/// Returns an id as JSON.
pub(super) fn id_to_json(id: &MessageId) -> Value {
    match id {
        MessageId::Null => Value::Null,
        MessageId::Number(number) => (*number).into(),
        MessageId::Negative(number) => (*number).into(),
        MessageId::Text(text) => text.as_str().into(),
    }
}

/// Returns an id from JSON; `None` if it has another type, is a fraction, or is
/// too long.
pub(super) fn id_from_json(value: &Value) -> Option<MessageId> {
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
