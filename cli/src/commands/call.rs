//! `touchmark call`: sends any request of the protocol.

use std::io::Read as _;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use touchmark_client::Error;
use touchmark_client::proto::Request;

use crate::context::Context;
use crate::output::{Failure, Outcome};
use crate::wire::parsed;

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
    let connection = context.open_anywhere()?;
    let reply = connection.client.request(request);
    connection.json(reply.map_err(Failure::Call)?)
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
}
