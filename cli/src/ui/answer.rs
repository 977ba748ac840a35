//! Responses, and the headers that all of them have.

use http_body_util::{Either, Full};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::stream::Stream;

/// A response with one body, or with a stream of events.
pub(super) type Response = hyper::Response<Either<Full<Bytes>, Stream>>;

/// The headers of every response, refusals included.
const ALWAYS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Adds the headers of every response. The browser stores no response that does
/// not permit it.
pub(super) fn complete(headers: &mut HeaderMap) {
    for (name, value) in ALWAYS {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

/// Returns a response with a body of this type.
pub(super) fn bytes(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response {
    let mut response = hyper::Response::new(Either::Left(Full::new(body.into())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Returns a response in JSON.
pub(super) fn json(status: StatusCode, value: &Value) -> Response {
    bytes(status, "application/json", value.to_string())
}

/// Returns the response to a request that was not executed.
pub(super) fn error(status: StatusCode, message: &str, hint: &str) -> Response {
    let code = match status {
        StatusCode::FORBIDDEN => "refused",
        StatusCode::PAYLOAD_TOO_LARGE => "tooLarge",
        StatusCode::TOO_MANY_REQUESTS => "busy",
        StatusCode::NOT_FOUND => "notFound",
        _ => "invalidRequest",
    };
    json(status, &json!({ "error": failure(code, message, hint) }))
}

/// Returns an error in the shape that the daemon's errors have in JSON. Its
/// number is the one that JSON-RPC leaves to servers.
pub(super) fn failure(code: &str, message: &str, hint: &str) -> Value {
    json!({"code": -32000, "message": message, "data": {"code": code, "hint": hint}})
}

/// Returns a page of plain text.
pub(super) fn text(status: StatusCode, text: &str) -> Response {
    bytes(status, "text/plain; charset=utf-8", format!("{text}\n"))
}
