//! The bodies of the fuzz targets `frames` and `json`. A stable test runs the
//! seed corpus through the same bodies (`proto/tests/corpus.rs`).
//!
//! Nothing may panic. A message that was decoded must be decoded to the same
//! message after it was encoded again.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)] // each target uses one body only

use touchmark_proto::codec::{
    ClientMessage, Decoder, Encoder, Incoming, MAX_FRAME, MessageId, ReplyDecoder, Wire, frames,
    json,
};
use touchmark_proto::{METHODS, Version};

const ROOT: &[u8] = b"/w";

/// Decodes the bytes as frames, as single payloads, and as a version.
pub(crate) fn frames(bytes: &[u8]) {
    let framed = [Wire::Frames.preface(), bytes].concat();
    for message in understood(Wire::Frames, &framed) {
        assert_eq!(rewritten(Wire::Frames, &message), vec![message]);
    }
    if let Ok(message) = frames::decode_client(bytes) {
        let again = frames::encode(&message).unwrap();
        assert_eq!(frames::decode_client(&again), Ok(message));
    }
    if let Ok(message) = frames::decode_server(bytes) {
        let again = frames::encode(&message).unwrap();
        assert_eq!(frames::decode_server(&again), Ok(message.clone()));
        // Every message can be encoded on every wire.
        json::server_to_json(&message, ROOT);
    }
    if let Ok(version) = frames::decode::<Version>(bytes) {
        let again = frames::encode(&version).unwrap();
        assert_eq!(frames::decode::<Version>(&again), Ok(version));
    }
}

/// Decodes the bytes as JSON lines, as messages with a header, and as answers
/// to every method.
pub(crate) fn json(bytes: &[u8]) {
    for wire in [Wire::Lines, Wire::ContentLength] {
        for message in understood(wire, bytes) {
            assert_eq!(rewritten(wire, &message), vec![message]);
        }
    }
    for number in 0..METHODS.len() {
        let method = |_: &MessageId| METHODS.get(number).copied();
        let mut answers = ReplyDecoder::new(Wire::Lines, MAX_FRAME, ROOT);
        answers.push(bytes);
        while let Ok(Some(message)) = answers.next(method) {
            json::server_to_json(&message, ROOT);
        }
    }
}

fn understood(wire: Wire, bytes: &[u8]) -> Vec<ClientMessage> {
    let mut decoder = Decoder::new(wire, MAX_FRAME);
    let mut messages = Vec::new();
    decoder.push(bytes);
    while let Ok(Some(incoming)) = decoder.finish() {
        match incoming {
            Incoming::One(one) => messages.extend(*one),
            Incoming::Batch(batch) => messages.extend(batch.into_iter().flatten()),
        }
    }
    messages
}

fn rewritten(wire: Wire, message: &ClientMessage) -> Vec<ClientMessage> {
    let mut bytes = wire.preface().to_vec();
    let encoder = Encoder::new(wire, MAX_FRAME, ROOT);
    encoder.request(message, &mut bytes).unwrap();
    understood(wire, &bytes)
}
