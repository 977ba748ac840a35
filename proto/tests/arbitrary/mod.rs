//! Arbitrary messages of every method, from numbers, for property tests.
#![allow(clippy::unwrap_used, unreachable_pub, missing_docs)]

#[path = "../../../engine/tests/runs/rng.rs"]
#[allow(dead_code)] // the engine's tests use the rest
mod rng;
mod schema;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use touchmark_proto::codec::{ClientMessage, MessageId, ServerMessage};
use touchmark_proto::events::Event;
use touchmark_proto::{Error, ErrorCode, ErrorData, METHODS, Reply, Request};

use rng::Rng;
use schema::Choices;

/// The workspace of the paths in this file.
pub const ROOT: &[u8] = b"/home/u/my work";

/// The schema of all messages. `schema.rs` keeps it correct.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../docs/protocol.schema.json")).unwrap()
});

impl Choices for Rng {
    fn below(&mut self, end: usize) -> usize {
        self.below(end)
    }

    fn number(&mut self, schema: &Value) -> Value {
        let shift = self.below(64);
        let number = self.next() >> shift;
        match schema["format"].as_str() {
            Some("int32") => (number as i32).into(),
            Some("int64") => (number as i64).into(),
            Some("uint32") => (number as u32).into(),
            Some("uint8") => (number as u8).into(),
            _ => number.into(),
        }
    }

    fn text(&mut self, schema: &Value, name: &str) -> String {
        match schema["pattern"].as_str() {
            Some(pattern) if pattern.contains("absent") && self.chance(30) => "absent".into(),
            Some(pattern) if pattern.contains("0-9a-f") => {
                (0..64).map(|_| self.pick(&['0', '9', 'a', 'f'])).collect()
            }
            Some("^[0-9]+:[0-9]+$") => format!("{}:{}", self.next(), self.next()),
            Some("^[0-7]{6}$") => self.pick(&["100644", "100755", "120777"]).to_owned(),
            // The name of a version.
            _ if schema["examples"][0] == "now" => {
                self.pick(&["now", "3:17", "0123456789ab", "1h"]).to_owned()
            }
            _ => {
                let texts = [
                    "a",
                    "",
                    "src/é %41#?.txt",
                    "x\n\u{1}\"\u{2028}",
                    "./../b",
                    name,
                    "file:///home/u/a",
                    // As names that are not UTF-8 are written.
                    "\0%41",
                    "\0/home/%FF",
                    "\0d/%FF%80",
                ];
                let description = schema["description"].as_str().unwrap_or_default();
                let count = match name {
                    // A client's are absolute, because a URI is.
                    _ if description.contains("absolute inside") => 9,
                    _ if description.contains("stands beside") => 10,
                    // These are UTF-8, and no URI.
                    "path" | "paths" | "from" => 6,
                    _ => 10,
                };
                self.pick(&texts[..count]).to_owned()
            }
        }
    }

    /// Names that have a meaning elsewhere in the protocol have none here.
    fn free(&mut self) -> Option<Value> {
        Some(match self.below(6) {
            0 => self.next().into(),
            1 => self.chance(50).into(),
            2 | 3 => self.text(&Value::Null, "").into(),
            4 => (0..self.below(4)).filter_map(|_| self.free()).collect(),
            _ => {
                let names = ["path", "uri", "from", "paths", "hash", "args", "x"];
                let members = (0..self.below(4)).map(|_| (self.pick(&names), self.free()));
                json!(members.collect::<BTreeMap<_, _>>())
            }
        })
    }
}

/// Returns what `read` makes of a value that a schema allows. The schema allows
/// more than there is, since it cannot describe everything, such as paths.
fn made<T>(from: &mut Rng, schema: &Value, read: impl Fn(Value) -> Option<T>) -> T {
    let values = (0..1_000).map(|_| schema::value(from, &SCHEMA, schema, ""));
    let mut made = values.filter_map(|value| read(value.unwrap_or_default()));
    made.next()
        .unwrap_or_else(|| panic!("nothing is made of {schema}"))
}

fn message_id(from: &mut Rng) -> MessageId {
    match from.below(4) {
        0 => MessageId::Null,
        1 => MessageId::Number(from.next()),
        2 => MessageId::Negative(-1 - (from.next() >> 1) as i64),
        _ => MessageId::Text(from.text(&Value::Null, "id")),
    }
}

/// Generates a message of a client.
pub fn client_message() -> impl Strategy<Value = ClientMessage> {
    any::<u64>().prop_map(|seed| {
        let mut from = Rng::new(seed);
        let method = from.pick(METHODS);
        let params = &SCHEMA["methods"][method]["params"];
        ClientMessage {
            id: from.chance(70).then(|| message_id(&mut from)),
            within_ms: from.chance(30).then(|| from.next()),
            request: made(&mut from, params, |json| {
                Request::from_json(method, json).ok()
            }),
        }
    })
}

fn error(from: &mut Rng) -> Error {
    let data = |from: &mut Rng| -> ErrorData {
        made(from, &SCHEMA["errorData"], |json| {
            serde_json::from_value(json).ok()
        })
    };
    let mut error = Error::new(
        from.pick(ErrorCode::ALL),
        from.text(&Value::Null, "message"),
    );
    error.hint = from.text(&Value::Null, "hint");
    error.data = Box::new(data(from));
    error.files = (0..from.below(3)).map(|_| data(from)).collect();
    error
}

fn event(from: &mut Rng) -> Event {
    let events: Vec<(&String, &Value)> = SCHEMA["events"].as_object().unwrap().iter().collect();
    let (name, schema) = from.pick(&events);
    made(from, schema, |mut json| {
        let fields = json.as_object_mut()?;
        fields.remove("type");
        let (subscription, clock) = (fields.remove("subscription"), fields.remove("clock"));
        let event = json!({
            "subscription": subscription, "clock": clock, "happening": {name.as_str(): json},
        });
        serde_json::from_value(event).ok()
    })
}

/// Generates a message of the daemon, with the method that it answers.
pub fn server_message() -> impl Strategy<Value = (&'static str, ServerMessage)> {
    any::<u64>().prop_map(|seed| {
        let mut from = Rng::new(seed);
        let method = from.pick(METHODS);
        let message = match from.below(5) {
            0 => ServerMessage::error(message_id(&mut from), error(&mut from)),
            1 => ServerMessage::Event(event(&mut from)),
            _ => {
                let result = &SCHEMA["methods"][method]["result"];
                let reply = made(&mut from, result, |json| {
                    // The path of a snapshot is in the workspace.
                    let is_outside = method == "file/snapshot" && json["path"] == "\0/home/%FF";
                    Reply::from_json(method, json).ok().filter(|_| !is_outside)
                });
                ServerMessage::Reply {
                    id: message_id(&mut from),
                    outcome: Ok(reply),
                }
            }
        };
        (method, message)
    })
}
