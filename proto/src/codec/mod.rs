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
//! - `wire`: which of the three. `refused`: what is no message.

mod buffer;
mod content_length;
mod decoder;
mod encoder;
pub mod frames;
pub mod json;
mod lines;
pub mod message;
mod refused;
mod splitter;
mod wire;

pub use decoder::{Decoder, ReplyDecoder};
pub use encoder::{Encoder, Part};
pub use message::{ClientMessage, Incoming, MessageId, Rejected, ServerMessage};
pub use refused::MAX_FRAME;
pub use wire::Wire;
