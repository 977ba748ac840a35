//! Every message arrives unchanged, on every wire and in pieces of any size. No
//! input makes the decoder panic.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod arbitrary;

use arbitrary::{ROOT, client_message, server_message};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use touchmark_proto::codec::{
    ClientMessage, Decoder, Encoder, Incoming, MAX_FRAME, ReplyDecoder, ServerMessage, Wire,
};

const WIRES: [Wire; 3] = [Wire::Frames, Wire::Lines, Wire::ContentLength];

/// Returns everything that the decoder returns for `bytes`, pushed in pieces of
/// `piece` bytes.
fn decode_all(wire: Wire, bytes: &[u8], piece: usize) -> Vec<Incoming> {
    let mut decoder = Decoder::new(wire, MAX_FRAME);
    let mut all = Vec::new();
    for bytes in bytes.chunks(piece) {
        decoder.push(bytes);
        while let Ok(Some(incoming)) = decoder.next() {
            all.push(incoming);
        }
    }
    while let Ok(Some(incoming)) = decoder.finish() {
        all.push(incoming);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn requests_arrive_as_sent(
        messages in vec(client_message(), 1..4),
        wire in select(&WIRES[..]),
        piece in 1_usize..200,
    ) {
        let encoder = Encoder::new(wire, MAX_FRAME, ROOT);
        let mut bytes = wire.preface().to_vec();
        for message in &messages {
            encoder.request(message, &mut bytes).unwrap();
        }
        prop_assert_eq!(Wire::sniff(bytes[0]), Some(wire));
        let got: Vec<ClientMessage> = decode_all(wire, &bytes, piece)
            .into_iter()
            .map(|incoming| match incoming {
                Incoming::One(one) => one.unwrap(),
                Incoming::Batch(_) => panic!("a batch"),
            })
            .collect();
        prop_assert_eq!(got, messages);
    }

    #[test]
    fn answers_arrive_as_sent(
        (method, message) in server_message(),
        wire in select(&WIRES[..]),
        piece in 1_usize..200,
    ) {
        let mut bytes = Vec::new();
        Encoder::new(wire, MAX_FRAME, ROOT).encode(&message, &mut bytes).unwrap();
        let mut decoder = ReplyDecoder::new(wire, MAX_FRAME, ROOT);
        let mut got: Vec<ServerMessage> = Vec::new();
        for bytes in bytes.chunks(piece) {
            decoder.push(bytes);
            while let Some(message) = decoder.next(|_| Some(method)).unwrap() {
                got.push(message);
            }
        }
        prop_assert_eq!(got, vec![message]);
    }

    #[test]
    fn any_bytes_are_survived(
        bytes in vec(any::<u8>(), 0..400),
        wire in select(&WIRES[..]),
        piece in 1_usize..50,
        with_preface in any::<bool>(),
    ) {
        let preface = if with_preface { wire.preface() } else { b"" };
        decode_all(wire, &[preface, &bytes].concat(), piece);
        let mut replies = ReplyDecoder::new(wire, MAX_FRAME, ROOT);
        replies.push(&bytes);
        while let Ok(Some(_)) = replies.next(|_| Some("file/status")) {}
    }

    /// The input is a valid message with one byte changed, which finds more
    /// defects than random bytes.
    #[test]
    fn damaged_messages_are_survived(
        message in client_message(),
        wire in select(&WIRES[..]),
        place in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let mut bytes = wire.preface().to_vec();
        Encoder::new(wire, MAX_FRAME, ROOT).request(&message, &mut bytes).unwrap();
        let place = place.index(bytes.len());
        bytes[place] = value;
        decode_all(wire, &bytes, 64);
    }

    /// The result does not depend on how the bytes are cut into pieces.
    #[test]
    fn pieces_do_not_matter(
        text in "(\\{\"jsonrpc\":\"2.0\",\"id\":[0-9]{1,3},\"method\":\"ping\"\\}|\\[1\\]|[ a-z]{0,5})(\n|\r\n)",
        piece in 1_usize..20,
    ) {
        prop_assert_eq!(
            decode_all(Wire::Lines, text.as_bytes(), piece),
            decode_all(Wire::Lines, text.as_bytes(), text.len())
        );
    }
}
