//! One request to a collector.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answer::Answer;
use crate::config::{Endpoint, Headers};

/// The most bytes of an answer that are read.
const MOST_ANSWER: usize = 64 << 10;

/// Sends a body and returns the answer. Each request has a connection of its
/// own: an open one would wake the daemon when the collector closes it.
///
/// # Errors
/// Why there is no answer, for people.
pub(super) async fn post(
    endpoint: &Endpoint,
    headers: &Headers,
    body: Vec<u8>,
    patience: Duration,
) -> Result<Answer, String> {
    match timeout(patience, exchange(endpoint, headers, body)).await {
        Ok(answered) => answered,
        Err(_) => Err(format!(
            "the collector has not answered within {} s",
            patience.as_secs_f32()
        )),
    }
}

async fn exchange(endpoint: &Endpoint, headers: &Headers, body: Vec<u8>) -> Result<Answer, String> {
    let stream = TcpStream::connect((endpoint.host(), endpoint.port()))
        .await
        .map_err(|error| format!("no connection to the collector: {error}"))?;
    let broken = |error: &dyn std::fmt::Display| format!("no answer from the collector: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken(&error))?;
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(endpoint.path())
        .header(HOST, endpoint.authority())
        .header(CONTENT_TYPE, "application/x-protobuf")
        .header(USER_AGENT, concat!("touchmark/", env!("CARGO_PKG_VERSION")))
        .header(CONNECTION, "close");
    for (name, value) in headers.iter() {
        request = request.header(name, value);
    }
    let request = request
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| broken(&error))?;
    let exchange = async move {
        let response = sender.send_request(request).await;
        let (head, body) = response.map_err(|error| broken(&error))?.into_parts();
        let header = |name| {
            let value = head.headers.get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let body = Limited::new(body, MOST_ANSWER).collect().await;
        Ok(Answer {
            status: head.status.as_u16(),
            retry_after: header(RETRY_AFTER),
            content_type: header(CONTENT_TYPE),
            body: body.map_err(|error| broken(&error))?.to_bytes().into(),
        })
    };
    // Both in this task: a task for the connection might outlive a time-out.
    tokio::pin!(exchange, connection);
    let mut connected = true;
    loop {
        tokio::select! {
            biased;
            answered = &mut exchange => return answered,
            _ended = &mut connection, if connected => connected = false,
        }
    }
}
