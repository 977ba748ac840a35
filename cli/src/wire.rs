//! Requests, replies and events as they are in JSON on the wire.

use std::path::Path;

use serde_json::{Value, json};
use touchmark_client::proto::codec::json::{parse, server_to_json};
use touchmark_client::proto::codec::{Incoming, MessageId, ServerMessage};
use touchmark_client::proto::events::Event;
use touchmark_client::proto::{self, METHODS, Reply, Request, native};

/// Parses a request as the daemon would parse it from JSON.
///
/// # Errors
/// The error that the daemon would return.
pub(crate) fn parsed(method: &str, params: &Value) -> Result<Request, proto::Error> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let wrong = match parse(message.to_string().as_bytes()) {
        Incoming::One(message) => match *message {
            Ok(message) => return Ok(message.request),
            Err(rejected) => rejected.error,
        },
        // An object is no batch.
        Incoming::Batch(_) => proto::Error::invalid("one request at a time"),
    };
    Err(if METHODS.contains(&method) {
        wrong
    } else {
        wrong.hint(format!("the methods: {}", METHODS.join(", ")))
    })
}

/// Returns a reply's result as it is in JSON on the wire.
pub(crate) fn result_json(reply: Reply, workspace: &Path) -> Value {
    let id = MessageId::Number(1);
    let outcome = Ok(reply);
    member(&ServerMessage::Reply { id, outcome }, "result", workspace)
}

/// Returns an event as it is in JSON on the wire.
pub(crate) fn event_json(event: &Event, workspace: &Path) -> Value {
    member(&ServerMessage::Event(event.clone()), "params", workspace)
}

fn member(message: &ServerMessage, name: &str, workspace: &Path) -> Value {
    server_to_json(message, &native::bytes(workspace))[name].take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_as_on_the_wire() {
        let reply = Reply::Ping(touchmark_client::proto::daemon::Done {});
        assert_eq!(result_json(reply, Path::new("/w")), json!({}));
    }
}
