//! bincode frames: a `u32` length, little-endian, then the encoded message.
//!
//! The only file that names bincode. Traps it closes: lengths that would
//! allocate without bound (a limit on decoded bytes), bytes after a value
//! (refused), a number of variant that moved (the golden tests pin them).
//! Types that travel here hold no collection of a type without bytes: a
//! length alone would keep the decoder busy for ever.

use std::ops::Range;

use bincode::config::{self, Config};
use bincode::error::DecodeError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::buffer::Buffer;
use super::message::{ClientMessage, MessageId, Rejected, ServerMessage};
use super::{MAX_FRAME, invalid_request, too_large};
use crate::{Error, ErrorCode};

/// What a client sends once, before its first frame.
pub const PREFACE: [u8; 4] = *b"TMK1";

/// Bytes of the length before each frame.
const LENGTH_BYTES: usize = 4;

/// bincode counts decoded bytes against its limit, not bytes on the wire: one
/// byte on the wire can stand for a `u64`.
const GROWTH: usize = 8;
/// The limit must be a constant; these steps keep it near the input's size, so
/// that a short frame cannot claim much memory.
const SMALL: usize = 64 << 10;
const MEDIUM: usize = 1 << 20;

/// A value as bytes, for a frame.
///
/// # Errors
/// `internalError` for a type whose serialisation fails; derived ones of known
/// length do not.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes)?;
    Ok(bytes)
}

/// A value from exactly these bytes.
///
/// # Errors
/// `invalidRequest` for bytes that are no such value or go on after it,
/// `tooLarge` where they claim more than they could hold.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let (value, consumed) = decode_first(bytes)?;
    if consumed != bytes.len() {
        return Err(invalid_request("there are bytes after the message"));
    }
    Ok(value)
}

/// The same of bytes that this program wrote itself and a check sum vouches
/// for: they may claim as much as they like.
///
/// # Errors
/// As [`decode`], but for `tooLarge`.
pub fn decode_trusted<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let (value, consumed) = decode_with(bytes, config::standard())?;
    if consumed != bytes.len() {
        return Err(invalid_request("there are bytes after the value"));
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

/// A value from the first of these bytes, and how many they were.
fn decode_first<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), Error> {
    let standard = config::standard();
    if bytes.len() <= SMALL {
        decode_with(bytes, standard.with_limit::<{ GROWTH * SMALL }>())
    } else if bytes.len() <= MEDIUM {
        decode_with(bytes, standard.with_limit::<{ GROWTH * MEDIUM }>())
    } else {
        decode_with(bytes, standard.with_limit::<{ GROWTH * MAX_FRAME }>())
    }
}

fn decode_with<T: DeserializeOwned, C: Config>(
    bytes: &[u8],
    config: C,
) -> Result<(T, usize), Error> {
    bincode::serde::decode_from_slice(bytes, config).map_err(|error| match error {
        DecodeError::LimitExceeded => Error::new(
            ErrorCode::TooLarge,
            "a length in the message is larger than the message",
        )
        .hint("send what the message announces"),
        other => invalid_request(format!("the message cannot be decoded: {other}")),
    })
}

/// Appends a frame that holds `value`.
///
/// # Errors
/// `tooLarge` over `max` bytes; nothing is appended then.
fn append_frame<T: Serialize>(value: &T, max: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    let written = encode_into(value, out).and_then(|()| {
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

/// Appends a request's frame.
///
/// # Errors
/// `tooLarge` over `max` bytes.
pub fn append_client(message: &ClientMessage, max: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    append_frame(message, max, out)
}

/// Appends a reply's or event's frame.
///
/// # Errors
/// `tooLarge` over `max` bytes.
pub fn append_server(message: &ServerMessage, max: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    append_frame(message, max, out)
}

/// A request from a frame's payload.
///
/// # Errors
/// [`Rejected`] with the request's id, where that much could be read: the id
/// comes first, so that even a request this daemon does not know is answered.
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

/// A reply or event from a frame's payload.
///
/// # Errors
/// As [`decode`].
pub fn decode_server(payload: &[u8]) -> Result<ServerMessage, Error> {
    decode(payload)
}

/// Takes the preface once all of it is there; `false` before.
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

/// The next frame's payload.
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
