//! The errors for bytes that are no message.

use crate::{Error, ErrorCode, ErrorData};

/// The default of the maximum size of a message in bytes (LIM-1).
pub const MAX_FRAME: usize = 16 << 20;

/// Returns `tooLarge` for a message, line or header over its limit (LIM-1).
pub(super) fn too_large(what: &str, size: usize, limit: usize) -> Error {
    Error::new(
        ErrorCode::TooLarge,
        format!("{what} of {size} bytes or more is over the limit of {limit}"),
    )
    .hint("send smaller messages")
    .with(ErrorData {
        limit: Some(limit as u64),
        size: Some(size as u64),
        ..ErrorData::default()
    })
}

/// Returns `invalidRequest` with a reason.
pub(super) fn invalid_request(reason: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidRequest, reason)
}
