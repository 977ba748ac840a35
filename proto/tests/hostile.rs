//! LIM-1: hostile input is refused at once with a clear error and with limited
//! memory.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use touchmark_proto::codec::{
    ClientMessage, Decoder, Encoder, Incoming, MAX_FRAME, MessageId, Part, Rejected, ServerMessage,
    Wire, frames, json,
};
use touchmark_proto::daemon::{Done, Initialize, Ping, Program};
use touchmark_proto::{Error, ErrorCode, Reply, Request};

fn frame(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [b"TMK1".as_slice(), &length, payload].concat()
}

/// Returns the error for the first message of these bytes.
fn refused(wire: Wire, bytes: &[u8]) -> Rejected {
    let mut decoder = Decoder::new(wire, MAX_FRAME);
    decoder.push(bytes);
    let Ok(Some(Incoming::One(one))) = decoder.next() else {
        panic!("not one whole message");
    };
    one.unwrap_err()
}

/// Returns the error that closes the connection.
fn fatal(wire: Wire, max: usize, bytes: &[u8]) -> ErrorCode {
    let mut decoder = Decoder::new(wire, max);
    decoder.push(bytes);
    let error = decoder.next().unwrap_err();
    assert_eq!(decoder.next(), Err(error.clone()), "it stays closed");
    decoder.push(b"{}\n");
    assert_eq!(decoder.next(), Err(error.clone()), "it stays closed");
    error.code
}

fn line(text: &str) -> Result<ClientMessage, Rejected> {
    match json::parse(text.as_bytes()) {
        Incoming::One(one) => *one,
        Incoming::Batch(_) => panic!("a batch"),
    }
}

fn line_error(text: &str) -> (Option<MessageId>, ErrorCode) {
    let rejected = line(text).unwrap_err();
    (rejected.id, rejected.error.code)
}

/// bincode's encoding of the length 2^40: the mark for eight bytes, then the
/// number.
const HUGE: [u8; 9] = [253, 0, 0, 0, 0, 0, 1, 0, 0];

#[test]
fn a_length_of_a_tebibyte_allocates_nothing() {
    // This request has no id, no deadline and variant 0 (initialize); then the
    // client's name.
    let text = [&[0, 0, 0], HUGE.as_slice()].concat();
    assert_eq!(
        refused(Wire::Frames, &frame(&text)).error.code,
        ErrorCode::TooLarge
    );
    // A path's bytes are allocated before they are read: variant 27
    // (editor/didOpen).
    let path = [&[0, 0, 27], HUGE.as_slice()].concat();
    assert_eq!(
        refused(Wire::Frames, &frame(&path)).error.code,
        ErrorCode::TooLarge
    );
    // This is a list of paths: variant 10 (session/compacted), session "s".
    let list = [&[0, 0, 10, 1, b's'], HUGE.as_slice()].concat();
    assert_eq!(
        refused(Wire::Frames, &frame(&list)).error.code,
        ErrorCode::InvalidRequest
    );
    // This is the id itself.
    let id = [&[1, 3], HUGE.as_slice()].concat();
    assert_eq!(refused(Wire::Frames, &frame(&id)).id, Some(MessageId::Null));
}

#[test]
fn a_short_frame_cannot_claim_a_long_one() {
    // A frame of a few bytes announces a length of 16 MiB.
    let payload = [&[0, 0, 27, 252], (16_u32 << 20).to_le_bytes().as_slice()].concat();
    assert_eq!(
        refused(Wire::Frames, &frame(&payload)).error.code,
        ErrorCode::TooLarge
    );
}

#[test]
fn bytes_after_a_value_are_refused() {
    let message = ClientMessage {
        id: Some(7.into()),
        within_ms: None,
        request: Request::Ping(Ping {}),
    };
    let mut payload = frames::encode(&message).unwrap();
    assert_eq!(frames::decode_client(&payload), Ok(message));
    payload.push(0);
    let rejected = frames::decode_client(&payload).unwrap_err();
    assert_eq!(rejected.id, Some(7.into()), "the id was read all the same");
    assert_eq!(rejected.error.code, ErrorCode::InvalidRequest);
    assert!(frames::decode::<u64>(&[5, 0]).is_err());
    assert_eq!(frames::decode::<u64>(&[5]), Ok(5));
}

#[test]
fn a_request_of_a_later_version_is_answered_by_its_id() {
    // The id is 9, there is no deadline, and no method has variant 250.
    let rejected = frames::decode_client(&[1, 1, 9, 0, 250]).unwrap_err();
    assert_eq!(rejected.id, Some(9.into()));
    assert_eq!(rejected.error.code, ErrorCode::InvalidRequest);
    assert!(rejected.into_reply().is_some());
}

#[test]
fn empty_and_half_frames() {
    assert_eq!(
        refused(Wire::Frames, &frame(b"")).error.code,
        ErrorCode::InvalidRequest
    );
    let whole = frame(&[0, 0, 1]);
    for cut in 0..whole.len() {
        let mut decoder = Decoder::new(Wire::Frames, MAX_FRAME);
        decoder.push(&whole[..cut]);
        assert_eq!(decoder.next(), Ok(None));
        let between = cut == 0 || cut == 4;
        assert_eq!(decoder.finish().is_err(), !between, "cut at {cut}");
    }
}

#[test]
fn a_frame_is_measured_before_it_comes() {
    let bytes = [b"TMK1".as_slice(), &1001_u32.to_le_bytes()].concat();
    assert_eq!(fatal(Wire::Frames, 1000, &bytes), ErrorCode::TooLarge);
    let mut decoder = Decoder::new(Wire::Frames, 1001);
    decoder.push(&bytes);
    assert_eq!(decoder.next(), Ok(None));
}

#[test]
fn a_preface_of_another_protocol_is_refused_at_its_first_other_byte() {
    assert_eq!(fatal(Wire::Frames, 1000, b"TMK2"), ErrorCode::Incompatible);
    assert_eq!(fatal(Wire::Frames, 1000, b"Tx"), ErrorCode::Incompatible);
}

#[test]
fn an_endless_line_ends_at_the_limit() {
    let mut decoder = Decoder::new(Wire::Lines, 1000);
    for _ in 0..10 {
        decoder.push(&[b' '; 100]);
        assert_eq!(decoder.next(), Ok(None));
    }
    decoder.push(b" ");
    assert_eq!(decoder.next().unwrap_err().code, ErrorCode::TooLarge);
    // A complete line over the limit is refused like an incomplete one.
    let line = format!("{}\n", "x".repeat(1001));
    assert_eq!(
        fatal(Wire::Lines, 1000, line.as_bytes()),
        ErrorCode::TooLarge
    );
}

#[test]
fn headers_are_bounded_and_read_as_lsp_means_them() {
    let endless = vec![b'C'; 5000];
    assert_eq!(
        fatal(Wire::ContentLength, MAX_FRAME, &endless),
        ErrorCode::TooLarge
    );
    let many = "Other: header\r\n".repeat(1000);
    assert_eq!(
        fatal(Wire::ContentLength, MAX_FRAME, many.as_bytes()),
        ErrorCode::TooLarge
    );
    for (header, code) in [
        ("Content-Length: 1001\r\n\r\n", ErrorCode::TooLarge),
        (
            "Content-Length: 99999999999999999999999\r\n\r\n",
            ErrorCode::InvalidRequest,
        ),
        ("Content-Length: -1\r\n\r\n", ErrorCode::InvalidRequest),
        ("Content-Length: +1\r\n\r\n", ErrorCode::InvalidRequest),
        ("Content-Length:\r\n\r\n", ErrorCode::InvalidRequest),
        (
            "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
            ErrorCode::InvalidRequest,
        ),
        ("Content-Type: x\r\n\r\n", ErrorCode::InvalidRequest),
        ("Cxyz\r\n", ErrorCode::InvalidRequest),
    ] {
        assert_eq!(
            fatal(Wire::ContentLength, 1000, header.as_bytes()),
            code,
            "{header:?}"
        );
    }
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let text = format!(
        "CONTENT-length:  {}\r\nContent-Type: application/vscode-jsonrpc\r\n\r\n{ping}",
        ping.len()
    );
    let mut decoder = Decoder::new(Wire::ContentLength, 1000);
    decoder.push(text.as_bytes());
    assert!(matches!(decoder.next(), Ok(Some(Incoming::One(one))) if one.is_ok()));
    assert_eq!(decoder.finish(), Ok(None));
    decoder.push(b"Content-Length: 5\r\n\r\n{}");
    assert_eq!(decoder.next(), Ok(None));
    assert!(decoder.finish().is_err(), "half a message");
}

#[test]
fn the_first_byte_decides() {
    for byte in 0..=u8::MAX {
        let expected = match byte {
            b'T' => Some(Wire::Frames),
            b'{' | b'[' | b' ' | b'\t' | b'\r' | b'\n' => Some(Wire::Lines),
            b'C' => Some(Wire::ContentLength),
            _ => None,
        };
        assert_eq!(Wire::sniff(byte), expected);
    }
}

#[test]
fn deep_nesting_is_an_error_not_a_stack_overflow() {
    let deep = "[".repeat(1 << 20);
    assert_eq!(
        line_error(&deep),
        (Some(MessageId::Null), ErrorCode::ParseError)
    );
    let deep = r#"{"a":"#.repeat(1 << 18);
    assert_eq!(
        line_error(&deep),
        (Some(MessageId::Null), ErrorCode::ParseError)
    );
}

#[test]
fn a_small_text_cannot_become_a_large_tree() {
    let many = format!("[{}{{}}]", "{},".repeat(1 << 19));
    assert_eq!(
        line_error(&many),
        (Some(MessageId::Null), ErrorCode::TooLarge)
    );
    let batch = format!("[{}1]", "1,".repeat(1000));
    assert_eq!(
        line_error(&batch),
        (Some(MessageId::Null), ErrorCode::TooLarge)
    );
}

#[test]
fn json_that_is_no_request() {
    use ErrorCode::{InvalidParams, InvalidRequest, MethodNotFound, ParseError};
    let null = Some(MessageId::Null);
    let one = Some(MessageId::Number(1));
    let huge_id = format!(
        r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#,
        "x".repeat(257)
    );
    for (text, expected) in [
        ("{", (null.clone(), ParseError)),
        ("{} {}", (null.clone(), ParseError)),
        ("1", (null.clone(), InvalidRequest)),
        ("[]", (null.clone(), InvalidRequest)),
        ("{}", (null.clone(), InvalidRequest)),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            (one.clone(), InvalidRequest),
        ),
        (r#"{"jsonrpc":"2.0","id":1}"#, (one.clone(), InvalidRequest)),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            (null.clone(), InvalidRequest),
        ),
        (
            r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#,
            (null.clone(), InvalidRequest),
        ),
        (&huge_id, (null.clone(), InvalidRequest)),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#,
            (null.clone(), InvalidRequest),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            (one.clone(), InvalidRequest),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"pong"}"#,
            (one.clone(), MethodNotFound),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            (one.clone(), InvalidParams),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1}}"#,
            (one.clone(), InvalidParams),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"withinMs":-1}}"#,
            (one.clone(), InvalidParams),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"session/open"}"#,
            (one.clone(), InvalidParams),
        ),
        // Notifications are never answered, not even with an error.
        (
            r#"{"jsonrpc":"2.0","method":"pong"}"#,
            (None, MethodNotFound),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"ping","params":{"x":1}}"#,
            (None, InvalidParams),
        ),
    ] {
        assert_eq!(line_error(text), expected, "{text}");
    }
    let Incoming::One(bad) = json::parse(b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}") else {
        panic!("a batch");
    };
    assert_eq!(bad.unwrap_err().error.code, ParseError);
    assert!(line(r#"{"jsonrpc":"2.0","id":1,"method":"ping","trace":"on"}"#).is_ok());
}

#[test]
fn an_answer_over_the_limit_becomes_an_error_with_its_id() {
    let reply = |text: &str| ServerMessage::Reply {
        id: 1.into(),
        outcome: Err(Error::invalid(text)),
    };
    for wire in [Wire::Frames, Wire::Lines, Wire::ContentLength] {
        let encoder = Encoder::new(wire, 400, b"/w".as_slice());
        let mut out = b"before".to_vec();
        encoder.encode(&reply(&"x".repeat(500)), &mut out).unwrap();
        assert!(out.starts_with(b"before") && out.len() < 500, "{wire:?}");
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains("over the limit of 400"), "{text}");
    }
    let encoder = Encoder::new(Wire::Lines, 1000, b"/w".as_slice());
    let mut out = Vec::new();
    encoder
        .batch(
            &[&"x".repeat(900), "y"].map(|text| part(&encoder, reply(text))),
            &mut out,
        )
        .unwrap();
    let array: Vec<serde_json::Value> = serde_json::from_slice(&out).unwrap();
    assert_eq!(array.len(), 2);
    assert!(
        array
            .iter()
            .all(|one| one["error"]["data"]["code"] == "tooLarge")
    );
}

fn part(encoder: &Encoder, reply: ServerMessage) -> Part {
    let ServerMessage::Reply { id, outcome } = reply else {
        panic!("no reply");
    };
    encoder.part(id, outcome)
}

#[test]
fn a_batch_is_answered_in_one_array() {
    let text = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},1,{"jsonrpc":"2.0","method":"ping"}]"#;
    let Incoming::Batch(batch) = json::parse(text) else {
        panic!("no batch");
    };
    assert!(batch[0].is_ok() && batch[2].is_ok());
    assert_eq!(batch[1].as_ref().unwrap_err().id, Some(MessageId::Null));
    let replies = [
        ServerMessage::Reply {
            id: 1.into(),
            outcome: Ok(Reply::Ping(Done {})),
        },
        batch[1].clone().unwrap_err().into_reply().unwrap(),
    ];
    let mut out = Vec::new();
    let encoder = Encoder::new(Wire::Lines, MAX_FRAME, b"/w".as_slice());
    let parts = replies.map(|reply| part(&encoder, reply));
    encoder.batch(&parts, &mut out).unwrap();
    let array: Vec<serde_json::Value> = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        array[0],
        serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": {}})
    );
    assert_eq!(array[1]["id"], serde_json::Value::Null);
    out.clear();
    encoder.batch(&[], &mut out).unwrap();
    assert!(out.is_empty(), "a batch of notifications has no answer");
}

#[test]
fn many_messages_in_one_push_come_one_by_one() {
    let message = ClientMessage {
        id: None,
        within_ms: None,
        request: Request::Initialize(Initialize::new(
            Program {
                name: "x".repeat(1 << 20),
                version: String::new(),
            },
            1,
        )),
    };
    for wire in [Wire::Frames, Wire::Lines, Wire::ContentLength] {
        let encoder = Encoder::new(wire, MAX_FRAME, b"/w".as_slice());
        let mut bytes = wire.preface().to_vec();
        for _ in 0..5 {
            encoder.request(&message, &mut bytes).unwrap();
        }
        let mut decoder = Decoder::new(wire, MAX_FRAME);
        decoder.push(&bytes);
        for _ in 0..5 {
            assert!(matches!(decoder.next(), Ok(Some(Incoming::One(one))) if one.is_ok()));
        }
        assert_eq!(decoder.next(), Ok(None));
        assert_eq!(decoder.finish(), Ok(None));
    }
}
