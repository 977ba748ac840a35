//! The three wires: bincode frames, JSON lines, JSON with `Content-Length`.
//!
//! Pure: bytes go in, messages come out, and the other way round. A socket
//! layer looks at the first byte ([`Wire::sniff`]), makes a [`Decoder`] and an
//! [`Encoder`], and need not know the wire any more. A client has
//! [`Encoder::request`] and a [`ReplyDecoder`].
//!
//! - [`message`]: requests, replies and events, independent of the wire.
//! - [`frames`]: bincode frames; the only file that names bincode.
//! - [`json`]: JSON-RPC 2.0.
//! - `lines`, `content_length`: how JSON messages are told apart.
//! - `buffer`, `splitter`: bytes that came, cut into messages (LIM-1).

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

/// The largest message in bytes, unless the daemon is told otherwise (LIM-1).
pub const MAX_FRAME: usize = 16 << 20;

/// What is percent-encoded in a `file://` URI: everything but the unreserved
/// characters of RFC 3986 and the slash.
pub(crate) const URI_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// How a connection is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// bincode frames after the preface `TMK1`.
    Frames,
    /// JSON-RPC 2.0, one message a line.
    Lines,
    /// JSON-RPC 2.0 with LSP's `Content-Length` header.
    ContentLength,
}

impl Wire {
    /// The wire that a client's first byte asks for; `None` if it is none.
    pub fn sniff(first: u8) -> Option<Self> {
        match first {
            b'T' => Some(Self::Frames),
            b'{' | b'[' | b' ' | b'\t' | b'\r' | b'\n' => Some(Self::Lines),
            b'C' => Some(Self::ContentLength),
            _ => None,
        }
    }

    /// What a client sends once, before its first message.
    pub fn preface(self) -> &'static [u8] {
        match self {
            Self::Frames => &frames::PREFACE,
            Self::Lines | Self::ContentLength => b"",
        }
    }
}

/// `tooLarge`: a message, a line or a header beyond its limit (LIM-1).
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

/// `invalidRequest` with a reason.
fn invalid_request(reason: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidRequest, reason)
}
