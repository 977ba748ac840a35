//! Messages from the daemon, as JSON.

use serde_json::{Map, Value, json};

use super::ids::{id_from_json, id_to_json};
use super::names;
use crate::codec::message::{MessageId, ServerMessage};
use crate::codec::refused::invalid_request;
use crate::events::{Event, Happening};
use crate::{Error, ErrorCode, ErrorData, RelPath, Reply};

/// Members that are written even if they are `null`: the protocol's document
/// lists them without `?`.
const ALWAYS: &[&str] = &[
    "hash",
    "seenHash",
    "readAt",
    "agentReadDate",
    "agentEditDate",
    "userEditDate",
    "lastStep",
];

/// Returns the members of one method's result that are written even if they are
/// `null`.
fn always_of(reply: &Reply) -> &'static [&'static str] {
    match reply {
        Reply::EditMark(_) => &["edit", "deadline"],
        Reply::FileRead(_) => &["message"],
        Reply::FileReadText(_) => &["message", "range"],
        Reply::SessionList(_) => &["agent", "parent"],
        Reply::CheckpointDetect(_) => &["differs", "firstEdit", "lastEdit"],
        Reply::WarningTake(_) => &["warning"],
        Reply::TaskList(_) => &["alive"],
        Reply::FileIsStale(_) => &["age"],
        _ => &[],
    }
}

/// Returns a reply or an event as JSON. `root` is the absolute path of the
/// workspace, for the `uri` of names that are not UTF-8.
pub fn server_to_json(message: &ServerMessage, root: &[u8]) -> Value {
    match message {
        ServerMessage::Reply { id, outcome } => {
            let id = id_to_json(id);
            match outcome {
                Ok(reply) => {
                    json!({"jsonrpc": "2.0", "id": id, "result": reply_to_json(reply, root)})
                }
                Err(error) => {
                    json!({"jsonrpc": "2.0", "id": id, "error": error_to_json(error, root)})
                }
            }
        }
        ServerMessage::Event(event) => {
            json!({"jsonrpc": "2.0", "method": "event", "params": event_to_json(event, root)})
        }
    }
}

fn reply_to_json(reply: &Reply, root: &[u8]) -> Value {
    let mut value = reply.to_json();
    prune(&mut value, &[ALWAYS, always_of(reply)]);
    names::to_reply(&mut value, root);
    value
}

fn event_to_json(event: &Event, root: &[u8]) -> Value {
    let kind = event.happening.kind();
    let mut params = object(&event.happening)
        .remove(kind)
        .unwrap_or_else(|| Value::Object(Map::new()));
    prune(&mut params, &[ALWAYS]);
    names::to_reply(&mut params, root);
    params["subscription"] = event.subscription.into();
    params["clock"] = event.clock.to_string().into();
    params["type"] = kind.into();
    params
}

/// Returns an error as the value of `error` in JSON. `root` is the absolute
/// path of the workspace.
pub fn error_to_json(error: &Error, root: &[u8]) -> Value {
    let fields = |data: &ErrorData| {
        let mut fields = object(data);
        // A path outside the workspace is no [`RelPath`], so it is in `spoken`.
        // In JSON its member is `path` like that of any other path.
        if error.code == ErrorCode::OutsideWorkspace
            && data.path.is_none()
            && let Some(spoken) = fields.remove("spoken")
        {
            fields.insert("path".into(), spoken);
        }
        fields
    };
    let mut data = fields(&error.data);
    data.insert("code".into(), error.code.name().into());
    data.insert("hint".into(), error.hint.as_str().into());
    if !error.files.is_empty() {
        let files = error.files.iter().map(fields).map(Value::Object).collect();
        data.insert("files".into(), Value::Array(files));
    }
    let mut data = Value::Object(data);
    prune(&mut data, &[]);
    names::to_reply(&mut data, root);
    json!({"code": error.code.code(), "message": error.message, "data": data})
}

fn object(value: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

/// Removes members that are `null`, except those in `always`.
fn prune(value: &mut Value, always: &[&[&str]]) {
    names::each_object(value, &mut |object| {
        object.retain(|name, member| {
            !member.is_null() || always.iter().any(|names| names.contains(&name.as_str()))
        });
    });
}

/// Decodes a reply or an event. `method` returns the method of the request with
/// that id. `root` is the absolute path of the workspace. Returns `None` for a
/// message to skip: an event of an unknown type, or a result that the client no
/// longer waits for.
///
/// A result that cannot be read becomes an `internalError` with its id, so that
/// one answer fails and not the connection.
///
/// # Errors
/// `parseError` and `invalidRequest` for a message that is neither reply nor
/// event.
pub fn decode_server(
    text: &[u8],
    root: &[u8],
    method: impl Fn(&MessageId) -> Option<&'static str>,
) -> Result<Option<ServerMessage>, Error> {
    let mut message: Map<String, Value> = serde_json::from_slice(text)
        .map_err(|error| Error::new(ErrorCode::ParseError, format!("not a message: {error}")))?;
    if message.contains_key("method") {
        let params = message.remove("params").unwrap_or_default();
        return Ok(event_from_json(params, root)?.map(ServerMessage::Event));
    }
    let id = message
        .get("id")
        .and_then(id_from_json)
        .ok_or_else(|| invalid_request("a message without `method` and `id`"))?;
    let outcome = if let Some(error) = message.remove("error") {
        Err(error_from_json(error, root))
    } else {
        let mut result = message.remove("result").unwrap_or_default();
        names::from_reply(&mut result, root);
        match method(&id) {
            Some(method) => Reply::from_json(method, result).map_err(|error| {
                Error::new(ErrorCode::InternalError, error.message)
                    .hint(ErrorCode::Incompatible.hint())
            }),
            None => return Ok(None),
        }
    };
    Ok(Some(ServerMessage::Reply { id, outcome }))
}

fn event_from_json(mut params: Value, root: &[u8]) -> Result<Option<Event>, Error> {
    let unreadable = |error: &dyn std::fmt::Display| invalid_request(format!("an event: {error}"));
    names::from_reply(&mut params, root);
    let Value::Object(mut params) = params else {
        return Err(unreadable(&"`params` is not an object"));
    };
    let mut take = |name: &str| params.remove(name).unwrap_or_default();
    let (kind, subscription, clock) = (take("type"), take("subscription"), take("clock"));
    let Some(kind) = kind.as_str().filter(|kind| Happening::KINDS.contains(kind)) else {
        return Ok(None);
    };
    let event = json!({
        "subscription": subscription,
        "clock": clock,
        "happening": {kind: params},
    });
    serde_json::from_value(event)
        .map(Some)
        .map_err(|error| unreadable(&error))
}

/// Reads an error. Members that cannot be read are left out.
fn error_from_json(mut error: Value, root: &[u8]) -> Error {
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    let number = error["code"].as_i64();
    let mut data = error.get_mut("data").map(Value::take).unwrap_or_default();
    names::from_reply(&mut data, root);
    let named = |code: &&ErrorCode| data["code"].as_str() == Some(code.name());
    let numbered = |code: &&ErrorCode| number == Some(code.code().into());
    let code = ErrorCode::ALL
        .iter()
        .find(named)
        .or_else(|| ErrorCode::ALL.iter().find(numbered))
        .copied()
        .unwrap_or(ErrorCode::InternalError);
    let hint = data["hint"].as_str().unwrap_or(code.hint()).to_owned();
    let files = match data.get_mut("files").map(Value::take) {
        Some(Value::Array(files)) => files.into_iter().map(error_data).collect(),
        _ => Vec::new(),
    };
    let mut read = Error::new(code, message).hint(hint).with(error_data(data));
    read.files = files;
    read
}

fn error_data(mut data: Value) -> ErrorData {
    if let Value::Object(fields) = &mut data {
        let inside = fields
            .get("path")
            .is_some_and(|path| serde_json::from_value::<RelPath>(path.clone()).is_ok());
        if !inside && let Some(path) = fields.remove("path") {
            fields.insert("spoken".into(), path);
        }
    }
    serde_json::from_value(data).unwrap_or_default()
}
