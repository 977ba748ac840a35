//! Hostile clients with invalid messages (LIM-1): every message that is
//! invalid, or almost valid, gets an error or ends its connection, and other
//! clients are not affected. Too many messages are in `floods.rs`, hostile
//! paths in `paths.rs`.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};
use touchmark_proto::codec::{ClientMessage, MAX_FRAME, ServerMessage, frames};
use touchmark_proto::daemon::Done;
use touchmark_proto::{METHODS, Reply, Request};
use touchmark_tests::mutate::{Random, changed_bytes, changed_params, line, samples};
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::{World, beside_a_neighbour, sha256};

#[test]
fn lim1_wrong_messages_get_clear_errors() {
    let world = World::new();
    let mut client = world.client();
    for (text, code) in [
        ("{\"jsonrpc\":\"2.0\",\"id\":1,", -32700),
        ("{}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", -32600),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}",
            -32601,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sync\",\"params\":{\"x\":1}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sync\",\"params\":[1]}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"file/read\",\"params\":{\"session\":\"s\"}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"file/read\",\"params\":{\"session\":5,\"path\":\"a\"}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"file/read\",\"params\":{\"session\":\"\",\"path\":\"a\"}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"file/read\",\"params\":{\"session\":\"s\",\"path\":\"\"}}",
            -32015,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"edit/mark\",\"params\":{\"session\":\"s\",\"path\":\"a\",\"expect\":\"xyz\"}}",
            -32602,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"modified/list\",\"params\":{\"since\":\"yesterday\"}}",
            -32602,
        ),
    ] {
        client.raw(text.as_bytes()).unwrap();
        client.raw(b"\n").unwrap();
        let line: Value = serde_json::from_str(&client.raw_line().expect("an answer")).unwrap();
        assert_eq!(line["error"]["code"], code, "{text}: {line}");
        assert!(line["error"]["data"]["code"].is_string(), "{line}");
        assert!(line["error"]["data"]["hint"].is_string(), "{line}");
    }
    let long_id = "i".repeat(257);
    client.refused(
        "file/mention",
        json!({"session": long_id, "path": "a"}),
        "invalidParams",
    );
    let long_path = "p/".repeat(4096);
    let error = client
        .call("file/mention", json!({"session": "s", "path": long_path}))
        .unwrap_err();
    assert!(error.code < 0, "{error}");
    // The connection goes on.
    client.ok("ping", json!({}));
    // Invalid UTF-8.
    client
        .raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n")
        .unwrap();
    let line: Value = serde_json::from_str(&client.raw_line().expect("an answer")).unwrap();
    assert_eq!(line["error"]["code"], -32700, "{line}");
    // Deep nesting.
    let deep = format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let mut nested = world.client();
    nested.raw(deep.as_bytes()).unwrap();
    let _ = nested.raw_line();
    world.client().ok("ping", json!({}));
}

/// Sends bytes, and returns what arrives until an answer or the end of the
/// connection.
fn outcome(world: &World, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(world.socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    // A daemon that has seen enough may close while more is being sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    loop {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(length) => answer.extend_from_slice(&part[..length]),
        }
    }
    answer
}

#[test]
fn lim1_frames_that_are_none_end_the_connection() {
    let mut world = World::new();
    // Anything else: one line of error, closed.
    let answer = outcome(&world, b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(
        answer.iter().filter(|byte| **byte == b'\n').count(),
        1,
        "{answer:?}"
    );
    // A wrong preface, a frame over the limit, junk in a frame.
    outcome(&world, b"TMK9\0\0\0\0");
    outcome(&world, b"TMK1\xff\xff\xff\xff");
    let mut junk = b"TMK1".to_vec();
    junk.extend(64_u32.to_le_bytes());
    junk.extend([0xff; 64]);
    let mut stream = UnixStream::connect(world.socket()).unwrap();
    stream.write_all(&junk).unwrap();
    drop(stream);
    // Lengths that are none, or too much.
    for header in [
        "Content-Length: 99999999999\r\n\r\n",
        "Content-Length: -1\r\n\r\n",
        "Content-Length: x\r\n\r\n",
        "Content-Type: none\r\n\r\n{}",
    ] {
        outcome(&world, header.as_bytes());
    }
    outcome(
        &world,
        format!("Content-Length: 5\r\n{}", "X: y\r\n".repeat(100_000)).as_bytes(),
    );
    // A line over 16 MiB.
    let mut endless = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"".to_vec();
    endless.resize(17 << 20, b'a');
    let answer = outcome(&world, &endless);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains("tooLarge"), "{answer:.300}");
    // A frame just below it is a message like any other.
    let mut client = world.client();
    let long = "a".repeat(15 << 20);
    let error = client.call(&long, json!({})).unwrap_err();
    assert_eq!(error.code, -32601, "{error}");
    world.healthy();
    let rss = client.ok("status", json!({}))["rssBytes"].as_u64().unwrap();
    assert!(rss < 512 << 20, "{rss} bytes after big frames");
}

#[test]
fn lim1_half_frames_hold_nobody_up() {
    let mut world = World::new();
    let halves: &[&[u8]] = &[
        b"",
        b"T",
        b"TMK1\x10",
        b"TMK1\x10\0\0\0abc",
        b"{\"jsonrpc\"",
        b"C",
        b"Content-Length: 10\r\n\r\n{}",
        b"Content-Length: 10\r\n",
    ];
    let mut open = Vec::new();
    for half in halves {
        let mut stream = UnixStream::connect(world.socket()).unwrap();
        stream.write_all(half).unwrap();
        // Closed at once, by halves, or left open.
        let mut closed = UnixStream::connect(world.socket()).unwrap();
        closed.write_all(half).unwrap();
        drop(closed);
        let mut shut = UnixStream::connect(world.socket()).unwrap();
        shut.write_all(half).unwrap();
        shut.shutdown(std::net::Shutdown::Write).unwrap();
        open.push((stream, shut));
    }
    world.client().ok("ping", json!({}));
    world.healthy();
}

/// Opens a connection with long timeouts.
fn connect(world: &World) -> UnixStream {
    let stream = UnixStream::connect(world.socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Numbers, types and shapes that are valid nowhere: an error with a hint, and
/// the connection continues. Or an answer, where the value is allowed after
/// all.
#[test]
fn lim1_wrong_values_get_an_error_or_a_right_answer() {
    let mut world = World::new();
    world.file("a.txt", "one\ntwo\n");
    beside_a_neighbour(&world, || {
        let mut client = world.client();
        let huge = u64::MAX;
        for (method, params, expected) in [
            // Wrong types and numbers.
            (
                "file/read",
                json!({"session": 5, "path": "a.txt"}),
                "invalidParams",
            ),
            (
                "file/read",
                json!({"session": "s", "path": ["a.txt"]}),
                "invalidParams",
            ),
            (
                "file/read",
                json!({"session": "s", "path": "a.txt", "step": 1.5}),
                "invalidParams",
            ),
            (
                "file/read",
                json!({"session": "s", "path": "a.txt", "step": -1}),
                "invalidParams",
            ),
            (
                "file/read",
                json!({"session": "s", "path": "a.txt", "totalLines": huge}),
                "invalidParams",
            ),
            (
                "file/readText",
                json!({"session": "s", "path": "a.txt", "range": {"start": -1, "end": 2}}),
                "invalidParams",
            ),
            (
                "file/readText",
                json!({"session": "s", "path": "a.txt", "range": {"start": 1.0, "end": 2}}),
                "invalidParams",
            ),
            (
                "file/readText",
                json!({"session": "s", "path": "a.txt", "range": {"start": 1, "end": huge}}),
                "invalidParams",
            ),
            (
                "file/readText",
                json!({"session": "s", "path": "a.txt", "force": "yes"}),
                "invalidParams",
            ),
            (
                "file/list",
                json!({"session": "s", "limit": -5}),
                "invalidParams",
            ),
            (
                "file/list",
                json!({"session": "s", "limit": huge}),
                "invalidParams",
            ),
            (
                "session/open",
                json!({"session": "s", "pid": -1}),
                "invalidParams",
            ),
            (
                "initialize",
                json!({"client": {"name": "t", "version": "1"}, "protocol": 1.5}),
                "invalidParams",
            ),
            ("subscribe", json!({"since": "0x1:1"}), "invalidParams"),
            ("subscribe", json!({"kinds": ["weather"]}), "invalidParams"),
            (
                "edit/mark",
                json!({"session": "s", "path": "a.txt", "ttlMs": -1}),
                "invalidParams",
            ),
            (
                "edit/begin",
                json!({"session": "s", "files": []}),
                "invalidParams",
            ),
            (
                "edit/begin",
                json!({"session": "s", "files": [{"path": "a.txt"}, {"path": "./a.txt"}]}),
                "invalidParams",
            ),
            (
                "command/begin",
                json!({"session": "s", "paths": ["[z-a"]}),
                "invalidParams",
            ),
            (
                "command/begin",
                json!({"session": "s", "paths": vec!["x".repeat(1000); 100]}),
                "invalidParams",
            ),
            (
                "file/write",
                json!({"session": "s", "path": "w", "text": "a", "base64": "YQ=="}),
                "invalidParams",
            ),
            (
                "file/write",
                json!({"session": "s", "path": "w", "base64": "!"}),
                "invalidParams",
            ),
            // Ranges that hold no line.
            (
                "file/readText",
                json!({"session": "s", "path": "a.txt", "range": {"start": 0, "end": 0}, "force": true}),
                "",
            ),
            (
                "file/readText",
                json!({"session": "s", "path": "a.txt", "range": {"start": 5, "end": 1}, "force": true}),
                "",
            ),
            (
                "file/readText",
                json!({"session": "s", "path": "a.txt", "range": {"start": u32::MAX, "end": u32::MAX}, "force": true}),
                "",
            ),
            (
                "file/read",
                json!({"session": "s", "path": "a.txt", "range": {"start": 0, "end": u32::MAX}}),
                "",
            ),
            // Limits and times without bounds.
            ("file/list", json!({"session": "s", "limit": 0}), ""),
            ("file/list", json!({"session": "s", "limit": u32::MAX}), ""),
            ("ping", json!({"withinMs": huge}), ""),
            ("sync", json!({"withinMs": huge}), ""),
            (
                "edit/mark",
                json!({"session": "s", "path": "new", "ttlMs": huge}),
                "",
            ),
            (
                "edit/begin",
                json!({"session": "s", "files": [{"path": "new2"}], "ttlMs": huge, "waitMs": huge}),
                "",
            ),
            (
                "command/begin",
                json!({"session": "s", "ttlMs": huge, "paths": ["nowhere/**"]}),
                "",
            ),
            (
                "editor/didSave",
                json!({"path": "a.txt", "hash": sha256("x"), "time": huge}),
                "",
            ),
            ("session/open", json!({"session": "s", "pid": u32::MAX}), ""),
        ] {
            match client.call(method, params.clone()) {
                Ok(_) => assert_eq!(expected, "", "{method} {params:.200}"),
                Err(error) => {
                    assert!(
                        expected.is_empty() || error.name == expected,
                        "{method} {params:.200}: {error}"
                    );
                    assert!(error.data["hint"].is_string(), "{method}: {}", error.data);
                    assert_ne!(
                        error.name, "internalError",
                        "{method} {params:.200}: {error}"
                    );
                }
            }
        }
        // Time that is up before it begins.
        client.refused("sync", json!({"withinMs": 0}), "tooLate");
        client.ok("session/close", json!({"session": "s", "forget": true}));
        let status = client.ok("status", json!({}));
        assert_eq!(status["openEdits"].as_u64().unwrap() & !1, 0, "{status}");
    });
    world.healthy();
}

/// Messages whose JSON-RPC shape is invalid or doubtful.
#[test]
fn lim1_wrong_shapes_get_an_error_each() {
    let mut world = World::new();
    beside_a_neighbour(&world, || {
        let mut client = world.client();
        for (text, code) in [
            (
                "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
                Some(-32600),
            ),
            (
                "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"ping\"}",
                Some(-32600),
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
                Some(-32600),
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
                Some(-32600),
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":\"x\"}",
                None,
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}",
                None,
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"method\":\"sync\"}",
                None,
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"file/list\",\"params\":{\"session\":\"a\",\"session\":\"b\"}}",
                None,
            ),
            ("[]", Some(-32600)),
            ("[1]", None),
            ("[[]]", None),
            (
                "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},[]]",
                None,
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} {}",
                Some(-32700),
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\"}",
                Some(-32700),
            ),
            ("[nul]", Some(-32700)),
            ("{\"a\":1e999999}", None),
        ] {
            client.raw(format!("{text}\n").as_bytes()).unwrap();
            let answer = client
                .raw_line()
                .unwrap_or_else(|| panic!("closed at {text}"));
            let answer: Value = serde_json::from_str(&answer).unwrap();
            if let Some(code) = code {
                assert_eq!(answer["error"]["code"], code, "{text}: {answer}");
                assert!(answer["error"]["data"]["hint"].is_string(), "{answer}");
            }
            client.ok("ping", json!({}));
        }
        // The same id on many requests at once: as many answers.
        let same = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sync\"}\n".repeat(300);
        client.raw(same.as_bytes()).unwrap();
        for _ in 0..300 {
            let answer: Value = serde_json::from_str(&client.raw_line().unwrap()).unwrap();
            assert_eq!(answer["id"], 7, "{answer}");
            assert!(answer["result"]["clock"].is_string(), "{answer}");
        }
        // A batch of more than there may be, and one whose every part is
        // wrong.
        let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
        let batch = format!("[{}]\n", vec![ping; 1_001].join(","));
        client.raw(batch.as_bytes()).unwrap();
        let answer = client.raw_line().unwrap();
        assert!(answer.contains("tooLarge"), "{answer:.300}");
        client
            .raw(format!("[{}]\n", vec!["5"; 500].join(",")).as_bytes())
            .unwrap();
        let answer: Value = serde_json::from_str(&client.raw_line().unwrap()).unwrap();
        assert_eq!(answer.as_array().map(Vec::len), Some(500));
        client.ok("ping", json!({}));
    });
    world.healthy();
}

/// A connection that began with one wire cannot continue with another.
#[test]
fn lim1_wires_are_not_mixed() {
    let mut world = World::new();
    let json = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    let lines = format!("{json}\n").into_bytes();
    let framed = format!("Content-Length: {}\r\n\r\n{json}", json.len()).into_bytes();
    let message = ClientMessage {
        id: Some(1.into()),
        within_ms: None,
        request: Request::from_json("ping", json!({})).unwrap(),
    };
    let mut binary = b"TMK1".to_vec();
    let body = frames::encode(&message).unwrap();
    binary.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
    binary.extend(&body);
    let wires = [lines, framed, binary];
    beside_a_neighbour(&world, || {
        for first in &wires {
            for second in &wires {
                if first == second {
                    continue;
                }
                let mut stream = connect(&world);
                stream.write_all(first).unwrap();
                let mut part = [0; 256];
                assert_ne!(stream.read(&mut part).unwrap(), 0);
                let _refused = stream.write_all(second);
                // An error, or the end; then no side writes any more.
                stream.shutdown(Shutdown::Write).unwrap();
                let mut rest = Vec::new();
                let _reset = stream.read_to_end(&mut rest);
            }
        }
    });
    world.healthy();
}

/// One byte at a time is slow, and is answered correctly.
#[test]
fn lim1_one_byte_at_a_time_is_answered() {
    let mut world = World::new();
    beside_a_neighbour(&world, || {
        for bytes in [
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".to_vec(),
            b"Content-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
                .to_vec(),
            [b"TMK1".as_slice(), &[5, 0, 0, 0, 1, 1, 1, 0, 1]].concat(),
        ] {
            let mut stream = connect(&world);
            for byte in &bytes {
                stream.write_all(&[*byte]).unwrap();
                // So that each comes by itself.
                touchmark_tests::user::pause(1);
            }
            let mut part = [0; 256];
            let length = stream.read(&mut part).unwrap();
            let answer = String::from_utf8_lossy(&part[..length]).into_owned();
            assert!(length > 0 && !answer.contains("error"), "{answer}");
        }
    });
    world.healthy();
}

/// Frames with lengths larger than what follows, up to the largest `u32`.
#[test]
fn lim1_lengths_cost_nothing_by_themselves() {
    let mut world = World::new();
    let before = resident(&world);
    beside_a_neighbour(&world, || {
        let mut open = Vec::new();
        for _ in 0..100 {
            for length in [MAX_FRAME as u32, MAX_FRAME as u32 + 1, u32::MAX] {
                let mut stream = connect(&world);
                stream.write_all(b"TMK1").unwrap();
                stream.write_all(&length.to_le_bytes()).unwrap();
                let _over_the_limit = stream.write_all(b"\x01");
                open.push(stream);
            }
            let mut stream = connect(&world);
            let header = format!("Content-Length: {MAX_FRAME}\r\n\r\n{{");
            stream.write_all(header.as_bytes()).unwrap();
            open.push(stream);
        }
        world.client().ok("ping", json!({}));
        let grown = resident(&world).saturating_sub(before);
        assert!(grown < 64 << 20, "400 promises cost {grown} bytes");
    });
    world.healthy();
}

fn resident(world: &World) -> u64 {
    world.client().ok("status", json!({}))["rssBytes"]
        .as_u64()
        .unwrap()
}

/// A client that disconnects in the middle of every kind of request, and
/// directly after it. Nothing that it would have to end stays open.
#[test]
fn lim1_clients_that_leave_in_the_middle() {
    let mut world = World::new();
    world.file("a.txt", "one\n");
    let mut random = Random::new(1);
    beside_a_neighbour(&world, || {
        for (method, params) in samples() {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let line = format!("{message}\n").into_bytes();
            for end in [line.len(), line.len(), 1 + random.below(line.len() - 1)] {
                let mut stream = connect(&world);
                stream.write_all(&line[..end]).unwrap();
            }
        }
        let mut client = world.client();
        client.ok("sync", json!({}));
    });
    // All of it was bound to connections that are gone (ATTR-9).
    let mut client = world.client();
    let end = std::time::Instant::now() + PATIENCE;
    while client.ok("status", json!({}))["openEdits"] != 0 {
        assert!(std::time::Instant::now() < end, "edits stay open");
        touchmark_tests::user::pause(20);
    }
    assert_eq!(client.ok("status", json!({}))["connections"], 1);
    world.healthy();
}

/// Valid messages of every method, changed at random. Each is answered or ends
/// its connection, the neighbour is served, and memory does not grow.
#[test]
fn lim1_messages_that_are_almost_right() {
    let seed = std::env::var("TOUCHMARK_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let rounds =
        match touchmark_tests::parts::heavy("100,000 messages that are almost right, 4,000 here") {
            true => 100_000,
            false => 4_000,
        };
    let samples = samples();
    let sampled: BTreeSet<&str> = samples.iter().map(|(method, _)| *method).collect();
    let all: BTreeSet<&str> = METHODS
        .iter()
        .copied()
        .filter(|name| *name != "shutdown")
        .collect();
    assert_eq!(sampled, all, "a sample for each method");
    let seed = seed.unwrap_or(20);
    println!("TOUCHMARK_SEED={seed}");
    let mut random = Random::new(seed);
    let mut world = World::new();
    world.file("a.txt", "one\n");
    for (method, params) in &samples {
        // They are valid as they are.
        Request::from_json(method, params.clone())
            .unwrap_or_else(|error| panic!("{method}: {error}"));
    }
    beside_a_neighbour(&world, || {
        for _ in 0..rounds / 40 {
            almost_right_lines(&world, &samples, &mut random);
            almost_right_frames(&world, &samples, &mut random);
        }
    });
    let grown = resident(&world);
    assert!(grown < 256 << 20, "{grown} bytes after {rounds} messages");
    world.healthy();
}

/// Sends twenty lines on one connection, and reads answers until all lines have
/// been processed.
fn almost_right_lines(world: &World, samples: &[(&str, Value)], random: &mut Random) {
    let mut client = world.client();
    let mut said = Vec::new();
    for _ in 0..20 {
        let (method, params) = random.one_of(samples);
        let mut line = line(method, params, random);
        line.push(b'\n');
        said.extend(line);
    }
    said.extend(b"{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}\n");
    if client.raw(&said).is_err() {
        return;
    }
    while let Some(line) = client.raw_line() {
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| {
            panic!("{error}: {line} answers {}", String::from_utf8_lossy(&said))
        });
        for one in answer.as_array().unwrap_or(&vec![answer.clone()]) {
            assert_ne!(
                one["error"]["data"]["code"],
                "internalError",
                "{one} answers {}",
                String::from_utf8_lossy(&said)
            );
        }
        if answer["id"] == "last" {
            return;
        }
    }
}

/// Sends changed messages as frames: valid envelopes around changed parameters,
/// and changed bytes.
fn almost_right_frames(world: &World, samples: &[(&str, Value)], random: &mut Random) {
    let mut stream = connect(world);
    let mut said = b"TMK1".to_vec();
    for number in 0..=20 {
        let (method, params) = match number {
            20 => &("ping", json!({})),
            _ => random.one_of(samples),
        };
        let request = Request::from_json(method, changed_params(params, random))
            .or_else(|_| Request::from_json(method, params.clone()))
            .unwrap();
        let message = ClientMessage {
            id: Some(number.into()),
            within_ms: None,
            request,
        };
        let Ok(mut body) = frames::encode(&message) else {
            continue;
        };
        if number < 20 && random.below(2) == 0 {
            changed_bytes(&mut body, random);
            // A request to end would be granted.
            let ends = |message: &ClientMessage| matches!(message.request, Request::Shutdown(_));
            if frames::decode_client(&body).as_ref().is_ok_and(ends) {
                continue;
            }
        }
        said.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        said.extend(body);
    }
    if stream.write_all(&said).is_err() {
        return;
    }
    // Which method a changed number asked for is not known, but that the last
    // one is answered, or the connection closed before.
    let last = frames::encode(&ServerMessage::Reply {
        id: 20.into(),
        outcome: Ok(Reply::Ping(Done {})),
    })
    .unwrap();
    let (mut answers, mut part) = (Vec::new(), [0; 1 << 16]);
    while !answers.windows(last.len()).any(|bytes| bytes == last) {
        match stream.read(&mut part) {
            Ok(0) => return,
            Ok(length) => answers.extend_from_slice(&part[..length]),
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
                return;
            }
        }
    }
}
