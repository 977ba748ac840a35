//! The three wires: bincode frames, JSON lines, and JSON with `Content-Length`.
//!
//! This module does no IO: it turns bytes into messages and messages into
//! bytes. A server reads the first byte ([`Wire::sniff`]), creates a
//! [`Decoder`] and an [`Encoder`], and is then independent of the wire. A
//! client uses [`Encoder::request`] and a [`ReplyDecoder`].
//!
//! - [`message`]: requests, replies and events, independent of the wire.
//! - [`frames`]: bincode frames; the only file that names bincode.
//! - [`json`]: JSON-RPC 2.0.
//! - `lines`, `content_length`: the framing of JSON messages.
//! - `buffer`, `splitter`: received bytes, cut into messages (LIM-1).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

mod buffer;
mod content_length;
mod decoder;
mod encoder;
pub mod frames;
pub mod json;
mod lines;
pub mod message;
mod splitter;

pub use decoder::{Decoder, Incoming, ReplyDecoder};
pub use encoder::Encoder;
pub use message::{ClientMessage, MessageId, Rejected, ServerMessage};

use crate::{Error, ErrorCode, ErrorData};

/// The default of the maximum size of a message in bytes (LIM-1).
pub const MAX_FRAME: usize = 16 << 20;

/// The characters that are percent-encoded in a `file://` URI: all except the
/// unreserved characters of RFC 3986 and the slash.
pub(crate) const URI_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// The wire of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// bincode frames after the preface `TMK1`.
    Frames,
    /// JSON-RPC 2.0, one message per line.
    Lines,
    /// JSON-RPC 2.0 with LSP's `Content-Length` header.
    ContentLength,
}

impl Wire {
    /// Returns the wire that a client's first byte selects; `None` if it
    /// selects none.
    pub fn sniff(first: u8) -> Option<Self> {
        match first {
            b'T' => Some(Self::Frames),
            b'{' | b'[' | b' ' | b'\t' | b'\r' | b'\n' => Some(Self::Lines),
            b'C' => Some(Self::ContentLength),
            _ => None,
        }
    }

    /// Returns the bytes that a client sends once, before its first message.
    pub fn preface(self) -> &'static [u8] {
        match self {
            Self::Frames => &frames::PREFACE,
            Self::Lines | Self::ContentLength => b"",
        }
    }
}

/// Returns `tooLarge` for a message, line or header over its limit (LIM-1).
fn too_large(what: &str, size: usize, limit: usize) -> Error {
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
fn invalid_request(reason: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidRequest, reason)
}
