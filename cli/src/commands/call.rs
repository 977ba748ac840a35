//! `touchmark call`: sends any request of the protocol.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use touchmark_client::Error;
use touchmark_client::proto::codec::json::{parse, server_to_json};
use touchmark_client::proto::codec::{Incoming, MessageId, ServerMessage};
use touchmark_client::proto::{self, METHODS, Reply, Request, native};

use crate::context::Context;
use crate::output::{Failure, Outcome};

/// Send any request of the protocol; print the result as JSON.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The method, such as `file/status`
    method: String,
    /// The parameters: a JSON object, or `-` for standard input
    #[arg(default_value = "{}")]
    params: String,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let request = request(&options.method, &read(&options.params)?)?;
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let reply = client.request(request).map_err(Failure::Call)?;
    context.json(&result_json(reply, &workspace.root))
}

fn read(params: &str) -> Outcome<String> {
    if params != "-" {
        return Ok(params.to_owned());
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .context("standard input")?;
    Ok(text)
}

/// Parses the request on the command line.
fn request(method: &str, params: &str) -> Outcome<Request> {
    let params: Value = serde_json::from_str(params)
        .map_err(|error| Failure::Usage(format!("the parameters are not JSON: {error}")))?;
    // The same error that the daemon would return.
    parsed(method, &params).map_err(|error| Failure::Call(Error::Daemon(error)))
}

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
    let message = ServerMessage::Reply {
        id: MessageId::Number(1),
        outcome: Ok(reply),
    };
    match server_to_json(&message, &native::bytes(workspace)) {
        Value::Object(mut message) => message.remove("result").unwrap_or_default(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn requests_are_read_as_the_daemon_reads_them() {
        let request = |method, params| request(method, params);
        assert_eq!(request("ping", "{}").unwrap().method(), "ping");
        let status = request("file/status", r#"{"session":"s","paths":["a"]}"#).unwrap();
        assert_eq!(status.method(), "file/status");
        assert_eq!(request("ping", "{").unwrap_err().exit_code(), 2);
        assert_eq!(request("no/such", "{}").unwrap_err().exit_code(), 4);
        let unknown = request("ping", r#"{"a":1}"#).unwrap_err();
        assert!(matches!(unknown, Failure::Call(error) if error.code() == "invalidParams"));
    }

    #[test]
    fn results_come_as_on_the_wire() {
        let reply = Reply::Ping(touchmark_client::proto::daemon::Done {});
        assert_eq!(result_json(reply, Path::new("/w")), json!({}));
    }
}
