//! bincode frames: the length as a little-endian `u32`, then the encoded
//! message.
//!
//! This is the only file that names bincode. It guards against three traps. A
//! length could allocate without bound, so decoded bytes are limited. Bytes
//! after a value are refused. The numbers of enum variants must not change; the
//! golden tests check that.
//!
//! A type used here must not have a collection of a type that takes no bytes: a
//! length alone would keep the decoder busy without end.

use std::ops::Range;

use bincode::config;
use bincode::error::DecodeError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::buffer::Buffer;
use super::message::{ClientMessage, MessageId, Rejected, ServerMessage};
use super::refused::{MAX_FRAME, invalid_request, too_large};
use crate::{Error, ErrorCode};

/// The bytes that a client sends once, before its first frame.
pub const PREFACE: [u8; 4] = *b"TMK1";

/// The number of bytes of the length before each frame.
const LENGTH_BYTES: usize = 4;

/// The highest number of decoded bytes. bincode counts decoded bytes against
/// its limit, and one byte on the wire can stand for a `u64`. The limit must be
/// a constant, and each further limit compiles the decoding of all types once
/// more. A length that the message does not contain costs no memory: the
/// allocation is released untouched when the bytes end.
const MAX_DECODED: usize = 8 * MAX_FRAME;
/// If a message ends this many bytes before a length in it announces, the
/// length is wrong, and the message is not merely cut short.
const FAR: usize = 64 << 10;

/// Returns a value as bytes, for a frame.
///
/// # Errors
/// `internalError` for a type whose serialisation fails. Derived serialisation
/// of a known length does not fail.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes)?;
    Ok(bytes)
}

/// Returns the value that these bytes encode.
///
/// # Errors
/// `invalidRequest` for bytes that encode no such value or have further bytes
/// after it; `tooLarge` if the bytes announce more than they can contain.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let (value, consumed) = decode_first(bytes)?;
    if consumed != bytes.len() {
        return Err(invalid_request("there are bytes after the message"));
    }
    Ok(value)
}

fn encode_into<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Error> {
    bincode::serde::encode_into_std_write(value, out, config::standard())
        .map(|_| ())
        .map_err(|error| {
            Error::new(
                ErrorCode::InternalError,
                format!("cannot be encoded: {error}"),
            )
        })
}

/// Returns the value that the first of these bytes encode, and their number.
fn decode_first<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), Error> {
    let config = config::standard().with_limit::<MAX_DECODED>();
    bincode::serde::decode_from_slice(bytes, config).map_err(|error| match error {
        DecodeError::LimitExceeded => length_too_large(),
        DecodeError::UnexpectedEnd { additional } if additional > FAR => length_too_large(),
        other => invalid_request(format!("the message cannot be decoded: {other}")),
    })
}

fn length_too_large() -> Error {
    Error::new(
        ErrorCode::TooLarge,
        "a length in the message is larger than the message",
    )
    .hint("send as many bytes as the length says")
}

/// Appends a frame that contains a message.
///
/// # Errors
/// `tooLarge` for more than `max` bytes; nothing is appended then.
pub fn append<T: Serialize>(message: &T, max: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    let written = encode_into(message, out).and_then(|()| {
        let length = out.len() - start - LENGTH_BYTES;
        match u32::try_from(length) {
            Ok(short) if length <= max => Ok(short),
            _ => Err(too_large("a message", length, max)),
        }
    });
    match written {
        Ok(length) => {
            out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// Decodes a request from a frame's payload.
///
/// # Errors
/// [`Rejected`] with the request's id, if the id could be read. The id comes
/// first, so that even an unknown request is answered.
pub fn decode_client(payload: &[u8]) -> Result<ClientMessage, Rejected> {
    let unnamed = |error| Rejected {
        id: Some(MessageId::Null),
        error,
    };
    let ((id, within_ms), consumed): ((Option<MessageId>, Option<u64>), usize) =
        decode_first(payload).map_err(unnamed)?;
    if id.as_ref().is_some_and(|id| !id.is_valid()) {
        return Err(unnamed(invalid_request("the id is over 256 bytes")));
    }
    match decode(payload.get(consumed..).unwrap_or_default()) {
        Ok(request) => Ok(ClientMessage {
            id,
            within_ms,
            request,
        }),
        Err(error) => Err(Rejected { id, error }),
    }
}

/// Decodes a reply or an event from a frame's payload.
///
/// # Errors
/// The same as [`decode`].
pub fn decode_server(payload: &[u8]) -> Result<ServerMessage, Error> {
    decode(payload)
}

/// Takes the preface if all of it was received. Returns `false` if it is
/// incomplete.
///
/// # Errors
/// `incompatible` at the first byte that differs.
pub(super) fn take_preface(buffer: &mut Buffer, preface: &[u8]) -> Result<bool, Error> {
    let there = buffer.unread().len().min(preface.len());
    if buffer.unread()[..there] != preface[..there] {
        return Err(Error::new(
            ErrorCode::Incompatible,
            "the connection does not begin with TMK1",
        ));
    }
    if there == preface.len() {
        buffer.take(there);
    }
    Ok(there == preface.len())
}

/// Returns the payload of the next frame, or `None` if it is not yet complete.
///
/// # Errors
/// `tooLarge` as soon as a frame announces more than `max` bytes (LIM-1).
pub(super) fn next(buffer: &mut Buffer, max: usize) -> Result<Option<Range<usize>>, Error> {
    let Some(length) = buffer.unread().first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > max {
        return Err(too_large("a frame", length, max));
    }
    if buffer.unread().len() - LENGTH_BYTES < length {
        return Ok(None);
    }
    buffer.take(LENGTH_BYTES);
    Ok(Some(buffer.take(length)))
}
