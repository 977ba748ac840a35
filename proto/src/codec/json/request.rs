//! Messages from clients, as JSON.

use serde_json::{Map, Value, json};

use super::ids::{id_from_json, id_to_json};
use super::{names, tree};
use crate::codec::message::{ClientMessage, Incoming, MessageId, Rejected};
use crate::codec::refused::invalid_request;
use crate::{Error, ErrorCode, ErrorData, METHODS, Request};

/// The maximum number of requests in one batch.
pub const MAX_BATCH: usize = 1000;

/// Parses one message: a request, a notification, or a batch of them.
pub fn parse(text: &[u8]) -> Incoming {
    let one = |error| Incoming::One(Box::new(Err(unnamed(error))));
    match tree::read(text) {
        Err(error) => one(error),
        Ok(Value::Array(batch)) if batch.is_empty() => one(invalid_request("the batch is empty")),
        Ok(Value::Array(batch)) if batch.len() > MAX_BATCH => one(Error::new(
            ErrorCode::TooLarge,
            format!("a batch has at most {MAX_BATCH} requests"),
        )
        .hint("send several batches")
        .with(ErrorData {
            limit: Some(MAX_BATCH as u64),
            size: Some(batch.len() as u64),
            ..ErrorData::default()
        })),
        Ok(Value::Array(batch)) => Incoming::Batch(batch.into_iter().map(message).collect()),
        Ok(single) => Incoming::One(Box::new(message(single))),
    }
}

/// Returns the rejection of a request whose id is not known.
fn unnamed(error: Error) -> Rejected {
    Rejected {
        id: Some(MessageId::Null),
        error,
    }
}

fn message(value: Value) -> Result<ClientMessage, Rejected> {
    let Value::Object(mut envelope) = value else {
        return Err(unnamed(invalid_request("a request is an object")));
    };
    // An id that is `null` is an id, so the request is answered. Only a request
    // without an id is a notification.
    let id = match envelope.get("id").map(id_from_json) {
        None => None,
        Some(Some(id)) => Some(id),
        Some(None) => {
            return Err(unnamed(invalid_request(
                "`id` is not a whole number, a string of at most 256 bytes, or null",
            )));
        }
    };
    // A message that is no request is always answered, since it is not known
    // whether it was meant as a notification.
    let malformed = |reason: &str| Rejected {
        id: Some(id.clone().unwrap_or(MessageId::Null)),
        error: invalid_request(reason),
    };
    if envelope.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(malformed("`jsonrpc` is not \"2.0\""));
    }
    let Some(Value::String(method)) = envelope.remove("method") else {
        return Err(malformed("`method` is not a string"));
    };
    match request(&method, envelope.remove("params")) {
        Ok((within_ms, request)) => Ok(ClientMessage {
            id,
            within_ms,
            request,
        }),
        Err(error) => Err(Rejected { id, error }),
    }
}

fn request(method: &str, params: Option<Value>) -> Result<(Option<u64>, Request), Error> {
    let mut params = match params {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(object @ Value::Object(_)) => object,
        Some(_) => return Err(Error::invalid("`params` is not an object")),
    };
    names::tidy_params(&mut params)?;
    let within_ms = match params
        .as_object_mut()
        .and_then(|map| map.remove("withinMs"))
    {
        None => None,
        Some(value) => Some(
            value
                .as_u64()
                .ok_or_else(|| Error::invalid("`withinMs` is not a number of milliseconds"))?,
        ),
    };
    // `hook/claude` is `hook/event` with this agent, and so for each agent.
    let agent = method.strip_prefix("hook/");
    let agent = agent.filter(|_| !METHODS.contains(&method));
    let method = match (agent, &mut params) {
        (Some(agent), Value::Object(params)) => {
            params.insert("agent".into(), agent.into());
            "hook/event"
        }
        _ => method,
    };
    Ok((within_ms, Request::from_json(method, params)?))
}

/// Returns a request as JSON. `root` is the absolute path of the workspace, for
/// the `uri` of names that are not UTF-8.
pub fn client_to_json(message: &ClientMessage, root: &[u8]) -> Value {
    let mut params = message.request.to_json();
    names::each_object(&mut params, &mut |object| {
        object.retain(|_, member| !member.is_null())
    });
    names::to_request(&mut params, root);
    if let (Some(within_ms), Value::Object(params)) = (message.within_ms, &mut params) {
        params.insert("withinMs".into(), within_ms.into());
    }
    let mut envelope = json!({
        "jsonrpc": "2.0",
        "method": message.request.method(),
        "params": params,
    });
    if let Some(id) = &message.id {
        envelope["id"] = id_to_json(id);
    }
    envelope
}
